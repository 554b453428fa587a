/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "agent/nccl_conf.h"

#define IFNAME "NCCL_SOCKET_IFNAME"

/* ---- two readers, written from NCCL's rules and not from nccl_conf.c ---- */

enum reader { READER_2_26, READER_2_30 };

/* Next line as the reader cuts it; false at the end. The 2.30 one holds 4095 bytes. */
static bool ref_line(enum reader reader, const char **at, const char *end, char *line, size_t *len)
{
	size_t max = reader == READER_2_30 ? 4095 : (size_t)-1;

	if (*at == end)
		return false;
	for (*len = 0; *at < end && *len < max;) {
		char c = *(*at)++;

		line[(*len)++] = c;
		if (c == '\n')
			break;
	}
	line[*len] = '\0';
	return true;
}

/* What getenv(key) would give after the file was read. */
static char *ref_get(enum reader reader, const char *text, size_t len, const char *key)
{
	const char *at = text, *end = text + len;
	char *line = malloc(len + 1), *found = NULL;
	size_t n;

	while (!found && ref_line(reader, &at, end, line, &n)) {
		char *equals;

		if (line[0] == '#')
			continue;
		if (reader == READER_2_30)
			n = strlen(line);
		if (n && line[n - 1] == '\n')
			line[--n] = '\0';
		if (reader == READER_2_30 && n && line[n - 1] == '\r')
			line[--n] = '\0';
		equals = strchr(line, '=');
		if (!equals)
			continue;
		*equals = '\0';
		if (strlen(line) > 1023)
			line[1023] = '\0';
		if (strlen(equals + 1) > 1023)
			equals[1 + 1023] = '\0';
		if (strcmp(line, key) == 0)
			found = strdup(equals + 1);
	}
	free(line);
	return found;
}

static void edit(const char *old, size_t len, const char *key, const char *value,
		 struct np_buf *out)
{
	struct np_nccl_key keys[] = { { key, value } };
	struct np_err err;

	np_err_clear(&err);
	assert_int_equal(np_nccl_conf_edit(old, len, keys, 1, out, &err), 0);
	assert_non_null(out->data);
}

static void check_edit(const char *old, const char *key, const char *value, const char *wanted)
{
	np_auto_buf struct np_buf out = { 0 };

	edit(old, strlen(old), key, value, &out);
	assert_string_equal(out.data, wanted);
}

static void test_edit(void **state)
{
	(void)state;
	check_edit("", IFNAME, "ib0", "NCCL_SOCKET_IFNAME=ib0\n");
	check_edit("", IFNAME, NULL, "");
	check_edit("A=1", IFNAME, "ib0", "A=1\nNCCL_SOCKET_IFNAME=ib0\n");
	check_edit("A=1\n\n", IFNAME, "ib0", "A=1\n\nNCCL_SOCKET_IFNAME=ib0\n");
	/* the first one counts, so it is the one to change */
	check_edit("NCCL_SOCKET_IFNAME=eth0\nB=2\nNCCL_SOCKET_IFNAME=ib0\nC=3", IFNAME, "ib0",
		   "NCCL_SOCKET_IFNAME=ib0\nB=2\nC=3");
	/* right already: nothing moves, not even the line that has no effect */
	check_edit("NCCL_SOCKET_IFNAME=ib0\nNCCL_SOCKET_IFNAME=eth0", IFNAME, "ib0",
		   "NCCL_SOCKET_IFNAME=ib0\nNCCL_SOCKET_IFNAME=eth0");
	check_edit("B=2\nNCCL_SOCKET_IFNAME=eth0", IFNAME, "=ib0", "B=2\nNCCL_SOCKET_IFNAME==ib0");
	check_edit("NCCL_SOCKET_IFNAME=eth0\nB=2\nNCCL_SOCKET_IFNAME=x", IFNAME, NULL, "B=2\n");
	/* an empty value is a value, and hides what follows */
	check_edit("NCCL_SOCKET_IFNAME=\n", IFNAME, "ib0", "NCCL_SOCKET_IFNAME=ib0\n");
	/* lines that NCCL does not read as the key stay */
	check_edit("export NCCL_SOCKET_IFNAME=ib0\n NCCL_SOCKET_IFNAME=ib0\n"
		   "#NCCL_SOCKET_IFNAME=ib0\nNCCL_SOCKET_IFNAME =ib0\n",
		   IFNAME, "ib0",
		   "export NCCL_SOCKET_IFNAME=ib0\n NCCL_SOCKET_IFNAME=ib0\n"
		   "#NCCL_SOCKET_IFNAME=ib0\nNCCL_SOCKET_IFNAME =ib0\n"
		   "NCCL_SOCKET_IFNAME=ib0\n");
	/* a carriage return is part of the value before NCCL 2.30 */
	check_edit("A=1\r\nNCCL_SOCKET_IFNAME=ib0\r\nB=2\r\n", IFNAME, "ib0",
		   "A=1\r\nNCCL_SOCKET_IFNAME=ib0\nB=2\r\n");
	check_edit("NCCL_SOCKET_IFNAMES=x\nNCCL_SOCKET_IFNAM=y\n", IFNAME, NULL,
		   "NCCL_SOCKET_IFNAMES=x\nNCCL_SOCKET_IFNAM=y\n");
}

/* C39: a vendor's file; two keys at once. */
static void test_edit_vendor(void **state)
{
	static const char vendor[] = "NCCL_TOPO_FILE=/opt/vendor/topo.xml\n"
				     "NCCL_TUNER_PLUGIN=/opt/vendor/tuner.so\n";
	struct np_nccl_key keys[] = { { IFNAME, "ib0" }, { "NCCL_IB_HCA", "=mlx5_1:1" } };
	np_auto_buf struct np_buf out = { 0 }, again = { 0 };
	struct np_err err;

	(void)state;
	assert_int_equal(np_nccl_conf_edit(vendor, strlen(vendor), keys, 2, &out, &err), 0);
	assert_memory_equal(out.data, vendor, strlen(vendor));
	assert_string_equal(out.data + strlen(vendor),
			    "NCCL_SOCKET_IFNAME=ib0\nNCCL_IB_HCA==mlx5_1:1\n");
	assert_int_equal(np_nccl_conf_edit(out.data, out.len, keys, 2, &again, &err), 0);
	assert_string_equal(again.data, out.data);
}

static void test_edit_refuses(void **state)
{
	static const char *const bad_keys[] = { "", "A B", "#A", "A=B", "1A", "A\n" };
	static const char *const bad_values[] = { "a\nb", "ib0\r", "\t", "\x7f" };
	np_auto_buf struct np_buf out = { 0 };
	struct np_err err;
	char huge[1200];

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(bad_keys); i++) {
		struct np_nccl_key key = { bad_keys[i], "x" };

		assert_int_equal(np_nccl_conf_edit("", 0, &key, 1, &out, &err), -EINVAL);
		assert_string_equal(err.code, "nccl.value_invalid");
	}
	for (size_t i = 0; i < NP_ARRAY_SIZE(bad_values); i++) {
		struct np_nccl_key key = { IFNAME, bad_values[i] };

		assert_int_equal(np_nccl_conf_edit("", 0, &key, 1, &out, &err), -EINVAL);
	}
	memset(huge, 'x', sizeof(huge));
	huge[1024] = '\0';
	assert_int_equal(np_nccl_conf_edit("", 0, &(struct np_nccl_key){ IFNAME, huge }, 1, &out,
					   &err),
			 -EINVAL);
	huge[1023] = '\0';
	assert_int_equal(
		np_nccl_conf_edit("", 0, &(struct np_nccl_key){ IFNAME, huge }, 1, &out, &err), 0);
	assert_null(strstr(out.data, "\n\n"));
}

static void check_get(const char *text, size_t len, const char *key, const char *wanted)
{
	_cleanup_free_ char *value = np_nccl_conf_get(text, len, key);

	if (wanted)
		assert_string_equal(value, wanted);
	else
		assert_null(value);
}

static void test_get(void **state)
{
	static const char nul[] = "A=1\0junk\n\0B=2\nC=\0003\n";
	char long_line[1200] = "K=", cut[1024] = "";

	(void)state;
	check_get("A=1\nA=2\n", 8, "A", "1");
	check_get("A=\nA=2\n", 7, "A", "");
	check_get("A=1=2", 5, "A", "1=2");
	check_get("A", 1, "A", NULL);
	check_get(NULL, 0, "A", NULL);
	check_get(" A=1\n", 5, "A", NULL);
	check_get("A= 1 \r\n", 7, "A", " 1 \r");
	check_get(nul, sizeof(nul) - 1, "A", "1");
	check_get(nul, sizeof(nul) - 1, "B", NULL);
	check_get(nul, sizeof(nul) - 1, "C", "");
	memset(long_line + 2, 'v', 1100);
	memset(cut, 'v', 1023);
	check_get(long_line, strlen(long_line), "K", cut);
}

/* ---- any bytes at all ---- */

static uint64_t seed = 88172645463325252ull;

static unsigned int rnd(unsigned int below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned int)(seed % below);
}

static size_t make_text(char *text, size_t size)
{
	static const char *const parts[] = {
		"NCCL_SOCKET_IFNAME",
		"NCCL_SOCKET_IFNAME=",
		"NCCL_SOCKET_IFNAME=ib0",
		"=",
		"#",
		" ",
		"\n",
		"\n",
		"\n",
		"\r\n",
		"\r",
		"ib0",
		"export ",
		"NCCL_DEBUG=INFO\n",
		"\"",
		"NCCL_SOCKET_IFNAME=ib0\n",
		"NCCL_SOCKET_IFNAME=eth0\n",
		"\xef\xbb\xbf",
		"\n#",
	};
	size_t len = 0, n = rnd(24);

	for (size_t i = 0; i < n; i++) {
		const char *part = parts[rnd(NP_ARRAY_SIZE(parts))];
		char byte = (char)rnd(256);
		size_t part_len = strlen(part);

		if (rnd(8) == 0) {
			part = &byte;
			part_len = 1;
		}
		if (len + part_len > size)
			break;
		memcpy(text + len, part, part_len);
		len += part_len;
	}
	return len;
}

/* Lines that do not set the key, each with a newline (the last one may gain one). */
static void foreign_lines(const char *text, size_t len, struct np_buf *out)
{
	const char *at = text, *end = text + len;
	char line[4096];
	size_t n;

	while (ref_line(READER_2_26, &at, end, line, &n)) {
		_cleanup_free_ char *value = ref_get(READER_2_26, line, n, IFNAME);

		if (value)
			continue;
		np_buf_add(out, line, n);
		if (line[n - 1] != '\n')
			np_buf_str(out, "\n");
	}
}

static void check_value(const struct np_buf *text, const char *value)
{
	for (int reader = READER_2_26; reader <= READER_2_30; reader++) {
		_cleanup_free_ char *got =
			ref_get((enum reader)reader, text->data, text->len, IFNAME);

		if (value)
			assert_string_equal(got, value);
		else
			assert_null(got);
	}
	check_get(text->data, text->len, IFNAME, value);
}

static void test_edit_property(void **state)
{
	static const char *const values[] = { "ib0", "=ib0",	  "",	 "ib0,ib1",
					      NULL,  "^=docker0", "eth0" };
	char *text = malloc(2048);

	(void)state;
	for (int i = 0; i < 40000; i++) {
		np_auto_buf struct np_buf once = { 0 }, twice = { 0 }, before = { 0 },
					  after = { 0 };
		const char *value = values[rnd(NP_ARRAY_SIZE(values))];
		size_t len = make_text(text, 2048);
		_cleanup_free_ char *had = ref_get(READER_2_26, text, len, IFNAME);

		edit(text, len, IFNAME, value, &once);
		check_value(&once, value);
		edit(once.data, once.len, IFNAME, value, &twice);
		assert_int_equal(once.len, twice.len);
		assert_memory_equal(once.data, twice.data, once.len);
		if (np_streq(had, value)) {
			assert_int_equal(once.len, len);
			assert_memory_equal(once.data, text, len);
		}
		foreign_lines(text, len, &before);
		foreign_lines(once.data, once.len, &after);
		assert_int_equal(before.len, after.len);
		if (before.len)
			assert_memory_equal(before.data, after.data, before.len);
	}
	free(text);
}

/* Nothing but memory safety and order. */
static void test_lint_property(void **state)
{
	char *text = malloc(2048);

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct np_nccl_issues issues = { 0 };

		assert_int_equal(np_nccl_conf_lint(text, make_text(text, 2048), &issues), 0);
		for (size_t n = 1; n < issues.n; n++)
			assert_true(issues.v[n - 1].line <= issues.v[n].line);
		np_nccl_issues_done(&issues);
	}
	free(text);
}

/* ---- lint ---- */

static void check_lint(const char *text, size_t len, const char *wanted)
{
	struct np_nccl_issues issues = { 0 };
	np_auto_buf struct np_buf got = { 0 };

	assert_int_equal(np_nccl_conf_lint(text, len, &issues), 0);
	np_buf_str(&got, "");
	for (size_t i = 0; i < issues.n; i++) {
		assert_true(np_starts_with(issues.v[i].code, "nccl.line_"));
		assert_true(issues.v[i].message[0] && issues.v[i].hint[0]);
		np_buf_printf(&got, "%s%d %s", i ? ", " : "", issues.v[i].line,
			      issues.v[i].code + strlen("nccl.line_"));
	}
	assert_string_equal(got.data, wanted);
	np_nccl_issues_done(&issues);
}

static void test_lint(void **state)
{
	static const struct {
		const char *text, *wanted;
	} cases[] = {
		{ "", "" },
		{ "\n \n\r\n# a = b\n#c\nNCCL_DEBUG=INFO\nNCCL_IB_HCA==mlx5_1:1", "" },
		{ "  NCCL_DEBUG=INFO\n", "1 leading_blank" },
		{ "export NCCL_DEBUG=INFO\n", "1 export" },
		{ "\texport  NCCL_DEBUG=INFO\n", "1 export, 1 leading_blank" },
		{ "NCCL_DEBUG =INFO\n", "1 blank_before_equals" },
		{ "NCCL_DEBUG= INFO\n", "1 blank_after_equals" },
		{ "NCCL_DEBUG=INFO \n", "1 trailing_blank" },
		{ "NCCL_DEBUG=\"INFO\"\nA='b'\n", "1 quotes, 2 quotes" },
		{ "NCCL_DEBUG=INFO\r\n", "1 carriage_return" },
		{ "NCCL_DEBUG=INFO # why\n", "1 trailing_comment" },
		{ "NCCL_DEBUG=a#b\n", "" },
		{ "  # a=b\n  # c\n", "1 indented_comment" },
		{ "NCCL_DEBUG INFO\nNCCL_DEBUG: INFO\n", "1 no_equals, 2 no_equals" },
		{ "; a=b\n// c=d\n=e\n1A=f\n", "1 bad_name, 2 bad_name, 3 bad_name, 4 bad_name" },
		{ "\xef\xbb\xbfNCCL_DEBUG=INFO\n", "1 byte_order_mark" },
		{ "A=1\nB=2\nA=3\nB=2\n", "3 repeated" },
	};
	static const char nul[] = "NCCL_DEBUG=INFO\0\nB=2\n";

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++)
		check_lint(cases[i].text, strlen(cases[i].text), cases[i].wanted);
	check_lint(nul, sizeof(nul) - 1, "1 nul_byte");
}

static void test_lint_long(void **state)
{
	char text[6000];

	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text, "A=", 2);
	check_lint(text, 2 + 1023, "");
	check_lint(text, 2 + 1024, "1 too_long");
	check_lint(text, sizeof(text), "1 too_long, 1 too_long");
	memset(text, '\n', sizeof(text));
	for (size_t i = 0; i + 2 < sizeof(text); i += 2)
		text[i] = 'x';
	struct np_nccl_issues issues = { 0 };

	assert_int_equal(np_nccl_conf_lint(text, sizeof(text), &issues), 0);
	assert_int_equal(issues.n, 100);
	np_nccl_issues_done(&issues);
}

/* C6: everything at once; own key set, every other byte kept, each line named. */
static void test_case_c6(void **state)
{
	np_auto_buf struct np_buf text = { 0 }, out = { 0 };
	_cleanup_free_ char *value = NULL;

	(void)state;
	np_buf_str(&text, "  NCCL_IB_TC=106\nexport NCCL_DEBUG=INFO\nNCCL_ALGO=\"Ring\"\n"
			  "NCCL_PROTO=Simple\r\nNCCL_X=");
	for (int i = 0; i < 1100; i++)
		np_buf_str(&text, "v");
	np_buf_str(&text, "\n# NCCL_DEBUG=TRACE\nNCCL_LAST=1");
	check_lint(text.data, text.len,
		   "1 leading_blank, 2 export, 3 quotes, 4 carriage_return, 5 too_long");
	edit(text.data, text.len, IFNAME, "ib0", &out);
	assert_memory_equal(out.data, text.data, text.len);
	assert_string_equal(out.data + text.len, "\nNCCL_SOCKET_IFNAME=ib0\n");
	check_value(&out, "ib0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edit),	      cmocka_unit_test(test_edit_vendor),
		cmocka_unit_test(test_edit_refuses),  cmocka_unit_test(test_get),
		cmocka_unit_test(test_edit_property), cmocka_unit_test(test_lint_property),
		cmocka_unit_test(test_lint),	      cmocka_unit_test(test_lint_long),
		cmocka_unit_test(test_case_c6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
