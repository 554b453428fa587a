/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_RUN_H
#define NP_AGENT_RUN_H

#include "agent/journal.h"
#include "agent/result.h"

/*
 * One run that changes something, from before its first change until it is kept or taken
 * back; the caller holds the lock. A run that finds nothing to do costs a look whether an
 * earlier one left its journal, and writes nothing.
 */

struct np_run {
	struct np_state state;
	struct np_state_id id;
	char run[NP_RUN_ID_LEN]; /* "" until np_run_begin */
	int64_t deadline_ms;	 /* apply --confirm; else 0 */
	bool reverts;		 /* it takes back what is in the record */
	bool look_only;		 /* a preview: nothing is moved aside, swept or removed */
	struct np_record record; /* empty until np_run_load */
	bool loaded;
	bool found; /* an earlier run was neither kept nor taken back: */
	struct np_journal old;
};

#define NP_RUN_INIT \
	{ \
		.state = NP_STATE_INIT \
	}

void np_run_done(struct np_run *run);
#define np_auto_run np_auto(np_run_done)

/* Looks for what an earlier run left (run->found, run->old). A journal that is damaged or of
 * another machine is moved aside and told as a check (warn, code as in journal.h); one of a
 * run that the record has already is removed. Returns 0 or a negative errno with message. */
int np_run_look(struct np_run *run, struct np_checks *checks, struct np_err *err) np_must_check;

/* It waits for nodeprep confirm, and there is time left. */
bool np_run_is_pending(const struct np_run *run);
/* It was to be confirmed and was not: too late, of another boot, or killed on its way. */
bool np_run_is_overdue(const struct np_run *run);

/* What the run that was found came to (np_actions_net), after its temporary files were swept
 * away. @out is replaced. Returns 0 or a negative errno with message. */
int np_run_carry(const struct np_run *run, struct np_actions *out,
		 struct np_err *err) np_must_check;

/* A killed run is gone on with: what it came to becomes the first actions of @result, which
 * finishes it or takes it back, and is told as a check ("state.interrupted"). Nothing where
 * none was found. Returns 0 or a negative errno with message. */
int np_run_carry_on(const struct np_run *run, struct np_result *result) np_must_check;

/* Reads the record. One that cannot be used is moved aside and told as a check of @status.
 * Returns 0 or a negative errno with message. */
int np_run_load(struct np_run *run, enum np_check_status status, struct np_checks *checks,
		struct np_err *err) np_must_check;

/* Before the first change: opens the state folder, reads the record, gives the run its name.
 * State that will not outlive this boot is told as a check ("state.volatile"). Nothing is
 * done the second time. Returns 0 or a negative errno with message. */
int np_run_begin(struct np_run *run, struct np_checks *checks, struct np_err *err) np_must_check;

/* Puts @before (or NULL) and @actions into the journal, synced. */
int np_run_write(struct np_run *run, const struct np_actions *before,
		 const struct np_actions *actions, struct np_err *err) np_must_check;

/* The run came to its end, but its done actions are kept only if confirmed until
 * run->deadline_ms. */
int np_run_await(struct np_run *run, const struct np_actions *actions,
		 struct np_err *err) np_must_check;

/* Its done actions are kept: they go into the record, as the last run and into the net change
 * since before the first apply; the journal goes. When it fails the journal stays. */
int np_run_keep(struct np_run *run, const struct np_actions *actions,
		struct np_err *err) np_must_check;

/* It was taken back, but for what stays (a loaded module): that goes into the record. */
void np_run_drop(struct np_run *run, const struct np_actions *actions);

/* Writes the record as it is, or removes it where nothing is in it; then the journal goes. */
int np_run_save(struct np_run *run, struct np_err *err) np_must_check;

int64_t np_boot_ms(void); /* CLOCK_BOOTTIME: goes on while the node sleeps */

#endif
