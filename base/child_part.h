/* SPDX-License-Identifier: MIT */
#ifndef NP_BASE_CHILD_PART_H
#define NP_BASE_CHILD_PART_H

#include "base/child.h"

/* What child.c (programs) and call.c (functions) share. */

/* What a signal does: a program is stopped; a function under another identity is
 * let through to its end, since half of a file operation helps nobody. */
enum np_on_signal { NP_STOP_ON_SIGNAL, NP_FINISH_FIRST };

/* The child's side: a session of its own without terminal, dies with @parent, gets no new
 * privileges, dumps no core, and handles signals as by default. */
void np_child_limit(pid_t parent);

/* Takes what the pipe has, of which @max bytes are kept; closes it at its end (*fd is -1). */
void np_child_drain(int *fd, struct np_buf *buf, size_t max);

/* Reaps within what is left of the deadline (np_now_ms), then kills the whole group. Sets
 * how it ended, timed_out and interrupted of @result. */
void np_child_reap(pid_t pid, enum np_on_signal mode, int64_t deadline,
		   struct np_child_result *result);

#endif
