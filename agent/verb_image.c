/* SPDX-License-Identifier: MIT */
/* apply --root DIR and plan --root DIR: main has made DIR the root of this process. */
#include <errno.h>
#include <string.h>

#include "agent/cli.h"
#include "agent/execute.h"
#include "agent/image.h"
#include "agent/judge.h"
#include "agent/plan.h"

struct image {
	struct np_config *cfg;
	struct np_result *result;
	struct np_facts facts;
};

/* What there is to do now, into @planned. */
static int look(struct image *im, struct np_actions *planned, struct np_checks *left)
{
	int r;

	np_facts_done(&im->facts);
	r = np_image_observe(im->cfg, &im->facts, left, &im->result->error);
	if (r == 0)
		r = np_plan_make(im->cfg, &im->facts, NP_PLAN_FILES, planned, &im->result->error);
	if (r == 0)
		np_image_keep(planned);
	return r;
}

static void count(const struct np_actions *actions, bool *changed, bool *failed)
{
	for (size_t i = 0; i < actions->n; i++) {
		*changed |= actions->v[i].status == NP_STATUS_DONE;
		*failed |= actions->v[i].status == NP_STATUS_FAILED;
	}
}

/* A file that was refused when it was to be written; one that was seen before is judged. */
static void add_failures(struct np_result *result)
{
	for (size_t i = 0; i < result->actions.n; i++) {
		const struct np_action *a = &result->actions.v[i];

		if (a->status == NP_STATUS_FAILED)
			np_checks_add(&result->checks, "file", a->path, NP_CHECK_FAIL,
				      a->failure_code[0] ? a->failure_code : "file.refused",
				      a->failure_hint, "%s",
				      a->failure ? a->failure : "could not be written");
	}
}

static int write_files(struct image *im)
{
	np_auto_actions struct np_actions rest = { 0 };
	np_auto(np_checks_done) struct np_checks again = { 0 };
	struct np_result *result = im->result;
	struct np_err undo = { 0 };
	bool failed = false;
	int r = np_execute(NULL, &result->actions, 0, &result->error);

	if (r < 0) {
		struct np_err why = result->error;

		result->changed = np_rollback(NULL, &result->actions, &undo) > 0;
		result->error = why;
		return np_verb_fail(result, NP_EXIT_ROLLED_BACK);
	}
	count(&result->actions, &result->changed, &failed);
	add_failures(result);
	r = look(im, &rest, &again);
	if (r < 0)
		return np_verb_fail(result, NP_EXIT_INTERNAL);
	result->converged = rest.n == 0 && !failed;
	return 0;
}

int np_verb_image(const struct np_cli *cli, struct np_config *cfg, struct np_result *result)
{
	struct image im = { .cfg = cfg, .result = result };
	bool plan = cli->dry_run || cli->verb->bit == NP_VERB_PLAN;
	int r = look(&im, &result->actions, &result->checks);

	if (r < 0)
		r = np_verb_fail(result, r == -ENOMEM ? NP_EXIT_INTERNAL : NP_EXIT_REFUSED);
	else if (plan)
		result->converged = result->actions.n == 0;
	else
		r = write_files(&im);
	if (r == 0) {
		np_judge_files(cfg, &im.facts, &result->checks);
		if (result->checks.failed) {
			np_err_nomem(&result->error);
			r = np_verb_fail(result, NP_EXIT_INTERNAL);
		}
	}
	if (r == 0 && !plan)
		result->exit = np_result_ready(result) ? NP_EXIT_READY : NP_EXIT_NOT_READY;
	np_facts_done(&im.facts);
	return r;
}
