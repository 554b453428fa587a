/* SPDX-License-Identifier: MIT */
#include "agent/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "agent/execute.h"
#include "agent/record.h"

int64_t np_boot_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void np_run_done(struct np_run *run)
{
	if (!run)
		return;
	np_state_close(&run->state);
	np_record_done(&run->record);
	np_journal_done(&run->old);
	*run = (struct np_run)NP_RUN_INIT;
}

/* A document that must not be believed is kept for people to look at. */
static void set_aside(const struct np_run *run, const char *name, const struct np_err *why,
		      enum np_check_status status, struct np_checks *checks)
{
	char as[128] = "";

	if (!run->look_only)
		np_state_set_aside(name, why->num == -EXDEV ? "other-machine" : "damaged", as,
				   sizeof(as));
	np_checks_add(checks, "state", name, status, why->code, why->hint, "not used: %s%s%s",
		      why->message, as[0] ? "; it is now " : "", as);
}

static bool is_unusable(int r)
{
	return r == -EXDEV || r == -EINVAL;
}

int np_run_load(struct np_run *run, enum np_check_status status, struct np_checks *checks,
		struct np_err *err)
{
	np_auto_buf struct np_buf text = { 0 };
	struct np_err why = { 0 };
	int r;

	if (run->loaded)
		return 0;
	if (!run->id.boot[0])
		np_state_identify(&run->id);
	r = np_state_read(NP_STATE_RECORD, &text, NULL, err);
	if (r == 0)
		r = np_record_parse(text.data, text.len, &run->id, &run->record, &why);
	if (is_unusable(r))
		set_aside(run, NP_STATE_RECORD, &why, status, checks);
	else if (r < 0 && r != -ENOENT)
		return r == -ENOMEM ? np_err_nomem(err) : r;
	run->loaded = true;
	return 0;
}

int np_run_look(struct np_run *run, struct np_checks *checks, struct np_err *err)
{
	np_auto_buf struct np_buf text = { 0 };
	struct np_err why = { 0 };
	int r = np_state_read(NP_STATE_JOURNAL, &text, NULL, err);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	np_state_identify(&run->id);
	r = np_journal_parse(text.data, text.len, &run->id, &run->old, &why);
	if (is_unusable(r)) {
		set_aside(run, NP_STATE_JOURNAL, &why, NP_CHECK_WARN, checks);
		return 0;
	}
	if (r < 0)
		return np_err_nomem(err);
	r = np_run_load(run, NP_CHECK_WARN, checks, err);
	if (r < 0)
		return r;
	if (np_streq(run->record.run, run->old.run)) {
		/* it was kept, and then ended before the journal went */
		if (!run->look_only)
			np_state_remove(NP_STATE_JOURNAL);
		np_journal_done(&run->old);
		return 0;
	}
	run->found = true;
	return 0;
}

bool np_run_is_pending(const struct np_run *run)
{
	return run->found && run->old.complete && run->old.deadline_ms > np_boot_ms() &&
	       run->id.boot[0] && strcmp(run->old.id.boot, run->id.boot) == 0;
}

bool np_run_is_overdue(const struct np_run *run)
{
	return run->found && run->old.deadline_ms && !np_run_is_pending(run);
}

int np_run_carry(const struct np_run *run, struct np_actions *out, struct np_err *err)
{
	np_auto_now struct np_now now = { 0 };
	int r = np_now_observe(&run->old.actions, &now, err);

	if (r < 0)
		return r;
	if (!run->look_only)
		np_sweep(&run->old.actions, &now);
	return np_actions_net(&run->old.actions, &now, out) < 0 ? np_err_nomem(err) : 0;
}

static int name_run(struct np_run *run, struct np_err *err)
{
	unsigned char bytes[8];

	if (run->found) {
		/* it is gone on with */
		memcpy(run->run, run->old.run, sizeof(run->run));
		return 0;
	}
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return np_err_set(err, -EIO, "internal.random", "no random bytes: %s",
				  strerror(errno));
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(run->run + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

int np_run_begin(struct np_run *run, struct np_checks *checks, struct np_err *err)
{
	int r;

	if (run->run[0])
		return 0;
	if (!run->id.boot[0])
		np_state_identify(&run->id);
	r = np_state_open(&run->state, err);
	if (r == 0)
		r = np_run_load(run, NP_CHECK_WARN, checks, err);
	if (r == 0)
		r = name_run(run, err);
	if (r == 0 && run->state.in_run)
		np_checks_add(checks, "state", NP_STATE_DIR_RUN, NP_CHECK_WARN, "state.volatile",
			      "make " NP_STATE_DIR " writable, where it is meant to be",
			      NP_STATE_DIR
			      " is read-only: the undo is kept here, until the next boot");
	return r;
}

static int write_journal(struct np_run *run, const struct np_journal *journal, struct np_err *err)
{
	_cleanup_free_ char *text = np_journal_text(journal);

	if (!text)
		return np_err_nomem(err);
	return np_state_write(&run->state, NP_STATE_JOURNAL, text, strlen(text), err);
}

int np_run_write(struct np_run *run, const struct np_actions *before,
		 const struct np_actions *actions, struct np_err *err)
{
	size_t n = before ? before->n : 0;
	/* borrowed, not copied */
	_cleanup_free_ struct np_action *v = calloc(n + actions->n + 1, sizeof(*v));
	struct np_journal journal = { .id = run->id,
				      .deadline_ms = run->deadline_ms,
				      .reverts = run->reverts,
				      .actions = { v, n + actions->n } };

	if (!v)
		return np_err_nomem(err);
	memcpy(journal.run, run->run, sizeof(journal.run));
	if (n)
		memcpy(v, before->v, n * sizeof(*v));
	if (actions->n)
		memcpy(v + n, actions->v, actions->n * sizeof(*v));
	return write_journal(run, &journal, err);
}

int np_run_await(struct np_run *run, const struct np_actions *actions, struct np_err *err)
{
	struct np_journal journal = { .id = run->id,
				      .deadline_ms = run->deadline_ms,
				      .complete = true };
	int r = np_record_merge(&journal.actions, actions, err);

	memcpy(journal.run, run->run, sizeof(journal.run));
	if (r == 0)
		r = write_journal(run, &journal, err);
	np_journal_done(&journal);
	return r;
}

int np_run_save(struct np_run *run, struct np_err *err)
{
	struct np_record *record = &run->record;
	_cleanup_free_ char *text = NULL;
	int r;

	r = np_state_open(&run->state, err);
	if (r < 0)
		return r;
	/* an empty one in /run hides what lies in a /var that cannot be written to */
	if (record->base.n == 0 && record->last.n == 0 && !record->expired[0] &&
	    !run->state.in_run) {
		/* in this order: without a record the journal would be taken for a killed run's */
		np_state_remove(NP_STATE_JOURNAL);
		np_state_remove(NP_STATE_RECORD);
		return 0;
	}
	record->id = run->id;
	text = np_record_text(record);
	if (!text)
		return np_err_nomem(err);
	r = np_state_write(&run->state, NP_STATE_RECORD, text, strlen(text), err);
	if (r == 0)
		np_state_remove(NP_STATE_JOURNAL);
	return r;
}

int np_run_keep(struct np_run *run, const struct np_actions *actions, struct np_err *err)
{
	struct np_actions last = { 0 };
	int r = np_record_merge(&run->record.base, actions, err);

	if (r == 0)
		r = np_record_merge(&last, actions, err);
	if (r < 0) {
		np_actions_done(&last);
		return r;
	}
	np_actions_done(&run->record.last);
	run->record.last = last;
	run->record.expired[0] = '\0';
	memcpy(run->record.run, run->run, sizeof(run->run));
	return np_run_save(run, err);
}

void np_run_drop(struct np_run *run, const struct np_actions *actions)
{
	struct np_err err = { 0 };
	bool any = false;

	for (size_t i = 0; i < actions->n; i++)
		any |= np_action_is_in_effect(&actions->v[i]) ||
		       np_action_n_brought(&actions->v[i]);
	memcpy(run->record.run, run->run, sizeof(run->run));
	if (!any)
		np_state_remove(NP_STATE_JOURNAL);
	else if (np_record_merge(&run->record.base, actions, &err) == 0)
		(void)!np_run_save(run, &err);
}

int np_run_carry_on(const struct np_run *run, struct np_result *result)
{
	np_auto_actions struct np_actions carried = { 0 };
	int r = run->found ? np_run_carry(run, &carried, &result->error) : 0;

	if (r < 0)
		return r;
	if (carried.n)
		np_checks_add(&result->checks, "state", "node", NP_CHECK_WARN, "state.interrupted",
			      "nothing needs to be done: this run went on with it",
			      "a run was ended before it was finished (changes: %zu)", carried.n);
	return np_actions_move(&result->actions, &carried) < 0 ? np_err_nomem(&result->error) : 0;
}
