/* SPDX-License-Identifier: MIT */
#include "agent/revert.h"

#include <errno.h>
#include <string.h>

#include "agent/cli.h"
#include "agent/execute.h"
#include "agent/in_use.h"
#include "agent/plan.h"
#include "agent/record.h"
#include "agent/revert_plan.h"
#include "agent/run.h"

#define MAX_ROUNDS 8 /* each takes a module at least */

struct revert {
	const struct np_revert_options *options;
	struct np_result *result;
	struct np_run run;
	struct np_netlink *nl;
	struct np_actions carried; /* of a run that was found: killed, or not confirmed */
	struct np_actions changes; /* what is to be taken back */
	bool refused;
};

static int add_copy(struct np_actions *to, const struct np_actions *from, struct np_err *err)
{
	struct np_action undo, *slot;

	for (size_t i = 0; i < from->n; i++) {
		slot = np_actions_add(to, from->v[i].kind);
		if (!slot || np_action_invert(&from->v[i], &undo) < 0)
			return np_err_nomem(err);
		if (np_action_invert(&undo, slot) < 0) {
			np_action_done(&undo);
			return np_err_nomem(err);
		}
		np_action_done(&undo);
		slot->status = NP_STATUS_DONE;
	}
	return 0;
}

static bool has_object(const struct np_actions *list, const struct np_action *a)
{
	for (size_t i = 0; i < list->n; i++)
		if (np_action_same_object(&list->v[i], a))
			return true;
	return false;
}

/* The last run is the one that was found, unless that was a revert itself: then what it left
 * to do of the one before it. */
static int collect_last(struct revert *rv)
{
	struct np_err *err = &rv->result->error;
	int r;

	if (rv->run.found && !rv->run.old.reverts)
		return add_copy(&rv->changes, &rv->carried, err);
	r = add_copy(&rv->changes, &rv->run.record.last, err);
	for (size_t i = 0; i < rv->carried.n && r == 0; i++) {
		const struct np_actions one = { &rv->carried.v[i], 1 };

		if (has_object(&rv->changes, &rv->carried.v[i]))
			r = np_record_merge(&rv->changes, &one, err);
	}
	return r;
}

static int collect(struct revert *rv)
{
	struct np_result *result = rv->result;
	int r = np_run_look(&rv->run, &result->checks, &result->error);

	if (r == 0 && !rv->options->dry_run)
		np_state_sweep();
	if (r == 0)
		r = np_run_load(&rv->run, NP_CHECK_FAIL, &result->checks, &result->error);
	if (r == 0 && rv->run.found)
		r = np_run_carry(&rv->run, &rv->carried, &result->error);
	if (r < 0)
		return r;
	if (rv->options->last)
		return collect_last(rv);
	r = add_copy(&rv->changes, &rv->run.record.base, &result->error);
	return r < 0 ? r : np_record_merge(&rv->changes, &rv->carried, &result->error);
}

/* Looks, and plans what is left to do; the checks say what stays as it is. */
static int plan(struct revert *rv, struct np_now *now, struct np_actions *out,
		struct np_checks *checks)
{
	struct np_err *err = &rv->result->error;
	int r = np_now_observe(&rv->changes, now, err);

	return r < 0 ? r : np_revert_plan(&rv->changes, now, out, checks, err);
}

static int run_plan(struct revert *rv, size_t from)
{
	struct np_result *result = rv->result;
	int r = rv->nl ? 0 : np_netlink_open(&rv->nl, &result->error);

	rv->run.reverts = !rv->run.found || rv->run.old.reverts;
	/* if this is killed, too, it is still a run that nobody confirmed */
	rv->run.deadline_ms = rv->run.old.deadline_ms;
	np_take_originals(&result->actions, from);
	if (r == 0)
		r = np_run_begin(&rv->run, &result->checks, &result->error);
	if (r == 0)
		r = np_run_write(&rv->run, &rv->run.old.actions, &result->actions, &result->error);
	rv->refused |= r < 0 && r != -ENOMEM;
	return r < 0 ? r : np_execute(rv->nl, &result->actions, from, &result->error);
}

/* A module may be free once one that used it is gone, and not before: what more is to be done
 * then. Anything else that is left is for the verification. */
static int take_modules(struct revert *rv, struct np_actions *left)
{
	struct np_actions *all = &rv->result->actions;
	size_t kept = 0;

	for (size_t i = 0; i < left->n; i++) {
		if (left->v[i].kind != NP_ACTION_MODULE || has_object(all, &left->v[i]))
			np_action_done(&left->v[i]);
		else
			left->v[kept++] = left->v[i];
	}
	left->n = kept;
	return np_actions_move(all, left) < 0 ? np_err_nomem(&rv->result->error) : 0;
}

static int run(struct revert *rv)
{
	struct np_actions *all = &rv->result->actions;
	size_t from = 0;

	for (int round = 0; from < all->n && round < MAX_ROUNDS; round++) {
		np_auto_actions struct np_actions left = { 0 };
		np_auto_now struct np_now now = { 0 };
		struct np_checks told = { 0 };
		int r = run_plan(rv, from);

		from = all->n;
		if (r == 0)
			r = plan(rv, &now, &left, &told);
		np_checks_done(&told);
		if (r == 0)
			r = take_modules(rv, &left);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What failed without ending the run: a file in a home, a module. Drops it from what is left
 * to do, and says so. */
static void tell_failures(struct revert *rv, struct np_actions *left)
{
	struct np_result *result = rv->result;

	for (size_t i = 0; i < result->actions.n; i++) {
		const struct np_action *a = &result->actions.v[i];
		bool file = a->kind == NP_ACTION_FILE;

		if (a->status != NP_STATUS_FAILED)
			continue;
		np_checks_add(&result->checks, file ? "file" : "module", np_action_target(a),
			      file ? NP_CHECK_FAIL : NP_CHECK_WARN,
			      file ? "revert.file_refused" : "revert.module_kept",
			      a->failure_hint[0] ? a->failure_hint :
						   "put that right and run it again",
			      "not taken back: %s", a->failure ? a->failure : "it failed");
		for (size_t k = left->n; k-- > 0;) {
			if (!np_action_same_object(&left->v[k], a))
				continue;
			np_action_done(&left->v[k]);
			memmove(&left->v[k], &left->v[k + 1], (--left->n - k) * sizeof(*left->v));
		}
	}
}

/* The record loses what was taken back, and of the rest what somebody has put back. */
static int settle(struct revert *rv, const struct np_now *now)
{
	struct np_record *record = &rv->run.record;
	struct np_err *err = &rv->result->error;
	size_t before = record->base.n + record->last.n;
	int r = np_record_merge(&record->base, &rv->carried, err);

	if (r == 0)
		r = np_record_merge(&record->base, &rv->result->actions, err);
	if (r == 0 && !rv->options->last && np_actions_net(&record->base, now, &record->base) < 0)
		r = np_err_nomem(err);
	if (r < 0)
		return r;
	np_actions_done(&record->last);
	if (rv->options->expire)
		np_strcpy(record->expired, sizeof(record->expired), rv->run.old.run);
	else if (rv->result->actions.n)
		record->expired[0] = '\0';
	if (rv->result->actions.n == 0 && !rv->run.found &&
	    before == record->base.n + record->last.n)
		return 0;
	/* a journal of that name is done with, should it be found again */
	np_strcpy(record->run, sizeof(record->run), rv->run.run[0] ? rv->run.run : rv->run.old.run);
	return np_run_save(&rv->run, err);
}

/* An empty plan is the proof. */
static int verify(struct revert *rv)
{
	np_auto_actions struct np_actions left = { 0 };
	np_auto_now struct np_now now = { 0 };
	int r = plan(rv, &now, &left, &rv->result->checks);

	if (r < 0)
		return r;
	tell_failures(rv, &left);
	rv->result->converged = left.n == 0;
	if (left.n)
		np_checks_add(&rv->result->checks, "plan", "node", NP_CHECK_FAIL,
			      "plan.not_converged",
			      "run nodeprep revert again; something on this node changes it back",
			      "there is still something to take back");
	return settle(rv, &now);
}

static int give_up(struct revert *rv)
{
	struct np_result *result = rv->result;
	struct np_err why = result->error, undo = { 0 };
	size_t lost = rv->nl ? np_rollback(rv->nl, &result->actions, &undo) : 0;

	result->error = why;
	result->changed = lost > 0;
	if (lost) {
		np_err_hint(&result->error,
			    "look at the actions marked done: %zu could not be undone (%s)", lost,
			    undo.message);
		return np_verb_fail(result, NP_EXIT_ROLLED_BACK);
	}
	if (rv->run.run[0]) {
		/* all is as before the revert, so the journal is too, and of the same boot: in
		 * another one its deadline would mean nothing */
		rv->run.id = rv->run.old.id;
		rv->run.deadline_ms = rv->run.old.deadline_ms;
		if (!rv->run.found)
			np_state_remove(NP_STATE_JOURNAL);
		else if (rv->run.old.complete)
			(void)!np_run_await(&rv->run, &rv->run.old.actions, &undo);
		else
			(void)!np_run_write(&rv->run, NULL, &rv->run.old.actions, &undo);
	}
	if (rv->refused)
		return np_verb_fail(result, NP_EXIT_REFUSED);
	return np_verb_fail(result, result->actions.n ? NP_EXIT_ROLLED_BACK : NP_EXIT_INTERNAL);
}

/* What apply would refuse as well: to cut the default route, or a running job. */
static int refuse(struct revert *rv, const struct np_routes *routes)
{
	struct np_result *result = rv->result;
	bool force = rv->options->force;
	int r = force ? 0 : np_plan_refuse_cuts(routes, &result->actions, &result->error);

	if (r == 0)
		r = np_in_use_check(&result->actions, force, &result->checks, &result->error);
	rv->refused |= r < 0 && r != -ENOMEM;
	return r;
}

static int go(struct revert *rv)
{
	struct np_result *result = rv->result;
	struct np_checks kept = { 0 };
	np_auto_now struct np_now now = { 0 };
	int r = collect(rv);

	/* what cannot be trusted or read, as in apply */
	rv->refused = r < 0 && r != -ENOMEM && r != -EINTR;
	if (r == 0)
		r = plan(rv, &now, &result->actions,
			 rv->options->dry_run ? &result->checks : &kept);
	np_checks_done(&kept);
	if (r == 0)
		r = refuse(rv, &now.routes);
	if (r < 0 || rv->options->dry_run) {
		result->converged = r == 0 && result->actions.n == 0;
		return r;
	}
	r = run(rv);
	return r < 0 ? r : verify(rv);
}

int np_revert(const struct np_revert_options *options, struct np_result *result)
{
	struct revert rv = { .options = options, .result = result, .run = NP_RUN_INIT };
	int r;

	rv.run.look_only = options->dry_run;
	r = go(&rv);
	if (r < 0)
		give_up(&rv);
	for (size_t i = 0; r == 0 && i < result->actions.n; i++)
		result->changed |= np_action_is_in_effect(&result->actions.v[i]);
	if (r == 0)
		result->exit = options->dry_run || np_result_ready(result) ? NP_EXIT_READY :
									     NP_EXIT_NOT_READY;
	np_netlink_close(&rv.nl);
	np_actions_done(&rv.carried);
	np_actions_done(&rv.changes);
	np_run_done(&rv.run);
	return r < 0 ? result->error.num : 0;
}
