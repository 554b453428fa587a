/* SPDX-License-Identifier: MIT */
#ifndef NP_BASE_CHILD_H
#define NP_BASE_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/memlock.h"
#include "base/str.h"

/* ---- programs with a deadline ---- */

/* How a child is run. No shell, no PATH, no inherited environment. */
struct np_child_spec {
	int exec_fd;		 /* program, opened O_PATH|O_CLOEXEC or O_RDONLY|O_CLOEXEC */
	const char *const *argv; /* NULL-terminated */
	const char *const *envp; /* the whole environment, NULL-terminated */
	const char *cwd;	 /* directory entered before exec; NULL = "/" */
	bool switch_user;	 /* become uid/gid/supplementary groups of the database for uid */
	uid_t uid;
	gid_t gid;
	/* set before it becomes that user; NULL = the caller's. Without CAP_SYS_RESOURCE the
	 * hard limit cannot be raised: see np_child_result */
	const struct np_memlock *memlock;
	const uint64_t *caps; /* NP_CAP() of those that one who stays root keeps; NULL = all */
	int timeout_ms;	      /* hard deadline, then SIGKILL for its process group; > 0 */
	int line_timeout_ms;  /* the same for each line of stdout; 0 = none of their own */
	size_t stdout_max;    /* bytes of stdout kept; more is read and dropped */
	size_t stderr_max;
};

struct np_child_result {
	bool timed_out;
	bool interrupted;  /* @np_interrupted became true while it ran: killed */
	bool memlock_less; /* spec->memlock could not be set in full; what it got is @memlock */
	struct np_memlock memlock;
	/* "become that user": what could not be done, so that the program never ran, and
	 * why; exit_status is 125 to 127 then. NULL: it ran */
	const char *not_done;
	int not_done_errno;
	int exit_status;   /* 0..255, or -1 when it did not exit */
	int term_signal;   /* or 0 */
	struct np_buf out; /* its stdout */
	struct np_buf log; /* its stderr */
};

/* Runs to the end of the program or the deadline. The child gets no-new-privileges, the
 * filter NP_CONFINE_CHILD of base/confine.h, no core dumps, a parent-death signal, its own
 * session without terminal, /dev/null as stdin and no descriptor but 0..2; of that group nothing is
 * left when it returns, and what it left behind keeps nobody waiting.
 * Returns 0 when it was started (whatever it then did: see @result), else a
 * negative errno with message. np_child_result_done frees. */
int np_child_run(const struct np_child_spec *spec, struct np_child_result *result,
		 struct np_err *err) np_must_check;
void np_child_result_done(struct np_child_result *result);

#define np_auto_child_result np_auto(np_child_result_done)

/* ---- a function under another identity ---- */

/* Forks; the child becomes uid/gid (supplementary groups of @user), drops all
 * capabilities, gets the filter NP_CONFINE_HOME (so it cannot ask a name service either:
 * that takes a socket), has no terminal and of the caller's descriptors stderr alone, runs fn(arg, out) and sends @out back; fn's return value (0 or
 * negative errno) is the function's. When the caller already is uid, fn runs in
 * this process. -ETIMEDOUT after @timeout_ms (a hung network file system); a signal
 * to the caller does not cut it short.
 * fn must not touch stdout. */
int np_as_user(const char *user, uid_t uid, gid_t gid, int timeout_ms,
	       int (*fn)(void *arg, struct np_buf *out), void *arg, struct np_buf *out,
	       struct np_err *err) np_must_check;

/* One of many: whose identity, what @fn is given, and what came of it. */
struct np_user_call {
	const char *user;
	uid_t uid;
	gid_t gid;
	void *arg;
	struct np_buf out; /* the caller frees */
	int result;	   /* as np_as_user returns it */
	struct np_err err;
};

struct np_user_calls {
	struct np_user_call *v;
	size_t n;
	int (*fn)(void *arg, struct np_buf *out);
	int timeout_ms; /* of each, from its own start */
	/* a signal to the caller leaves out those that were not started: -EINTR,
	 * "internal.interrupted" */
	bool stop_on_signal;
};

/* np_as_user for each of them, several at a time: a disk syncs for many in one go, and a
 * server that is gone holds up its own homes alone. The order in which they run is not
 * told. */
void np_as_users(const struct np_user_calls *all);

/* ---- a function that may hang ---- */

/* As np_as_user, but as the caller, in a child in any case, without an environment, with
 * the filter NP_CONFINE_CHILD and, of root's rights, the one to read everything, and
 * a signal to the caller ends it: -EINTR. @what names it in messages. -ETIMEDOUT after
 * @timeout_ms, with a message that the caller will want to make better. */
int np_with_deadline(const char *what, int timeout_ms, int (*fn)(void *arg, struct np_buf *out),
		     void *arg, struct np_buf *out, struct np_err *err) np_must_check;

/* ---- signals ---- */

/* Installs handlers that only set the flag, for SIGTERM and all others that come from outside
 * and would end the process; of those the ones that the caller ignores (nohup) stay ignored,
 * but for SIGTERM. None is blocked; SIGCHLD is as by default, whatever the caller left. */
void np_signals_install(void);
/* None of them is for this process, nor was one that came: for a child that goes on alone. */
void np_signals_ignore(void);
bool np_interrupted(void);

/* ---- time ---- */

int64_t np_now_ms(void); /* CLOCK_MONOTONIC */
/* Sleeps, but returns early when a signal came. */
void np_sleep_ms(int ms);

#endif
