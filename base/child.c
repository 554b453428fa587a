/* SPDX-License-Identifier: MIT */
#include "base/child_part.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/confine.h"
#include "base/log.h"
#include "base/user.h"

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

/* Those that end a process and are no fault of its own: a time limit (SIGALRM, SIGXCPU), a
 * scheduler (SIGUSR1), a key (SIGQUIT) is no reason to leave things half-done either. */
static const int handled[] = { SIGTERM, SIGINT,	 SIGHUP,    SIGQUIT, SIGALRM, SIGUSR1,
			       SIGUSR2, SIGXCPU, SIGVTALRM, SIGPROF, SIGIO,   SIGPWR };

void np_signals_install(void)
{
	const struct sigaction action = { .sa_handler = on_signal };
	struct sigaction before;
	sigset_t none;

	for (size_t i = 0; i < NP_ARRAY_SIZE(handled); i++)
		/* nohup, and what a shell starts in the background */
		if (sigaction(handled[i], &action, &before) == 0 &&
		    before.sa_handler == SIG_IGN && handled[i] != SIGTERM)
			signal(handled[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL); /* ignored by the caller, children could not be waited for */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error like others */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL); /* blocked by the caller, none would come */
}

void np_signals_ignore(void)
{
	for (size_t i = 0; i < NP_ARRAY_SIZE(handled); i++)
		signal(handled[i], SIG_IGN);
	interrupted = 0;
}

bool np_interrupted(void)
{
	return interrupted != 0;
}

int64_t np_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void np_sleep_ms(int ms)
{
	struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000L };

	nanosleep(&left, NULL);
}

/* ---- the child's side, between fork and exec ---- */

void np_child_limit(pid_t parent)
{
	/* 1: nothing fits into it, and where the kernel hands dumps to a program, 0 would not
	 * be looked at (core(5); fs/coredump.c) */
	struct rlimit no_core = { 1, 1 }, none_at_all = { 0, 0 };
	sigset_t none;

	/* no controlling terminal: who can open /dev/tty could type there (TIOCSTI), and what it
	 * types is read by the shell of root that comes back */
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	np_no_new_privs();
	if (setrlimit(RLIMIT_CORE, &no_core) < 0)
		setrlimit(RLIMIT_CORE, &none_at_all); /* it was 0, and only root may raise it */
	for (size_t i = 0; i < NP_ARRAY_SIZE(handled); i++)
		signal(handled[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* What an exit code from 125 to 127 before the program means. */
static const char *const steps[] = { NULL, "be given its descriptors", "enter its directory",
				     "become that user", "be executed" };
enum step { STEP_NONE, STEP_DESCRIPTORS, STEP_DIRECTORY, STEP_USER, STEP_EXECUTE };

/* A page that both see: what the child found out before it became the program. */
struct child_report {
	enum step not_done;
	int not_done_errno;
	int memlock_result;
	struct np_memlock memlock;
};

static void unmap_report(struct child_report **report)
{
	if (*report != MAP_FAILED)
		munmap(*report, sizeof(**report));
}

static void give_up(struct child_report *report, enum step step, int error, int status)
{
	report->not_done = step;
	report->not_done_errno = error;
	_exit(status);
}

static void exec_child(const struct np_child_spec *spec, const struct np_identity *id, int out_fd,
		       int log_fd, pid_t parent, struct child_report *report)
{
	int null_fd = open("/dev/null", O_RDWR), exec_fd = spec->exec_fd;

	np_child_limit(parent);
	/* a program inherits what is ignored */
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	/* keep the program's descriptor clear of 0..2 before those are replaced */
	exec_fd = fcntl(exec_fd, F_DUPFD_CLOEXEC, 10);
	if (exec_fd < 0 || null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(out_fd, 1) < 0 ||
	    dup2(log_fd, 2) < 0)
		give_up(report, STEP_DESCRIPTORS, errno, 126);
	close_range(3, (unsigned int)exec_fd - 1, 0);
	close_range((unsigned int)exec_fd + 1, ~0U, 0);
	if (chdir(spec->cwd ? spec->cwd : "/") < 0)
		give_up(report, STEP_DIRECTORY, errno, 126);
	if (spec->memlock)
		report->memlock_result = np_memlock_set(spec->memlock, &report->memlock);
	if (spec->switch_user) {
		int r = np_user_become(id);

		if (r < 0)
			give_up(report, STEP_USER, -r, 125);
	}
	/* changing identity clears the parent-death signal */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (spec->caps)
		np_caps_keep(*spec->caps);
	np_confine(NP_CONFINE_CHILD);
	fexecve(exec_fd, (char *const *)spec->argv, (char *const *)spec->envp);
	give_up(report, STEP_EXECUTE, errno, 127);
}

/* ---- the parent's side ---- */

#define DRAIN_SIZE 16384

void np_child_drain(int *fd, struct np_buf *buf, size_t max)
{
	char chunk[DRAIN_SIZE];
	ssize_t got = read(*fd, chunk, sizeof(chunk));

	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (got <= 0) {
		close(*fd);
		*fd = -1;
		return;
	}
	if (buf->len < max) {
		size_t room = max - buf->len;

		np_buf_add(buf, chunk, (size_t)got < room ? (size_t)got : room);
	}
}

static bool has_ended(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == pid;
}

/* What is in the pipe, and no more: who holds its other end may go on writing. */
static void drain_rest(int *fd, struct np_buf *buf, size_t max)
{
	int pending = 0;

	if (*fd < 0 || ioctl(*fd, FIONREAD, &pending) < 0)
		return;
	for (; pending > 0 && *fd >= 0; pending -= DRAIN_SIZE)
		np_child_drain(fd, buf, max);
}

static bool said_a_line(const struct np_buf *out, size_t before)
{
	return out->len > before && memchr(out->data + before, '\n', out->len - before);
}

static void collect(pid_t pid, int *out_fd, int *log_fd, const struct np_child_spec *spec,
		    struct np_child_result *result)
{
	_cleanup_close_ int pidfd = pidfd_open(pid, 0);
	int64_t deadline = np_now_ms() + spec->timeout_ms;
	int64_t line_deadline =
		spec->line_timeout_ms ? np_now_ms() + spec->line_timeout_ms : INT64_MAX;

	while (*out_fd >= 0 || *log_fd >= 0) {
		struct pollfd fds[3] = { { .fd = *out_fd, .events = POLLIN },
					 { .fd = *log_fd, .events = POLLIN },
					 { .fd = pidfd, .events = POLLIN } };
		int64_t left = (deadline < line_deadline ? deadline : line_deadline) - np_now_ms();
		size_t before = result->out.len;

		if (left <= 0) {
			result->timed_out = true;
			return;
		}
		if (np_interrupted()) {
			result->interrupted = true;
			return;
		}
		if (has_ended(pid)) {
			drain_rest(out_fd, &result->out, spec->stdout_max);
			drain_rest(log_fd, &result->log, spec->stderr_max);
			return;
		}
		np_progress_tick();
		if (poll(fds, 3, left > 200 ? 200 : (int)left) <= 0)
			continue;
		if (fds[0].revents)
			np_child_drain(out_fd, &result->out, spec->stdout_max);
		if (fds[1].revents)
			np_child_drain(log_fd, &result->log, spec->stderr_max);
		if (spec->line_timeout_ms && said_a_line(&result->out, before))
			line_deadline = np_now_ms() + spec->line_timeout_ms;
	}
}

/* Waits until the child ended, but not for long: the caller looks at clock and signals. */
static void wait_a_little(int pidfd)
{
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };

	if (pidfd >= 0)
		poll(&ended, 1, 200);
	else
		np_sleep_ms(2); /* a kernel or a filter without pidfd_open */
}

void np_child_reap(pid_t pid, enum np_on_signal mode, int64_t deadline,
		   struct np_child_result *result)
{
	_cleanup_close_ int pidfd = pidfd_open(pid, 0);
	int status = 0;

	while (!result->timed_out && !result->interrupted) {
		if (has_ended(pid))
			break;
		if (np_now_ms() >= deadline)
			result->timed_out = true;
		else if (mode == NP_STOP_ON_SIGNAL && np_interrupted())
			result->interrupted = true;
		else
			wait_a_little(pidfd);
	}
	/* the group outlives its leader as long as that is not reaped; one that did not come
	 * to be its own yet is alone */
	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	result->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	result->term_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

int np_child_run(const struct np_child_spec *spec, struct np_child_result *result,
		 struct np_err *err)
{
	_cleanup_close_ int out_fd = -1;
	_cleanup_close_ int log_fd = -1;
	np_auto_identity struct np_identity id = { 0 };
	int out_pipe[2], log_pipe[2];
	int64_t deadline = np_now_ms() + spec->timeout_ms;
	pid_t parent = getpid(), pid;
	np_auto(unmap_report) struct child_report *report = mmap(
		NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	memset(result, 0, sizeof(*result));
	if (report == MAP_FAILED)
		return np_err_set(err, -errno, "internal.child", "cannot map a page: %s",
				  strerror(errno));
	if (spec->switch_user && np_identity_find(NULL, spec->uid, spec->gid, &id) < 0)
		return np_err_nomem(err);
	if (pipe2(out_pipe, O_CLOEXEC) < 0)
		return np_err_set(err, -errno, "internal.child", "cannot make a pipe: %s",
				  strerror(errno));
	out_fd = out_pipe[0];
	if (pipe2(log_pipe, O_CLOEXEC) < 0) {
		close(out_pipe[1]);
		return np_err_set(err, -errno, "internal.child", "cannot make a pipe: %s",
				  strerror(errno));
	}
	log_fd = log_pipe[0];
	pid = fork();
	if (pid == 0)
		exec_child(spec, &id, out_pipe[1], log_pipe[1], parent, report);
	close(out_pipe[1]);
	close(log_pipe[1]);
	if (pid < 0)
		return np_err_set(err, -errno, "internal.child", "cannot start %s: %s",
				  spec->argv[0], strerror(errno));
	collect(pid, &out_fd, &log_fd, spec, result);
	np_child_reap(pid, NP_STOP_ON_SIGNAL, deadline, result);
	result->memlock_less = report->memlock_result < 0;
	result->memlock = report->memlock;
	result->not_done = steps[report->not_done];
	result->not_done_errno = report->not_done_errno;
	if (result->out.failed || result->log.failed) {
		np_child_result_done(result);
		return np_err_nomem(err);
	}
	return 0;
}

void np_child_result_done(struct np_child_result *result)
{
	if (!result)
		return;
	np_buf_done(&result->out);
	np_buf_done(&result->log);
	memset(result, 0, sizeof(*result));
}
