/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "agent/cli.h"
#include "agent/in_use.h"
#include "agent/judge.h"
#include "agent/plan.h"

/* plan and check: observe, plan, judge; nothing is changed. */

static int look(struct np_config *cfg, bool thorough, struct np_result *result,
		struct np_facts *facts)
{
	int r = np_observe(cfg, NP_OBSERVE_WANTED, facts, &result->error);

	if (r == 0 && np_libraries_matter(facts, thorough))
		r = np_libraries_ask(np_nvlink_matters(cfg, facts), &facts->libraries,
				     &result->error);
	if (r == 0 && thorough && np_libraries_matter(facts, thorough))
		r = np_census_look(cfg, &facts->census, &result->error);
	if (r < 0)
		return np_verb_fail(result, r == -EADDRNOTAVAIL ? NP_EXIT_REFUSED :
					    r == -EBADMSG	? NP_EXIT_USAGE :
								  NP_EXIT_INTERNAL);
	if (facts->gpus.n > 0)
		np_observe_pci(facts);
	r = np_plan_make(cfg, facts, NP_PLAN_ALL, &result->actions, &result->error);
	if (r < 0)
		return np_verb_fail(result, r == -ENOMEM ? NP_EXIT_INTERNAL : NP_EXIT_REFUSED);
	result->converged = result->actions.n == 0;
	return 0;
}

static int judge(const struct np_config *cfg, struct np_facts *facts, struct np_result *result)
{
	np_auto_selection struct np_selection sel = { 0 };

	if (np_select(cfg, facts, &sel, &result->error) < 0) {
		/* the plan has modules to load, and they may bring the netdev */
		if (result->actions.n == 0)
			return np_verb_fail(result, NP_EXIT_REFUSED);
		np_checks_add(&result->checks, "netdev", "node", NP_CHECK_WARN,
			      "netdev.waits_for_module", "run nodeprep apply", "%s",
			      result->error.message);
		np_err_clear(&result->error);
	}
	if (np_services_observe(NP_SERVICES_ALL, &facts->services) < 0)
		result->checks.failed = true;
	np_judge(cfg, facts, &sel, &result->checks);
	if (result->checks.failed) {
		np_err_nomem(&result->error);
		return np_verb_fail(result, NP_EXIT_INTERNAL);
	}
	return 0;
}

/* What apply would refuse, plan does; check asks whether the node is well. */
static int refuse_in_use(const struct np_config *cfg, struct np_result *result)
{
	int r = np_in_use_check(&result->actions, cfg->force, &result->checks, &result->error);

	return r < 0 ? np_verb_fail(result, r == -ENOMEM ? NP_EXIT_INTERNAL : NP_EXIT_REFUSED) : 0;
}

static int look_and_judge(struct np_config *cfg, bool thorough, struct np_result *result)
{
	np_auto_facts struct np_facts facts = { 0 };
	int r = look(cfg, thorough, result, &facts);

	if (r == 0 && !thorough)
		r = refuse_in_use(cfg, result);
	return r == 0 ? judge(cfg, &facts, result) : r;
}

int np_verb_plan(const struct np_cli *cli, struct np_config *cfg, struct np_result *result)
{
	return cli->root ? np_verb_image(cli, cfg, result) : look_and_judge(cfg, false, result);
}

int np_verb_check(const struct np_cli *cli, struct np_config *cfg, struct np_result *result)
{
	int r = look_and_judge(cfg, true, result);

	(void)cli;
	if (r == 0)
		result->exit = np_result_ready(result) ? NP_EXIT_READY : NP_EXIT_NOT_READY;
	return r;
}
