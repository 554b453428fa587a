/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void np_err_clear(struct np_err *err)
{
	if (err)
		memset(err, 0, sizeof(*err));
}

int np_err_set(struct np_err *err, int num, const char *code, const char *fmt, ...)
{
	va_list args;

	if (!err)
		return num;
	np_err_clear(err);
	err->num = num;
	snprintf(err->code, sizeof(err->code), "%s", code ? code : "");
	va_start(args, fmt);
	vsnprintf(err->message, sizeof(err->message), fmt, args);
	va_end(args);
	return num;
}

void np_err_hint(struct np_err *err, const char *fmt, ...)
{
	va_list args;

	if (!err)
		return;
	va_start(args, fmt);
	vsnprintf(err->hint, sizeof(err->hint), fmt, args);
	va_end(args);
}

void np_err_context(struct np_err *err, const char *fmt, ...)
{
	char old[sizeof(err->message)];
	va_list args;
	int len;

	if (!err)
		return;
	memcpy(old, err->message, sizeof(old));
	va_start(args, fmt);
	len = vsnprintf(err->message, sizeof(err->message), fmt, args);
	va_end(args);
	if (len < 0)
		len = 0;
	if ((size_t)len < sizeof(err->message))
		snprintf(err->message + len, sizeof(err->message) - (size_t)len, ": %s", old);
}

int np_err_nomem(struct np_err *err)
{
	return np_err_set(err, -ENOMEM, "internal.memory", "out of memory");
}
