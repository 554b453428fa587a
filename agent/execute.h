/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_EXECUTE_H
#define NP_AGENT_EXECUTE_H

#include "agent/action.h"
#include "agent/now.h"

/* The only code that changes the system. */

/* The file that a NP_ACTION_FILE is about, not read yet; np_target_file_done frees. Returns 0
 * or -ENOMEM. */
int np_action_file(const struct np_action *a, struct np_target_file *f) np_must_check;

/* Before they are run: puts what the files of @actions[@from..] are now into them, times and
 * extended attributes too, and which folders will have to be made. Never fails: what cannot
 * be read now cannot be replaced in a moment either. */
void np_take_originals(struct np_actions *actions, size_t from);

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

/* Removes what lies about of the files of @actions, seen in @now, and of gdrdrv's node:
 * temporary ones, and folders that were made for a file that never came. False where a
 * temporary one could not be removed. */
bool np_sweep(const struct np_actions *actions, struct np_now *now);

/*
 * Takes every action back that is in effect, last first, and marks it undone; one that failed
 * stays failed. Goes on past what cannot be undone, or swept away, which is marked done. A loaded
 * module stays. Returns how many could not; the first reason is in @err.
 */
size_t np_rollback(struct np_netlink *nl, struct np_actions *actions, struct np_err *err);

#endif
