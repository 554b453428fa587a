/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_HELPER_H
#define NP_AGENT_HELPER_H

#include "agent/login_limits.h"
#include "base/child.h"
#include "base/err.h"

/*
 * The program nodeprep-selftest as a child: what links the vendors' libraries, so that a
 * crash or a hang of theirs is never the agent's. It is executed through a descriptor, as
 * an unprivileged user where the caller is root, with an environment made from nothing and
 * a deadline.
 */

#define NP_HELPER_PROGRAM "nodeprep-selftest"

struct np_helper {
	int program_fd;
	bool switch_user;
	uid_t uid;
	gid_t gid;
	char user[33]; /* whom it runs as; "" = not in the password database */
	bool has_limit;
	struct np_user_limit limit; /* that user's at login */
};

/* Opens it: beside the agent's own file (a build tree), else where it is installed; and
 * chooses the user: @run_as, NULL = nobody; himself with @as_root or where the caller is
 * not root. Returns 0, or a negative errno with selftest.not_installed (-ENOENT, the
 * errno of open) or the error of the user look-up. np_helper_done closes, also after a
 * failure. */
int np_helper_open(const char *run_as, bool as_root, struct np_helper *helper,
		   struct np_err *err) np_must_check;
void np_helper_done(struct np_helper *helper);
#define np_auto_helper np_auto(np_helper_done)

/* What the user's jobs can pin is what counts, not what the caller can: a service that
 * starts nodeprep often has another limit than a login. Looks it up for jobs with
 * login_limit; where it cannot be told they keep the caller's. */
void np_helper_find_limit(struct np_helper *helper);

struct np_helper_job {
	const char *name;	   /* for the progress line and the log */
	const char *const *argv;   /* NULL-terminated, with NP_HELPER_PROGRAM first */
	bool as_root;		   /* whatever np_helper_open chose */
	bool login_limit;	   /* with the memlock limit that its user gets at login */
	bool quiet;		   /* no progress line */
	const char *library_path;  /* folders in front of LD_LIBRARY_PATH, or NULL */
	const struct np_strv *env; /* NAME=VALUE; those named LD_* are taken, or NULL */
	bool make_directory;	   /* an empty one in /run to start in, where there is none yet */
	int timeout_ms;
	int line_timeout_ms; /* as np_child_spec has it */
};

/* Runs it to the end; its log goes to ours at level debug. Returns 0 whatever came out,
 * else a negative errno with message: it could not be started, or (-EINTR,
 * internal.interrupted) a signal came. The caller frees @result. */
int np_helper_run(const struct np_helper *helper, const struct np_helper_job *job,
		  struct np_child_result *result, struct np_err *err) np_must_check;

/* What became of one that gave no document, with the last line of its log: in @err
 * selftest.timeout, selftest.crashed, or where it never ran selftest.not_started or
 * selftest.not_loaded. @who begins the sentence. */
void np_helper_failure(const struct np_child_result *result, const char *who, int timeout_ms,
		       struct np_err *err);

#endif
