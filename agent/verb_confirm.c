/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "agent/cli.h"
#include "agent/lock.h"
#include "agent/revert.h"
#include "agent/run.h"

#define LOCK_TIMEOUT_S 30

static int too_late(struct np_result *result, const char *what)
{
	np_err_set(&result->error, -ETIME, "confirm.too_late", "%s", what);
	np_err_hint(&result->error, "run apply --confirm again, with more time");
	return np_verb_fail(result, NP_EXIT_ROLLED_BACK);
}

/* Nobody did it yet: it was killed, or is about to. */
static int take_back(struct np_result *result)
{
	const struct np_revert_options options = { .last = true, .expire = true, .force = true };
	int r = np_revert(&options, result);

	return r < 0 ? r :
		       too_late(
			       result,
			       "that run was ended before it was finished, or its time is over: it has been taken back");
}

static int settle(struct np_run *run, struct np_result *result)
{
	int r = np_run_look(run, &result->checks, &result->error);

	if (r == 0)
		r = np_run_load(run, NP_CHECK_WARN, &result->checks, &result->error);
	if (r < 0)
		return np_verb_fail(result, r == -ENOMEM ? NP_EXIT_INTERNAL : NP_EXIT_REFUSED);
	if (np_run_is_overdue(run))
		return take_back(result);
	if (!np_run_is_pending(run)) {
		if (run->record.expired[0])
			return too_late(
				result,
				"the run was not confirmed in time: it has been taken back");
		result->converged = true;
		return 0;
	}
	r = np_run_begin(run, &result->checks, &result->error);
	if (r == 0)
		r = np_run_keep(run, &run->old.actions, &result->error);
	if (r < 0)
		return np_verb_fail(result, NP_EXIT_REFUSED);
	np_checks_add(&result->checks, "confirm", "node", NP_CHECK_OK, "confirm.kept", NULL,
		      "the changes of the last run (%zu) are kept", run->old.actions.n);
	result->converged = true;
	return 0;
}

int np_verb_confirm(const struct np_cli *cli, struct np_config *cfg, struct np_result *result)
{
	np_auto_run struct np_run run = NP_RUN_INIT;
	_cleanup_close_ int lock = -1;

	(void)cli;
	(void)cfg;
	if (np_verb_need_root(result, "confirm needs root", "run it with sudo") < 0)
		return result->error.num;
	lock = np_lock(LOCK_TIMEOUT_S, &result->error);
	if (lock < 0)
		return np_verb_fail(result, lock == -EINTR ? NP_EXIT_ROLLED_BACK : NP_EXIT_REFUSED);
	return settle(&run, result);
}
