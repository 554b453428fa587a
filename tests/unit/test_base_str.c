/* SPDX-License-Identifier: MIT */
#include "facts_build.h"

#include "base/bytes.h"
#include "base/str.h"

#define UNTOUCHED 0x5a5a5a5a5a5a5a5aULL

static void parses(const char *s, int base, uint64_t max, uint64_t expected)
{
	uint64_t value = UNTOUCHED;

	assert_int_equal(np_parse_u64(s, base, max, &value), 0);
	assert_true(value == expected);
}

static void refuses(const char *s, int base, uint64_t max, int error)
{
	uint64_t value = UNTOUCHED;

	assert_int_equal(np_parse_u64(s, base, max, &value), error);
	assert_true(value == UNTOUCHED);
}

static void test_numbers(void **state)
{
	(void)state;
	parses("0", 10, 0, 0);
	parses("007", 10, 7, 7);
	parses("18446744073709551615", 10, UINT64_MAX, UINT64_MAX);
	parses("ffffffffffffffff", 16, UINT64_MAX, UINT64_MAX);
	parses("0xFFff", 16, UINT64_MAX, 0xffff);
	parses("0x10", 0, 16, 16);
	parses("10", 0, 10, 10);
	parses("00000000000000000000000000000000000001", 10, 1, 1);
	refuses("18446744073709551616", 10, UINT64_MAX, -ERANGE);
	refuses("99999999999999999999999999", 10, UINT64_MAX, -ERANGE);
	refuses("10000000000000000", 16, UINT64_MAX, -ERANGE);
	refuses("33", 10, 32, -ERANGE);
	refuses("1", 10, 0, -ERANGE);
}

static void test_not_numbers(void **state)
{
	static const char *const texts[] = { "",    " 1",  "1 ", "+1", "-1",  "0x",  "0X",   "0xg",
					     "1.5", "1e3", "a",	 "1,", "\t1", "1\n", "0x-1", "١" };

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(texts); i++) {
		refuses(texts[i], 0, UINT64_MAX, -EINVAL);
		if (strcmp(texts[i], "a") != 0 && strcmp(texts[i], "1e3") != 0)
			refuses(texts[i], 16, UINT64_MAX, -EINVAL);
		refuses(texts[i], 10, UINT64_MAX, -EINVAL);
	}
	refuses("0x10", 10, UINT64_MAX, -EINVAL);
	refuses(NULL, 10, UINT64_MAX, -EINVAL);
}

static void test_bool(void **state)
{
	static const char *const yes[] = { "yes", "TRUE", "on", "1" };
	static const char *const no[] = { "no", "False", "off", "0" };
	static const char *const neither[] = { "", "y", "2", "yes ", "enabled" };
	bool value;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		value = false;
		assert_int_equal(np_parse_bool(yes[i], &value), 0);
		assert_true(value);
		assert_int_equal(np_parse_bool(no[i], &value), 0);
		assert_false(value);
	}
	for (size_t i = 0; i < NP_ARRAY_SIZE(neither); i++) {
		value = true;
		assert_int_equal(np_parse_bool(neither[i], &value), -EINVAL);
		assert_true(value);
	}
	assert_int_equal(np_parse_bool(NULL, &value), -EINVAL);
}

static void test_bytes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
		const char *again;
	} good[] = {
		{ "1 KiB", 1024, "1 KiB" },
		{ "24GiB", UINT64_C(24) << 30, "24 GiB" },
		{ "64 \tMiB", 64 << 20, "64 MiB" },
		{ "2048 MiB", UINT64_C(2) << 30, "2 GiB" },
		{ "1025 KiB", 1025 * 1024, "1025 KiB" },
		{ "17179869183 GiB", UINT64_C(17179869183) << 30, "17179869183 GiB" },
	};
	static const char *const bad[] = { "",
					   "0 GiB",
					   "1",
					   "1 GB",
					   "GiB",
					   "-1 GiB",
					   "1.5 GiB",
					   "1 GiB ",
					   "0x1 KiB",
					   " 1 KiB",
					   "17179869184 GiB",
					   "99999999999999999999999999 KiB" };
	char text[NP_BYTES_STRLEN];

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(good); i++) {
		uint64_t bytes = UNTOUCHED;

		assert_int_equal(np_parse_bytes(good[i].text, &bytes), 0);
		assert_true(bytes == good[i].bytes);
		assert_string_equal(np_bytes_str(bytes, text), good[i].again);
	}
	for (size_t i = 0; i < NP_ARRAY_SIZE(bad); i++) {
		uint64_t bytes = UNTOUCHED;

		assert_int_equal(np_parse_bytes(bad[i], &bytes), -EINVAL);
		assert_true(bytes == UNTOUCHED);
	}
	assert_string_equal(np_bytes_str(0, text), "0 bytes");
	assert_string_equal(np_bytes_str(1025, text), "1025 bytes");
}

static void test_copy_and_strip(void **state)
{
	char out[4], text[] = " \t a b\r\n", blank[] = " \r\n";

	(void)state;
	assert_true(np_strcpy(out, sizeof(out), "abc"));
	assert_string_equal(out, "abc");
	assert_false(np_strcpy(out, sizeof(out), "abcd"));
	assert_string_equal(out, "abc");
	assert_false(np_strcpy(out, 1, "x"));
	assert_string_equal(out, "");
	assert_false(np_strcpy(NULL, 0, "x"));
	assert_string_equal(np_strip(text), "a b");
	assert_string_equal(np_strip(blank), "");
	assert_true(np_streq(NULL, NULL));
	assert_false(np_streq(NULL, ""));
	assert_true(np_starts_with("ib0.8001", "ib0"));
	assert_false(np_starts_with("ib", "ib0"));
}

/* ---- natural order ---- */

static void test_natural_order(void **state)
{
	static const char *const sorted[] = { "",
					      "0",
					      "mlx5_0",
					      "mlx5_1",
					      "mlx5_2",
					      "mlx5_10",
					      "mlx5_10:1",
					      "mlx5_10:2",
					      "mlx5_11",
					      "mlx5_99999999999999999999999998",
					      "mlx5_99999999999999999999999999",
					      "mlx5_bond_0" };

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(sorted); i++) {
		for (size_t j = 0; j < NP_ARRAY_SIZE(sorted); j++) {
			int order = np_natural_cmp(sorted[i], sorted[j]);

			assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
		}
	}
	/* equal but for zeros: a fixed order, and the rest decides first */
	assert_true(np_natural_cmp("a01", "a1") != 0);
	assert_true(np_natural_cmp("a01b", "a1a") > 0);
}

static int sign(int value)
{
	return (value > 0) - (value < 0);
}

static void random_text(uint64_t *random, char *out)
{
	static const char letters[] = "0012a-_\xff/:";
	uint32_t len = fb_random(random) % 6;

	for (uint32_t i = 0; i < len; i++)
		out[i] = letters[fb_random(random) % (sizeof(letters) - 1)];
	out[len] = '\0';
}

/* qsort needs one order: never equal unless the same, antisymmetric, transitive. */
static void test_natural_order_is_total(void **state)
{
	uint64_t random = 7;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		char a[8], b[8], c[8];
		int ab, bc, ac;

		random_text(&random, a);
		random_text(&random, b);
		random_text(&random, c);
		ab = sign(np_natural_cmp(a, b));
		bc = sign(np_natural_cmp(b, c));
		ac = sign(np_natural_cmp(a, c));
		assert_int_equal(ab == 0, strcmp(a, b) == 0);
		assert_int_equal(ab, -sign(np_natural_cmp(b, a)));
		if (ab <= 0 && bc <= 0)
			assert_true(ac <= 0);
		if (ab < 0 && bc < 0)
			assert_true(ac < 0);
	}
}

/* ---- suggestions ---- */

static void test_nearest(void **state)
{
	static const char *const names[] = { "apply", "plan", "check", "selftest", "show", NULL };
	static const char *const none[] = { NULL };
	char longest[300];

	(void)state;
	assert_string_equal(np_nearest("aply", names), "apply");
	assert_string_equal(np_nearest("chekc", names), "check");
	assert_string_equal(np_nearest("self-test", names), "selftest");
	assert_string_equal(np_nearest("self", names), "selftest");
	assert_string_equal(np_nearest("p", names), "plan");
	assert_string_equal(np_nearest("show", names), "show");
	assert_null(np_nearest("", names));
	assert_null(np_nearest("xyzzy", names));
	assert_null(np_nearest("apply", none));
	assert_null(np_nearest("apply", NULL));
	/* however long the word: what is nothing like a name is not offered */
	for (size_t len = 60; len < sizeof(longest); len += 7) {
		memset(longest, 'q', len);
		longest[len] = '\0';
		assert_null(np_nearest(longest, names));
	}
}

/* ---- buffer ---- */

static void test_buffer(void **state)
{
	np_auto_buf struct np_buf buf = { 0 };
	char big[5000];

	(void)state;
	np_buf_add(&buf, NULL, 0);
	assert_non_null(buf.data);
	assert_int_equal(buf.data[0], '\0');
	np_buf_add(&buf, "a\0b", 3);
	np_buf_printf(&buf, "%d-%s", 7, "");
	np_buf_str(&buf, "z");
	assert_int_equal(buf.len, 6);
	assert_memory_equal(buf.data, "a\0b7-z", 7);
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	np_buf_printf(&buf, "%s", big);
	assert_int_equal(buf.len, 6 + sizeof(big) - 1);
	assert_int_equal(buf.data[buf.len], '\0');
	assert_false(buf.failed);
	for (size_t len = 0; len < 600; len++) { /* every edge of its growth */
		np_auto_buf struct np_buf grown = { 0 };

		for (size_t i = 0; i < len; i++)
			np_buf_add(&grown, "y", 1);
		assert_int_equal(grown.len, len);
		if (len)
			assert_int_equal(strlen(grown.data), len);
	}
	buf.failed = true;
	np_buf_str(&buf, "dropped");
	assert_int_equal(buf.len, 6 + sizeof(big) - 1);
	np_buf_done(&buf);
	assert_null(buf.data);
	assert_false(buf.failed);
	np_buf_done(NULL);
}

/* ---- list ---- */

static void test_list(void **state)
{
	static const char *const sorted[] = { "mlx5_1", "mlx5_2", "mlx5_10" };
	np_auto_strv struct np_strv list = { 0 };

	(void)state;
	assert_false(np_strv_has(&list, "x"));
	np_strv_sort_natural(&list);
	assert_int_equal(np_strv_split(&list, "", ","), 0);
	assert_int_equal(np_strv_split(&list, " , ,\t", ","), 0);
	assert_int_equal(list.n, 0);
	assert_int_equal(np_strv_split(&list, " mlx5_10, mlx5_2\t,,mlx5_1\n", ","), 0);
	assert_int_equal(list.n, 3);
	assert_null(list.v[3]);
	assert_string_equal(list.v[0], "mlx5_10");
	np_strv_sort_natural(&list);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(list.v[i], sorted[i]);
	assert_true(np_strv_has(&list, "mlx5_2"));
	assert_false(np_strv_has(&list, "mlx5_"));
	assert_int_equal(np_strv_add(&list, ""), 0);
	assert_int_equal(list.n, 4);
	np_strv_done(&list);
	assert_int_equal(list.n, 0);
	np_strv_done(NULL);
}

/* ---- printable ---- */

static void test_printable(void **state)
{
	char out[32], all[256], shown[1100];

	(void)state;
	assert_string_equal(np_printable("ib0 ~", out, sizeof(out)), "ib0 ~");
	assert_string_equal(np_printable("a\033[2J\n\xff\x7f", out, sizeof(out)),
			    "a\\x1b[2J\\x0a\\xff\\x7f");
	for (int i = 1; i < 256; i++)
		all[i - 1] = (char)i;
	all[255] = '\0';
	np_printable(all, shown, sizeof(shown));
	assert_int_equal(strlen(shown), 95 + 4 * (255 - 95));
	/* cut at a whole character, and always ended */
	assert_string_equal(np_printable("ab\n", out, 6), "ab");
	assert_string_equal(np_printable("ab\n", out, 7), "ab\\x0a");
	assert_string_equal(np_printable("abc", out, 1), "");
	for (size_t size = 1; size < 40; size++) {
		np_printable("\1\2x\3\4", shown, size);
		assert_true(strlen(shown) < size);
	}
}

static void test_one_line(void **state)
{
	static const struct {
		const char *before, *after;
	} cases[] = {
		{ "", "" },
		{ "ib0 \xc3\xa4 \xff", "ib0 \xc3\xa4 \xff" },
		{ "a\nb\tc\r", "a\\x0ab\\x09c\\x0d" },
		{ "\033[2J\177", "\\x1b[2J\\x7f" },
		{ "\n", "\\x0a" },
		/* cut before the one that does not fit */
		{ "12345678901234567\n", "12345678901234567" },
		{ "123456789012345\nx", "123456789012345\\x0a" },
	};
	struct np_err err = { 0 };

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		char text[20];

		np_strcpy(text, sizeof(text), cases[i].before);
		np_one_line(text, sizeof(text));
		assert_string_equal(text, cases[i].after);
	}
	np_err_set(&err, -5, "x", "of %s", "a\nb");
	np_err_hint(&err, "do %s", "\033c");
	np_err_context(&err, "in %s", "\n");
	assert_string_equal(err.message, "in \\x0a: of a\\x0ab");
	assert_string_equal(err.hint, "do \\x1bc");
}

static void test_asprintf(void **state)
{
	_cleanup_free_ char *text = np_asprintf("%s:%d", "mlx5_0", 1);

	(void)state;
	assert_string_equal(text, "mlx5_0:1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_not_numbers),
		cmocka_unit_test(test_bool),
		cmocka_unit_test(test_copy_and_strip),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_natural_order),
		cmocka_unit_test(test_natural_order_is_total),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_buffer),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_printable),
		cmocka_unit_test(test_one_line),
		cmocka_unit_test(test_asprintf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
