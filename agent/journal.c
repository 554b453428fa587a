/* SPDX-License-Identifier: MIT */
#include "agent/journal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"

#define FORMAT 2

/* ---- writing ---- */

static json_t *encode_list(const struct np_actions *actions)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < actions->n; i++) {
		if (json_array_append_new(list, np_action_encode(&actions->v[i])) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

/* The same for any order and spacing of the file. Returns 0 or -ENOMEM. */
static int checksum(const json_t *doc, char out[24])
{
	_cleanup_free_ char *text = json_dumps(doc, JSON_COMPACT | JSON_SORT_KEYS);

	if (!text)
		return -ENOMEM;
	snprintf(out, 24, "crc32c:%08x", np_crc32c(text, strlen(text)));
	return 0;
}

char *np_journal_seal(json_t *doc)
{
	char sum[24], *text = NULL;

	if (doc && checksum(doc, sum) == 0 &&
	    json_object_set_new(doc, "checksum", json_string(sum)) == 0)
		text = json_dumps(doc, JSON_INDENT(1));
	json_decref(doc);
	return text;
}

char *np_journal_text(const struct np_journal *journal)
{
	json_t *actions = encode_list(&journal->actions);

	if (!actions)
		return NULL;
	return np_journal_seal(
		json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:I, s:b, s:b, s:o}", "format", FORMAT,
			  "kind", "journal", "version", NP_VERSION, "machine_id",
			  journal->id.machine, "boot_id", journal->id.boot, "run", journal->run,
			  "confirm_by_ms", (json_int_t)journal->deadline_ms, "complete",
			  journal->complete, "reverts", journal->reverts, "actions", actions));
}

char *np_record_text(const struct np_record *record)
{
	json_t *base = encode_list(&record->base), *last = encode_list(&record->last);

	if (!base || !last) {
		json_decref(base);
		json_decref(last);
		return NULL;
	}
	return np_journal_seal(json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "format",
					 FORMAT, "kind", "record", "version", NP_VERSION,
					 "machine_id", record->id.machine, "boot_id",
					 record->id.boot, "run", record->run, "expired",
					 record->expired, "since_first", base, "last_run", last));
}

/* ---- reading ---- */

static int damaged(struct np_err *err, const char *what)
{
	np_err_set(err, -EINVAL, "state.damaged", "%s", what);
	np_err_hint(err,
		    "look at it by hand: it names what was changed, and what was there before");
	return -EINVAL;
}

/* Takes what is in @a. What comes along with a module is an action of its own from here on. */
static int add_decoded(struct np_actions *list, struct np_action *a)
{
	struct np_action brought, *slot;

	for (size_t i = 0; i < a->brings.n; i++) {
		np_action_brought(a, i, &brought);
		slot = np_actions_add(list, NP_ACTION_MODULE);
		if (!slot)
			return -ENOMEM;
		*slot = brought;
	}
	np_strv_done(&a->brings);
	slot = np_actions_add(list, a->kind);
	if (!slot)
		return -ENOMEM;
	*slot = *a;
	slot->status = NP_STATUS_DONE;
	memset(a, 0, sizeof(*a));
	return 0;
}

static int decode_list(const json_t *list, struct np_actions *out)
{
	np_auto_actions struct np_actions actions = { 0 };

	if (!json_is_array(list))
		return -EINVAL;
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct np_action a = { 0 };
		int r = np_action_decode(json_array_get(list, i), &a);

		if (r == 0)
			r = add_decoded(&actions, &a);
		np_action_done(&a);
		if (r < 0)
			return r;
	}
	*out = actions;
	memset(&actions, 0, sizeof(actions));
	return 0;
}

static void keep_files(struct np_actions *actions)
{
	size_t kept = 0;

	for (size_t i = 0; i < actions->n; i++) {
		if (actions->v[i].kind == NP_ACTION_FILE)
			actions->v[kept++] = actions->v[i];
		else
			np_action_done(&actions->v[i]);
	}
	actions->n = kept;
}

static bool is_mine(const struct np_state_id *of, const struct np_state_id *me)
{
	if (me->machine[0] || of->machine[0])
		return strcmp(of->machine, me->machine) == 0;
	return me->boot[0] && strcmp(of->boot, me->boot) == 0;
}

static bool take_word(const json_t *doc, const char *key, char *out, size_t size)
{
	const json_t *value = json_object_get(doc, key);

	return json_is_string(value) &&
	       strlen(json_string_value(value)) == json_string_length(value) &&
	       np_strcpy(out, size, json_string_value(value));
}

/* Version, checksum and owner; then *out is the document (a new reference). */
static int open_document(const char *text, size_t len, const char *kind,
			 const struct np_state_id *me, struct np_state_id *of, json_t **out,
			 struct np_err *err)
{
	json_error_t why;
	json_t *doc = json_loadb(text, len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &why);
	char sum[24] = "", said[24] = "", word[16];
	int r = 0;

	if (!doc && json_error_code(&why) == json_error_out_of_memory) {
		np_err_nomem(err);
		return -ENOMEM;
	}
	if (!json_is_object(doc)) {
		r = damaged(err, "it is no JSON document, or was cut off");
	} else if (json_integer_value(json_object_get(doc, "format")) != FORMAT ||
		   !take_word(doc, "kind", word, sizeof(word)) || strcmp(word, kind) != 0) {
		r = damaged(err, "it is of another version of nodeprep, or something else");
	} else if (!take_word(doc, "checksum", said, sizeof(said)) ||
		   json_object_del(doc, "checksum") < 0) {
		r = damaged(err, "it has no checksum");
	} else if (checksum(doc, sum) < 0) {
		r = np_err_nomem(err);
	} else if (strcmp(sum, said) != 0) {
		r = damaged(err, "its checksum is wrong: it was damaged, or edited by hand");
	} else if (!take_word(doc, "machine_id", of->machine, sizeof(of->machine)) ||
		   !take_word(doc, "boot_id", of->boot, sizeof(of->boot))) {
		r = damaged(err, "it does not say of which machine it is");
	} else if (!is_mine(of, me)) {
		r = np_err_set(err, -EXDEV, "state.other_machine",
			       "it is of the machine with the id %s, and this one is %s",
			       of->machine[0] ? of->machine : "(none)",
			       me->machine[0] ? me->machine : "(none)");
		np_err_hint(err, "remove it from the image that this node was made from");
	}
	if (r < 0) {
		json_decref(doc);
		return r;
	}
	*out = doc;
	return 0;
}

static int take_list(const json_t *doc, const char *key, bool same_boot, struct np_actions *out,
		     struct np_err *err)
{
	int r = decode_list(json_object_get(doc, key), out);

	if (r == 0 && !same_boot)
		keep_files(out);
	if (r == 0)
		return 0;
	return r == -ENOMEM ? np_err_nomem(err) : damaged(err, "it has an action that cannot be");
}

static bool same_boot(const struct np_state_id *of, const struct np_state_id *me)
{
	return me->boot[0] && strcmp(of->boot, me->boot) == 0;
}

int np_journal_parse(const char *text, size_t len, const struct np_state_id *me,
		     struct np_journal *out, struct np_err *err)
{
	np_auto_journal struct np_journal journal = { .run = "" };
	const json_t *deadline;
	json_t *doc;
	int r = open_document(text, len, "journal", me, &journal.id, &doc, err);

	if (r < 0)
		return r;
	deadline = json_object_get(doc, "confirm_by_ms");
	if (!take_word(doc, "run", journal.run, sizeof(journal.run)) ||
	    !json_is_integer(deadline) || json_integer_value(deadline) < 0 ||
	    !json_is_boolean(json_object_get(doc, "complete")) ||
	    !json_is_boolean(json_object_get(doc, "reverts")))
		r = damaged(err, "it does not say of which run it is");
	else
		r = take_list(doc, "actions", same_boot(&journal.id, me), &journal.actions, err);
	if (r == 0) {
		journal.deadline_ms = json_integer_value(deadline);
		journal.complete = json_is_true(json_object_get(doc, "complete"));
		journal.reverts = json_is_true(json_object_get(doc, "reverts"));
		*out = journal;
		memset(&journal, 0, sizeof(journal));
	}
	json_decref(doc);
	return r;
}

int np_record_parse(const char *text, size_t len, const struct np_state_id *me,
		    struct np_record *out, struct np_err *err)
{
	np_auto_record struct np_record record = { .run = "" };
	bool now;
	json_t *doc;
	int r = open_document(text, len, "record", me, &record.id, &doc, err);

	if (r < 0)
		return r;
	now = same_boot(&record.id, me);
	if (!take_word(doc, "run", record.run, sizeof(record.run)) ||
	    !take_word(doc, "expired", record.expired, sizeof(record.expired)))
		r = damaged(err, "it does not say of which run it is");
	else
		r = take_list(doc, "since_first", now, &record.base, err);
	if (r == 0)
		r = take_list(doc, "last_run", now, &record.last, err);
	if (r == 0) {
		*out = record;
		memset(&record, 0, sizeof(record));
	}
	json_decref(doc);
	return r;
}

void np_journal_done(struct np_journal *journal)
{
	if (!journal)
		return;
	np_actions_done(&journal->actions);
	memset(journal, 0, sizeof(*journal));
}

void np_record_done(struct np_record *record)
{
	if (!record)
		return;
	np_actions_done(&record->base);
	np_actions_done(&record->last);
	memset(record, 0, sizeof(*record));
}
