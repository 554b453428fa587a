/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_TURN_H
#define NP_SELFTEST_TURN_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"

/*
 * Processes that prove their GPUs side by side share links, switches and memory. So what
 * gives a rung's bandwidth is measured by one of them at a time, while no other measures;
 * the rest is done together. A lock on a file that has no name (fcntl(2), F_SETLK): it goes
 * with a process that dies. Without np_turn_make all of this does nothing.
 */

/* Before the processes are forked. Each waits for others @patience_ms at most in all, and
 * goes on beside them after that. Returns 0 or a negative errno with message. */
int np_turn_make(int patience_ms, struct np_err *err) np_must_check;

/* Waits for a turn: @alone, or together with all who are not. One at a time a process. */
void np_turn_take(bool alone);
void np_turn_give(void);

#endif
