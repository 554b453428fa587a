/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "base/log.h"
#include "selftest/measure.h"
#include "selftest/ranks_ucx.h"
#include "selftest/ucp_move.h"

/*
 * The same reduction over UCX in host memory: a ring, as NCCL's large messages take it. Each
 * rank sends to the next and receives from the one before, 2 (n - 1) steps of 1/n of the
 * data. Elements are 32-bit numbers that add up without overflow.
 */

#define STEP_MS 20000
#define ROUNDS	5 /* of each size, after one that does not count */
/* Who has waited less than this when the deadline comes, has not waited in vain. */
#define PATIENCE_MS 3000

static const uint64_t sizes[] = { 4, 4096, 65536, 1048576, 8388608 };

struct ring {
	struct np_ranks *ranks;
	struct np_ranks_ucx *ucx;
	uint32_t *data, *incoming;
	size_t n; /* elements */
	int next, before, tag;
};

/* Element @i of @rank; all ranks together: n times the first part, and the sum of the ranks. */
static uint32_t part_of(size_t i)
{
	return (uint32_t)(i * 2654435761u) >> 18; /* 14 bits, no two neighbours alike */
}

static void fill(struct ring *ring)
{
	for (size_t i = 0; i < ring->n; i++)
		ring->data[i] = part_of(i) + (uint32_t)ring->ranks->rank;
}

static int check(const struct ring *ring, uint64_t size, struct np_err *err)
{
	uint32_t n = (uint32_t)ring->ranks->size;
	uint32_t ranks_sum = n * (n - 1) / 2;

	for (size_t i = 0; i < ring->n; i++) {
		uint32_t expected = n * part_of(i) + ranks_sum;

		if (ring->data[i] == expected)
			continue;
		np_err_set(err, -EBADMSG, "ranks.reduced_wrong",
			   "rank %d on %s: element %zu of an allreduce of %llu bytes is %u, "
			   "expected %u",
			   ring->ranks->rank, ring->ranks->hosts[ring->ranks->rank], i,
			   (unsigned long long)size, ring->data[i], expected);
		np_err_hint(err, "look at the point to point results for the pair that corrupts");
		return -EBADMSG;
	}
	return 0;
}

/* Elements of the chunk that @which numbers, any integer. */
static uint32_t *chunk(const struct ring *ring, uint32_t *base, int which, size_t *len)
{
	int n = ring->ranks->size;
	size_t at = (size_t)((which % n + n) % n), each = ring->n / (size_t)n;
	size_t rest = ring->n % (size_t)n;

	*len = each + (at < rest);
	return base + at * each + (at < rest ? at : rest);
}

/* How far it came, and whom it waits for: rank 0 compares these of all ranks. */
static int stuck(struct ring *ring, const struct np_ucp_request *receive, int64_t since_ms,
		 struct np_err *err)
{
	struct np_ranks_board *board = ring->ranks->board;
	bool waits = np_ucp_request_status(receive) == UCS_INPROGRESS;

	if (err->num == -ETIMEDOUT && np_now_ms() - since_ms < PATIENCE_MS) {
		np_err_set(err, -ETIMEDOUT, "ranks.late", "the deadline came in the allreduce");
		np_err_hint(err, "allow more time with --timeout");
		return -ETIMEDOUT;
	}
	board->round = ring->tag;
	board->err_peer = waits ? ring->before : ring->next;
	np_strcpy(err->code, sizeof(err->code), "ranks.allreduce");
	return err->num;
}

#ifdef NP_TEST_HOOKS
/* Tests only: so many milliseconds in which a way can be cut. */
static void pause_for_test(struct np_ranks *ranks)
{
	const char *wanted = getenv("NP_TEST_RANKS_PAUSE");
	uint64_t ms = 0;

	if (!wanted || np_parse_u64(wanted, 10, 60000, &ms) < 0)
		return;
	for (int64_t until = np_now_ms() + (int64_t)ms; np_now_ms() < until; np_ranks_tick(ranks))
		np_sleep_ms(100);
}
#else
static inline void pause_for_test(struct np_ranks *ranks)
{
	(void)ranks;
}
#endif

/* One step: sends a chunk on and gets one. */
static int step(struct ring *ring, int sends, int gets, uint32_t *into, struct np_err *err)
{
	struct np_ucp_request requests[2] = { 0 };
	struct np_ucp_message out = { 0 }, in = { 0 };
	int64_t start = np_now_ms();
	size_t len;

	out.tx = (char *)chunk(ring, ring->data, sends, &len);
	out.size = len * sizeof(uint32_t);
	out.tag = np_ranks_tag(NP_TAG_REDUCE, ring->tag, ring->ranks->rank);
	in.rx = (char *)into;
	(void)chunk(ring, ring->data, gets, &len);
	in.size = len * sizeof(uint32_t);
	in.tag = np_ranks_tag(NP_TAG_REDUCE, ring->tag++, ring->before);
	if (in.size > 0)
		np_ucp_post_receive(&ring->ucx->link, 0, &in, &requests[0]);
	if (out.size > 0)
		np_ucp_post_send(&ring->ucx->link, 0, &out, &requests[1]);
	if (np_ucp_link_wait(&ring->ucx->link, requests, 2, "reducing", err) == 0)
		return 0;
	return stuck(ring, &requests[0], start, err);
}

static int reduce(struct ring *ring, struct np_err *err)
{
	int n = ring->ranks->size, rank = ring->ranks->rank, ret = 0;

	for (int s = 0; s < n - 1 && ret == 0; s++) {
		size_t len;
		uint32_t *sum = chunk(ring, ring->data, rank - s - 1, &len);

		ret = step(ring, rank - s, rank - s - 1, ring->incoming, err);
		for (size_t i = 0; i < len && ret == 0; i++)
			sum[i] += ring->incoming[i];
	}
	for (int s = 0; s < n - 1 && ret == 0; s++) {
		size_t len;
		uint32_t *to = chunk(ring, ring->data, rank - s, &len);

		ret = step(ring, rank - s + 1, rank - s, to, err);
	}
	return ret;
}

static int measure(struct ring *ring, uint64_t size, struct np_ranks_allreduce *out,
		   struct np_err *err)
{
	struct np_ranks_reduced *result = &out->sizes[out->n_sizes];
	double samples[ROUNDS], n = ring->ranks->size;
	int ret;

	ring->n = size / sizeof(uint32_t);
	for (int i = 0; i < ROUNDS + 1; i++) {
		double start;

		ret = np_ranks_turn_to(ring->ranks, ring->next, STEP_MS, err);
		if (ret < 0)
			return ret;
		fill(ring);
		start = np_now_us();
		ret = reduce(ring, err);
		if (i > 0)
			samples[i - 1] = np_now_us() - start;
		if (ret == 0)
			ret = check(ring, size, err);
		if (ret < 0)
			return ret;
	}
	result->size_bytes = size;
	result->time_us = np_median(samples, ROUNDS);
	result->bus_MBps = (double)size / result->time_us * 2 * (n - 1) / n;
	out->n_sizes++;
	return 0;
}

/* The guide's own: a one of each rank. */
static int final_size(struct ring *ring, struct np_ranks_allreduce *out, struct np_err *err)
{
	int ret;

	ring->n = 1;
	ring->data[0] = 1;
	ret = np_ranks_turn_to(ring->ranks, ring->next, STEP_MS, err);
	if (ret == 0)
		ret = reduce(ring, err);
	if (ret < 0)
		return ret;
	out->final_size = ring->data[0];
	if (out->final_size == (uint32_t)ring->ranks->size)
		return 0;
	return np_err_set(err, -EBADMSG, "ranks.reduced_wrong",
			  "rank %d on %s: final_size is %u, expected %d", ring->ranks->rank,
			  ring->ranks->hosts[ring->ranks->rank], out->final_size,
			  ring->ranks->size);
}

static int all_sizes(struct ring *ring, struct np_ranks_allreduce *out, struct np_err *err)
{
	int ret = 0;

	/* each closed the last endpoint of the rounds at its own time */
	if (ring->ranks->options->close_endpoints)
		ret = np_ranks_fence(ring->ranks, "the end of the rounds", err);
	out->clique_size = (uint32_t)ring->ranks->size;
	if (ret == 0)
		ret = final_size(ring, out, err);
	pause_for_test(ring->ranks);
	for (size_t i = 0; i < NP_ARRAY_SIZE(sizes) && ret == 0; i++)
		ret = measure(ring, sizes[i], out, err);
	out->verified = ret == 0;
	return ret;
}

int np_ranks_allreduce_host(struct np_ranks *ranks, struct np_ranks_allreduce *out,
			    struct np_err *err)
{
	struct ring ring = { .ranks = ranks, .ucx = ranks->ucx };
	size_t largest = sizes[NP_ARRAY_SIZE(sizes) - 1];
	int ret;

	ring.next = (ranks->rank + 1) % ranks->size;
	ring.before = (ranks->rank + ranks->size - 1) % ranks->size;
	/* not freed after a failure: a message may still be written there */
	ring.data = malloc(largest);
	ring.incoming = malloc(largest);
	if (!ring.data || !ring.incoming)
		return np_err_nomem(err);
	ret = all_sizes(&ring, out, err);
	if (ret < 0) {
		if (!np_starts_with(err->code, "ranks.")) {
			np_err_context(
				err, "allreduce between rank %d on %s and its neighbours %d and %d",
				ranks->rank, ranks->hosts[ranks->rank], ring.before, ring.next);
			np_strcpy(err->code, sizeof(err->code), "ranks.allreduce");
		}
		return ret;
	}
	free(ring.data);
	free(ring.incoming);
	return 0;
}
