/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

static enum np_log_level max_level = NP_LOG_WARNING;
static bool progress_shown;

void np_log_set_level(enum np_log_level level)
{
	max_level = level;
}

void np_log(enum np_log_level level, const char *fmt, ...)
{
	char raw[1200], line[1800];
	va_list args;

	if (level > max_level)
		return;
	va_start(args, fmt);
	vsnprintf(raw, sizeof(raw), fmt, args);
	va_end(args);
	np_progress_done();
	fprintf(stderr, "nodeprep: %s%s\n", level == NP_LOG_WARNING ? "warning: " : "",
		np_printable(raw, line, sizeof(line)));
}

void np_progress(const char *fmt, ...)
{
	char raw[160], line[200];
	va_list args;

	if (max_level < NP_LOG_WARNING || !isatty(STDERR_FILENO))
		return;
	va_start(args, fmt);
	vsnprintf(raw, sizeof(raw), fmt, args);
	va_end(args);
	/* carriage return, text, erase to the end of the line */
	fprintf(stderr, "\r%s\033[K", np_printable(raw, line, sizeof(line)));
	fflush(stderr);
	progress_shown = true;
}

void np_progress_done(void)
{
	if (!progress_shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	progress_shown = false;
}
