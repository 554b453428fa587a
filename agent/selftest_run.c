/* SPDX-License-Identifier: MIT */
#include "agent/selftest_run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/helper.h"
#include "agent/ladder.h"
#include "agent/selftest_entry.h"

#define ENV_MAX 64

struct runner {
	const struct np_rung_options *options;
	struct np_helper helper;
	json_t *entries;
	struct np_err *err;
};

static int append(struct runner *run, json_t *entry)
{
	return json_array_append_new(run->entries, entry) < 0 ? np_err_nomem(run->err) : 0;
}

static int add_crash(struct runner *run, const struct np_ladder_step *step,
		     const struct np_child_result *result)
{
	struct np_err err;

	np_helper_failure(result, "the rung", run->options->timeout_ms, &err);
	return append(run, np_selftest_entry(step->rung, step->device, "fail", err.code,
					     err.message, err.hint));
}

/* The child knows its limit alone; where that comes from is known here. */
static int explain_memlock(struct runner *run, const struct np_child_result *result)
{
	json_t *entry = json_array_get(run->entries, json_array_size(run->entries) - 1), *text;
	const char *code = json_string_value(json_object_get(entry, "code"));
	const char *said = json_string_value(json_object_get(entry, "message"));
	size_t len = code ? strlen(code) : 0;
	char login[NP_MEMLOCK_STRLEN];

	if (!run->helper.has_limit || len < 8 || strcmp(code + len - 8, ".memlock") != 0)
		return 0;
	if (result->memlock_less)
		text = json_sprintf("%s, all that can be given here; user %s gets %s at login (%s)",
				    said, run->helper.user,
				    np_memlock_str(run->helper.limit.limit.soft, login),
				    run->helper.limit.source);
	else
		text = json_sprintf("%s, as user %s gets it at login (%s)", said, run->helper.user,
				    run->helper.limit.source);
	if (json_object_set_new(entry, "message", text) < 0)
		return -ENOMEM;
	if (result->memlock_less)
		text = json_string("raise the memlock limit of what starts nodeprep, or give it "
				   "CAP_SYS_RESOURCE");
	else if (*run->helper.limit.source == '/')
		text = json_sprintf("correct %s, or set [limits] memlock = unlimited and run "
				    "nodeprep apply",
				    run->helper.limit.source);
	else
		text = json_string("set [limits] memlock = unlimited and run nodeprep apply");
	return json_object_set_new(entry, "hint", text) < 0 ? -ENOMEM : 0;
}

/* Its arguments. Not by its environment: the child drops what could lead UCX astray. */
struct arguments {
	const char *v[24 + 2 * ENV_MAX];
	size_t n;
	char timeout[16];
};

static void add_argument(struct arguments *args, const char *option, const char *value)
{
	if (!value || !*value)
		return;
	args->v[args->n++] = option;
	args->v[args->n++] = value;
}

static void make_arguments(const struct np_rung_options *options, const struct np_ladder_step *step,
			   struct arguments *args)
{
	args->v[args->n++] = NP_HELPER_PROGRAM;
	args->v[args->n++] = step->rung;
	add_argument(args, step->is_netdev ? "--netdev" : "--device", step->device);
	add_argument(args, "--peer", step->peer);
	add_argument(args, "--gpu", step->gpu);
	add_argument(args, "--address", step->address);
	args->v[args->n++] = options->full ? "--full" : "--quick";
	if (options->force)
		args->v[args->n++] = "--force";
	/* its own deadline comes first (its alarm 3 s after that), so that it can still
	 * say what hung */
	snprintf(args->timeout, sizeof(args->timeout), "%d",
		 options->timeout_ms > 12000 ? options->timeout_ms - 5000 :
					       options->timeout_ms / 2);
	add_argument(args, "--timeout-ms", args->timeout);
	for (size_t i = 0; options->env && i < options->env->n && i < ENV_MAX; i++)
		add_argument(args, "--env", options->env->v[i]);
}

static int run_step(struct runner *run, const struct np_ladder_step *step)
{
	np_auto_child_result struct np_child_result result = { 0 };
	struct arguments args = { 0 };
	char name[160];
	int r;

	make_arguments(run->options, step, &args);
	snprintf(name, sizeof(name), "selftest %s %s", step->rung, step->device);
	r = np_helper_run(&run->helper,
			  &(const struct np_helper_job){
				  .name = name,
				  .argv = args.v,
				  .as_root = step->as_root,
				  .login_limit = true,
				  .library_path = step->as_root ? NULL : run->options->library_path,
				  .make_directory = true,
				  .timeout_ms = run->options->timeout_ms },
			  &result, run->err);
	if (r < 0)
		return r;
	r = result.timed_out || result.term_signal ?
		    -EPROTO :
		    np_selftest_take(&result, step->rung, step->device, run->entries);
	if (r == -EPROTO)
		return add_crash(run, step, &result);
	if (r == 0)
		r = explain_memlock(run, &result);
	return r < 0 ? np_err_nomem(run->err) : 0;
}

/* What failed below it in this run. NULL: nothing did. */
static const json_t *broken_below(const struct runner *run, const struct np_ladder_step *step)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (run->entries, i, entry)
		if (np_streq(json_string_value(json_object_get(entry, "status")), "fail") &&
		    np_ladder_is_below(json_string_value(json_object_get(entry, "rung")),
				       json_string_value(json_object_get(entry, "device")), step))
			return entry;
	return NULL;
}

static int skip_above(struct runner *run, const struct np_ladder_step *step, const json_t *broken)
{
	char message[240], label[168];

	snprintf(message, sizeof(message), "not tried: the rung below it is broken, %s on %s (%s)",
		 json_string_value(json_object_get(broken, "rung")),
		 json_string_value(json_object_get(broken, "device")),
		 json_string_value(json_object_get(broken, "code")));
	return append(run, np_selftest_entry(step->rung, np_ladder_label(step, label), "skip",
					     "selftest.below_broken", message, "mend that first"));
}

/* Each port works by itself, and there is no way from one to the other: that may be as
 * it was built. */
static void judge_pair(const struct np_ladder_step *step, json_t *entry)
{
	if (step->peer[0] &&
	    np_streq(json_string_value(json_object_get(entry, "code")), "selftest.verbs.no_path"))
		json_object_set_new(entry, "status", json_string("warn"));
}

/* Jobs may bring their own UCX, and gdrcopy is for those who want it: what the installed
 * one lacks is no fault of the node, unless the rung was asked for by name. */
static void judge_lacking(const struct np_rung_options *options, const struct np_ladder_step *step,
			  json_t *entry)
{
	const char *code = json_string_value(json_object_get(entry, "code"));

	if (!np_strv_has(options->rungs, step->rung) &&
	    (np_streq(code, "ucx.built_without") ||
	     (np_streq(code, "ucx.transport_missing") && np_streq(step->rung, "gdr_copy"))))
		json_object_set_new(entry, "status", json_string("skip"));
}

static void judge(const struct np_config *cfg, const struct np_facts *facts,
		  const struct np_rung_options *options, const struct np_ladder_step *step,
		  json_t *entry)
{
	double floor = np_config_floor(cfg, step->rung), rate = 0;
	char label[168];

	json_object_set_new(entry, "device", json_string(np_ladder_label(step, label)));
	judge_pair(step, entry);
	judge_lacking(options, step, entry);
	for (size_t i = 0; i < facts->cas.n; i++) {
		const struct np_ca *ca = &facts->cas.v[i];

		for (size_t p = 0; p < ca->n_ports; p++) {
			char name[80];

			snprintf(name, sizeof(name), "%s:%d", ca->name, ca->ports[p].num);
			if (np_streq(name, step->device))
				rate = ca->ports[p].rate_gbps;
		}
	}
	np_selftest_judge_bandwidth(entry, floor, rate);
}

int np_selftest_run(const struct np_config *cfg, const struct np_facts *facts,
		    const struct np_selection *sel, const struct np_rung_options *options,
		    json_t *entries, struct np_err *err)
{
	np_auto_rdma_users struct np_rdma_users users = { 0 };
	np_auto_ladder struct np_ladder ladder = { 0 };
	struct runner run = { .options = options, .entries = entries, .err = err };
	int r = np_helper_open(options->run_as, options->as_root, &run.helper, err);

	if (r == 0) {
		np_helper_find_limit(&run.helper);
		r = np_rdma_users_observe(0, &users, err);
	}
	if (r == 0)
		r = np_ladder_make(cfg, facts, sel, options->rungs, &users, options->force, &ladder,
				   err);
	for (size_t i = 0; i < ladder.n && r == 0; i++) {
		const struct np_ladder_step *step = &ladder.v[i];
		const json_t *broken = broken_below(&run, step);

		if (step->code[0]) {
			r = append(&run, np_selftest_entry(step->rung, step->device, "skip",
							   step->code, step->message, step->hint));
		} else if (broken) {
			r = skip_above(&run, step, broken);
		} else {
			r = run_step(&run, step);
			if (r == 0)
				judge(cfg, facts, options, step,
				      json_array_get(entries, json_array_size(entries) - 1));
		}
	}
	np_helper_done(&run.helper);
	return r;
}
