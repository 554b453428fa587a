/* SPDX-License-Identifier: MIT */
#ifndef NP_BASE_LOG_H
#define NP_BASE_LOG_H

#include <stdbool.h>

/* All of this goes to stderr: stdout belongs to the report alone. */

enum np_log_level { NP_LOG_ERROR, NP_LOG_WARNING, NP_LOG_INFO, NP_LOG_DEBUG };

/* Messages above @level are dropped. Default: NP_LOG_WARNING. */
void np_log_set_level(enum np_log_level level);

/* One line, "nodeprep: " in front, a newline added; control characters from
 * outside are shown escaped, so that a hostile name cannot drive a terminal. */
void np_log(enum np_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define np_error(...)	np_log(NP_LOG_ERROR, __VA_ARGS__)
#define np_warning(...) np_log(NP_LOG_WARNING, __VA_ARGS__)
#define np_info(...)	np_log(NP_LOG_INFO, __VA_ARGS__)
#define np_debug(...)	np_log(NP_LOG_DEBUG, __VA_ARGS__)

/* Progress: a line on stderr that is redrawn in place, only when stderr is a
 * terminal that can do that and the level is not below INFO's default; nothing otherwise.
 * It is cut to the terminal's width, and the first half second of a run shows none. */
void np_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* For who waits long after np_progress: draws what was too early then. */
void np_progress_tick(void);

/* Wipes the progress line, if one is shown. */
void np_progress_done(void);

#endif
