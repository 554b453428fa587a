/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_WATCH_H
#define NP_SELFTEST_WATCH_H

#include <stdbool.h>

#include "selftest/rung.h"

/*
 * The watch over a process that works on one device after the other: each device has the
 * whole deadline, and whatever becomes of one, what is known of those before it is told.
 * A call into a library that never returns is ended by SIGALRM, 3 s after the deadline.
 */

/* Begins with @device (NULL = not known yet) of @rung, for @timeout_ms each. @lines: a
 * document an entry, written as soon as there is a verdict; else one in the end. Returns 0
 * or -ENOMEM with message. */
int np_watch_start(const char *rung, const char *device, int timeout_ms, bool lines,
		   struct np_err *err) np_must_check;

/* The same for what is no rung: writes @document (which it takes) when time is up. */
int np_watch_start_with(char *document, int timeout_ms, struct np_err *err) np_must_check;

/* "... hung: a call into a library did not return within N ms", code selftest.timeout. */
void np_watch_hang(const char *what, int timeout_ms, struct np_err *hang);

/* All entries of @report are final and @device is next. Returns its deadline as a time of
 * np_now_ms(); @deadline_ms when no watch was started. */
int64_t np_watch_device(const struct np_rung_report *report, const char *device,
			int64_t deadline_ms);

/* Ends it and writes what was not told yet; @error (may be NULL) becomes the document's.
 * Returns 0 or a negative errno. */
int np_watch_end(const struct np_rung_report *report, const struct np_err *error) np_must_check;

/* Writes all of @text where the report goes. Safe in a signal handler. */
int np_watch_write(const char *text);

#endif
