/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_JOURNAL_H
#define NP_AGENT_JOURNAL_H

#include "agent/action.h"
#include "agent/state.h"

/*
 * The two documents in the state folder, as text and back. Both are JSON for people to
 * read, with a version, the machine and the boot that they are of, and a checksum
 * (CRC-32C of the same document without it, written without blanks and with its keys in
 * order), so that one that was cut or flipped is known before anything is believed.
 *
 * The journal is of one run: there from before its first change until it is kept or taken
 * back. The record is what there was before: the net change since before the first apply,
 * and of the last run alone.
 */

#define NP_RUN_ID_LEN 17 /* 16 hex digits */

struct np_journal {
	struct np_state_id id; /* of the node and boot that wrote it */
	char run[NP_RUN_ID_LEN];
	/* apply --confirm: kept only if confirmed by then; CLOCK_BOOTTIME, 0 = no such wish */
	int64_t deadline_ms;
	bool reverts;  /* it takes back what is in the record, and nothing else */
	bool complete; /* the run came to its end, and waits for that */
	struct np_actions actions;
};

struct np_record {
	struct np_state_id id;
	char run[NP_RUN_ID_LEN];     /* the last one that was merged into it; "" = none */
	char expired[NP_RUN_ID_LEN]; /* a run that nobody confirmed in time; "" = none */
	struct np_actions base, last;
};

/* New text, or NULL when out of memory. Caller frees. */
char *np_journal_text(const struct np_journal *journal);
char *np_record_text(const struct np_record *record);

/* The other way. @me is who reads: of a document of another boot the files alone are taken,
 * since the rest of what it says ended with that boot. A node without a machine id takes
 * what it wrote in this boot. @out is untouched on failure.
 * Returns 0, -ENOMEM, or with message -EINVAL ("state.damaged": not such a document, of
 * another version, or its checksum is wrong) or -EXDEV ("state.other_machine"). */
int np_journal_parse(const char *text, size_t len, const struct np_state_id *me,
		     struct np_journal *out, struct np_err *err) np_must_check;
int np_record_parse(const char *text, size_t len, const struct np_state_id *me,
		    struct np_record *out, struct np_err *err) np_must_check;

/* Any such document with its checksum, as text; takes @doc. For the two above and for tests. */
char *np_journal_seal(json_t *doc);

void np_journal_done(struct np_journal *journal);
void np_record_done(struct np_record *record);
#define np_auto_journal np_auto(np_journal_done)
#define np_auto_record	np_auto(np_record_done)

#endif
