/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "agent/cli.h"
#include "agent/lock.h"
#include "agent/revert.h"

#define LOCK_TIMEOUT_S 30

int np_verb_revert(const struct np_cli *cli, struct np_config *cfg, struct np_result *result)
{
	const struct np_revert_options options = { .last = cli->last,
						   .dry_run = cli->dry_run,
						   .force = cli->force };
	_cleanup_close_ int lock = -1;

	(void)cfg;
	if (np_verb_need_root(result, "revert needs root", "run it with sudo") < 0)
		return result->error.num;
	lock = np_lock(LOCK_TIMEOUT_S, &result->error);
	if (lock < 0)
		return np_verb_fail(result, lock == -EINTR ? NP_EXIT_ROLLED_BACK : NP_EXIT_REFUSED);
	return np_revert(&options, result);
}
