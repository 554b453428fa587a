/* SPDX-License-Identifier: MIT */
#include "agent/confirm.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "agent/lock.h"
#include "agent/revert.h"
#include "agent/run.h"
#include "base/child.h"

#define STEP_MS	       5000   /* how long after a confirmation it may linger */
#define LONGEST_MS     300000 /* from one try to the next, where it cannot be taken back */
#define LOCK_TIMEOUT_S 60

static volatile sig_atomic_t told_to_end;

static void on_term(int number)
{
	(void)number;
	told_to_end = 1;
}

static void detach(void)
{
	struct sigaction term = { .sa_handler = on_term };
	int null_fd;

	setsid();
	np_signals_ignore();
	sigaction(SIGTERM, &term, NULL);
	close_range(0, ~0U, 0);
	null_fd = open("/dev/null", O_RDWR);
	if (null_fd != 0 || dup2(0, 1) < 0 || dup2(0, 2) < 0 || chdir("/") < 0)
		_exit(1);
	openlog("nodeprep", LOG_PID, LOG_DAEMON);
	/* last: who finds it by its name can tell it to end */
	prctl(PR_SET_NAME, "nodeprep-guard");
}

/* A folder that cannot be looked at at the moment says nothing. */
static bool is_absent(const char *path)
{
	return access(path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR);
}

static bool is_over(void)
{
	return is_absent(NP_STATE_DIR "/" NP_STATE_JOURNAL) &&
	       is_absent(NP_STATE_DIR_RUN "/" NP_STATE_JOURNAL);
}

/* Returns false when the run is over. */
static bool sleep_until(int64_t deadline_ms)
{
	while (!told_to_end && np_boot_ms() < deadline_ms) {
		int64_t wake = np_boot_ms() + STEP_MS;
		struct timespec at;

		wake = wake < deadline_ms ? wake : deadline_ms;
		at = (struct timespec){ .tv_sec = wake / 1000, .tv_nsec = wake % 1000 * 1000000 };
		clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &at, NULL);
		if (is_over())
			return false;
	}
	return true;
}

static void complain(const char *message)
{
	static char last[sizeof(((struct np_err *)NULL)->message)];

	if (np_streq(last, message))
		return;
	np_strcpy(last, sizeof(last), message);
	syslog(LOG_ERR, "a run was not confirmed, and cannot be taken back yet: %s", message);
}

/* A full disk, or one that does not answer, must not leave the admin outside: once more, after
 * a while that grows. */
static int64_t try_again(void)
{
	static int64_t pause_ms = STEP_MS;
	int64_t at = np_boot_ms() + pause_ms;

	pause_ms = pause_ms < LONGEST_MS / 2 ? pause_ms * 2 : LONGEST_MS;
	/* told to end: nobody waits for us any longer */
	return told_to_end ? 0 : at;
}

static int64_t take_back(void)
{
	const struct np_revert_options options = { .last = true, .expire = true, .force = true };
	np_auto_result struct np_result result = { .verb = "revert" };

	if (np_revert(&options, &result) < 0) {
		complain(result.error.message);
		return try_again();
	}
	syslog(LOG_WARNING, "a run was not confirmed in time: its changes (%zu) were taken back",
	       result.actions.n);
	return 0;
}

/* With the lock held. Returns when to look again, or 0 when all is done. */
static int64_t look(const char *name)
{
	np_auto_run struct np_run run = NP_RUN_INIT;
	struct np_checks checks = { 0 };
	struct np_err err = { 0 };
	int r = np_run_look(&run, &checks, &err);

	np_checks_done(&checks);
	if (r < 0) {
		complain(err.message);
		return try_again();
	}
	if (!run.found || !np_streq(run.old.run, name))
		return 0;
	return np_run_is_pending(&run) && !told_to_end ? run.old.deadline_ms : take_back();
}

static void guard_run(const char *name, int64_t deadline_ms)
{
	while (deadline_ms) {
		_cleanup_close_ int lock = -1;
		struct np_err err;

		if (!sleep_until(deadline_ms))
			return;
		lock = np_lock(LOCK_TIMEOUT_S, &err);
		if (lock == -EBUSY)
			continue;
		if (lock < 0)
			complain(err.message);
		deadline_ms = lock < 0 ? try_again() : look(name);
	}
}

int np_confirm_start(const char *run, int64_t deadline_ms, pid_t *guard, struct np_err *err)
{
	pid_t pid = fork();

	if (pid < 0)
		return np_err_set(err, -errno, "internal.child",
				  "cannot start who waits for the confirmation: %s",
				  strerror(errno));
	if (pid == 0) {
		if (np_interrupted())
			_exit(0);
		detach();
		guard_run(run, deadline_ms);
		_exit(0);
	}
	*guard = pid;
	return 0;
}

void np_confirm_stop(pid_t guard)
{
	if (guard > 0)
		kill(guard, SIGTERM);
}

static int take_back_unconfirmed(struct np_run *run, struct np_result *result)
{
	const struct np_revert_options options = { .last = true, .expire = true, .force = true };
	np_auto_result struct np_result back = { .verb = "revert" };
	int r = np_revert(&options, &back);

	if (r < 0) {
		result->error = back.error;
		np_err_context(&result->error,
			       "the run before was not confirmed, and cannot be taken back");
		return r;
	}
	np_checks_add(&result->checks, "confirm", "node", NP_CHECK_WARN, "confirm.expired",
		      "run apply --confirm again, and nodeprep confirm in time",
		      "the run before was not confirmed in time: its changes (%zu) were taken back",
		      back.actions.n);
	np_run_done(run);
	return np_run_look(run, &result->checks, &result->error);
}

int np_confirm_settle(struct np_run *run, struct np_result *result)
{
	int r = np_run_look(run, &result->checks, &result->error);

	if (r == 0 && np_run_is_pending(run)) {
		r = np_err_set(&result->error, -EBUSY, "confirm.waiting",
			       "a run waits to be confirmed, for %lld s more",
			       (long long)(run->old.deadline_ms - np_boot_ms() + 999) / 1000);
		np_err_hint(&result->error,
			    "run nodeprep confirm to keep it, or nodeprep revert --last");
	}
	return r == 0 && np_run_is_overdue(run) ? take_back_unconfirmed(run, result) : r;
}
