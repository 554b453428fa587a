/* SPDX-License-Identifier: MIT */
/* The journal and the record as text: what was written comes back, and nothing else does. */
#include "facts_build.h"

#include <fcntl.h>
#include <unistd.h>

#include "agent/journal.h"
#include "base/crc32c.h"

static const struct np_state_id me = { .machine = "0123abcd", .boot = "1-2" };

static void add_file(struct np_actions *list, const char *path, const char *old, const char *new)
{
	struct np_action *a = np_actions_add(list, NP_ACTION_FILE);

	a->path = strdup(path);
	a->had_old = old;
	a->has_new = new;
	np_buf_str(&a->old_content, old ? old : "");
	np_buf_str(&a->new_content, new ? new : "");
}

static void add_mtu(struct np_actions *list)
{
	struct np_action *a = np_actions_add(list, NP_ACTION_MTU);

	strcpy(a->ifname, "ib0");
	a->ifindex = 3;
	a->from_value = 2044;
	a->to_value = 4092;
}

static char *journal_text(const struct np_state_id *id)
{
	np_auto_journal struct np_journal j = { .id = *id, .run = "00ff", .deadline_ms = 12345 };

	j.complete = j.reverts = true;
	add_file(&j.actions, "/etc/nccl.conf", "NCCL_DEBUG=WARN\n", "NCCL_DEBUG=WARN\nx\xff");
	add_mtu(&j.actions);
	return np_journal_text(&j);
}

static int parse(const char *text, size_t len, const struct np_state_id *who,
		 struct np_journal *out, struct np_err *err)
{
	memset(err, 0, sizeof(*err));
	return np_journal_parse(text, len, who, out, err);
}

static void test_crc32c(void **state)
{
	static const unsigned char zeros[32];

	(void)state;
	/* RFC 3720 B.4, and the check value of the catalogue of CRCs */
	assert_int_equal(np_crc32c(zeros, sizeof(zeros)), 0x8a9136aa);
	assert_int_equal(np_crc32c("123456789", 9), 0xe3069283);
	assert_int_equal(np_crc32c("", 0), 0);
}

static void test_round_trip(void **state)
{
	_cleanup_free_ char *text = journal_text(&me), *again = NULL;
	np_auto_journal struct np_journal back = { .run = "" };
	struct np_err err;

	(void)state;
	assert_int_equal(parse(text, strlen(text), &me, &back, &err), 0);
	assert_string_equal(back.run, "00ff");
	assert_int_equal(back.deadline_ms, 12345);
	assert_true(back.complete && back.reverts);
	assert_int_equal(back.actions.n, 2);
	/* what is read was written for a change that may have happened */
	assert_int_equal(back.actions.v[0].status, NP_STATUS_DONE);
	assert_int_equal(back.actions.v[0].new_content.len, 18);
	again = np_journal_text(&back);
	assert_string_equal(text, again);
	/* for people: indented, with words */
	assert_non_null(strstr(text, "\n \"machine_id\": \"0123abcd\""));
	assert_non_null(strstr(text, "NCCL_DEBUG=WARN"));
}

/* Cut anywhere, or one bit of it flipped: never half of it. */
static void test_damage(void **state)
{
	_cleanup_free_ char *text = journal_text(&me);
	size_t len = strlen(text), passed = 0;
	struct np_err err;

	(void)state;
	for (size_t cut = 0; cut < len; cut++) {
		struct np_journal back = { .deadline_ms = 77 };

		assert_int_equal(parse(text, cut, &me, &back, &err), -EINVAL);
		assert_string_equal(err.code, "state.damaged");
		assert_true(err.message[0] && err.hint[0]);
		assert_int_equal(back.deadline_ms, 77);
	}
	for (size_t at = 0; at < len * 8; at++) {
		struct np_journal back = { .deadline_ms = 77 };
		_cleanup_free_ char *again = NULL;
		int r;

		text[at / 8] ^= (char)(1 << (at % 8));
		r = parse(text, len, &me, &back, &err);
		text[at / 8] ^= (char)(1 << (at % 8));
		if (r < 0) {
			assert_int_equal(r, -EINVAL);
			continue;
		}
		/* a blank became another blank */
		again = np_journal_text(&back);
		assert_string_equal(text, again);
		np_journal_done(&back);
		passed++;
	}
	assert_true(passed < len);
}

static void refused(json_t *doc, int error, const char *code)
{
	struct np_journal back = { .deadline_ms = 77 };
	_cleanup_free_ char *text = np_journal_seal(doc);
	struct np_err err;

	assert_non_null(text);
	assert_int_equal(parse(text, strlen(text), &me, &back, &err), error);
	assert_string_equal(err.code, code);
	assert_int_equal(back.deadline_ms, 77);
}

/* A right checksum alone does not make it a journal. */
static void test_well_summed(void **state)
{
	static const char *const keys[] = { "format",	"kind",	   "machine_id",
					    "boot_id",	"run",	   "confirm_by_ms",
					    "complete", "reverts", "actions" };
	_cleanup_free_ char *text = journal_text(&me);
	json_t *good = json_loads(text, JSON_ALLOW_NUL, NULL), *copy;

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(keys); i++) {
		assert_non_null(json_object_get(good, keys[i]));
		copy = json_deep_copy(good);
		json_object_del(copy, keys[i]);
		json_object_del(copy, "checksum");
		refused(copy, -EINVAL, "state.damaged");
		copy = json_deep_copy(good);
		json_object_set_new(copy, keys[i], json_null());
		json_object_del(copy, "checksum");
		refused(copy, -EINVAL, "state.damaged");
	}
	copy = json_deep_copy(good);
	json_object_del(copy, "checksum");
	json_object_set_new(copy, "format", json_integer(3)); /* a later nodeprep */
	refused(copy, -EINVAL, "state.damaged");
	copy = json_deep_copy(good);
	json_object_del(copy, "checksum");
	json_object_set_new(copy, "machine_id", json_stringn("0123abcd\0x", 10));
	refused(copy, -EINVAL, "state.damaged");
	copy = json_deep_copy(good); /* good ones before a bad one are freed */
	json_object_del(copy, "checksum");
	json_array_append_new(json_object_get(copy, "actions"), json_null());
	refused(copy, -EINVAL, "state.damaged");
	json_decref(good);
}

static void test_machine(void **state)
{
	static const struct np_state_id clone = { .machine = "0123abce", .boot = "1-2" };
	static const struct np_state_id rebooted = { .machine = "0123abcd", .boot = "1-3" };
	static const struct np_state_id nobody = { .machine = "", .boot = "1-2" };
	static const struct np_state_id nobody_later = { .machine = "", .boot = "1-3" };
	_cleanup_free_ char *text = journal_text(&me), *unnamed = journal_text(&nobody);
	np_auto_journal struct np_journal back = { .run = "" };
	struct np_err err;

	(void)state;
	assert_int_equal(parse(text, strlen(text), &clone, &back, &err), -EXDEV);
	assert_string_equal(err.code, "state.other_machine");
	assert_int_equal(parse(text, strlen(text), &nobody, &back, &err), -EXDEV);
	assert_int_equal(parse(unnamed, strlen(unnamed), &me, &back, &err), -EXDEV);
	/* a node without an id: images made from it would take it for theirs */
	assert_int_equal(parse(unnamed, strlen(unnamed), &nobody_later, &back, &err), -EXDEV);
	assert_int_equal(parse(unnamed, strlen(unnamed), &nobody, &back, &err), 0);
	assert_int_equal(back.actions.n, 2);
	np_journal_done(&back);
	/* an MTU does not outlive a boot, a file does */
	assert_int_equal(parse(text, strlen(text), &rebooted, &back, &err), 0);
	assert_int_equal(back.actions.n, 1);
	assert_int_equal(back.actions.v[0].kind, NP_ACTION_FILE);
}

static void test_record(void **state)
{
	np_auto_record struct np_record record = { .id = me, .run = "0a", .expired = "0b" };
	np_auto_record struct np_record back = { .run = "" };
	_cleanup_free_ char *text = NULL, *again = NULL;
	np_auto_journal struct np_journal journal = { .run = "" };
	struct np_err err;

	(void)state;
	add_file(&record.base, "/etc/nccl.conf", NULL, "a\n");
	add_file(&record.base, "/etc/nodeprep/ucx.env", "b\n", NULL);
	add_mtu(&record.last);
	text = np_record_text(&record);
	assert_int_equal(np_record_parse(text, strlen(text), &me, &back, &err), 0);
	assert_int_equal(back.base.n, 2);
	assert_int_equal(back.last.n, 1);
	assert_string_equal(back.expired, "0b");
	again = np_record_text(&back);
	assert_string_equal(text, again);
	/* one is not the other */
	assert_int_equal(np_journal_parse(text, strlen(text), &me, &journal, &err), -EINVAL);
}

/* What could not be read back is not written: it would be no undo. */
static void test_too_large(void **state)
{
	char dir[] = "/tmp/np-state-XXXXXX", path[64];
	struct np_state st = NP_STATE_INIT;
	char *text = calloc(1, NP_STATE_MAX + 1);
	struct np_err err = { 0 };

	(void)state;
	assert_non_null(text);
	assert_non_null(mkdtemp(dir));
	st.dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(st.dirfd >= 0);
	snprintf(path, sizeof(path), "%s/" NP_STATE_JOURNAL, dir);
	assert_int_equal(np_state_write(&st, NP_STATE_JOURNAL, text, NP_STATE_MAX + 1, &err),
			 -EFBIG);
	assert_string_equal(err.code, "state.unwritable");
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(np_state_write(&st, NP_STATE_JOURNAL, text, 10, &err), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	np_state_close(&st);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc32c),	  cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_damage),	  cmocka_unit_test(test_well_summed),
		cmocka_unit_test(test_machine),	  cmocka_unit_test(test_record),
		cmocka_unit_test(test_too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
