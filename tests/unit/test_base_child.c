/* SPDX-License-Identifier: MIT */
#include "facts_build.h"

#include <errno.h>
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

static const char *const no_env[] = { NULL };

/* Runs @program with up to three arguments; what is not said is a minute and 1 MB. */
static int run(struct np_child_spec *spec, const char *program, const char *const *args,
	       struct np_child_result *result)
{
	_cleanup_close_ int fd = open(program, O_PATH | O_CLOEXEC);
	const char *argv[6] = { program };
	struct np_err err;
	size_t n = 1;
	int r;

	assert_true(fd >= 0);
	for (; args && *args && n < 5; args++)
		argv[n++] = *args;
	spec->exec_fd = fd;
	spec->argv = argv;
	if (!spec->envp)
		spec->envp = no_env;
	if (!spec->timeout_ms)
		spec->timeout_ms = 60000;
	if (!spec->stdout_max)
		spec->stdout_max = spec->stderr_max = 1 << 20;
	np_err_clear(&err);
	r = np_child_run(spec, result, &err);
	spec->argv = NULL;
	assert_int_equal(r, err.num);
	return r;
}

static int shell(struct np_child_spec *spec, const char *script, struct np_child_result *result)
{
	return run(spec, "/bin/sh", FB_LIST("-c", script), result);
}

/* Ended, or a zombie that nobody has reaped yet. */
static bool is_gone(const char *pid_text)
{
	char path[64], stat[256];

	for (int tries = 0; tries < 200; tries++) {
		int len;

		snprintf(path, sizeof(path), "/proc/%ld/stat", strtol(pid_text, NULL, 10));
		len = np_file_read_line_at(AT_FDCWD, path, stat, sizeof(stat));
		if (len < 0 || strstr(stat, ") Z") || strstr(stat, ") X"))
			return true;
		np_sleep_ms(10);
	}
	return false;
}

/* ---- the memlock limit ---- */

static void expect_memlock(const char *limits, bool less, const struct np_memlock *want)
{
	np_auto_child_result struct np_child_result result = { 0 };
	struct np_child_spec spec = {
		.memlock = want, .switch_user = geteuid() == 0, .uid = NOBODY, .gid = NOBODY
	};

	assert_int_equal(shell(&spec, "ulimit -Sl; ulimit -Hl", &result), 0);
	assert_string_equal(result.out.data, limits);
	assert_int_equal(result.memlock_less, less);
}

static void test_memlock(void **state)
{
	struct np_memlock before, after, want = { 64 << 10, 128 << 10 };
	bool any = false;

	(void)state;
	assert_int_equal(np_memlock_of(0, &before), 0);
	expect_memlock("64\n128\n", false, &want);
	/* the hard limit of a parent that may not raise it is all there is */
	if (fork() == 0) {
		np_auto_child_result struct np_child_result result = { 0 };
		struct np_child_spec spec = { .memlock = &want };
		struct np_identity nobody = { .uid = NOBODY, .gid = NOBODY };
		int bad = np_memlock_set(&want, &after);

		want = (struct np_memlock){ NP_UNLIMITED, NP_UNLIMITED };
		if (geteuid() == 0)
			bad |= np_user_become(&nobody);
		bad |= shell(&spec, "ulimit -Sl; ulimit -Hl", &result);
		bad |= strcmp(result.out.data, "128\n128\n") != 0 || !result.memlock_less ||
		       result.memlock.soft != 128 << 10 || result.memlock.hard != 128 << 10;
		_exit(bad ? 1 : 0);
	}
	for (int status; wait(&status) > 0; any = true)
		assert_int_equal(status, 0);
	assert_true(any);
	/* the parent keeps its own */
	assert_int_equal(np_memlock_of(0, &after), 0);
	assert_memory_equal(&before, &after, sizeof(before));
}

/* ---- how it ends ---- */

static void test_exit_codes(void **state)
{
	static const struct {
		const char *script;
		int status, signal;
	} cases[] = {
		{ "exit 0", 0, 0 },	{ "exit 7", 7, 0 },	     { "exit 127", 127, 0 },
		{ "exit 255", 255, 0 }, { "kill -SEGV $$", -1, 11 }, { "kill -9 $$", -1, 9 }
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		np_auto_child_result struct np_child_result result = { 0 };
		struct np_child_spec spec = { 0 };

		assert_int_equal(shell(&spec, cases[i].script, &result), 0);
		assert_int_equal(result.exit_status, cases[i].status);
		assert_int_equal(result.term_signal, cases[i].signal);
		assert_null(result.not_done);
		assert_false(result.timed_out || result.interrupted);
	}
}

static void test_not_a_program(void **state)
{
	np_auto_child_result struct np_child_result result = { 0 };
	struct np_child_spec spec = { 0 };

	(void)state;
	assert_int_equal(run(&spec, "/etc/passwd", NULL, &result), 0);
	assert_int_equal(result.exit_status, 127);
	assert_string_equal(result.not_done, "be executed");
	assert_int_equal(result.not_done_errno, EACCES);
}

static void test_bad_cwd(void **state)
{
	np_auto_child_result struct np_child_result result = { 0 };
	struct np_child_spec spec = { .cwd = "/no/such/place" };

	(void)state;
	assert_int_equal(shell(&spec, "echo ran", &result), 0);
	assert_int_equal(result.exit_status, 126);
	assert_int_equal(result.out.len, 0);
	assert_string_equal(result.not_done, "enter its directory");
	assert_int_equal(result.not_done_errno, ENOENT);
}

/* Both pipes full at once, far beyond what a pipe holds: no deadlock, all of it there. */
static void test_big_output(void **state)
{
	np_auto_child_result struct np_child_result result = { 0 };
	struct np_child_spec spec = { .stdout_max = 4 << 20, .stderr_max = 4 << 20 };

	(void)state;
	assert_int_equal(shell(&spec,
			       "/usr/bin/head -c 3000000 /dev/zero >&2 & "
			       "/usr/bin/head -c 3000001 /dev/zero; wait",
			       &result),
			 0);
	assert_int_equal(result.exit_status, 0);
	assert_int_equal(result.out.len, 3000001);
	assert_int_equal(result.log.len, 3000000);
}

static void test_output_is_cut(void **state)
{
	np_auto_child_result struct np_child_result result = { 0 };
	struct np_child_spec spec = { .stdout_max = 100, .stderr_max = 0 };

	(void)state;
	assert_int_equal(
		shell(&spec,
		      "printf start; /usr/bin/head -c 500000 /dev/zero; echo log >&2; exit 3",
		      &result),
		0);
	assert_int_equal(result.exit_status, 3);
	assert_int_equal(result.out.len, 100);
	assert_memory_equal(result.out.data, "start\0", 6);
	assert_int_equal(result.log.len, 0);
}

/* ---- deadlines ---- */

static void test_deadline_kills_the_group(void **state)
{
	static const char *const scripts[] = {
		"/bin/sleep 100 & echo $!; /bin/sleep 100",
		"trap '' TERM INT HUP; /bin/sleep 100 & echo $!; while :; do /bin/sleep 1; done",
		/* nothing to read any more, but still alive */
		"/bin/sleep 100 >/dev/null 2>&1 & echo $!; exec >&- 2>&-; /bin/sleep 100",
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(scripts); i++) {
		np_auto_child_result struct np_child_result result = { 0 };
		struct np_child_spec spec = { .timeout_ms = 400 };
		int64_t start = np_now_ms();

		assert_int_equal(shell(&spec, scripts[i], &result), 0);
		assert_true(result.timed_out);
		assert_int_equal(result.exit_status, -1);
		assert_int_equal(result.term_signal, SIGKILL);
		assert_true(np_now_ms() - start >= 400);
		assert_true(np_now_ms() - start < 20000);
		assert_true(result.out.len > 0);
		assert_true(is_gone(result.out.data));
	}
}

/* What it leaves in the background does not outlive it either. */
static void test_nothing_is_left(void **state)
{
	np_auto_child_result struct np_child_result result = { 0 };
	struct np_child_spec spec = { 0 };

	(void)state;
	assert_int_equal(shell(&spec, "/bin/sleep 100 >/dev/null 2>&1 & echo $!", &result), 0);
	assert_false(result.timed_out);
	assert_int_equal(result.exit_status, 0);
	assert_true(is_gone(result.out.data));
}

/* What holds its pipes keeps nobody waiting: its own output is there, and that is that. */
static void test_a_pipe_that_is_held_open(void **state)
{
	static const char *const scripts[] = {
		"/bin/sleep 100 & echo $!; exit 3",
		"echo start; /usr/bin/head -c 50000 /dev/zero; /bin/sleep 100 & exit 3",
		/* the other one writes without end */
		"echo start; while :; do echo more; echo more >&2; done & exit 3",
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(scripts); i++) {
		np_auto_child_result struct np_child_result result = { 0 };
		struct np_child_spec spec = { 0 };

		assert_int_equal(shell(&spec, scripts[i], &result), 0);
		assert_false(result.timed_out);
		assert_int_equal(result.exit_status, 3);
		assert_true(i == 1 ? result.out.len == 50006 : result.out.len > 0);
	}
}

/* Each line begins the short deadline anew; the long one holds for all of them. */
static void test_deadline_of_each_line(void **state)
{
	static const struct {
		const char *script;
		int all, line;
		bool late;
		size_t lines;
	} cases[] = {
		{ "for i in 1 2 3 4 5 6 7 8; do /bin/sleep 0.4; echo; done", 60000, 3000, false,
		  8 },
		{ "echo; echo; /bin/sleep 100", 60000, 500, true, 2 },
		{ "/bin/sleep 100", 60000, 500, true, 0 },
		/* half a line is none, and stderr does not count */
		{ "while :; do printf x; echo >&2; /bin/sleep 0.1; done", 60000, 900, true, 0 },
		{ "while :; do echo; /bin/sleep 0.1; done", 900, 600, true, 1 },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		np_auto_child_result struct np_child_result result = { 0 };
		struct np_child_spec spec = { .timeout_ms = cases[i].all,
					      .line_timeout_ms = cases[i].line };
		int64_t start = np_now_ms();
		size_t lines = 0;

		assert_int_equal(shell(&spec, cases[i].script, &result), 0);
		assert_int_equal(result.timed_out, cases[i].late);
		for (size_t c = 0; c < result.out.len; c++)
			lines += result.out.data[c] == '\n';
		assert_true(lines >= cases[i].lines && (lines > 0) == (cases[i].lines > 0));
		assert_true(np_now_ms() - start < 20000);
	}
}

/* ---- what it is given ---- */

static void test_environment(void **state)
{
	np_auto_child_result struct np_child_result result = { 0 };
	struct np_child_spec spec = { .envp = FB_LIST("A=1", "PATH=/x", "EMPTY=") };

	(void)state;
	setenv("NP_TEST_LEAK", "1", 1);
	assert_int_equal(run(&spec, "/usr/bin/env", NULL, &result), 0);
	assert_string_equal(result.out.data, "A=1\nPATH=/x\nEMPTY=\n");
}

static void test_cwd(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		np_auto_child_result struct np_child_result result = { 0 };
		struct np_child_spec spec = { .cwd = i ? "/proc" : NULL };

		assert_int_equal(run(&spec, "/bin/pwd", NULL, &result), 0);
		assert_string_equal(result.out.data, i ? "/proc\n" : "/\n");
	}
}

/* Whatever numbers the caller's descriptors have, and close-on-exec or not. */
static void test_no_descriptor_leaks(void **state)
{
	static const int numbers[] = { 5, 10, 11, 12, 30, 200 };
	np_auto_child_result struct np_child_result result = { 0 };
	struct np_child_spec spec = { 0 };
	int null_fd = open("/dev/null", O_RDONLY);

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(numbers); i++)
		assert_int_equal(dup2(null_fd, numbers[i]), numbers[i]);
	/* 3 is the directory that ls itself reads */
	assert_int_equal(run(&spec, "/bin/ls", FB_LIST("/proc/self/fd"), &result), 0);
	assert_string_equal(result.out.data, "0\n1\n2\n3\n");
	for (size_t i = 0; i < NP_ARRAY_SIZE(numbers); i++)
		close(numbers[i]);
	np_child_result_done(&result);
	assert_int_equal(run(&spec, "/bin/readlink", FB_LIST("/proc/self/fd/0"), &result), 0);
	assert_string_equal(result.out.data, "/dev/null\n");
}

static void test_signals_and_limits_reset(void **state)
{
	np_auto_child_result struct np_child_result result = { 0 };
	struct np_child_spec spec = { 0 };
	const char *ignored;
	uint64_t signals;
	char mask[17];
	sigset_t set, old;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &old);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(run(&spec, "/bin/cat", FB_LIST("/proc/self/status", "/proc/self/limits"),
			     &result),
			 0);
	sigprocmask(SIG_SETMASK, &old, NULL);
	signal(SIGPIPE, SIG_DFL);
	assert_non_null(strstr(result.out.data, "SigBlk:\t0000000000000000"));
	/* 32 and 33 are the C library's own: posix_spawn, so GNU make, leaves them ignored */
	ignored = strstr(result.out.data, "SigIgn:\t");
	assert_non_null(ignored);
	np_strcpy(mask, sizeof(mask), ignored + strlen("SigIgn:\t"));
	assert_int_equal(np_parse_u64(mask, 16, UINT64_MAX, &signals), 0);
	assert_int_equal(signals & ~(3ull << 31), 0);
	assert_non_null(strstr(result.out.data, "NoNewPrivs:\t1"));
	/* 1 and not 0: see the source */
	assert_non_null(
		strstr(result.out.data, "Max core file size        1                    1"));
}

static void test_switch_user(void **state)
{
	np_auto_child_result struct np_child_result result = { 0 };
	struct np_child_spec spec = { .switch_user = true, .uid = NOBODY, .gid = NOBODY };

	(void)state;
	if (geteuid() != 0) {
		print_message("SKIP: only root can become another user\n");
		skip();
	}
	assert_int_equal(run(&spec, "/bin/cat", FB_LIST("/proc/self/status"), &result), 0);
	assert_non_null(strstr(result.out.data, "Uid:\t65534\t65534\t65534\t65534"));
	assert_non_null(strstr(result.out.data, "Gid:\t65534\t65534\t65534\t65534"));
	assert_non_null(strstr(result.out.data, "CapPrm:\t0000000000000000"));
	assert_non_null(strstr(result.out.data, "CapEff:\t0000000000000000"));
	/* without the privilege it is said, and the program does not run */
	if (fork() == 0) {
		struct np_child_result refused = { 0 };
		struct np_identity nobody = { .uid = NOBODY, .gid = NOBODY };

		spec.uid = 1;
		_exit(np_user_become(&nobody) < 0 || shell(&spec, "echo ran", &refused) != 0 ||
		      refused.exit_status != 125 || refused.out.len != 0 ||
		      !np_streq(refused.not_done, "become that user") ||
		      refused.not_done_errno != EPERM);
	}
	for (int status; wait(&status) > 0;)
		assert_int_equal(status, 0);
}

/* A signal to the caller ends the child too. The flag stays set: in a fork. */
static void test_interrupted(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	if (pid == 0) {
		struct np_child_result result = { 0 };
		struct np_child_spec spec = { 0 };

		np_signals_install();
		if (np_interrupted() ||
		    shell(&spec, "kill -TERM $PPID; /bin/sleep 100", &result) != 0)
			_exit(1);
		_exit(result.interrupted && !result.timed_out && np_interrupted() &&
				      result.term_signal == SIGKILL ?
			      0 :
			      2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memlock),
		cmocka_unit_test(test_exit_codes),
		cmocka_unit_test(test_not_a_program),
		cmocka_unit_test(test_bad_cwd),
		cmocka_unit_test(test_big_output),
		cmocka_unit_test(test_output_is_cut),
		cmocka_unit_test(test_deadline_kills_the_group),
		cmocka_unit_test(test_nothing_is_left),
		cmocka_unit_test(test_a_pipe_that_is_held_open),
		cmocka_unit_test(test_deadline_of_each_line),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_cwd),
		cmocka_unit_test(test_no_descriptor_leaks),
		cmocka_unit_test(test_signals_and_limits_reset),
		cmocka_unit_test(test_switch_user),
		cmocka_unit_test(test_interrupted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
