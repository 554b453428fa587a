/* SPDX-License-Identifier: MIT */
/* What a supervisor waits for, all at once. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/child.h"
#include "base/log.h"
#include "selftest/ranks_super.h"

/* A wait that lasted so much longer than it should. */
#define STOPPED_MS 2000

static void take_signals(struct np_ranks_job *job)
{
	struct signalfd_siginfo info;

	while (read(job->signals, &info, sizeof(info)) == sizeof(info)) {
		if (job->ended)
			continue;
		job->ended = (int)info.ssi_signo;
		job->ended_ms = np_now_ms();
	}
}

static bool still_there(int pidfd)
{
	struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) == 0;
}

/* The first one to go is the one that matters: the launcher ends the others then. */
static void look_at_peers(struct np_ranks_job *job)
{
	char name[160];

	if (job->gone >= 0 || (job->ended && np_now_ms() - job->ended_ms > NP_RANKS_LINGER_MS / 2))
		return;
	for (int i = 0; i < job->size; i++) {
		if (job->peers[i] < 0 || still_there(job->peers[i]))
			continue;
		job->gone = i;
		np_error("%s is gone: its process %s ended before the job did",
			 np_ranks_name(job, i, name), np_ranks_card_get(&job->cards[i], "pid"));
		return;
	}
}

void np_ranks_forget_peers(struct np_ranks_job *job)
{
	for (int i = 0; i < job->size && job->peers; i++) {
		if (job->peers[i] >= 0)
			close(job->peers[i]);
		job->peers[i] = -1;
	}
}

static size_t add_fd(struct pollfd *fds, size_t n, int fd)
{
	fds[n].fd = fd;
	fds[n].events = POLLIN;
	fds[n].revents = 0;
	return n + 1;
}

bool np_ranks_pump(struct np_ranks_job *job, int ms)
{
	struct pollfd fds[4 + 256];
	int64_t before;
	size_t n = 0, own;
	uint64_t count;

	n = add_fd(fds, n, job->wake);
	n = add_fd(fds, n, job->signals);
	n = add_fd(fds, n, job->asked ? -1 : job->link);
	n = add_fd(fds, n, job->worker_fd);
	own = n;
	for (int i = 0;
	     i < job->size && job->gone < 0 && !job->ended && job->peers && n < NP_ARRAY_SIZE(fds);
	     i++)
		if (job->peers[i] >= 0)
			n = add_fd(fds, n, job->peers[i]);
	before = np_now_ms();
	if (poll(fds, (nfds_t)n, ms) <= 0)
		return false;
	/* who was stopped finds the others gone, and has nothing to say about it */
	if (np_now_ms() - before > ms + STOPPED_MS)
		np_ranks_forget_peers(job);
	if (fds[0].revents && read(job->wake, &count, sizeof(count)) < 0)
		return false;
	np_pmix_go_on();
	if (fds[1].revents)
		take_signals(job);
	for (size_t i = own; i < n; i++)
		if (fds[i].revents)
			look_at_peers(job);
	return fds[2].revents || fds[3].revents;
}

/* ---- PMIx, with a deadline ---- */

int np_ranks_meet(struct np_ranks_job *job, bool collect, int64_t deadline_ms, const char *what,
		  struct np_err *err)
{
	int ret = np_pmix_fence(collect, &job->fence, err);

	if (ret < 0)
		return ret;
	while (job->fence == 1) {
		int64_t left = deadline_ms - np_now_ms();

		if (job->ended || job->gone >= 0)
			return np_err_set(err, -ECANCELED, "ranks.ended",
					  "the job ended while ranks exchanged %s", what);
		if (left <= 0)
			return np_err_set(err, -ETIMEDOUT, "ranks.exchange",
					  "not all ranks came to exchange %s before the deadline",
					  what);
		if (np_ranks_pump(job, left < 250 ? (int)left : 250) && job->asked)
			return np_err_set(err, -ECHILD, "ranks.ended", "the worker is gone");
		if (job->asked && np_ranks_lost(job))
			return np_err_set(err, -ECANCELED, "ranks.ended",
					  "another rank failed while ranks exchanged %s", what);
	}
	if (job->fence < 0)
		return np_err_set(err, job->fence, "ranks.exchange",
				  "PMIx failed while ranks exchanged %s", what);
	return 0;
}

int np_ranks_look(struct np_ranks_job *job, int rank, const char *key, int ms, struct np_buf *out)
{
	/* not freed where PMIx may still write to it */
	struct np_pmix_look *look = calloc(1, sizeof(*look));
	int64_t until = np_now_ms() + ms;
	int ret;

	if (!look)
		return -ENOMEM;
	np_pmix_look(rank, key, true, look);
	while (look->state == 1 && np_now_ms() < until && !job->ended)
		np_ranks_pump(job, 50);
	ret = look->state;
	if (ret == 1)
		return -ETIMEDOUT;
	if (ret == 0)
		*out = look->out;
	else
		np_buf_done(&look->out);
	free(look);
	return ret;
}
