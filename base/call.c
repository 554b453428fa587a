/* SPDX-License-Identifier: MIT */
/* Functions in children: under another identity, or because they may hang. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/child_part.h"
#include "base/cleanup.h"
#include "base/confine.h"
#include "base/user.h"

#define AT_ONCE	   32
#define ANSWER_MAX (64 << 20)

/* What may hang reads: a name service, folders. Some NIS servers answer low ports alone. */
#define READER_CAPS (NP_CAP(DAC_READ_SEARCH) | NP_CAP(NET_BIND_SERVICE))

struct call {
	int (*fn)(void *arg, struct np_buf *out);
	void *arg;
	const struct np_identity *id; /* become that user first; NULL: lose the environment */
	const char *who;	      /* for messages */
};

/* A child that was started and not reaped. */
struct running {
	size_t slot; /* of np_as_users */
	pid_t pid;
	int fd; /* what it writes; -1 at its end */
	int64_t deadline;
	struct np_child_result result;
};

/* What the parent has open is not for a user: the lock, the state, sockets of root, what is
 * typed. Its stderr stays, for --verbose. A name service may go on with what the parent had. */
static void leave_descriptors(int keep)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= 1; fd++)
		if (null_fd < 0 || dup2(null_fd, fd) < 0)
			close(fd); /* an image's tree may have none */
	if (keep > 3)
		close_range(3, (unsigned int)keep - 1, 0);
	close_range((unsigned int)keep + 1, ~0U, 0);
}

static void run_call(const struct call *call, int fd, pid_t parent)
{
	struct np_buf out = { 0 };
	int r = 0;

	np_child_limit(parent);
	signal(SIGXFSZ, SIG_IGN);
	if (call->id) {
		leave_descriptors(fd);
		r = np_user_become(call->id);
	} else {
		clearenv();
		np_caps_keep(READER_CAPS);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	np_confine(call->id ? NP_CONFINE_HOME : NP_CONFINE_CHILD);
	if (r == 0)
		r = call->fn(call->arg, &out);
	if (out.failed)
		r = -ENOMEM;
	if (write(fd, &r, sizeof(r)) != (ssize_t)sizeof(r))
		_exit(1);
	for (size_t put = 0; r == 0 && put < out.len;) {
		ssize_t n = write(fd, out.data + put, out.len - put);

		if (n <= 0)
			_exit(1);
		put += (size_t)n;
	}
	_exit(0);
}

static int start(const struct call *call, int timeout_ms, struct running *run, struct np_err *err)
{
	pid_t parent = getpid(), pid;
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return np_err_set(err, -errno, "internal.child", "cannot make a pipe: %s",
				  strerror(errno));
	pid = fork();
	r = -errno;
	if (pid == 0)
		run_call(call, fds[1], parent);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return np_err_set(err, r, "internal.child", "cannot fork for %s: %s", call->who,
				  strerror(-r));
	}
	*run = (struct running){ .pid = pid, .fd = fds[0], .deadline = np_now_ms() + timeout_ms };
	return 0;
}

/* Waits until one of @n children wrote or ended, or its time is over, but not for long. */
static void wait_for_one(struct running *v, size_t n, enum np_on_signal mode)
{
	struct pollfd fds[AT_ONCE];
	int64_t now = np_now_ms(), wait = 200;

	for (size_t i = 0; i < n; i++) {
		fds[i] = (struct pollfd){ .fd = v[i].fd, .events = POLLIN };
		v[i].result.timed_out = v[i].deadline <= now;
		v[i].result.interrupted = mode == NP_STOP_ON_SIGNAL && np_interrupted();
		if (v[i].result.timed_out || v[i].result.interrupted)
			return;
		if (v[i].deadline - now < wait)
			wait = v[i].deadline - now;
	}
	if (poll(fds, (nfds_t)n, (int)wait) <= 0)
		return;
	for (size_t i = 0; i < n; i++)
		if (fds[i].revents)
			np_child_drain(&v[i].fd, &v[i].result.out, ANSWER_MAX);
}

static bool is_over(const struct running *run)
{
	return run->fd < 0 || run->result.timed_out || run->result.interrupted;
}

/* Takes what it returned and, in @out, what it wrote. What @run says of the deadline and
 * of signals is the caller's to tell. */
static int finish(struct running *run, const char *who, enum np_on_signal mode, struct np_buf *out,
		  struct np_err *err)
{
	struct np_child_result *result = &run->result;
	int r = 0;

	np_child_reap(run->pid, mode, run->deadline, result);
	if (run->fd >= 0)
		close(run->fd);
	run->fd = -1;
	if (result->timed_out || result->interrupted)
		return result->timed_out ? -ETIMEDOUT : -EINTR;
	if (result->out.failed)
		return np_err_nomem(err);
	if (result->out.len < sizeof(r))
		return np_err_set(err, -EIO, "internal.child",
				  "the process for %s ended without an answer", who);
	memcpy(&r, result->out.data, sizeof(r));
	if (r < 0)
		return r;
	np_buf_add(out, result->out.data + sizeof(r), result->out.len - sizeof(r));
	return out->failed ? np_err_nomem(err) : 0;
}

/* ---- under another identity ---- */

static void name_call(const struct np_user_call *call, char *who, size_t size)
{
	snprintf(who, size, "user %s", call->user);
}

/* Starts it, or has its result at once. */
static bool start_as(struct np_user_call *c, const struct np_user_calls *all, struct running *run)
{
	np_auto_identity struct np_identity id = { 0 };
	char who[48];
	const struct call call = { .fn = all->fn, .arg = c->arg, .id = &id, .who = who };

	if (c->uid == geteuid()) {
		c->result = all->fn(c->arg, &c->out);
		return false;
	}
	if (np_identity_find(c->user, c->uid, c->gid, &id) < 0) {
		c->result = np_err_nomem(&c->err);
		return false;
	}
	name_call(c, who, sizeof(who));
	c->result = start(&call, all->timeout_ms, run, &c->err);
	return c->result == 0;
}

static void finish_as(struct np_user_call *c, const struct np_user_calls *all, struct running *run)
{
	char who[48];

	name_call(c, who, sizeof(who));
	c->result = finish(run, who, NP_FINISH_FIRST, &c->out, &c->err);
	if (run->result.timed_out)
		np_err_set(&c->err, c->result, "file.timeout",
			   "no answer within %d s while acting as %s", all->timeout_ms / 1000, who);
	np_child_result_done(&run->result);
}

void np_as_users(const struct np_user_calls *all)
{
	struct running now[AT_ONCE];
	size_t next = 0, n = 0;

	while (next < all->n || n > 0) {
		size_t kept = 0;

		while (next < all->n && n < AT_ONCE) {
			struct np_user_call *c = &all->v[next];

			np_err_clear(&c->err);
			if (all->stop_on_signal && np_interrupted()) {
				c->result = np_err_set(&c->err, -EINTR, "internal.interrupted",
						       "interrupted by a signal");
			} else if (start_as(c, all, &now[n])) {
				now[n++].slot = next;
			} else if (n > 0 && c->err.num == -EAGAIN) {
				break; /* no more processes for now */
			}
			next++;
		}
		if (n == 0)
			continue;
		wait_for_one(now, n, NP_FINISH_FIRST);
		for (size_t i = 0; i < n; i++) {
			if (is_over(&now[i]))
				finish_as(&all->v[now[i].slot], all, &now[i]);
			else
				now[kept++] = now[i];
		}
		n = kept;
	}
}

int np_as_user(const char *user, uid_t uid, gid_t gid, int timeout_ms,
	       int (*fn)(void *arg, struct np_buf *out), void *arg, struct np_buf *out,
	       struct np_err *err)
{
	struct np_user_call call = { .user = user, .uid = uid, .gid = gid, .arg = arg };
	const struct np_user_calls one = { .v = &call, .n = 1, .fn = fn, .timeout_ms = timeout_ms };

	np_as_users(&one);
	if (call.result == 0)
		np_buf_add(out, call.out.data, call.out.len);
	if (call.err.num && err)
		*err = call.err;
	np_buf_done(&call.out);
	return out->failed ? np_err_nomem(err) : call.result;
}

/* ---- with a deadline ---- */

int np_with_deadline(const char *what, int timeout_ms, int (*fn)(void *arg, struct np_buf *out),
		     void *arg, struct np_buf *out, struct np_err *err)
{
	const struct call call = { .fn = fn, .arg = arg, .who = what };
	struct running run = { .fd = -1 };
	int r = start(&call, timeout_ms, &run, err);

	if (r < 0)
		return r;
	while (!is_over(&run))
		wait_for_one(&run, 1, NP_STOP_ON_SIGNAL);
	r = finish(&run, what, NP_STOP_ON_SIGNAL, out, err);
	if (run.result.timed_out)
		np_err_set(err, r, "internal.child", "%s: no answer within %d s", what,
			   timeout_ms / 1000);
	if (run.result.interrupted)
		np_err_set(err, r, "internal.interrupted", "%s: interrupted by a signal", what);
	np_child_result_done(&run.result);
	return r;
}
