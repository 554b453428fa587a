/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_EXECUTE_H
#define NP_AGENT_EXECUTE_H

#include "agent/action.h"

/* The only code that changes the system. */

/*
 * Runs @actions[@from..] in order and marks each; the caller has put the undo of
 * all of them into the journal. Stops at the first failure or when a signal
 * came. A file that may not be touched, and whatever goes wrong in a home, marks
 * that action failed (a->failure says why) and the run goes on: no user can keep
 * the node from being configured.
 * Returns 0, -EINTR (a signal), or the negative errno of the failed action.
 */
int np_execute(struct np_netlink *nl, struct np_actions *actions, size_t from,
	       struct np_err *err) np_must_check;

/*
 * Takes every done action back, last first, and marks it undone. Goes on past
 * what cannot be undone. Returns how many could not; the first reason is in @err.
 */
size_t np_rollback(struct np_netlink *nl, struct np_actions *actions, struct np_err *err);

#endif
