/* SPDX-License-Identifier: MIT */
/* The supervisor's watch over its worker. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/child.h"
#include "base/file.h"
#include "base/log.h"
#include "selftest/ranks_link.h"
#include "selftest/ranks_super.h"
#include "selftest/ranks_worker.h"

/* A worker gives a sign of life four times a second while it waits. */
#define SILENT_MS 5000
/* One that wants to run may only lack a processor. */
#define STARVED_MS 30000
/* A process that has closed its socket is at its end; drivers may hold it up there. */
#define ENDS_WITHIN_MS 5000
/* How long after its deadline it may take to write down what it knows. */
#define LATE_MS 1000

/* ---- the worker's beginning ---- */

static void be_worker(struct np_ranks_job *job, int link)
{
	struct np_ranks ranks = {
		.rank = job->rank,
		.size = job->size,
		.local_rank = job->local_rank,
		.local_size = job->local_size,
		.options = job->options,
		.deadline_ms = job->worker_deadline_ms,
		.hosts = job->hosts,
		.board = job->board,
		.link = link,
	};
	sigset_t none;

	/* the launcher signals the whole group: the supervisor says when it is over */
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_NAME, "ranks-worker");
	/* stdout is the report's, and libraries write to it */
	if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return;
	np_ranks_work(&ranks);
}

int np_ranks_start_worker(struct np_ranks_job *job, struct np_err *err)
{
	pid_t parent = getpid();
	int link[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) < 0)
		return np_err_set(err, -errno, "", "no socket for the worker: %s", strerror(errno));
	job->board->tick_ms = np_now_ms();
	job->worker = fork();
	if (job->worker < 0) {
		close(link[0]);
		close(link[1]);
		return np_err_set(err, -errno, "", "no process for the worker: %s",
				  strerror(errno));
	}
	if (job->worker == 0) {
		close(link[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			be_worker(job, link[1]);
		_exit(0); /* no library's exit handler is to change what is on the board */
	}
	close(link[1]);
	job->link = link[0];
	job->worker_fd = (int)syscall(SYS_pidfd_open, job->worker, 0);
	return 0;
}

/* ---- what it asks for ---- */

static void answer(struct np_ranks_job *job, struct np_ranks_head *head, const struct np_buf *data)
{
	head->len = data->len;
	job->board->tick_ms = np_now_ms();
	if (np_ranks_send(job->link, head, data->data) < 0)
		np_debug("the worker did not take its answer");
}

static int share(struct np_ranks_job *job, const struct np_ranks_head *head,
		 const struct np_buf *mine, struct np_buf *all, struct np_err *err)
{
	char key[64];
	int ret;

	snprintf(key, sizeof(key), "nodeprep-%u", job->sequence++);
	ret = np_pmix_put(key, mine->len ? mine->data : "", mine->len, err);
	if (ret == 0)
		ret = np_ranks_meet(job, true, job->worker_deadline_ms, head->what, err);
	for (int i = 0; i < job->size && ret == 0; i++) {
		np_auto_buf struct np_buf one = { 0 };
		uint64_t len;

		ret = np_ranks_look(job, i, key, 5000, &one);
		if (ret < 0)
			return np_err_set(err, ret, "ranks.exchange", "rank %d gave no %s", i,
					  head->what);
		len = one.len;
		np_buf_add(all, &len, sizeof(len));
		np_buf_add(all, one.data, one.len);
	}
	return ret == 0 && all->failed ? np_err_nomem(err) : ret;
}

/* One request. False: the end of the socket. */
static bool serve(struct np_ranks_job *job)
{
	np_auto_buf struct np_buf mine = { 0 }, all = { 0 };
	struct np_ranks_head head;
	struct np_err err;

	np_err_clear(&err);
	if (np_ranks_receive(job->link, &head, &mine) < 0)
		return false;
	job->asked = &head;
	if (head.ask == NP_ASK_SHARE)
		head.error = share(job, &head, &mine, &all, &err);
	else
		head.error = np_ranks_meet(job, false, job->worker_deadline_ms, head.what, &err);
	job->asked = NULL;
	if (head.error < 0) {
		np_buf_done(&all);
		np_buf_str(&all, err.message);
	}
	answer(job, &head, &all);
	return true;
}

/* ---- what may become of it ---- */

/* It came to an end: by itself, or a signal tells how. */
static void reap(struct np_ranks_job *job)
{
	struct np_err *err = &job->board->err;
	char name[160];
	int status = 0;

	if (!job->worker || waitpid(job->worker, &status, 0) != job->worker)
		return;
	job->worker = 0;
	if (job->board->finished || err->num < 0)
		return;
	job->board->err_peer = -1;
	np_ranks_name(job, job->rank, name);
	/* the number tells the verdict of an abort, which may follow from another's end */
	if (WIFSIGNALED(status))
		np_err_set(err, WTERMSIG(status) == SIGABRT ? -ECONNABORTED : -ECHILD, "ranks.died",
			   "%s died of signal %d (%s)%s", name, WTERMSIG(status),
			   strsignal(WTERMSIG(status)), WCOREDUMP(status) ? ", core dumped" : "");
	else
		np_err_set(err, -ECHILD, "ranks.died", "%s ended by itself with status %d", name,
			   WEXITSTATUS(status));
	np_err_hint(err, "read its messages on stderr, and the host's kernel log (out of memory, "
			 "Xid, machine check)");
}

/* It gave up, has told why, and keeps its endpoints: it ends with this process. */
static bool stays(const struct np_ranks_job *job)
{
	return job->board->finished && job->board->err.num < 0;
}

static void end_worker(struct np_ranks_job *job)
{
	if (stays(job))
		return;
	if (job->worker)
		kill(job->worker, SIGKILL);
	reap(job);
}

/* The third field of /proc/PID/stat, after the name in brackets. */
static char state_of(pid_t pid)
{
	char path[64], line[512];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (np_file_read_line_at(AT_FDCWD, path, line, sizeof(line)) < 0)
		return '?';
	at = strrchr(line, ')');
	return at && at[1] == ' ' ? at[2] : '?';
}

static const char *doing(const struct np_ranks_board *board, char out[96])
{
	static const char *const words[] = {
		[NP_PHASE_START] = "starting",
		[NP_PHASE_UCX] = "opening its devices",
		[NP_PHASE_EXCHANGE] = "exchanging addresses",
		[NP_PHASE_CONNECT] = "connecting",
		[NP_PHASE_ROUNDS] = "sending",
		[NP_PHASE_ALLREDUCE] = "reducing",
		[NP_PHASE_DONE] = "ending",
	};
	uint32_t phase = board->phase;

	if (phase == NP_PHASE_ROUNDS && board->peer >= 0)
		snprintf(out, 96, "sending to rank %d (trial %d)", board->peer, board->trial);
	else
		np_strcpy(out, 96, phase < NP_ARRAY_SIZE(words) ? words[phase] : "working");
	return out;
}

/* Nothing was heard of it for too long. */
static bool silent(struct np_ranks_job *job)
{
	struct np_ranks_board *board = job->board;
	struct np_err *err = &board->err;
	int64_t now = np_now_ms(), since = now - board->tick_ms;
	char name[160], what[96];
	char state;

	if (since < SILENT_MS || !job->worker)
		return false;
	state = state_of(job->worker);
	if (now < board->quiet_until_ms && state != 'T')
		return false;
	if (state == 'R' && since < STARVED_MS)
		return false;
	np_ranks_name(job, job->rank, name);
	board->err_peer = -1;
	np_err_set(err, -ETIMEDOUT, "ranks.hung", "%s %s for %lld s while %s", name,
		   state == 'T' || state == 't' ? "is stopped" : "hangs", (long long)since / 1000,
		   doing(board, what));
	np_err_hint(err, state == 'D' ? "it waits in the kernel: read that host's kernel log" :
			 state == 'T' || state == 't' ?
					"see who stopped it: a debugger, or a signal" :
					"read its messages on stderr; look at the host's load");
	return true;
}

/* It should have given up by itself. */
static void late(struct np_ranks_job *job)
{
	char name[160], what[96];

	job->board->err_peer = -1;
	np_err_set(&job->board->err, -ETIMEDOUT, "ranks.hung",
		   "%s did not come to an end before the deadline, while %s",
		   np_ranks_name(job, job->rank, name), doing(job->board, what));
	np_err_hint(&job->board->err, "allow more time with --timeout");
}

/* What may have been the reason shows within this; and a worker that ends sooner breaks the
 * endpoints of others, who would take it for the culprit. */
#define SETTLE_MS 300

static void settle(struct np_ranks_job *job)
{
	int64_t until = np_now_ms() + ENDS_WITHIN_MS / 2;

	/* a peer is gone: the launcher is about to end the job */
	while (!job->ended && np_now_ms() < until)
		np_ranks_pump(job, 50);
	while (np_now_ms() < job->ended_ms + SETTLE_MS)
		np_sleep_ms(20);
}

/* Rank 0 may not come to tell it: the launcher's daemons answer nobody while they end a job. */
static void blame(struct np_ranks_job *job, int peer)
{
	char own[160], other[160];

	job->board->err_peer = peer;
	np_err_set(&job->board->err, -EPIPE, "ranks.gone", "%s is gone",
		   np_ranks_name(job, peer, other));
	np_err_hint(&job->board->err, "read the launcher's message, and the host's kernel log");
	if (job->gone < 0) /* else it was said */
		np_error("%s is gone: %s lost its connection before the launcher ended the job",
			 other, np_ranks_name(job, job->rank, own));
}

/* The job is over for a reason that is not this rank's. */
static void cut(struct np_ranks_job *job)
{
	struct np_ranks_board *board = job->board;
	int lost;

	if (job->gone >= 0)
		blame(job, job->gone);
	if (job->ended || job->gone >= 0)
		settle(job);
	lost = board->lost;
	if (board->finished)
		return;
	if (job->gone >= 0)
		return;
	if (job->ended && lost >= 0 && lost < job->size) {
		blame(job, lost);
		return;
	}
	board->err_peer = -1;
	if (job->ended)
		np_err_set(&board->err, -EINTR, "ranks.ended",
			   "the launcher ended the job (signal %d)", job->ended);
	else
		np_err_set(&board->err, -EINTR, "ranks.ended",
			   "another rank failed before this one was done");
	np_err_hint(&board->err,
		    "read the messages of the launcher and of the other ranks on stderr");
}

static void await_end(struct np_ranks_job *job)
{
	struct pollfd end = { .fd = job->worker_fd, .events = POLLIN };

	if (!stays(job) && job->worker_fd >= 0 && poll(&end, 1, ENDS_WITHIN_MS) == 1)
		reap(job);
}

void np_ranks_watch_worker(struct np_ranks_job *job)
{
	while (job->worker) {
		if (np_ranks_pump(job, 250) && !serve(job)) {
			await_end(job);
			break;
		}
		if (job->ended || job->gone >= 0 || np_ranks_lost(job)) {
			cut(job);
			break;
		}
		if (silent(job))
			break;
		if (np_now_ms() > job->worker_deadline_ms + LATE_MS) {
			late(job);
			break;
		}
	}
	end_worker(job);
	close(job->link);
	job->link = -1;
	if (job->worker_fd >= 0)
		close(job->worker_fd);
	job->worker_fd = -1;
}
