/* SPDX-License-Identifier: MIT */
/* Any bytes as journal and record, and any JSON in them with the right checksum: what is
 * taken comes back as it was written, and what is not taken leaves nothing. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/journal.h"
#include "agent/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "does not hold: %s\n", #condition); \
			abort(); \
		} \
	} while (0)

static const struct np_state_id me = { .machine = "0123", .boot = "1" };

static void is_refusal(int r, const struct np_err *err)
{
	MUST(r == -EINVAL || r == -EXDEV);
	MUST(np_starts_with(err->code, "state.") && err->message[0] && err->hint[0]);
}

static void try_journal(const char *text, size_t len)
{
	np_auto_journal struct np_journal j = { .deadline_ms = 7 }, again = { .deadline_ms = 7 };
	_cleanup_free_ char *written = NULL;
	struct np_err err = { 0 };
	int r = np_journal_parse(text, len, &me, &j, &err);

	if (r < 0) {
		is_refusal(r, &err);
		MUST(j.actions.n == 0 && j.deadline_ms == 7);
		return;
	}
	written = np_journal_text(&j);
	MUST(written && np_journal_parse(written, strlen(written), &me, &again, &err) == 0);
	MUST(again.actions.n == j.actions.n && again.deadline_ms == j.deadline_ms);
}

static void try_record(const char *text, size_t len)
{
	np_auto_record struct np_record record = { .run = "" };
	np_auto_actions struct np_actions base = { 0 };
	_cleanup_free_ char *written = NULL;
	struct np_err err = { 0 };
	int r = np_record_parse(text, len, &me, &record, &err);

	if (r < 0) {
		is_refusal(r, &err);
		MUST(record.base.n == 0 && record.last.n == 0);
		return;
	}
	written = np_record_text(&record);
	MUST(written);
	/* whatever they say, they can be merged */
	r = np_record_merge(&base, &record.base, &err);
	if (r == 0)
		r = np_record_merge(&base, &record.last, &err);
	MUST(r == 0 || err.code[0]);
}

/* The same document as if its writer had summed it. */
static void try_sealed(const uint8_t *data, size_t size)
{
	json_t *doc = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
	_cleanup_free_ char *text = NULL;

	if (!json_is_object(doc)) {
		json_decref(doc);
		return;
	}
	json_object_del(doc, "checksum");
	text = np_journal_seal(doc);
	MUST(text);
	try_journal(text, strlen(text));
	try_record(text, strlen(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_journal((const char *)data, size);
	try_record((const char *)data, size);
	try_sealed(data, size);
	return 0;
}
