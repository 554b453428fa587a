/* SPDX-License-Identifier: MIT */
/* Who may measure while who else does. */
#include "facts_build.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "selftest/turn.h"

#define PROCESSES 6
#define ROUNDS	  60
#define LONG_MS	  600000

struct seen {
	atomic_int alone, together, most_together, wrong, turns;
};

static struct seen *share(void)
{
	struct seen *seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(seen != MAP_FAILED);
	return seen;
}

static void measure(struct seen *seen, bool alone)
{
	int together;

	np_turn_take(alone);
	if (alone)
		atomic_fetch_add(&seen->alone, 1);
	else
		atomic_fetch_add(&seen->together, 1);
	sched_yield();
	together = atomic_load(&seen->together);
	if (atomic_load(&seen->alone) > (alone ? 1 : 0) || (alone && together))
		atomic_fetch_add(&seen->wrong, 1);
	if (together > atomic_load(&seen->most_together))
		atomic_store(&seen->most_together, together);
	usleep(300);
	atomic_fetch_add(&seen->turns, 1);
	if (alone)
		atomic_fetch_sub(&seen->alone, 1);
	else
		atomic_fetch_sub(&seen->together, 1);
	np_turn_give();
}

static void in_many(struct seen *seen)
{
	pid_t pids[PROCESSES];
	int status;

	seen->turns = 0;
	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i])
			continue;
		for (int round = 0; round < ROUNDS; round++)
			measure(seen, (round + i) % 3 == 0);
		_exit(0);
	}
	for (int i = 0; i < PROCESSES; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(seen->turns, PROCESSES * ROUNDS);
}

static void test_without_others(void **state)
{
	struct seen *seen = share();

	(void)state;
	measure(seen, true); /* nothing was made */
	measure(seen, false);
	assert_int_equal(seen->wrong, 0);
	in_many(seen); /* what the next test finds is there */
	assert_true(seen->wrong > 0);
}

static void test_one_alone_or_many_together(void **state)
{
	struct seen *seen = share();
	struct np_err err;

	(void)state;
	assert_int_equal(np_turn_make(LONG_MS, &err), 0);
	in_many(seen);
	assert_int_equal(seen->wrong, 0);
	assert_true(seen->most_together > 1);
}

static pid_t who_has_the_turn(bool ends)
{
	int fds[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		np_turn_take(true);
		if (write(fds[1], "x", 1) != 1)
			_exit(1);
		if (ends)
			_exit(0);
		for (;;)
			pause();
	}
	assert_int_equal(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	close(fds[1]);
	return pid;
}

/* Its turn ends with it. */
static void test_one_that_dies(void **state)
{
	struct np_err err;
	int64_t since;
	pid_t pid;

	(void)state;
	assert_int_equal(np_turn_make(LONG_MS, &err), 0);
	pid = who_has_the_turn(true);
	since = np_now_ms();
	np_turn_take(true);
	assert_true(np_now_ms() - since < LONG_MS / 2);
	np_turn_give();
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* All waiting together is no longer than the patience. */
static void test_one_that_hangs(void **state)
{
	struct np_err err;
	int64_t since;
	pid_t pid;

	(void)state;
	assert_int_equal(np_turn_make(300, &err), 0);
	pid = who_has_the_turn(false);
	since = np_now_ms();
	np_turn_take(false);
	assert_true(np_now_ms() - since >= 300);
	since = np_now_ms();
	for (int i = 0; i < 1000; i++) {
		np_turn_take(i % 2);
		np_turn_give();
	}
	assert_true(np_now_ms() - since < 1000 * 300 / 2);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_others),
		cmocka_unit_test(test_one_alone_or_many_together),
		cmocka_unit_test(test_one_that_dies),
		cmocka_unit_test(test_one_that_hangs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
