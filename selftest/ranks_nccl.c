/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "base/log.h"
#include "selftest/measure.h"
#include "selftest/nccl_check.h"
#include "selftest/ranks_clique.h"
#include "selftest/ranks_gpu.h"

/*
 * NCCL over all ranks, one process and one GPU a rank: sums of float32 out of place, each
 * element compared on each rank. All ranks make the same calls in the same order whatever
 * they find in the data, since a rank that stops makes the others wait.
 */

static const uint64_t sizes[] = { 8, 4096, 65536, 1048576, 8388608, 67108864 };
#define SIZE_MOST  67108864u
#define SIZE_SMALL 65536u
_Static_assert(NP_ARRAY_SIZE(sizes) <= NP_RANKS_SIZES_MAX, "too many sizes");

#define WARM_UP	    2u
#define ROUNDS	    3u
#define ITERATIONS  20u
#define ROUND_US    200000.0 /* a round takes about so long at most */
#define CLOCK_EVERY 256u

/* ---- beginning ---- */

/* Its errors go to all ranks, which put the name before them. */
static int open_gpu(struct np_clique *c, struct np_err *err)
{
	const struct np_cuda *cuda = &c->set.cuda;
	np_cu_result result;
	int ret = np_gpu_retain(&c->set, c->gpu, err);

	if (ret < 0)
		return ret;
	c->has_context = true;
	c->host = malloc(SIZE_MOST);
	if (!c->host)
		return np_err_nomem(err);
	result = cuda->mem_alloc(&c->send, SIZE_MOST);
	if (result == NP_CU_SUCCESS)
		result = cuda->mem_alloc(&c->receive, SIZE_MOST);
	if (result != NP_CU_SUCCESS)
		return np_cuda_error(cuda, c->gpu->device, result, "allocating 64 MiB", err);
	result = cuda->stream_create(&c->stream, NP_CU_STREAM_NON_BLOCKING);
	if (result != NP_CU_SUCCESS)
		return np_cuda_error(cuda, c->gpu->device, result, "making a stream", err);
	return 0;
}

/* Each says what it has; all or none go on. */
static int meet(struct np_clique *c, const struct np_err *failed, struct np_err *err)
{
	struct np_ranks *ranks = c->ranks;
	size_t n = (size_t)ranks->size;
	_cleanup_free_ struct np_ranks_gpu_card *cards = calloc(n, sizeof(*cards));
	_cleanup_free_ struct np_buf *all = calloc(n, sizeof(*all));
	struct np_ranks_gpu_card mine;
	int ret, about = -1;

	if (!cards || !all)
		return np_err_nomem(err);
	np_ranks_gpu_card_make(c->gpu, &c->nccl, failed, &mine);
	ret = np_ranks_share(ranks, "GPUs and NCCL versions", &mine, sizeof(mine), all, err);
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < n; i++) {
		if (np_ranks_gpu_card_read(all[i].data, all[i].len, &cards[i]) < 0)
			ret = np_err_set(err, -EPROTO, "ranks.exchange",
					 "rank %zu told of its GPU what cannot be read", i);
	}
	np_ranks_parts_done(all, ranks->size);
	if (ret == 0)
		ret = np_ranks_gpu_judge(cards, ranks->size, ranks->hosts, &about, err);
	ranks->board->err_peer = about == ranks->rank ? -1 : about;
	return ret;
}

/* ---- reductions ---- */

static int copy_in(struct np_clique *c, np_cu_ptr to, const void *from, size_t size,
		   struct np_err *err)
{
	return np_clique_cuda_failed(c, c->set.cuda.copy_in(to, from, size), "copying to the GPU",
				     err);
}

static int copy_out(struct np_clique *c, void *to, size_t size, struct np_err *err)
{
	return np_clique_cuda_failed(c, c->set.cuda.copy_out(to, c->receive, size),
				     "copying from the GPU", err);
}

/* A collective that never ends must not hold us: ask, do not wait. */
static int finish(struct np_clique *c, const char *doing, struct np_err *err)
{
	for (unsigned int round = 1;; round++) {
		np_cu_result result = c->set.cuda.stream_query(c->stream);
		np_nccl_result state = NP_NCCL_SUCCESS, asked;

		if (result != NP_CU_SUCCESS && result != NP_CU_NOT_READY)
			return np_clique_cuda_failed(c, result, doing, err);
		if (result != NP_CU_SUCCESS && round % CLOCK_EVERY != 0)
			continue;
		asked = c->nccl.async_error(c->comm, &state);
		if (asked != NP_NCCL_SUCCESS)
			state = asked;
		if (state != NP_NCCL_SUCCESS && state != NP_NCCL_IN_PROGRESS)
			return np_clique_nccl_failed(c, state, doing, err);
		if (result == NP_CU_SUCCESS)
			return 0;
		np_ranks_tick(c->ranks);
		if (np_now_ms() > c->limit_ms)
			return np_clique_too_late(c, doing, err);
	}
}

/* @times sums of @count elements, one after the other. */
static int sums(struct np_clique *c, size_t count, int type, size_t times, const char *doing,
		struct np_err *err)
{
	int ret = 0;

	for (size_t i = 0; i < times && ret == 0; i++) {
		np_nccl_result result;

		if (c->blocks)
			np_clique_quiet(c);
		result = c->nccl.all_reduce((void *)(uintptr_t)c->send,
					    (void *)(uintptr_t)c->receive, count, type, NP_NCCL_SUM,
					    c->comm, c->stream);
		np_ranks_quiet(c->ranks, 0);
		ret = np_clique_await(c, result, doing, err);
	}
	return ret < 0 ? ret : finish(c, doing, err);
}

/* @values become the sums over all ranks. */
static int sum_of(struct np_clique *c, int64_t *values, size_t n, const char *doing,
		  struct np_err *err)
{
	size_t size = n * sizeof(*values);
	int ret = copy_in(c, c->send, values, size, err);

	if (ret == 0)
		ret = np_clique_cuda_failed(c, c->set.cuda.synchronize(), "copying to the GPU",
					    err);
	if (ret == 0)
		ret = sums(c, n, NP_NCCL_INT64, 1, doing, err);
	return ret < 0 ? ret : copy_out(c, values, size, err);
}

/* Input, and in the output what no sum can be. */
static int fill(struct np_clique *c, uint64_t size, struct np_err *err)
{
	int ret;

	np_clique_quiet(c); /* 64 MiB take a while where many share a processor */
	np_nccl_fill(c->host, 0, size / sizeof(float), ++c->seed, (size_t)c->ranks->rank,
		     (size_t)c->ranks->size);
	ret = copy_in(c, c->send, c->host, size, err);
	memset(c->host, 0xff, size); /* a NaN */
	if (ret == 0)
		ret = copy_in(c, c->receive, c->host, size, err);
	if (ret == 0)
		ret = np_clique_cuda_failed(c, c->set.cuda.synchronize(), "copying to the GPU",
					    err);
	np_ranks_quiet(c->ranks, 0);
	return ret;
}

static int verify(struct np_clique *c, uint64_t size, struct np_err *err)
{
	struct np_nccl_diff diff;
	bool right = true;
	char text[32];
	int ret;

	np_clique_quiet(c);
	ret = copy_out(c, c->host, size, err);
	if (ret == 0)
		right = np_nccl_check(c->host, 0, size / sizeof(float), c->seed,
				      (size_t)c->ranks->size, &diff);
	np_ranks_quiet(c->ranks, 0);
	if (right || c->wrong.num < 0)
		return ret;
	np_err_set(&c->wrong, -EBADMSG, "selftest.data_corrupt",
		   "all-reduce of %s over NCCL: element %zu on %s is %.9g, expected %.9g",
		   np_size_str(size, text), diff.element, c->gpu->pci, (double)diff.got,
		   (double)diff.expected);
	np_err_hint(&c->wrong, "test the GPUs, NVLink and PCIe of this node (dcgmi diag -r 3), and "
			       "its HCAs (nodeprep selftest)");
	np_clique_named(c, &c->wrong);
	return 0;
}

static int timed(struct np_clique *c, uint64_t size, size_t times, double *us, struct np_err *err)
{
	char text[32], doing[64];
	double start = np_now_us();
	int ret;

	snprintf(doing, sizeof(doing), "reducing %s", np_size_str(size, text));
	ret = sums(c, size / sizeof(float), NP_NCCL_FLOAT32, times, doing, err);
	*us = (np_now_us() - start) / (double)times;
	return ret;
}

/* How often each rank sums a size, and whether the next one is tried: rank 0 decides, by PMIx
 * and not by what is under test. */
struct pace {
	uint32_t times;
	uint32_t next;
};

static int agree(struct np_clique *c, size_t which, double us, struct pace *pace,
		 struct np_err *err)
{
	double left_us = (double)(c->limit_ms - np_now_ms()) * 1000, next = 0;

	pace->times = us > ROUND_US ? 1 : (uint32_t)(ROUND_US / (us + 1));
	if (pace->times > ITERATIONS)
		pace->times = ITERATIONS;
	/* what is small takes as long as what is a little larger */
	if (which + 1 < NP_ARRAY_SIZE(sizes) && sizes[which] >= SIZE_SMALL)
		next = us * (double)sizes[which + 1] / (double)sizes[which] *
		       (WARM_UP + ROUNDS + 1);
	pace->next = next < left_us / 2;
	return np_ranks_broadcast(c->ranks, "a pace", 0, pace, sizeof(*pace), err);
}

/* @next: there is time for a larger size, as far as anybody can tell. */
static int reduce(struct np_clique *c, size_t which, bool *next, struct np_err *err)
{
	struct np_ranks_reduced *measured = &c->out->sizes[c->out->n_sizes];
	uint64_t size = sizes[which];
	double us[ROUNDS], warm = 0;
	struct pace pace = { 1, 0 };
	int ret = timed(c, size, WARM_UP, &warm, err);

	if (ret == 0)
		ret = agree(c, which, warm, &pace, err);
	for (size_t i = 0; i < ROUNDS && ret == 0; i++)
		ret = timed(c, size, pace.times, &us[i], err);
	/* anew, so that no older sum is taken for this one's */
	if (ret == 0)
		ret = fill(c, size, err);
	if (ret == 0)
		ret = timed(c, size, 1, &warm, err);
	if (ret == 0)
		ret = verify(c, size, err);
	if (ret < 0)
		return ret;
	measured->size_bytes = size;
	measured->time_us = np_median(us, ROUNDS);
	/* one rank has no bus: what it does is a copy in its own memory */
	measured->bus_MBps = c->ranks->size == 1 ? 0 :
						   np_nccl_bandwidth(size, measured->time_us,
								     (size_t)c->ranks->size);
	c->out->n_sizes++;
	np_debug("nccl: %llu B: %.2f us, %.1f MB/s", (unsigned long long)size, measured->time_us,
		 measured->bus_MBps);
	*next = pace.next;
	return 0;
}

static int prove(struct np_clique *c, struct np_err *err)
{
	int64_t one = 1;
	bool next = true;
	char text[32];
	int n = 0,
	    ret = np_clique_nccl_failed(c, c->nccl.count(c->comm, &n), "counting the ranks", err);

	c->out->clique_size = (uint32_t)n;
	/* before anything else: what no rank has set is no sum */
	if (ret == 0)
		ret = fill(c, SIZE_MOST, err);
	if (ret == 0)
		ret = sum_of(c, &one, 1, "summing a one of each rank", err);
	c->out->final_size = ret == 0 ? (uint32_t)one : 0;
	for (size_t i = 0; i < NP_ARRAY_SIZE(sizes) && next && ret == 0; i++)
		ret = reduce(c, i, &next, err);
	if (ret == 0 && c->out->n_sizes < NP_ARRAY_SIZE(sizes) && c->ranks->rank == 0)
		np_warning("NCCL sums no more than %s: there is no time for more before the "
			   "deadline",
			   np_size_str(sizes[c->out->n_sizes - 1], text));
	return ret;
}

/* ---- the two calls ---- */

bool np_ranks_nccl_ready(struct np_ranks *ranks, struct np_ranks_allreduce *out, struct np_err *why)
{
	np_auto_gpu_set struct np_gpu_set set = { 0 };
	const struct np_gpu_dev *gpu = NULL;
	struct np_err unused;
	int ret;

	np_ranks_quiet(ranks, NP_CLIQUE_LIBRARY_MS);
	ret = np_ranks_gpu_find(ranks, &set, &gpu, why ? why : &unused);
	np_ranks_quiet(ranks, 0);
	if (ret > 0)
		np_strcpy(out->device, sizeof(out->device), gpu->pci);
	return ret != 0;
}

int np_ranks_allreduce_nccl(struct np_ranks *ranks, struct np_ranks_allreduce *out,
			    struct np_err *err)
{
	int64_t now = np_now_ms();
	struct np_clique c = { .ranks = ranks, .out = out };
	struct np_err failed;
	int ret;

	np_err_clear(&failed);
	c.limit_ms = ranks->deadline_ms - NP_CLIQUE_END_MS;
	if (c.limit_ms < now)
		c.limit_ms = now;
	np_clique_quiet(&c);
	/* what is wrong goes to all ranks */
	if (np_ranks_gpu_find(ranks, &c.set, &c.gpu, &failed) > 0)
		(void)open_gpu(&c, &failed);
	np_ranks_quiet(ranks, 0);
	ret = meet(&c, &failed, err);
	np_strcpy(out->version, sizeof(out->version), c.nccl.version_str);
	if (ret == 0)
		ret = np_clique_open(&c, err);
	if (ret == 0)
		ret = prove(&c, err);
	np_clique_close(&c, ret == 0);
	out->verified = ret == 0 && c.wrong.num == 0 && out->n_sizes > 0;
	if (ret == 0 && c.wrong.num < 0) {
		*err = c.wrong;
		ret = c.wrong.num;
	}
	return ret;
}
