/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/trust.h"

static char top[64];

static const char *at(const char *name)
{
	static char path[4][PATH_MAX];
	static int turn;

	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", top, name);
	return path[turn];
}

static void folder(const char *name, mode_t mode)
{
	assert_int_equal(mkdir(at(name), 0700), 0);
	assert_int_equal(chmod(at(name), mode), 0);
}

static void put(const char *name, mode_t mode)
{
	FILE *f = fopen(at(name), "w");

	assert_non_null(f);
	fclose(f);
	assert_int_equal(chmod(at(name), mode), 0);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(top, "/tmp/test_base_trust.XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", top);
	return system(command);
}

static void fine(const char *name)
{
	char which[PATH_MAX] = "";
	int r = np_path_trusted(at(name), which, sizeof(which));

	if (r != 0)
		fail_msg("%s: %d because of %s", name, r, which);
}

static void at_fault(const char *name, const char *wanted)
{
	char which[PATH_MAX] = "";

	assert_int_equal(np_path_trusted(at(name), which, sizeof(which)), -EPERM);
	assert_string_equal(which, at(wanted));
}

static void test_modes(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	folder("a", 0755);
	folder("a/b", 0755);
	put("a/b/file", 0644);
	fine("a/b/file");
	fine("a//./b/../b/file");
	assert_int_equal(chmod(at("a/b/file"), 0664), 0);
	at_fault("a/b/file", "a/b/file");
	assert_int_equal(chmod(at("a/b/file"), 0644), 0);
	assert_int_equal(chmod(at("a"), 0775), 0);
	at_fault("a/b/file", "a");
	assert_int_equal(chmod(at("a"), 01777), 0);
	fine("a/b/file");
	at_fault("a", "a");
	assert_int_equal(chmod(at("a"), 0755), 0);
	assert_int_equal(chown(at("a/b"), 1234, 0), 0);
	at_fault("a/b/file", "a/b");
}

/* Somebody else could put there what is missing. */
static void test_missing(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	folder("sticky", 01777);
	at_fault("sticky/new", "sticky");
	at_fault("sticky/new/file", "sticky");
	folder("sticky/mine", 0755);
	fine("sticky/mine/new");
	fine("sticky/mine/new/file");
}

static void test_links(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	folder("safe", 0755);
	put("safe/file", 0644);
	folder("open", 0777);
	assert_int_equal(symlink("safe", at("link")), 0);
	fine("link/file");
	assert_int_equal(symlink(at("safe"), at("absolute")), 0);
	fine("absolute/file");
	assert_int_equal(symlink("../safe/file", at("safe/again")), 0);
	fine("link/again");
	/* root's own link, in a folder where anybody can put another */
	assert_int_equal(symlink("../safe/file", at("open/link")), 0);
	at_fault("open/link", "open");
	/* and one on the way of a link */
	assert_int_equal(symlink("open/link", at("far")), 0);
	at_fault("far", "open");
	/* sticky, but the link is another's */
	assert_int_equal(chmod(at("open"), 01777), 0);
	fine("open/link");
	assert_int_equal(lchown(at("open/link"), 1234, 1234), 0);
	at_fault("open/link", "open/link");
}

static void test_no_walk(void **state)
{
	char which[PATH_MAX], longest[PATH_MAX + 8];

	(void)state;
	assert_int_equal(np_path_trusted("etc/passwd", which, sizeof(which)), -EINVAL);
	assert_int_equal(symlink("round", at("round")), 0);
	if (geteuid() == 0)
		assert_int_equal(np_path_trusted(at("round"), which, sizeof(which)), -ELOOP);
	memset(longest, '/', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(np_path_trusted(longest, which, sizeof(which)), -ENAMETOOLONG);
	if (geteuid() == 0)
		assert_int_equal(np_path_trusted("/", which, sizeof(which)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_modes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_missing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_links, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_walk, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
