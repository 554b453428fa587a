/* SPDX-License-Identifier: MIT */
#include "agent/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/confine.h"
#include "base/log.h"
#include "base/user.h"

#ifndef NP_LIBEXECDIR
#define NP_LIBEXECDIR "/usr/libexec/nodeprep"
#endif

#define PROGRAM	     NP_HELPER_PROGRAM
#define DEFAULT_USER "nobody"
#define DOCUMENT_MAX (1 << 20)
#define EMPTY_DIR    "/run/nodeprep/empty"

/* Opened once and run through the descriptor. */
static int open_program(struct np_err *err)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - sizeof(PROGRAM) - 1);
	char *slash;
	int fd;

	if (len > 0) {
		path[len] = '\0';
		slash = strrchr(path, '/');
		if (slash) {
			snprintf(slash + 1, sizeof(path) - (size_t)(slash + 1 - path), PROGRAM);
			fd = open(path, O_RDONLY | O_CLOEXEC);
			if (fd >= 0)
				return fd;
		}
	}
	fd = open(NP_LIBEXECDIR "/" PROGRAM, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		int r = -errno;

		np_err_set(err, r, "selftest.not_installed", NP_LIBEXECDIR "/" PROGRAM ": %s",
			   strerror(-r));
		np_err_hint(err, "install the package nodeprep-selftest");
		return r;
	}
	return fd;
}

static int choose_user(struct np_helper *helper, const char *run_as, struct np_err *err)
{
	np_auto_user struct np_user user = { 0 };
	int r = np_user_by_name(run_as ? run_as : DEFAULT_USER, &user, err);

	if (r < 0) {
		if (run_as)
			np_err_context(err, "--run-as");
		return r;
	}
	helper->switch_user = true;
	helper->uid = user.uid;
	helper->gid = user.gid;
	np_strcpy(helper->user, sizeof(helper->user), user.name);
	return 0;
}

static void note_own_user(struct np_helper *helper)
{
	np_auto_user struct np_user user = { 0 };

	if (np_user_by_uid(geteuid(), &user, NULL) == 0)
		np_strcpy(helper->user, sizeof(helper->user), user.name);
}

int np_helper_open(const char *run_as, bool as_root, struct np_helper *helper, struct np_err *err)
{
	memset(helper, 0, sizeof(*helper));
	helper->program_fd = open_program(err);
	if (helper->program_fd < 0)
		return helper->program_fd;
	/* only root can become someone else */
	if (!as_root && geteuid() == 0)
		return choose_user(helper, run_as, err);
	note_own_user(helper);
	return 0;
}

void np_helper_find_limit(struct np_helper *helper)
{
	char soft[NP_MEMLOCK_STRLEN];
	struct np_err err = { 0 };

	helper->has_limit = *helper->user && np_user_limit(helper->user, &helper->limit, &err) == 0;
	if (helper->has_limit)
		np_debug("user %s gets memlock %s at login (%s)", helper->user,
			 np_memlock_str(helper->limit.limit.soft, soft), helper->limit.source);
	else
		np_debug("the rungs keep the memlock limit of nodeprep itself: %s",
			 *helper->user ? err.message : "this user is not in the password database");
}

void np_helper_done(struct np_helper *helper)
{
	if (!helper)
		return;
	if (helper->program_fd >= 0)
		close(helper->program_fd);
	helper->program_fd = -1;
}

/* UCX reads ./ucx.conf: the program starts in a directory that holds nothing. */
static const char *empty_dir(bool make)
{
	if (access(EMPTY_DIR, F_OK) == 0)
		return EMPTY_DIR;
	if (make) {
		mkdir("/run/nodeprep", 0755);
		if (mkdir(EMPTY_DIR, 0555) == 0 || errno == EEXIST)
			return EMPTY_DIR;
	}
	return "/";
}

static void pass_log(const char *name, const struct np_buf *log)
{
	np_auto_strv struct np_strv lines = { 0 };

	if (log->len == 0 || np_strv_split(&lines, log->data, "\n") < 0)
		return;
	for (size_t i = 0; i < lines.n; i++)
		np_debug("%s: %s", name, lines.v[i]);
}

/* The dynamic linker reads its variables before the program does anything: these cannot come
 * as arguments. */
static int make_environment(const struct np_helper_job *job, struct np_strv *out)
{
	static const char path[] = "LD_LIBRARY_PATH=";
	const char *more = NULL;
	int r = np_strv_add(out, "PATH=/usr/sbin:/usr/bin:/sbin:/bin");

	if (r == 0)
		r = np_strv_add(out, "LC_ALL=C");
	for (size_t i = 0; job->env && i < job->env->n && r == 0; i++) {
		const char *entry = job->env->v[i];

		if (np_starts_with(entry, path))
			more = entry + strlen(path);
		else if (np_starts_with(entry, "LD_"))
			r = np_strv_add(out, entry);
	}
	if (r == 0 && (more || job->library_path)) {
		_cleanup_free_ char *libraries =
			np_asprintf("%s%s%s%s", path, job->library_path ? job->library_path : "",
				    more && *more && job->library_path ? ":" : "",
				    more ? more : "");

		r = libraries ? np_strv_add(out, libraries) : -ENOMEM;
	}
	return r;
}

int np_helper_run(const struct np_helper *helper, const struct np_helper_job *job,
		  struct np_child_result *result, struct np_err *err)
{
	np_auto_strv struct np_strv env = { 0 };
	/* a job that is root's by nature opens /dev/infiniband/umad*; with --as-root a rung has
	 * what root has */
	static const uint64_t few = NP_CAP(DAC_OVERRIDE);
	struct np_child_spec spec;
	char memlock[NP_MEMLOCK_STRLEN];
	int r = make_environment(job, &env);

	if (r < 0)
		return np_err_nomem(err);
	spec = (struct np_child_spec){
		.exec_fd = helper->program_fd,
		.argv = job->argv,
		.envp = (const char *const *)env.v,
		.cwd = empty_dir(job->make_directory),
		.switch_user = helper->switch_user && !job->as_root,
		.caps = helper->switch_user && job->as_root ? &few : NULL,
		.uid = helper->uid,
		.gid = helper->gid,
		.memlock = job->login_limit && helper->has_limit ? &helper->limit.limit : NULL,
		.timeout_ms = job->timeout_ms,
		.line_timeout_ms = job->line_timeout_ms,
		.stdout_max = DOCUMENT_MAX,
		.stderr_max = 1 << 16,
	};
	if (!job->quiet)
		np_progress("%s", job->name);
	r = np_child_run(&spec, result, err);
	if (!job->quiet)
		np_progress_done();
	if (r < 0)
		return r;
	pass_log(job->name, &result->log);
	if (result->memlock_less)
		np_debug("%s: memlock %s is all that can be given here", job->name,
			 np_memlock_str(result->memlock.soft, memlock));
	if (result->interrupted)
		return np_err_set(err, -EINTR, "internal.interrupted",
				  "%s: interrupted by a signal", job->name);
	return 0;
}

/* Tells most. */
static void last_line(const struct np_buf *log, char *out, size_t size)
{
	_cleanup_free_ char *text = log->data && log->len ? strdup(log->data) : NULL;
	const char *line = text ? strrchr(np_strip(text), '\n') : NULL;

	out[0] = '\0';
	if (text)
		np_printable(line ? line + 1 : np_strip(text), out, size);
}

/* The exit code and the first word of the dynamic linker, which says what it misses. */
static bool linker_complains(const struct np_child_result *result, const char *line)
{
	return !result->timed_out && result->exit_status == 127 &&
	       np_starts_with(line, NP_HELPER_PROGRAM ": ");
}

void np_helper_failure(const struct np_child_result *result, const char *who, int timeout_ms,
		       struct np_err *err)
{
	char line[300];

	last_line(&result->log, line, sizeof(line));
	if (result->not_done) {
		np_err_set(err, -EPROTO, "selftest.not_started", "%s could not %s: %s", who,
			   result->not_done, strerror(result->not_done_errno));
		np_err_hint(err, "run nodeprep where it may do that; in a container without other "
				 "users give --as-root");
		return;
	}
	if (linker_complains(result, line)) {
		np_err_set(err, -EPROTO, "selftest.not_loaded", "%s could not be loaded: %s", who,
			   line + strlen(NP_HELPER_PROGRAM ": "));
		np_err_hint(err,
			    "install the package of that library, or see which one `ldd " PROGRAM
			    "` finds in its place");
		return;
	}
	if (result->timed_out)
		np_err_set(err, -ETIMEDOUT, "selftest.timeout", "no verdict within %d s: killed",
			   timeout_ms / 1000);
	else if (result->term_signal)
		np_err_set(err, -EPROTO, "selftest.crashed", "%s died of signal %d (%s)", who,
			   result->term_signal, strsignal(result->term_signal));
	else
		np_err_set(err, -EPROTO, "selftest.crashed",
			   "%s ended with code %d and no result%s%.280s", who, result->exit_status,
			   *line ? ": " : "", line);
	np_err_hint(err, "run nodeprep selftest --verbose and read its log");
}
