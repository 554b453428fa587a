/* SPDX-License-Identifier: MIT */
#include "facts_build.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/address_lookup.h"
#include "agent/address_map.h"
#include "base/child.h"

/* ---- lines ---- */

static int find(const char *text, const char *node, struct np_inet *out, int *line,
		struct np_err *err)
{
	np_err_clear(err);
	return np_address_map_find("/m", text, strlen(text), node, out, line, err);
}

static void finds(const char *text, const char *node, const char *address, int line)
{
	struct np_inet out, want = fb_inet(address);
	struct np_err err;
	int at = 0;

	if (find(text, node, &out, &at, &err) < 0)
		fail_msg("%s", err.message);
	assert_true(np_inet_equal(&out, &want));
	assert_int_equal(at, line);
}

static void fails(const char *text, const char *node, int number, const char *code,
		  const char *part)
{
	struct np_inet out = { .family = 99 };
	struct np_err err;
	int at = -7;

	assert_int_equal(find(text, node, &out, &at, &err), number);
	assert_string_equal(err.code, code);
	if (!strstr(err.message, part))
		fail_msg("\"%s\" is not in \"%s\"", part, err.message);
	assert_true(err.hint[0]);
	assert_int_equal(out.family, 99);
	assert_int_equal(at, -7);
}

static void test_map(void **state)
{
	static const char map[] = "# the fleet\n\nnode01 10.0.0.1/24\n"
				  "\tnode02.example.org   10.0.0.2/24\t# rack 2\r\n"
				  "  # node03 10.0.0.3/24\nNode-4 fd00::4/64";

	(void)state;
	finds(map, "node01", "10.0.0.1/24", 3);
	finds(map, "node01.example.org", "10.0.0.1/24", 3);
	finds(map, "node02.example.org", "10.0.0.2/24", 4);
	finds(map, "NODE02.Example.ORG", "10.0.0.2/24", 4);
	finds(map, "node-4", "fd00::4/64", 6);
	finds("\xef\xbb\xbfn 10.0.0.1/24\n", "n", "10.0.0.1/24", 1);
	/* two lines for another host are that host's worry */
	finds("a 10.0.0.1/24\nb 10.0.0.2/24\nb 10.0.0.2/24\n", "a", "10.0.0.1/24", 1);
	fails(map, "node03", -ENOENT, "address.map_no_entry", "/m has no line for \"node03\"");
	fails(map, "node02", -ENOENT, "address.map_no_entry", "\"node02\"");
	fails(map, "node0.x.y", -ENOENT, "address.map_no_entry",
	      "for \"node0.x.y\", nor for \"node0\"");
	fails("", "n", -ENOENT, "address.map_no_entry", "\"n\"");
}

static void test_map_faults(void **state)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{ "n 10.0.0.1/24\nnode02\n", "/m:2: a host name without an address: \"node02\"" },
		{ "n 10.0.0.1/24 x\n", "/m:1: more than a host name and an address: \"x\"" },
		{ "#\nn 10.0.0.1\n", "/m:2: address \"10.0.0.1\" has no prefix length" },
		{ "n 10.0.0.1/24\nb 10.0.0.256/24\n", "/m:2: \"10.0.0.256/24\" is not" },
		{ "n 10.0.0.0/24\n", "/m:1: address \"10.0.0.0/24\" is the network address" },
		{ "10.0.0.1/24 n\n", "/m:1: \"n\" is not" },
		{ "n 10.0.0.1/24\nb\x1b[2J\n", "/m:2: a host name without an address: \"b\\x1b" },
	};
	char longest[600];

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++)
		fails(cases[i].text, "n", -EBADMSG, "address.map_syntax", cases[i].part);
	memset(longest, 'x', sizeof(longest));
	strcpy(longest + 500, " 10.0.0.1/24\n");
	fails(longest, "n", -EBADMSG, "address.map_syntax", "/m:1: the line is too long");
	memcpy(longest, "n 10.0.0.1/24 #", 15);
	finds(longest, "n", "10.0.0.1/24", 1);
	{
		struct np_inet out;
		struct np_err err;
		int line;

		assert_int_equal(np_address_map_find("/m", "n 10.0.0.1/24\n\0\n", 16, "n", &out,
						     &line, &err),
				 -EBADMSG);
		assert_non_null(strstr(err.message, "/m:2: a NUL byte"));
	}
	fails("n 10.0.0.1/24\nb 10.0.0.2/24\nN 10.0.0.3/24\n", "n", -EBADMSG,
	      "address.map_duplicate", "/m:1 and /m:3");
	fails("n 10.0.0.1/24\nn.x.org 10.0.0.3/24\n", "n.x.org", -EBADMSG, "address.map_duplicate",
	      "/m:1 and /m:2");
	/* the same address for another host, with another length too */
	fails("a 10.0.0.1/16\nn 10.0.0.1/24\n", "n", -EBADMSG, "address.map_duplicate",
	      "/m:1 and /m:2 give 10.0.0.1 to both n and a");
	fails("n 10.0.0.1/24\na 10.0.0.1/24\n", "n", -EBADMSG, "address.map_duplicate",
	      "/m:1 and /m:2 give");
}

/* What it costs a line does not grow with the lines. */
static void test_map_of_a_large_fleet(void **state)
{
	np_auto_buf struct np_buf text = { 0 };
	int64_t took[2];

	(void)state;
	for (int round = 0; round < 2; round++) {
		int from = round ? 10000 : 0, to = round ? 100000 : 10000;
		char last[32], address[32];

		for (int i = from; i < to; i++)
			np_buf_printf(&text, "node%06d 10.%d.%d.%d/8\n", i, 1 + i / 62500,
				      i / 250 % 250, 1 + i % 250);
		snprintf(last, sizeof(last), "node%06d", to - 1);
		snprintf(address, sizeof(address), "10.%d.%d.%d/8", 1 + (to - 1) / 62500,
			 (to - 1) / 250 % 250, 1 + (to - 1) % 250);
		took[round] = np_now_ms();
		finds(text.data, last, address, to);
		took[round] = np_now_ms() - took[round];
	}
	assert_true(took[1] < 40 * (took[0] + 20));
}

/* ---- files ---- */

static char map_path[64];

static int lookup(const char *node, struct np_err *err)
{
	struct np_inet out;
	int line;

	np_err_clear(err);
	return np_address_lookup_map(map_path, node, &out, &line, err);
}

static void write_map(const char *text)
{
	int fd = open(map_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void test_map_files(void **state)
{
	struct np_err err;

	(void)state;
	if (geteuid() != 0) {
		print_message("SKIP: a map is root's, and only root can make one\n");
		skip();
	}
	snprintf(map_path, sizeof(map_path), "/tmp/test_address_source.%d", (int)getpid());
	assert_int_equal(lookup("n", &err), -ENOENT);
	assert_string_equal(err.code, "address.map_unreadable");
	write_map("n 10.0.0.1/24\n");
	assert_int_equal(chmod(map_path, 0644), 0);
	assert_int_equal(lookup("n", &err), 0);
	for (int bit = 020; bit; bit = bit == 020 ? 02 : 0) {
		assert_int_equal(chmod(map_path, (mode_t)(0644 | bit)), 0);
		assert_int_equal(lookup("n", &err), -EPERM);
		assert_string_equal(err.code, "address.map_refused");
		assert_non_null(strstr(err.hint, "chmod go-w "));
	}
	assert_int_equal(chmod(map_path, 0600), 0);
	assert_int_equal(chown(map_path, 65534, 0), 0);
	assert_int_equal(lookup("n", &err), -EPERM);
	assert_non_null(strstr(err.message, "does not belong to root"));
	assert_int_equal(unlink(map_path), 0);
	/* nobody ever writes into it: it is not waited for */
	assert_int_equal(mkfifo(map_path, 0600), 0);
	assert_int_equal(lookup("n", &err), -EPERM);
	assert_non_null(strstr(err.message, "not a regular file"));
	assert_int_equal(unlink(map_path), 0);
	assert_int_equal(mkdir(map_path, 0700), 0);
	assert_int_equal(lookup("n", &err), -EPERM);
	assert_int_equal(rmdir(map_path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map),
		cmocka_unit_test(test_map_faults),
		cmocka_unit_test(test_map_of_a_large_fleet),
		cmocka_unit_test(test_map_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
