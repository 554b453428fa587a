/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_JOURNAL_H
#define NP_AGENT_JOURNAL_H

#include "agent/action.h"

/*
 * /var/lib/nodeprep/journal.json: the actions of the run in progress, each with
 * what it takes to undo it, synced before the first of them runs. Bound to the
 * machine id, so that a cloned image does not restore another node.
 */

/* Writes the journal anew. Returns 0 or a negative errno with message. */
int np_journal_write(const struct np_actions *actions, struct np_err *err) np_must_check;

/* An earlier run that was killed left its journal: it is kept as interrupted-N.json,
 * so that its undo is not lost. Nothing is written where there is none. */
void np_journal_set_aside(void);

/* The run is over (kept or rolled back): the journal becomes last-run.json. */
void np_journal_close(void);

/* The journal as text, and back; pure but for memory. encode: new reference or NULL.
 * decode: 0, -EINVAL (not a journal of this version), -EXDEV (another machine). */
json_t *np_journal_encode(const struct np_actions *actions, const char *machine_id);
int np_journal_decode(const json_t *journal, const char *machine_id,
		      struct np_actions *out) np_must_check;

#endif
