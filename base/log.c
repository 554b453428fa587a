/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/child.h"
#include "base/str.h"

static enum np_log_level max_level = NP_LOG_WARNING;
static bool progress_shown;
static char progress[200];     /* "" = none */
static int64_t progress_since; /* of the first one; 0 = there was none yet */

#define PROGRESS_AFTER_MS 500

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

/* Columns of the terminal less one: a full line would wrap, and what has wrapped cannot be
 * wiped by a carriage return. */
static int room(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return 79;
	return size.ws_col - 1;
}

static bool can_redraw(void)
{
	const char *term = getenv("TERM");

	return max_level >= NP_LOG_WARNING && term && *term && !np_streq(term, "dumb") &&
	       isatty(STDERR_FILENO);
}

static void draw(void)
{
	if (np_now_ms() - progress_since < PROGRESS_AFTER_MS)
		return;
	/* carriage return, text, erase to the end of the line */
	fprintf(stderr, "\r%.*s\033[K", room(), progress);
	fflush(stderr);
	progress_shown = true;
}

void np_progress(const char *fmt, ...)
{
	char raw[160];
	va_list args;

	if (!can_redraw())
		return;
	va_start(args, fmt);
	vsnprintf(raw, sizeof(raw), fmt, args);
	va_end(args);
	np_printable(raw, progress, sizeof(progress));
	if (!progress_since)
		progress_since = np_now_ms();
	draw();
}

void np_progress_tick(void)
{
	if (*progress && !progress_shown)
		draw();
}

void np_progress_done(void)
{
	progress[0] = '\0';
	if (!progress_shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	progress_shown = false;
}
