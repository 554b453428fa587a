/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/apply_tell.h"
#include "agent/cli.h"
#include "agent/confirm.h"
#include "agent/execute.h"
#include "agent/in_use.h"
#include "agent/judge.h"
#include "agent/lock.h"
#include "agent/plan.h"
#include "agent/privileges.h"
#include "agent/probe_addresses.h"
#include "agent/run.h"
#include "agent/selftest_run.h"
#include "agent/undo_room.h"
#include "agent/wait.h"
#include "base/child.h"
#include "base/log.h"

#define LOCK_TIMEOUT_S	     30
#define QUICK_RUNG_TIMEOUT_S 30
#define MAX_ROUNDS	     4

/* observe -> plan -> apply -> (wait) -> verify, as rounds: the last one finds
 * nothing to do. What is written to files depends on which ports are usable, so
 * the network comes first and is waited for. */
struct apply {
	struct np_config *cfg;
	struct np_result *result;
	struct np_netlink *nl;
	struct np_facts facts;
	struct np_selection sel;
	struct np_libraries libraries; /* asked once a run */
	struct np_run run;	       /* its journal */
	int confirm_s;		       /* --confirm; 0 = not given */
	pid_t guard;		       /* takes it back where nobody confirms it; 0 = none */
	bool no_probe;
	bool waited;
	bool refused; /* the node must not be changed like this: exit 3 */
	bool faulty;  /* a file of the configuration is: exit 2 */
};

/* A module that did not load, or a node that could not be made, is not tried again. */
static void note_failures(struct apply *ap)
{
	const struct np_actions *actions = &ap->result->actions;

	for (size_t i = 0; i < actions->n; i++) {
		const struct np_action *a = &actions->v[i];

		if (a->status != NP_STATUS_FAILED)
			continue;
		if (a->kind == NP_ACTION_GDRDRV_NODE)
			ap->facts.gdrdrv_node_failed = true;
		for (size_t k = 0; a->kind == NP_ACTION_MODULE && k < ap->facts.kmods.n; k++)
			if (np_streq(ap->facts.kmods.v[k].name, a->module))
				ap->facts.kmods.v[k].load_failed = true;
	}
}

static int ask_libraries(struct apply *ap, bool thorough)
{
	int r = 0;

	if (!ap->libraries.asked && np_libraries_matter(&ap->facts, thorough))
		r = np_libraries_ask(np_nvlink_matters(ap->cfg, &ap->facts), &ap->libraries,
				     &ap->result->error);
	ap->facts.libraries = ap->libraries;
	return r;
}

/* All that there is to know of them, for the judgement of a run that changed something. */
static int look_at_libraries(struct apply *ap)
{
	int r = ask_libraries(ap, true);

	if (r == 0 && np_libraries_matter(&ap->facts, true))
		r = np_census_look(ap->cfg, &ap->facts.census, &ap->result->error);
	return r;
}

static int observe_facts(struct apply *ap)
{
	int r;

	np_selection_done(&ap->sel);
	np_facts_done(&ap->facts);
	r = np_observe(ap->cfg, NP_OBSERVE_WANTED, &ap->facts, &ap->result->error);
	ap->refused |= r == -EADDRNOTAVAIL || r == -EBADMSG;
	ap->faulty |= r == -EBADMSG;
	note_failures(ap);
	return r < 0 ? r : ask_libraries(ap, false);
}

static int select_netdevs(struct apply *ap)
{
	int r = np_select(ap->cfg, &ap->facts, &ap->sel, &ap->result->error);

	ap->refused |= r < 0 && r != -ENOMEM;
	return r;
}

static int observe(struct apply *ap)
{
	int r = observe_facts(ap);

	return r < 0 ? r : select_netdevs(ap);
}

static int open_netlink(struct apply *ap)
{
	return ap->nl ? 0 : np_netlink_open(&ap->nl, &ap->result->error);
}

/* What failed once without stopping the run (a refused file) is not tried again; a
 * failed check says why. */
static void drop_failed(struct np_actions *planned, const struct np_actions *all)
{
	size_t kept = 0;

	for (size_t i = 0; i < planned->n; i++) {
		bool failed = false;

		for (size_t k = 0; k < all->n; k++)
			failed |= all->v[k].status == NP_STATUS_FAILED &&
				  all->v[k].kind == planned->v[i].kind &&
				  np_streq(np_action_target(&all->v[k]),
					   np_action_target(&planned->v[i]));
		if (failed)
			np_action_done(&planned->v[i]);
		else
			planned->v[kept++] = planned->v[i];
	}
	planned->n = kept;
}

/* All that is needed to take the run back is on the disk before its first change, and with
 * --confirm who does it unattended is there, too. Moves @from beyond what is left out. */
static int record_undo(struct apply *ap, size_t *from)
{
	struct np_result *result = ap->result;
	int r = np_run_begin(&ap->run, &result->checks, &result->error);

	np_take_originals(&result->actions, *from);
	if (r == 0)
		*from = np_undo_make_room(&ap->run.record.base, &result->actions, *from);
	if (ap->confirm_s && !ap->run.deadline_ms)
		ap->run.deadline_ms = np_boot_ms() + ap->confirm_s * 1000LL;
	if (r == 0)
		r = np_run_write(&ap->run, NULL, &result->actions, &result->error);
	if (r == 0 && ap->confirm_s && !ap->guard)
		r = np_confirm_start(ap->run.run, ap->run.deadline_ms, &ap->guard, &result->error);
	ap->refused |= r < 0 && r != -ENOMEM;
	return r;
}

static int refuse_in_use(struct apply *ap, const struct np_actions *planned)
{
	int r = np_in_use_check(planned, ap->cfg->force, &ap->result->checks, &ap->result->error);

	ap->refused |= r < 0 && r != -ENOMEM;
	return r;
}

/* Runs what the plan says for @parts, of which @keep (or NULL) leaves what it likes.
 * Returns the number of actions, or < 0. */
static int run_plan(struct apply *ap, unsigned int parts,
		    void (*keep)(const struct np_facts *facts, struct np_actions *planned))
{
	np_auto_actions struct np_actions planned = { 0 };
	struct np_actions *all = &ap->result->actions;
	size_t from = all->n, n;
	int r = np_plan_make(ap->cfg, &ap->facts, parts, &planned, &ap->result->error);

	ap->refused |= r < 0 && r != -ENOMEM;
	if (r < 0)
		return r;
	if (keep)
		keep(&ap->facts, &planned);
	drop_failed(&planned, all);
	n = planned.n;
	if (n == 0)
		return 0;
	r = refuse_in_use(ap, &planned);
	if (r == 0)
		r = open_netlink(ap);
	if (r == 0 && np_actions_move(all, &planned) < 0)
		r = np_err_nomem(&ap->result->error);
	if (r < 0)
		return r;
	r = record_undo(ap, &from);
	if (r == 0)
		r = np_execute(ap->nl, all, from, &ap->result->error);
	return r < 0 ? r : (int)n;
}

static bool any_done(const struct np_actions *actions)
{
	for (size_t i = 0; i < actions->n; i++)
		if (np_action_is_in_effect(&actions->v[i]) || actions->v[i].leftover ||
		    np_action_n_brought(&actions->v[i]))
			return true;
	return false;
}

/* A netdev appears some time after its module was loaded. */
static int wait_for_netdevs(struct apply *ap)
{
	int64_t deadline = np_now_ms() + (int64_t)ap->cfg->wait_s * 1000;
	int r;

	for (;;) {
		r = observe(ap);
		if (r != -ENODEV || np_now_ms() >= deadline || np_interrupted())
			return r;
		ap->refused = false;
		np_err_clear(&ap->result->error);
		np_progress("waiting for the interface to appear");
		np_sleep_ms(100);
	}
}

/* Modules first: without them there may be no netdev to speak of. */
static int load_modules(struct apply *ap)
{
	/* a second pass for what only a loaded module tells: the major of its node */
	for (int pass = 0; pass < 2; pass++) {
		int changed = run_plan(ap, NP_PLAN_MODULES, NULL), r;

		if (changed < 0)
			return changed;
		if (changed == 0)
			return pass == 0 ? select_netdevs(ap) : 0;
		r = wait_for_netdevs(ap);
		if (r < 0)
			return r;
	}
	return 0;
}

static int wait_for_fabric(struct apply *ap)
{
	int r;

	if (ap->waited || !np_wait_needed(ap->cfg, &ap->facts, &ap->sel))
		return 0;
	ap->waited = true;
	r = open_netlink(ap);
	if (r == 0)
		r = np_wait_ready(ap->cfg, ap->nl, &ap->facts, &ap->sel, ap->cfg->wait_s,
				  &ap->result->error);
	return r < 0 ? r : 1;
}

/* Everything is planned once before anything is done, so that what has to be refused
 * is refused on an untouched node. */
static int preflight(struct apply *ap)
{
	np_auto_actions struct np_actions planned = { 0 };
	int r = np_plan_make(ap->cfg, &ap->facts, NP_PLAN_ALL, &planned, &ap->result->error);

	ap->refused |= r < 0 && r != -ENOMEM;
	return r < 0 ? r : refuse_in_use(ap, &planned);
}

/* An address goes on when nobody on the fabric has it. The question needs a netdev that
 * is up; where it is up already nothing is touched before. */
static int probe_addresses(struct apply *ap)
{
	np_auto_actions struct np_actions planned = { 0 };
	int r;

	if (ap->no_probe)
		return 0;
	r = run_plan(ap, NP_PLAN_NETDEVS, np_probe_keep_links);
	if (r > 0)
		r = observe(ap);
	if (r < 0)
		return r;
	r = np_plan_make(ap->cfg, &ap->facts, NP_PLAN_NETDEVS, &planned, &ap->result->error);
	if (r == 0)
		r = np_probe_planned(ap->cfg, &ap->facts, &planned, &ap->result->checks,
				     &ap->result->error);
	ap->refused |= r < 0 && r != -ENOMEM && r != -EINTR;
	return r;
}

/* Rounds until the plan is empty. Returns 0 or a negative errno. */
static int converge(struct apply *ap)
{
	for (int round = 0; round < MAX_ROUNDS; round++) {
		int changed, r = probe_addresses(ap);
		bool alone;

		if (r < 0)
			return r;
		alone = !ap->waited && np_wait_needed(ap->cfg, &ap->facts, &ap->sel);
		changed = run_plan(ap, alone ? NP_PLAN_NETDEVS : NP_PLAN_ALL, NULL);
		if (changed < 0)
			return changed;
		if (changed > 0) {
			r = observe(ap);
			if (r < 0)
				return r;
		}
		r = wait_for_fabric(ap);
		if (r < 0)
			return r;
		if (r > 0) {
			r = observe(ap);
			if (r < 0)
				return r;
			continue;
		}
		ap->result->converged = changed == 0;
		if (changed == 0)
			return 0;
	}
	return 0;
}

static bool any_undone(const struct np_actions *actions)
{
	for (size_t i = 0; i < actions->n; i++)
		if (actions->v[i].status == NP_STATUS_UNDONE)
			return true;
	return false;
}

static int roll_back(struct apply *ap)
{
	struct np_result *result = ap->result;
	struct np_err why = result->error, undo = { 0 };
	/* what a killed run did is taken back with it */
	size_t lost = any_done(&result->actions) && open_netlink(ap) == 0 ?
			      np_rollback(ap->nl, &result->actions, &undo) :
			      0;

	if (lost == 0 && (ap->run.run[0] || any_undone(&result->actions)) &&
	    np_run_begin(&ap->run, &result->checks, &undo) == 0)
		np_run_drop(&ap->run, &result->actions);
	np_confirm_stop(ap->guard);
	result->error = why;
	if (lost)
		np_err_hint(&result->error,
			    "look at the actions marked done: %zu could not be undone (%s)", lost,
			    undo.message);
	result->changed = lost > 0;
	/* a refusal of which nothing is left but loaded modules (docs/decisions/0007) */
	if (ap->refused && lost == 0)
		return np_verb_fail(result, ap->faulty && result->actions.n == 0 ? NP_EXIT_USAGE :
										   NP_EXIT_REFUSED);
	if (result->actions.n == 0 && why.num != -EINTR)
		return np_verb_fail(result, NP_EXIT_INTERNAL);
	return np_verb_fail(result, NP_EXIT_ROLLED_BACK);
}

static int run_selftest(struct apply *ap, const struct np_cli *cli)
{
	const struct np_strv all = { 0 };
	struct np_rung_options options = {
		.rungs = &all,
		.timeout_ms = 1000 * (cli->timeout_s > 0 ? cli->timeout_s : QUICK_RUNG_TIMEOUT_S),
	};
	struct np_err err = { 0 };
	int r;

	ap->result->selftest = json_array();
	r = np_selftest_run(ap->cfg, &ap->facts, &ap->sel, &options, ap->result->selftest, &err);
	if (r == -EINTR) {
		ap->result->error = err;
		return r;
	}
	/* the programs of the self-test are a package of their own */
	if (r < 0)
		np_checks_add(&ap->result->checks, "selftest", "nodeprep-selftest", NP_CHECK_FAIL,
			      err.code[0] ? err.code : "selftest.not_run", err.hint, "%s",
			      err.message);
	return 0;
}

/* What did an earlier run leave? One look where it left nothing. */
static int look_back(struct apply *ap)
{
	int r = np_confirm_settle(&ap->run, ap->result);

	ap->refused |= r < 0 && r != -ENOMEM;
	return r;
}

/* Kept, or kept for now. */
static int end_run(struct apply *ap)
{
	struct np_result *result = ap->result;
	int r;

	if (!result->changed) {
		if (ap->run.run[0] || ap->run.found)
			np_state_remove(NP_STATE_JOURNAL);
		np_confirm_stop(ap->guard);
		return 0;
	}
	r = np_run_begin(&ap->run, &result->checks, &result->error);
	if (r < 0)
		return r;
	if (!ap->guard)
		return np_run_keep(&ap->run, &result->actions, &result->error);
	ap->run.deadline_ms = np_boot_ms() + ap->confirm_s * 1000LL;
	r = np_run_await(&ap->run, &result->actions, &result->error);
	if (r == 0)
		np_checks_add(&result->checks, "confirm", "node", NP_CHECK_WARN, "confirm.pending",
			      "run nodeprep confirm, if it is as it should be",
			      "kept only if that is confirmed within %d s; else it is taken back",
			      ap->confirm_s);
	return r;
}

static int finish(struct apply *ap, const struct np_cli *cli)
{
	struct np_result *result = ap->result;
	/* a run that has nothing to do is a matter of a millisecond */
	enum np_services_scope scope =
		any_done(&result->actions) ? NP_SERVICES_ALL : NP_SERVICES_UNITS;

	/* a run that finds nothing to do stays as cheap as it is */
	if ((any_done(&result->actions) || np_census_noted()) && look_at_libraries(ap) < 0)
		return roll_back(ap);
	if (ap->facts.gpus.n > 0)
		np_observe_pci(&ap->facts);
	if (np_services_observe(scope, &ap->facts.services) < 0)
		result->checks.failed = true;
	np_judge(ap->cfg, &ap->facts, &ap->sel, &result->checks);
	if (result->checks.failed) {
		np_err_nomem(&result->error);
		return roll_back(ap);
	}
	if (ap->facts.census.looked)
		np_census_note(&result->checks);
	np_tell_failures(result);
	if (!result->converged)
		np_checks_add(
			&result->checks, "plan", "node", NP_CHECK_FAIL, "plan.not_converged",
			"run nodeprep plan; a file was refused, or something on this node changes it back",
			"there is still something to do");
	if (!cli->no_selftest && run_selftest(ap, cli) < 0)
		return roll_back(ap);
	result->changed = any_done(&result->actions);
	if (end_run(ap) < 0)
		return roll_back(ap);
	result->exit = np_result_ready(result) ? NP_EXIT_READY : NP_EXIT_NOT_READY;
	return 0;
}

int np_verb_apply(const struct np_cli *cli, struct np_config *cfg, struct np_result *result)
{
	struct apply ap = { .cfg = cfg,
			    .result = result,
			    .run = NP_RUN_INIT,
			    .no_probe = cli->no_probe,
			    .confirm_s = cli->confirm_s };
	_cleanup_close_ int lock = -1;
	int r;

	if (cli->root)
		return np_verb_image(cli, cfg, result);
	if (cli->dry_run)
		return np_verb_plan(cli, cfg, result);
	if (np_verb_need_root(result, "apply needs root",
			      "run it with sudo, or use nodeprep plan, which needs no privilege") <
	    0)
		return result->error.num;
	lock = np_lock(LOCK_TIMEOUT_S, &result->error);
	if (lock < 0)
		return np_verb_fail(result, lock == -EINTR ? NP_EXIT_ROLLED_BACK : NP_EXIT_REFUSED);
	r = look_back(&ap);
	if (r == 0)
		r = observe_facts(&ap);
	if (r == 0)
		r = preflight(&ap);
	if (r == 0)
		r = np_run_carry_on(&ap.run, result);
	if (r == 0)
		r = load_modules(&ap);
	if (r == 0)
		r = converge(&ap);
	if (r == 0)
		np_privileges_settle(&result->actions);
	r = r < 0 ? roll_back(&ap) : finish(&ap, cli);
	np_netlink_close(&ap.nl);
	np_run_done(&ap.run);
	np_selection_done(&ap.sel);
	np_facts_done(&ap.facts);
	return r;
}
