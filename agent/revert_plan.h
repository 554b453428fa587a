/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_REVERT_PLAN_H
#define NP_AGENT_REVERT_PLAN_H

#include "agent/record.h"
#include "agent/result.h"

/*
 * The policy of an undo: (what was changed, how it stands now) -> actions. Pure.
 *
 * @changes are the done actions of one run or of many (np_record_merge); they are taken back
 * last first, each only where the thing still stands as we left it. What somebody changed
 * since is theirs: a shared file loses our keys alone, an address of others stays, and the
 * rest is left and told as a check (warn): "revert.edited", "revert.changed_since",
 * "revert.link_kept", "revert.module_kept"; "revert.file_refused" (fail) is a file that may
 * not be touched. An empty plan is the proof that all is back.
 *
 * Returns 0 or a negative errno with message; @out is untouched then.
 */
int np_revert_plan(const struct np_actions *changes, const struct np_now *now,
		   struct np_actions *out, struct np_checks *checks,
		   struct np_err *err) np_must_check;

#endif
