/* SPDX-License-Identifier: MIT */
/* Which files of homes are left out where the undo would grow too large. Pure. */
#include "facts_build.h"

#include "agent/json_text.h"
#include "agent/state.h"
#include "agent/undo_room.h"

#define MIB (1u << 20)

static void fill(struct np_buf *buf, size_t bytes, char with)
{
	_cleanup_free_ char *text = malloc(bytes + 1);

	memset(text, with, bytes);
	np_buf_add(buf, text, bytes);
}

/* A file of a home with so many bytes before and after; without @user one of /etc. */
static void add(struct np_actions *list, const char *user, const char *path, size_t before,
		size_t after)
{
	struct np_action *a = np_actions_add(list, NP_ACTION_FILE);

	a->path = strdup(path);
	a->user = user ? strdup(user) : NULL;
	a->had_old = a->has_new = true;
	fill(&a->old_content, before, 'x');
	fill(&a->new_content, after, 'y');
}

static size_t make_room(const struct np_actions *base, struct np_actions *actions, size_t from)
{
	size_t first = np_undo_make_room(base, actions, from);

	for (size_t i = from; i < first; i++) {
		assert_int_equal(actions->v[i].status, NP_STATUS_FAILED);
		assert_non_null(strstr(actions->v[i].failure, "no room"));
	}
	for (size_t i = first; i < actions->n; i++)
		assert_int_not_equal(actions->v[i].status, NP_STATUS_FAILED);
	return first;
}

static void paths(const struct np_actions *actions, const char *want)
{
	np_auto_buf struct np_buf found = { 0 };

	for (size_t i = 0; i < actions->n; i++)
		np_buf_printf(&found, "%s%s", i ? " " : "", actions->v[i].path);
	assert_string_equal(found.data, want);
}

static void test_room_for_all(void **state)
{
	np_auto_actions struct np_actions base = { 0 }, actions = { 0 };

	(void)state;
	assert_int_equal(make_room(&base, &actions, 0), 0);
	add(&actions, "alice", "a", 100, 200);
	add(&actions, NULL, "etc", 40 * MIB, MIB);
	add(&actions, "bob", "b", 16 * MIB, 16 * MIB - 300);
	assert_int_equal(make_room(&base, &actions, 0), 0);
	paths(&actions, "a etc b");
}

static void test_the_largest_go(void **state)
{
	np_auto_actions struct np_actions base = { 0 }, actions = { 0 };

	(void)state;
	add(&actions, "done", "done", 8 * MIB, 8 * MIB);
	add(&actions, "alice", "a", 100, 200);
	add(&actions, "bob", "b", 6 * MIB, 6 * MIB);
	add(&actions, NULL, "etc", 1, 1);
	add(&actions, "carol", "c", 7 * MIB, 7 * MIB);
	add(&actions, "dave", "d", MIB, MIB);
	assert_int_equal(make_room(&base, &actions, 1), 2);
	paths(&actions, "done c a b etc d");
	assert_non_null(strstr(actions.v[1].failure, "14680064 bytes"));
	assert_string_equal(actions.v[1].failure_code, "file.home_refused");
}

/* Whoever fills it keeps no other home from its few lines. */
static void test_small_ones_never(void **state)
{
	np_auto_actions struct np_actions base = { 0 }, actions = { 0 };

	(void)state;
	add(&base, "mallory", "m", 16 * MIB, 16 * MIB);
	add(&actions, "alice", "a", 2000, NP_UNDO_HOME_SMALL - 2000);
	add(&actions, "bob", "b", 2000, NP_UNDO_HOME_SMALL - 1999);
	assert_int_equal(make_room(&base, &actions, 0), 1);
	paths(&actions, "b a");
}

static void test_attributes_count(void **state)
{
	np_auto_actions struct np_actions base = { 0 }, actions = { 0 };
	np_auto_buf struct np_buf value = { 0 };

	(void)state;
	fill(&value, 20 * MIB, 'v');
	add(&actions, "alice", "a", 1, 1);
	add(&actions, "bob", "b", 8 * MIB, 8 * MIB);
	assert_int_equal(np_file_meta_add(&actions.v[0].old_meta, "user.x", value.data, value.len),
			 0);
	assert_int_equal(make_room(&base, &actions, 0), 1);
	paths(&actions, "a b");
}

/* What NP_UNDO_HOMES_MAX counts on: no byte takes more than two. */
static void test_bytes_in_a_document(void **state)
{
	(void)state;
	for (int c = 0; c < 256; c++) {
		np_auto_buf struct np_buf bytes = { 0 }, back = { 0 };
		_cleanup_free_ char *text = NULL;
		json_t *doc;

		fill(&bytes, 1000, (char)c);
		doc = np_json_bytes(&bytes);
		assert_non_null(doc);
		text = json_dumps(doc, JSON_COMPACT);
		assert_true(strlen(text) <= 2 * bytes.len + 20);
		assert_int_equal(np_json_take_bytes(doc, &back), 0);
		assert_true(np_buf_equal(&back, &bytes));
		json_decref(doc);
	}
	assert_true(2ull * 2 * NP_UNDO_HOMES_MAX <= NP_STATE_MAX / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_room_for_all),	    cmocka_unit_test(test_the_largest_go),
		cmocka_unit_test(test_small_ones_never),    cmocka_unit_test(test_attributes_count),
		cmocka_unit_test(test_bytes_in_a_document),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
