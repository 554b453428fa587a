/* SPDX-License-Identifier: MIT */
#include "agent/selftest_run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/helper.h"
#include "agent/json_text.h"
#include "agent/ladder.h"
#include "agent/selftest_child.h"
#include "agent/selftest_entry.h"
#include "agent/ucx_prefix.h"

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

static json_t *skipped_above(const struct np_ladder_step *step, const json_t *broken)
{
	char message[240], label[168];

	snprintf(message, sizeof(message), "not tried: the rung below it is broken, %s on %s (%s)",
		 json_string_value(json_object_get(broken, "rung")),
		 json_string_value(json_object_get(broken, "device")),
		 json_string_value(json_object_get(broken, "code")));
	return np_selftest_entry(step->rung, np_ladder_label(step, label), "skip",
				 "selftest.below_broken", message, "mend that first");
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

/* What its device is made for. */
static struct np_selftest_fair fair_of(const struct np_facts *facts,
				       const struct np_ladder_step *step)
{
	struct np_pci pci;
	char path[64];

	for (size_t i = 0; i < facts->cas.n; i++) {
		const struct np_ca *ca = &facts->cas.v[i];

		for (size_t p = 0; p < ca->n_ports; p++) {
			char name[80];

			snprintf(name, sizeof(name), "%s:%d", ca->name, ca->ports[p].num);
			if (np_streq(name, step->device))
				return np_selftest_fair_port(ca->ports[p].rate_gbps);
		}
	}
	if (!step->each_gpu)
		return (struct np_selftest_fair){ 0 };
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.16s", step->device);
	np_pci_read(path, &pci);
	return np_selftest_fair_gpu(step->rung, &pci);
}

static void judge(const struct np_config *cfg, const struct np_facts *facts,
		  const struct np_rung_options *options, const struct np_ladder_step *step,
		  json_t *entry)
{
	struct np_selftest_fair fair = fair_of(facts, step);
	char label[168];

	json_object_set_new(entry, "device", np_json_text(np_ladder_label(step, label)));
	judge_pair(step, entry);
	judge_lacking(options, step, entry);
	np_selftest_judge_bandwidth(entry, np_config_floor(cfg, step->rung), &fair);
}

/* Not to be run, and why, as an entry; NULL: it is to be run. */
static json_t *not_run(const struct runner *run, const struct np_ladder_step *step)
{
	const json_t *broken = broken_below(run, step);

	if (step->code[0])
		return np_selftest_entry(step->rung, step->device, "skip", step->code,
					 step->message, step->hint);
	return broken ? skipped_above(step, broken) : NULL;
}

/* Steps that one child can do: the GPUs of a rung. */
static size_t alike(const struct np_ladder_step *steps, size_t most)
{
	size_t n = 1;

	while (steps[0].each_gpu && n < most && steps[n].each_gpu &&
	       np_streq(steps[n].rung, steps[0].rung))
		n++;
	return n;
}

/* The next step, with those that go with it: *@n of them. */
static int run_some(struct runner *run, const struct np_config *cfg, const struct np_facts *facts,
		    const struct np_ladder_step *steps, size_t most, size_t *n)
{
	_cleanup_free_ json_t **got = NULL;
	_cleanup_free_ bool *tried = NULL;
	int r;

	*n = alike(steps, most);
	got = calloc(*n, sizeof(json_t *));
	tried = calloc(*n, sizeof(bool));
	if (!got || !tried)
		return np_err_nomem(run->err);
	for (size_t i = 0; i < *n; i++) {
		got[i] = not_run(run, &steps[i]);
		tried[i] = !got[i];
	}
	r = np_selftest_child(run->options, &run->helper, steps, *n, got, run->err);
	for (size_t i = 0; i < *n; i++) {
		if (r == 0 && tried[i])
			judge(cfg, facts, run->options, &steps[i], got[i]);
		if (r == 0)
			r = append(run, got[i]);
		else
			json_decref(got[i]);
	}
	return r;
}

int np_selftest_run(const struct np_config *cfg, const struct np_facts *facts,
		    const struct np_selection *sel, const struct np_rung_options *options,
		    json_t *entries, struct np_err *err)
{
	np_auto_rdma_users struct np_rdma_users users = { 0 };
	np_auto_ladder struct np_ladder ladder = { 0 };
	struct runner run = { .options = options, .entries = entries, .err = err };
	int r = np_helper_open(options->run_as, options->as_root, &run.helper, err);

	if (r == 0 && options->library_path)
		r = np_ucx_prefix_try(&run.helper, options->library_path, options->env, err);
	if (r == 0) {
		np_helper_find_limit(&run.helper);
		r = np_rdma_users_observe(0, &users, err);
	}
	if (r == 0)
		r = np_ladder_make(cfg, facts, sel, options->rungs, &users, options->force, &ladder,
				   err);
	for (size_t i = 0; i < ladder.n && r == 0;) {
		size_t n = 0;

		r = run_some(&run, cfg, facts, &ladder.v[i], ladder.n - i, &n);
		i += n;
	}
	np_helper_done(&run.helper);
	return r;
}
