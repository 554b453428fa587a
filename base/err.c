/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

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
	np_one_line(err->message, sizeof(err->message));
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
	np_one_line(err->hint, sizeof(err->hint));
}

void np_err_context(struct np_err *err, const char *fmt, ...)
{
	char old[sizeof(err->message)];
	va_list args;
	size_t len, room;

	if (!err)
		return;
	memcpy(old, err->message, sizeof(old));
	va_start(args, fmt);
	vsnprintf(err->message, sizeof(err->message) - 2, fmt, args);
	va_end(args);
	len = strlen(err->message);
	memcpy(err->message + len, ": ", 2);
	len += 2;
	room = sizeof(err->message) - len;
	/* what does not fit is cut */
	memcpy(err->message + len, old, room);
	err->message[sizeof(err->message) - 1] = '\0';
	np_one_line(err->message, sizeof(err->message));
}

int np_err_usage(struct np_err *err, const char *nearest, const char *what, const char *word)
{
	char shown[80];

	np_err_set(err, -EINVAL, "usage", "%s \"%s\"", what,
		   np_printable(word, shown, sizeof(shown)));
	if (nearest)
		np_err_hint(err, "did you mean %s?", nearest);
	return -EINVAL;
}

int np_err_nomem(struct np_err *err)
{
	return np_err_set(err, -ENOMEM, "internal.memory", "out of memory");
}
