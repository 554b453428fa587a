/* SPDX-License-Identifier: MIT */
/* Functions under another identity or with a deadline, and the user database. */
#include "facts_build.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/file.h"
#include "base/str.h"
#include "base/user.h"

#define NOBODY 65534

/* ---- a function under another identity ---- */

static int called;

static int who(void *arg, struct np_buf *out)
{
	char line[128];

	called++;
	np_buf_printf(out, "%u %u %d %d %d ", getuid(), getgid(), getgroups(0, NULL),
		      setuid(0) == 0, setgid(0) == 0);
	if (np_file_read_line_at(AT_FDCWD, "/etc/shadow", line, sizeof(line)) >= 0)
		np_buf_str(out, "reads shadow");
	return arg ? *(int *)arg : 0;
}

static int big(void *arg, struct np_buf *out)
{
	for (int i = 0; i < 100000; i++)
		np_buf_add(out, "0123456789", 10);
	(void)arg;
	return 0;
}

static int hang(void *arg, struct np_buf *out)
{
	(void)arg;
	(void)out;
	while (!np_interrupted())
		pause();
	return 0;
}

static int crash(void *arg, struct np_buf *out)
{
	(void)arg;
	(void)out;
	_exit(3);
}

static void test_as_oneself(void **state)
{
	np_auto_buf struct np_buf out = { 0 };
	struct np_err err;

	(void)state;
	np_err_clear(&err);
	called = 0;
	assert_int_equal(np_as_user("me", geteuid(), getegid(), 1000, big, NULL, &out, &err), 0);
	assert_int_equal(out.len, 1000000);
	if (geteuid() == 0)
		return;
	assert_int_equal(np_as_user("me", geteuid(), getegid(), 1000, who, NULL, &out, &err), 0);
	assert_int_equal(called, 1);
}

static void test_as_user(void **state)
{
	np_auto_buf struct np_buf out = { 0 };
	int answer = -ELOOP;
	struct np_err err;
	int64_t start;

	(void)state;
	if (geteuid() != 0) {
		print_message("SKIP: only root can become another user\n");
		skip();
	}
	np_err_clear(&err);
	called = 0;
	assert_int_equal(np_as_user("nobody", NOBODY, NOBODY, 30000, who, NULL, &out, &err), 0);
	assert_int_equal(called, 0); /* in another process */
	assert_true(np_starts_with(out.data, "65534 65534 "));
	assert_non_null(strstr(out.data, " 0 0 ")); /* no way back */
	assert_null(strstr(out.data, "shadow"));
	np_buf_done(&out);
	assert_int_equal(np_as_user("x", 54321, 54321, 30000, who, NULL, &out, &err), 0);
	assert_string_equal(out.data, "54321 54321 0 0 0 "); /* nobody's entry: no groups */
	np_buf_done(&out);
	assert_int_equal(np_as_user("x", NOBODY, NOBODY, 30000, who, &answer, &out, &err), -ELOOP);
	assert_int_equal(out.len, 0);
	assert_int_equal(np_as_user("x", NOBODY, NOBODY, 30000, big, NULL, &out, &err), 0);
	assert_int_equal(out.len, 1000000);
	assert_memory_equal(out.data + 999990, "0123456789", 10);
	start = np_now_ms();
	assert_int_equal(np_as_user("x", NOBODY, NOBODY, 300, hang, NULL, &out, &err), -ETIMEDOUT);
	assert_string_equal(err.code, "file.timeout");
	assert_true(np_now_ms() - start < 20000);
	assert_int_equal(np_as_user("x", NOBODY, NOBODY, 30000, crash, NULL, &out, &err), -EIO);
	assert_true(err.message[0]);
	assert_int_equal(out.len, 1000000);
}

static int environment(void *arg, struct np_buf *out);

/* ---- many at once ---- */

#define MANY 100

/* Every tenth never answers, every tenth after it fails; the others say who they are. */
static int one_of_many(void *arg, struct np_buf *out)
{
	const int *number = arg;

	if (*number % 10 == 3)
		return hang(NULL, out);
	if (*number % 10 == 4)
		return -ELOOP;
	np_buf_printf(out, "%d %u", *number, getuid());
	/* not in the order in which they were started */
	np_sleep_ms(*number % 7);
	return 0;
}

static void make_many(struct np_user_call *v, int *numbers)
{
	memset(v, 0, MANY * sizeof(*v));
	for (int i = 0; i < MANY; i++) {
		numbers[i] = i;
		/* the caller itself is among them */
		v[i] = (struct np_user_call){ .user = "x", .arg = &numbers[i] };
		v[i].uid = v[i].gid = i % 10 == 5 ? geteuid() : (uid_t)(40000 + i);
	}
}

static void test_many(void **state)
{
	static struct np_user_call v[MANY];
	static int numbers[MANY];
	const struct np_user_calls calls = {
		.v = v, .n = MANY, .fn = one_of_many, .timeout_ms = 2000
	};
	int64_t started = np_now_ms();

	(void)state;
	if (geteuid() != 0) {
		print_message("SKIP: only root can become another user\n");
		skip();
	}
	make_many(v, numbers);
	np_as_users(&calls);
	/* those that hang do so side by side */
	assert_true(np_now_ms() - started < MANY / 10 * 2000);
	for (int i = 0; i < MANY; i++) {
		char wanted[32];

		if (i % 10 == 3) {
			assert_int_equal(v[i].result, -ETIMEDOUT);
			assert_string_equal(v[i].err.code, "file.timeout");
		} else if (i % 10 == 4) {
			assert_int_equal(v[i].result, -ELOOP);
			assert_int_equal(v[i].err.num, 0);
		} else {
			snprintf(wanted, sizeof(wanted), "%d %u", i, (unsigned int)v[i].uid);
			assert_int_equal(v[i].result, 0);
			assert_int_equal(v[i].out.len, strlen(wanted));
			assert_memory_equal(v[i].out.data, wanted, v[i].out.len);
		}
		np_buf_done(&v[i].out);
	}
	/* nobody is left behind */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

/* A signal leaves out those that were not begun, where that is wanted, and no other. */
static int count_left_out(bool stop_on_signal)
{
	struct np_user_call v[MANY];
	int numbers[MANY], left_out = 0;
	const struct np_user_calls calls = { .v = v,
					     .n = MANY,
					     .fn = environment,
					     .timeout_ms = 30000,
					     .stop_on_signal = stop_on_signal };

	make_many(v, numbers);
	np_as_users(&calls);
	for (int i = 0; i < MANY; i++) {
		left_out +=
			v[i].result == -EINTR && np_streq(v[i].err.code, "internal.interrupted");
		np_buf_done(&v[i].out);
	}
	return left_out;
}

static void test_many_and_a_signal(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0) {
		print_message("SKIP: only root can become another user\n");
		skip();
	}
	pid = fork();
	if (pid == 0) {
		np_signals_install();
		if (count_left_out(true) != 0)
			_exit(1);
		raise(SIGTERM);
		_exit(count_left_out(false) != 0 ? 2 : count_left_out(true) != MANY ? 3 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A database may say -1, which leaves the caller as it is: root. */
static void test_nobody_at_all(void **state)
{
	const struct np_identity odd[] = { { .uid = (uid_t)-1, .gid = 1000 },
					   { .uid = 1000, .gid = (gid_t)-1 },
					   { .uid = (uid_t)-1, .gid = (gid_t)-1 } };

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(odd); i++) {
		assert_int_equal(np_user_become(&odd[i]), -EINVAL);
		/* refused before anything is changed */
		assert_int_equal(getegid(), getgid());
		assert_int_not_equal(getegid(), 1000);
	}
}

static int environment(void *arg, struct np_buf *out)
{
	(void)arg;
	np_buf_printf(out, "%d %s", (int)getpid(), getenv("PATH") ? "PATH" : "bare");
	return 0;
}

static void test_with_deadline(void **state)
{
	np_auto_buf struct np_buf out = { 0 };
	int answer = -ELOOP;
	struct np_err err;
	char own[32];

	(void)state;
	np_err_clear(&err);
	assert_non_null(getenv("PATH"));
	assert_int_equal(np_with_deadline("x", 30000, environment, NULL, &out, &err), 0);
	snprintf(own, sizeof(own), "%d ", (int)getpid());
	assert_false(np_starts_with(out.data, own)); /* in a child, whoever asks */
	assert_non_null(strstr(out.data, " bare"));
	np_buf_done(&out);
	assert_int_equal(np_with_deadline("x", 30000, who, &answer, &out, &err), -ELOOP);
	assert_int_equal(np_with_deadline("x", 30000, big, NULL, &out, &err), 0);
	assert_int_equal(out.len, 1000000);
	assert_int_equal(np_with_deadline("the wait", 300, hang, NULL, &out, &err), -ETIMEDOUT);
	assert_int_equal(err.num, -ETIMEDOUT);
	assert_true(np_starts_with(err.message, "the wait: "));
	assert_int_equal(np_with_deadline("x", 30000, crash, NULL, &out, &err), -EIO);
	assert_int_equal(out.len, 1000000);
	/* what fails by itself is not taken for the deadline */
	answer = -ETIMEDOUT;
	np_err_clear(&err);
	assert_int_equal(np_with_deadline("x", 30000, who, &answer, &out, &err), -ETIMEDOUT);
	assert_int_equal(err.num, 0);
}

/* ---- users ---- */

static void test_users(void **state)
{
	np_auto_user struct np_user user = { 0 };
	struct np_err err;

	(void)state;
	np_err_clear(&err);
	assert_int_equal(np_user_by_name("root", &user, &err), 0);
	assert_int_equal(user.uid, 0);
	assert_string_equal(user.home, "/root");
	np_user_done(&user);
	assert_int_equal(np_user_by_name("no\033such", &user, &err), -ENOENT);
	assert_string_equal(err.code, "usage.user");
	assert_non_null(strstr(err.message, "no\\x1bsuch"));
	assert_int_equal(np_user_by_name("", &user, &err), -ENOENT);
	assert_int_equal(np_user_by_uid(4000000000U, &user, &err), -ENOENT);
	assert_int_equal(np_user_by_uid(0, &user, NULL), 0);
	assert_string_equal(user.name, "root");
}

/* Asked again, each answer is the caller's own; also after all was forgotten. */
static void test_known_users(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		np_auto_user struct np_user a = { 0 };
		np_auto_user struct np_user b = { 0 };
		_cleanup_free_ gid_t *groups = NULL;
		_cleanup_free_ gid_t *more = NULL;
		size_t n = 0, n_more = 0;

		if (i == 2)
			np_users_forget();
		assert_int_equal(np_user_by_name("root", &a, NULL), 0);
		assert_int_equal(np_user_by_name("root", &b, NULL), 0);
		assert_ptr_not_equal(a.home, b.home);
		assert_string_equal(a.home, b.home);
		assert_int_equal(np_user_groups("root", a.gid, &groups, &n), 0);
		assert_int_equal(np_user_groups("root", a.gid, &more, &n_more), 0);
		assert_ptr_not_equal(groups, more);
		assert_true(n > 0 && n == n_more);
		assert_memory_equal(groups, more, n * sizeof(*groups));
		free(more);
		more = NULL;
		/* with another primary group it is another question */
		assert_int_equal(np_user_groups("root", 54321, &more, &n_more), 0);
		assert_int_equal(more[0], 54321);
	}
	np_users_forget();
	np_users_forget();
}

/* Whose groups: those of the entry that was meant; a name of somebody else says nothing. */
static void test_identity(void **state)
{
	np_auto_identity struct np_identity id = { 0 };

	(void)state;
	assert_int_equal(np_identity_find("root", 0, 0, &id), 0);
	assert_true(id.n_groups > 0);
	np_identity_done(&id);
	assert_int_equal(np_identity_find("root", NOBODY, NOBODY, &id), 0);
	for (size_t i = 0; i < id.n_groups; i++)
		assert_int_not_equal(id.groups[i], 0);
	np_identity_done(&id);
	assert_int_equal(np_identity_find("nobody-here", 4000000000U, 7, &id), 0);
	assert_int_equal(id.n_groups, 0);
	assert_int_equal(id.gid, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_oneself),
		cmocka_unit_test(test_as_user),
		cmocka_unit_test(test_nobody_at_all),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_many_and_a_signal),
		cmocka_unit_test(test_with_deadline),
		cmocka_unit_test(test_users),
		cmocka_unit_test(test_known_users),
		cmocka_unit_test(test_identity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
