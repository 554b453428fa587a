/* SPDX-License-Identifier: MIT */
#include "selftest/ranks_clique.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/child.h"
#include "base/log.h"
#include "selftest/measure.h"

#define NAP_NS	     50000
#define NOT_BLOCKING 21400 /* NCCL 2.14 */

int np_clique_named(const struct np_clique *c, struct np_err *err)
{
	np_err_context(err, "rank %d on %s", c->ranks->rank, c->ranks->hosts[c->ranks->rank]);
	return err->num;
}

int np_clique_cuda_failed(struct np_clique *c, np_cu_result result, const char *doing,
			  struct np_err *err)
{
	if (result == NP_CU_SUCCESS)
		return 0;
	np_cuda_error(&c->set.cuda, c->gpu->device, result, doing, err);
	return np_clique_named(c, err);
}

int np_clique_nccl_failed(struct np_clique *c, np_nccl_result result, const char *doing,
			  struct np_err *err)
{
	if (result == NP_NCCL_SUCCESS)
		return 0;
	np_nccl_error(&c->nccl, c->comm, result, doing, err);
	np_err_hint(err, "set NCCL_DEBUG=INFO for all ranks and read NCCL's messages on stderr; "
			 "NCCL_SOCKET_IFNAME must be an interface that all nodes have");
	return np_clique_named(c, err);
}

int np_clique_too_late(struct np_clique *c, const char *doing, struct np_err *err)
{
	np_err_set(err, -ETIMEDOUT, "ranks.nccl_timeout", "NCCL %s: %s takes too long",
		   c->nccl.version_str, doing);
	np_err_hint(err,
		    "see what the other ranks report; NCCL_DEBUG=INFO for all ranks tells over "
		    "which interface NCCL connects");
	return np_clique_named(c, err);
}

void np_clique_quiet(struct np_clique *c)
{
	int64_t left = c->limit_ms - np_now_ms();

	np_ranks_quiet(c->ranks, left < NP_CLIQUE_LIBRARY_MS ? (int)left : NP_CLIQUE_LIBRARY_MS);
}

/* Until the communicator has done what it was asked for; @result is what it said to that. */
int np_clique_await(struct np_clique *c, np_nccl_result result, const char *doing,
		    struct np_err *err)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };

	if (result != NP_NCCL_IN_PROGRESS)
		return np_clique_nccl_failed(c, result, doing, err);
	while (result == NP_NCCL_IN_PROGRESS) {
		np_nccl_result asked = c->nccl.async_error(c->comm, &result);

		if (asked != NP_NCCL_SUCCESS)
			result = asked;
		if (result != NP_NCCL_IN_PROGRESS)
			break;
		np_ranks_tick(c->ranks);
		if (np_now_ms() > c->limit_ms)
			return np_clique_too_late(c, doing, err);
		nanosleep(&nap, NULL);
	}
	return np_clique_nccl_failed(c, result, doing, err);
}

/* What rank 0 gives to all. */
struct start {
	int32_t failed;
	struct np_nccl_id id;
	uint64_t seed;
	char message[200];
};

static int take_id(struct np_clique *c, struct start *start, struct np_err *err)
{
	struct np_ranks *ranks = c->ranks;
	int ret;

	memset(start, 0, sizeof(*start));
	if (ranks->rank == 0) {
		struct np_err why;

		np_clique_quiet(c);
		start->failed = np_clique_nccl_failed(c, c->nccl.get_unique_id(&start->id),
						      "making a unique id", &why);
		np_ranks_quiet(ranks, 0);
		start->seed = np_seed_base();
		if (start->failed)
			np_strcpy(start->message, sizeof(start->message), why.message);
	}
	ret = np_ranks_broadcast(ranks, "NCCL's unique id", 0, start, sizeof(*start), err);
	if (ret < 0)
		return ret;
	if (start->failed) {
		ranks->board->err_peer = ranks->rank == 0 ? -1 : 0;
		start->message[sizeof(start->message) - 1] = '\0';
		np_err_set(err, -EIO, "nccl.failed", "%s", start->message);
		np_err_hint(err, "NCCL_SOCKET_IFNAME must be an interface of that node that is up");
		return -EIO;
	}
	c->seed = start->seed;
	return 0;
}

/* Calls return at once, and the communicator is asked how it gets on. */
static bool can_ask(const struct np_clique *c)
{
	return c->nccl.version >= NOT_BLOCKING && c->nccl.init_rank_config && c->nccl.finalize;
}

int np_clique_open(struct np_clique *c, struct np_err *err)
{
	static const char doing[] = "making the communicator";
	struct np_nccl_config config = {
		.size = sizeof(config),
		.magic = NP_NCCL_CONFIG_MAGIC,
		.version = NP_NCCL_CONFIG_VERSION,
		.blocking = 0,
		.rest = NP_NCCL_CONFIG_UNSET,
	};
	struct np_ranks *ranks = c->ranks;
	struct start start;
	np_nccl_result result;
	int ret = take_id(c, &start, err);

	if (ret < 0)
		return ret;
	if (can_ask(c)) {
		np_clique_quiet(c);
		result = c->nccl.init_rank_config(&c->comm, ranks->size, start.id, ranks->rank,
						  &config);
		np_ranks_quiet(ranks, 0);
		/* an error that comes at once leaves no communicator to ask */
		if (result == NP_NCCL_SUCCESS)
			result = NP_NCCL_IN_PROGRESS;
		return np_clique_await(c, result, doing, err);
	}
	c->blocks = true;
	/* it cannot be asked while it works: who watches us ends it at the deadline */
	np_ranks_quiet(ranks, (int)(ranks->deadline_ms - np_now_ms()));
	result = c->nccl.init_rank(&c->comm, ranks->size, start.id, ranks->rank);
	np_ranks_quiet(ranks, 0);
	return np_clique_nccl_failed(c, result, doing, err);
}

/* ---- end ---- */

static void *abort_comm(void *arg)
{
	struct np_clique *c = arg;

	c->nccl.abort(c->comm);
	return NULL;
}

/* It can hang as well, and the error that led here is to be told. */
static void abort_within(struct np_clique *c, int ms)
{
	struct timespec end;
	pthread_t thread;

	np_ranks_quiet(c->ranks, ms + 1000);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += ms / 1000;
	if (pthread_create(&thread, NULL, abort_comm, c) != 0)
		return;
	if (pthread_timedjoin_np(thread, NULL, &end) != 0)
		np_warning("ncclCommAbort did not return");
	np_ranks_quiet(c->ranks, 0);
}

void np_clique_close(struct np_clique *c, bool clean)
{
	const struct np_cuda *cuda = &c->set.cuda;
	struct np_err ignored;

	if (c->comm && clean && can_ask(c))
		clean = np_clique_await(c, c->nccl.finalize(c->comm), "ending", &ignored) == 0;
	np_clique_quiet(c);
	if (c->comm && clean)
		c->nccl.destroy(c->comm);
	np_ranks_quiet(c->ranks, 0);
	if (c->comm && !clean)
		abort_within(c, NP_CLIQUE_ABORT_MS);
	/* kernels that hang keep the memory; the process ends soon */
	if (c->has_context && clean) {
		if (c->stream)
			cuda->stream_destroy(c->stream);
		if (c->send)
			cuda->mem_free(c->send);
		if (c->receive)
			cuda->mem_free(c->receive);
		np_gpu_release(&c->set, c->gpu);
	}
	np_gpu_set_done(&c->set);
	if (clean)
		free(c->host);
}
