/* SPDX-License-Identifier: MIT */
/* limits.conf as data. That Debian's pam_limits says the same is tried against the real
 * one in tests/cli/test_login_limits.py; here is what that cannot show. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/login_limits.h"
#include "base/process.h"

#define KIB UINT64_C(1024)

static const struct np_memlock base = { 4000 * KIB, 8000 * KIB };
static const struct np_memlock untouched = { 100 * KIB, 200 * KIB };

static int group_gid(const char *name, gid_t *out)
{
	if (strcmp(name, "ib") != 0)
		return -ENOENT;
	*out = 2000;
	return 0;
}

static const gid_t carols[] = { 1500, 2000 };
static const struct np_limit_user carol = {
	.name = "carol",
	.uid = 1500,
	.gid = 1500,
	.gids = carols,
	.n_gids = 2,
	.group_gid = group_gid,
};
static const struct np_limit_user anybody = { 0 };
static const struct np_limit_user members = { .group = "ib" };

struct answer {
	struct np_memlock limit;
	char soft[NP_LIMIT_SOURCE], hard[NP_LIMIT_SOURCE], off[NP_LIMIT_SOURCE];
	size_t issues;
	char issue[120];
	int issue_line;
};

static struct answer ask(const char *text, const struct np_limit_user *user, const char *skip)
{
	np_auto_limit_texts struct np_limit_texts texts = { 0 };
	np_auto_limit_rules struct np_limit_rules rules = { 0 };
	struct np_login_limit limit;
	struct answer a = { 0 };

	/* "@@NAME\n" starts a file */
	assert_int_equal(np_limit_texts_add(&texts, "first", "", 0), 0);
	for (const char *at = text; *at;) {
		const char *next = strstr(at, "@@");
		char name[32] = "first";

		if (next == at) {
			snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 2, "\n"), at + 2);
			at += 2 + strlen(name) + 1;
			next = strstr(at, "@@");
		}
		if (!next)
			next = at + strlen(at);
		assert_int_equal(np_limit_texts_add(&texts, name, at, (size_t)(next - at)), 0);
		at = next;
	}
	assert_int_equal(np_limit_rules_parse(&texts, &rules), 0);
	np_login_limit(&rules, user, skip, &base, &untouched, &limit);
	a.limit = limit.limit;
	if (limit.soft)
		np_limit_source(limit.soft, a.soft);
	if (limit.hard)
		np_limit_source(limit.hard, a.hard);
	if (limit.switched_off)
		np_limit_source(limit.switched_off, a.off);
	a.issues = rules.n_issues;
	if (rules.n_issues) {
		np_strcpy(a.issue, sizeof(a.issue), rules.issues[0].what);
		a.issue_line = rules.issues[0].line;
	}
	return a;
}

static void expect(const char *text, const struct np_limit_user *user, uint64_t soft_kib,
		   uint64_t hard_kib)
{
	struct answer a = ask(text, user, NULL);
	uint64_t soft = soft_kib == NP_UNLIMITED ? soft_kib : soft_kib * KIB;
	uint64_t hard = hard_kib == NP_UNLIMITED ? hard_kib : hard_kib * KIB;

	if (a.limit.soft != soft || a.limit.hard != hard)
		fail_msg("%s: %llu %llu", text, (unsigned long long)a.limit.soft / KIB,
			 (unsigned long long)a.limit.hard / KIB);
}

static void test_values(void **state)
{
	(void)state;
	expect("", &carol, 4000, 8000);
	expect("* - memlock unlimited\n", &carol, NP_UNLIMITED, NP_UNLIMITED);
	expect("* - memlock -1", &carol, NP_UNLIMITED, NP_UNLIMITED);
	expect("* hard memlock infinity", &carol, 4000, NP_UNLIMITED);
	/* 2^64 / 1024 and more: no number of bytes */
	expect("* - memlock 18014398509481982", &carol, 18014398509481982, 18014398509481982);
	expect("* - memlock 18014398509481983", &carol, NP_UNLIMITED, NP_UNLIMITED);
	expect("* - memlock 99999999999999999999999999999", &carol, NP_UNLIMITED, NP_UNLIMITED);
	expect("* - memlock -9", &carol, NP_UNLIMITED, NP_UNLIMITED);
	expect("* - memlock 64\0 128", &carol, 64, 64);
	expect("* soft memlock 90\n* hard memlock 70", &carol, 70, 70);
}

static void test_sources(void **state)
{
	struct answer a;

	(void)state;
	a = ask("#\n* soft memlock 50\n@@b\n@ib hard memlock 60\n", &carol, NULL);
	assert_string_equal(a.soft, "first:2");
	assert_string_equal(a.hard, "b:1");
	assert_string_equal(a.off, "");
	a = ask("* - memlock 50\n@@b\n* - memlock 60\n@@c\n* hard memlock 70\n", &carol, NULL);
	assert_string_equal(a.soft, "b:1");
	assert_string_equal(a.hard, "c:1");
	a = ask("* - memlock 50\n@@b\n* - memlock 60\n", &carol, "b");
	assert_int_equal(a.limit.soft, 50 * KIB);
	a = ask("* - memlock 50\n@@b\ncarol -\n@@c\ncarol - memlock 1\n", &carol, NULL);
	assert_string_equal(a.off, "b:1");
	assert_string_equal(a.soft, "");
	assert_memory_equal(&a.limit, &untouched, sizeof(untouched));
}

/* Everybody, or the members of one group, whoever else they are. */
static void test_classes(void **state)
{
	static const char text[] = "* - memlock 50\n@ib - memlock 60\n@other - memlock 70\n"
				   "carol - memlock 80\n0: - memlock 90\n@0: - memlock 91\n";

	(void)state;
	expect(text, &anybody, 50, 50);
	expect(text, &members, 60, 60);
	expect("carol -\n@other -\n* - memlock 50\n", &members, 50, 50);
	assert_string_equal(ask("@ib -\n", &members, NULL).off, "first:1");
	assert_string_equal(ask("@ib -\n", &anybody, NULL).off, "");
}

/* Elsewhere than in Debian * and groups reach root. */
static void test_root(void **state)
{
	static const gid_t roots[] = { 0 };
	struct np_limit_user root = { .name = "root",
				      .gids = roots,
				      .n_gids = 1,
				      .group_gid = group_gid,
				      .root_by_name = true };

	(void)state;
	expect("* - memlock 50\n", &root, 4000, 8000);
	expect("@:0 - memlock 50\n", &root, 50, 50);
	expect("@:0 - memlock 50\nroot - memlock 60\n@:0 - memlock 70\n", &root, 70, 70);
	root.root_by_name = false;
	expect("* - memlock 50\n", &root, 50, 50);
	expect("@:0 - memlock 50\nroot - memlock 60\n@:0 - memlock 70\n", &root, 60, 60);
}

static void test_issues(void **state)
{
	static const struct {
		const char *text, *what;
		int line;
	} cases[] = {
		{ "\n* - memlock\n", "not DOMAIN TYPE ITEM VALUE", 2 },
		{ "* memlock 50", "not DOMAIN TYPE ITEM VALUE", 1 },
		{ "*\n", "not DOMAIN TYPE ITEM VALUE", 1 },
		{ "* both memlock 50", "\"both\" is neither soft, hard nor -", 1 },
		{ "#\n#\n* - memlock many", "\"many\" is no number of KiB", 3 },
		{ "* - memlock 64M", "\"64m\" is read as 64 KiB", 1 },
		{ "* - memlock -5", "\"-5\" is read as unlimited", 1 },
		{ "%ib - memlock 5", "%ib is for the number of logins", 1 },
		{ "5:x - memlock 5", "\"5:x\" is no range", 1 },
		{ ": - memlock 5", "\":\" is no range", 1 },
		{ "* -", "\"* -\" switches nothing off", 1 },
		{ "\x1b[1m - memlock\n", "not DOMAIN", 1 },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct answer a = ask(cases[i].text, &carol, NULL);

		assert_int_equal(a.issues, 1);
		assert_int_equal(a.issue_line, cases[i].line);
		if (!strstr(a.issue, cases[i].what))
			fail_msg("%s: %s", cases[i].text, a.issue);
	}
	/* what is fine, or another item's matter */
	assert_int_equal(ask("# x\n\n * - memlock 5 # y\n* - nofile many\ncarol -\n* - nproc 5 6\n",
			     &carol, NULL)
				 .issues,
			 0);
}

static void test_many_and_long(void **state)
{
	np_auto_buf struct np_buf text = { 0 };
	struct answer a;

	(void)state;
	for (int i = 0; i < 300; i++)
		np_buf_str(&text, "*\n");
	np_buf_str(&text, "* - memlock 50");
	for (int i = 0; i < 2000; i++)
		np_buf_str(&text, " ");
	np_buf_str(&text, "x\n");
	a = ask(text.data, &carol, NULL);
	assert_int_equal(a.issues, NP_LIMIT_ISSUES_MAX);
	assert_int_equal(a.limit.soft, 50 * KIB);
	a = ask(strstr(text.data, "* - memlock"), &carol, NULL);
	assert_non_null(strstr(a.issue, "longer than 1023 bytes"));
}

/* ---- base/memlock.h, base/process.h ---- */

static void test_proc_limits(void **state)
{
	struct np_memlock limit = { 1, 2 };
	char text[NP_MEMLOCK_STRLEN];

	(void)state;
	assert_int_equal(
		np_memlock_parse("Limit  Soft Limit  Hard Limit  Units\n"
				 "Max processes             100      200      processes\n"
				 "Max locked memory         65536    unlimited    bytes     \n"
				 "Max address space         1  2  bytes\n",
				 &limit),
		0);
	assert_int_equal(limit.soft, 65536);
	assert_true(limit.hard == NP_UNLIMITED);
	assert_int_equal(np_memlock_parse("Max processes 1 2\n", &limit), -ENOENT);
	assert_int_equal(np_memlock_parse("Max locked memory 1", &limit), -EINVAL);
	assert_int_equal(np_memlock_parse("Max locked memory few 1 bytes", &limit), -EINVAL);
	assert_int_equal(limit.soft, 65536);
	assert_string_equal(np_memlock_str(65536, text), "64 KiB");
	assert_string_equal(np_memlock_str(100, text), "100 bytes");
	assert_string_equal(np_memlock_str(NP_UNLIMITED, text), "unlimited");
	/* its own, both ways */
	assert_int_equal(np_memlock_of(getpid(), &limit), 0);
	assert_int_equal(np_memlock_of(0, &(struct np_memlock){ 0 }), 0);
	assert_int_equal(np_memlock_of(INT32_MAX, &limit), -ENOENT);
}

static void test_set(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	if (pid == 0) {
		struct np_memlock got = { 0 }, now = { 0 };
		int bad = 0;

		bad |= np_memlock_set(&(struct np_memlock){ 128 * KIB, 256 * KIB }, &got) != 0;
		bad |= np_memlock_of(0, &now) != 0 || memcmp(&now, &got, sizeof(now)) != 0;
		bad |= got.soft != 128 * KIB || got.hard != 256 * KIB;
		/* the soft limit never stands above the hard one */
		bad |= np_memlock_set(&(struct np_memlock){ NP_UNLIMITED, 200 * KIB }, &got) != 0;
		bad |= got.soft != 200 * KIB;
		/* no CAP_SYS_RESOURCE: as much as can be had, and it says so */
		if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			bad = 1;
		bad |= np_memlock_set(&(struct np_memlock){ 300 * KIB, NP_UNLIMITED }, &got) !=
		       -EPERM;
		bad |= got.soft != 200 * KIB || got.hard != 200 * KIB;
		bad |= np_memlock_set(&(struct np_memlock){ 10 * KIB, NP_UNLIMITED }, &got) !=
		       -EPERM;
		bad |= np_memlock_of(0, &now) != 0 || memcmp(&now, &got, sizeof(now)) != 0;
		bad |= now.soft != 10 * KIB || now.hard != 200 * KIB;
		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_units(void **state)
{
	static const struct {
		const char *text, *unit;
	} cases[] = {
		{ "0::/system.slice/slurmd.service\n", "slurmd.service" },
		{ "0::/system.slice/slurmd.service/system/x\n", "slurmd.service" },
		{ "9:name=systemd:/\n8:pids:/a\n1:x:/system.slice/dask@1.service\n",
		  "dask@1.service" },
		{ "0::/user.slice/user-0.slice/session-3.scope", "session-3.scope" },
		{ "0::/.service\n", NULL },
		{ "0::/\n", NULL },
		{ "", NULL },
		{ "x.service\n", NULL },
	};
	char unit[64];

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		assert_int_equal(np_cgroup_unit(cases[i].text, unit, sizeof(unit)),
				 cases[i].unit != NULL);
		if (cases[i].unit)
			assert_string_equal(unit, cases[i].unit);
	}
	assert_false(np_cgroup_unit(cases[0].text, unit, 8));
}

static int find_self(pid_t pid, const char *comm, void *arg)
{
	char own[NP_COMM_SIZE];

	(void)arg;
	if (pid != getpid())
		return 0;
	assert_int_equal(np_process_comm(pid, own), 0);
	assert_string_equal(own, comm);
	return 7;
}

static void test_processes(void **state)
{
	char comm[NP_COMM_SIZE];

	(void)state;
	assert_int_equal(np_processes_each(find_self, NULL), 7);
	assert_int_equal(np_process_parent(getpid()), getppid());
	assert_true(np_process_parent(INT32_MAX) < 0);
	assert_int_equal(np_process_comm(INT32_MAX, comm), -ENOENT);
}

static int any_descriptor(pid_t pid, const char *target, void *arg)
{
	(void)pid;
	(void)target;
	(void)arg;
	return 9;
}

/* Who has not enough descriptors to look has seen nobody, which is no answer. */
static void test_processes_unseen(void **state)
{
	struct rlimit before, few;
	int fd = dup(2);

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	close(fd);
	few = before;
	assert_int_equal(np_descriptors_each(any_descriptor, NULL), 9);
	for (int room = 0; room < 2; room++) {
		few.rlim_cur = (rlim_t)fd + (rlim_t)room;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		assert_int_equal(np_processes_each(find_self, NULL), -EMFILE);
		assert_int_equal(np_descriptors_each(any_descriptor, NULL), -EMFILE);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_root),
		cmocka_unit_test(test_processes_unseen),
		cmocka_unit_test(test_issues),
		cmocka_unit_test(test_many_and_long),
		cmocka_unit_test(test_proc_limits),
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
