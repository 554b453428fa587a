/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_REVERT_H
#define NP_AGENT_REVERT_H

#include "agent/result.h"

struct np_revert_options {
	bool last;    /* the last run alone */
	bool expire;  /* nobody confirmed it: that is noted for nodeprep confirm; with @last */
	bool dry_run; /* plan only */
	bool force;   /* also where it cuts the default route or a running job */
};

/*
 * Takes back what the record says, and what a run did that was killed or waits to be
 * confirmed: observe, plan (revert_plan.h), execute, verify. It has a journal of its own, and
 * a failure takes the revert back. Nothing to do: no file is written. The caller holds the
 * lock and is root. Fills @result; returns 0, or a negative errno with result->error and
 * result->exit set.
 */
int np_revert(const struct np_revert_options *options, struct np_result *result);

#endif
