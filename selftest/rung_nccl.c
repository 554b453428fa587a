/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "base/log.h"
#include "selftest/gpu_set.h"
#include "selftest/measure.h"
#include "selftest/nccl_check.h"
#include "selftest/nccl_lib.h"
#include "selftest/threads.h"

/*
 * NCCL over all GPUs of this node, in one process, by the driver interface: sums of
 * float32 out of place; each element on each GPU compared. What is done for one GPU has a
 * thread of its own.
 */

/* Up to what NCCL needs to show its bandwidth. */
static const uint64_t quick_sizes[] = { 8, 4096, 65536, 1048576, 8388608, 134217728 };
static const uint64_t full_sizes[] = { 4,	16,	  64,	    256,      1024,
				       4096,	16384,	  65536,    262144,   1048576,
				       4194304, 16777216, 67108864, 268435456 };
_Static_assert(NP_ARRAY_SIZE(full_sizes) <= NP_RUNG_SIZES_MAX, "too many sizes");

#define WARM_UP	    5u
#define ITERATIONS  20u
#define ROUNDS	    3u
#define CLOCK_EVERY 256u

/* Host memory a GPU, and the elements in it. */
#define PIECE_BYTES (8u << 20)
#define PIECE	    (PIECE_BYTES / sizeof(float))

struct rank {
	const struct np_gpu_dev *gpu;
	np_cu_context context;
	np_cu_ptr send, receive;
	np_cu_stream stream;
	float *host; /* a piece of what is on the GPU */
};

struct group {
	const struct np_gpu_set *set;
	const struct np_nccl *nccl;
	const struct np_rung_options *options;
	struct rank *ranks;
	np_nccl_comm *comms;
	size_t n;
	size_t size; /* the largest */
	uint64_t seed;
};

static int cuda_failed(const struct group *g, const struct rank *rank, np_cu_result result,
		       const char *doing, struct np_err *err)
{
	char text[128];

	if (result == NP_CU_SUCCESS)
		return 0;
	snprintf(text, sizeof(text), "%s (GPU%zu)", doing, rank->gpu->number);
	return np_cuda_error(&g->set->cuda, rank->gpu->device, result, text, err);
}

static int nccl_failed(const struct group *g, np_nccl_result result, const char *doing,
		       struct np_err *err)
{
	return result == NP_NCCL_SUCCESS ? 0 :
					   np_nccl_error(g->nccl, g->comms[0], result, doing, err);
}

static int make_current(const struct group *g, const struct rank *rank, struct np_err *err)
{
	return cuda_failed(g, rank, g->set->cuda.set_current(rank->context),
			   "making the context current", err);
}

static int open_rank(void *arg, size_t number, struct np_err *err)
{
	const struct group *g = arg;
	struct rank *rank = &g->ranks[number];
	const struct np_cuda *cuda = &g->set->cuda;
	np_cu_result result = cuda->primary_retain(&rank->context, rank->gpu->device);
	int ret;

	if (result != NP_CU_SUCCESS) {
		rank->context = NULL;
		return cuda_failed(g, rank, result, "making a context", err);
	}
	rank->host = malloc(PIECE_BYTES);
	if (!rank->host)
		return np_err_nomem(err);
	ret = make_current(g, rank, err);
	if (ret == 0)
		ret = cuda_failed(g, rank, cuda->mem_alloc(&rank->send, g->size),
				  "allocating memory", err);
	if (ret == 0)
		ret = cuda_failed(g, rank, cuda->mem_alloc(&rank->receive, g->size),
				  "allocating memory", err);
	if (ret == 0)
		ret = cuda_failed(g, rank,
				  cuda->stream_create(&rank->stream, NP_CU_STREAM_NON_BLOCKING),
				  "making a stream", err);
	return ret;
}

static int close_rank(void *arg, size_t number, struct np_err *err)
{
	const struct group *g = arg;
	struct rank *rank = &g->ranks[number];
	const struct np_cuda *cuda = &g->set->cuda;

	(void)err;
	free(rank->host);
	if (!rank->context)
		return 0;
	cuda->set_current(rank->context);
	if (rank->stream)
		cuda->stream_destroy(rank->stream);
	if (rank->send)
		cuda->mem_free(rank->send);
	if (rank->receive)
		cuda->mem_free(rank->receive);
	cuda->set_current(NULL);
	cuda->primary_release(rank->gpu->device);
	return 0;
}

static int open_group(struct group *g, struct np_err *err)
{
	_cleanup_free_ int *ordinals = NULL;
	int ret;

	g->ranks = calloc(g->set->n, sizeof(*g->ranks));
	g->comms = calloc(g->set->n, sizeof(np_nccl_comm));
	ordinals = calloc(g->set->n, sizeof(*ordinals));
	if (!g->ranks || !g->comms || !ordinals)
		return np_err_nomem(err);
	for (size_t i = 0; i < g->set->n; i++) {
		if (!g->set->wanted[i] || !g->set->v[i].usable)
			continue;
		g->ranks[g->n].gpu = &g->set->v[i];
		ordinals[g->n++] = g->set->v[i].ordinal;
	}
	ret = np_threads_each(g->n, open_rank, g, err);
	if (ret == 0)
		ret = nccl_failed(g, g->nccl->init_all(g->comms, (int)g->n, ordinals),
				  "making the communicators", err);
	return ret;
}

/* @clean: nothing is under way; else it is aborted. */
static void close_group(struct group *g, bool clean)
{
	struct np_err unused;

	for (size_t i = 0; i < g->n; i++) {
		if (!g->comms[i])
			continue;
		if (clean)
			g->nccl->destroy(g->comms[i]);
		else
			g->nccl->abort(g->comms[i]);
	}
	if (np_threads_each(g->n, close_rank, g, &unused) < 0)
		np_debug("%s", unused.message);
	free(g->ranks);
	free(g->comms);
}

/* What is to be done with @size bytes on each GPU. */
struct task {
	const struct group *g;
	uint64_t size;
};

static size_t piece(size_t left)
{
	return left < PIECE ? left : PIECE;
}

/* Input, and in the output what no sum can be. */
static int fill_rank(void *arg, size_t number, struct np_err *err)
{
	const struct task *task = arg;
	const struct group *g = task->g;
	const struct rank *rank = &g->ranks[number];
	const struct np_cuda *cuda = &g->set->cuda;
	size_t count = task->size / sizeof(float);
	int ret = make_current(g, rank, err);

	for (size_t at = 0, n; at < count && ret == 0; at += n) {
		n = piece(count - at);
		np_nccl_fill(rank->host, at, n, g->seed, number, g->n);
		ret = cuda_failed(g, rank,
				  cuda->copy_in(rank->send + at * sizeof(float), rank->host,
						n * sizeof(float)),
				  "copying to the GPU", err);
	}
	memset(rank->host, 0xff, piece(count) * sizeof(float)); /* a NaN */
	for (size_t at = 0, n; at < count && ret == 0; at += n) {
		n = piece(count - at);
		ret = cuda_failed(g, rank,
				  cuda->copy_in(rank->receive + at * sizeof(float), rank->host,
						n * sizeof(float)),
				  "copying to the GPU", err);
	}
	return ret < 0 ? ret : cuda_failed(g, rank, cuda->synchronize(), "copying to the GPU", err);
}

static int verify_rank(void *arg, size_t number, struct np_err *err)
{
	const struct task *task = arg;
	const struct group *g = task->g;
	const struct rank *rank = &g->ranks[number];
	size_t count = task->size / sizeof(float);
	struct np_nccl_diff diff;
	char text[32];
	int ret = make_current(g, rank, err);

	for (size_t at = 0, n; at < count && ret == 0; at += n) {
		n = piece(count - at);
		ret = cuda_failed(g, rank,
				  g->set->cuda.copy_out(rank->host,
							rank->receive + at * sizeof(float),
							n * sizeof(float)),
				  "copying from the GPU", err);
		if (ret < 0 || np_nccl_check(rank->host, at, n, g->seed, g->n, &diff))
			continue;
		np_err_set(err, -EBADMSG, "selftest.data_corrupt",
			   "all-reduce of %s: element %zu on GPU%zu (%s) is %.9g, expected %.9g",
			   np_size_str(task->size, text), diff.element, rank->gpu->number,
			   rank->gpu->pci, (double)diff.got, (double)diff.expected);
		np_err_hint(err, "take this node out of service and test its GPUs, NVLink and PCIe "
				 "(dcgmi diag -r 3)");
		ret = -EBADMSG;
	}
	return ret;
}

static int launch(struct group *g, uint64_t size, struct np_err *err)
{
	const struct np_nccl *nccl = g->nccl;
	np_nccl_result result = nccl->group_start(), ended;

	for (size_t i = 0; i < g->n && result == NP_NCCL_SUCCESS; i++)
		result = nccl->all_reduce((void *)(uintptr_t)g->ranks[i].send,
					  (void *)(uintptr_t)g->ranks[i].receive,
					  size / sizeof(float), NP_NCCL_FLOAT32, NP_NCCL_SUM,
					  g->comms[i], g->ranks[i].stream);
	ended = nccl->group_end();
	return nccl_failed(g, result ? result : ended, "starting an all-reduce", err);
}

static int check_async(struct group *g, const char *doing, struct np_err *err)
{
	for (size_t i = 0; i < g->n; i++) {
		np_nccl_result error = NP_NCCL_SUCCESS;
		np_nccl_result result = g->nccl->async_error(g->comms[i], &error);

		if (result == NP_NCCL_SUCCESS)
			result = error == NP_NCCL_IN_PROGRESS ? NP_NCCL_SUCCESS : error;
		if (result != NP_NCCL_SUCCESS)
			return np_nccl_error(g->nccl, g->comms[i], result, doing, err);
	}
	return np_now_ms() < g->options->deadline_ms ? 0 : np_too_late(doing, err);
}

/* A collective that never ends must not hold us: ask, do not wait. */
static int finish(struct group *g, uint64_t size, struct np_err *err)
{
	const struct np_cuda *cuda = &g->set->cuda;
	char text[32], doing[64];
	size_t done = 0;

	snprintf(doing, sizeof(doing), "reducing %s", np_size_str(size, text));
	for (unsigned int round = 1; done < g->n; round++) {
		np_cu_result result = cuda->stream_query(g->ranks[done].stream);
		int ret = 0;

		if (result == NP_CU_SUCCESS)
			done++;
		else if (result != NP_CU_NOT_READY)
			ret = cuda_failed(g, &g->ranks[done], result, doing, err);
		else if (round % CLOCK_EVERY == 0)
			ret = check_async(g, doing, err);
		if (ret < 0)
			return ret;
	}
	return check_async(g, doing, err);
}

static int timed(struct group *g, uint64_t size, size_t n, double *us, struct np_err *err)
{
	double start = np_now_us();
	int ret = 0;

	for (size_t i = 0; i < n && ret == 0; i++)
		ret = launch(g, size, err);
	if (ret == 0)
		ret = finish(g, size, err);
	*us = (np_now_us() - start) / (double)n;
	return ret;
}

static int reduce(struct group *g, uint64_t size, struct np_rung_size *measured, struct np_err *err)
{
	struct task task = { .g = g, .size = size };
	double us[ROUNDS], warm;
	int ret;

	g->seed++;
	ret = np_threads_each(g->n, fill_rank, &task, err);
	if (ret == 0)
		ret = timed(g, size, WARM_UP, &warm, err);
	for (size_t i = 0; i < ROUNDS && ret == 0; i++)
		ret = timed(g, size, ITERATIONS, &us[i], err);
	if (ret == 0)
		ret = np_threads_each(g->n, verify_rank, &task, err);
	if (ret < 0)
		return ret;
	measured->size_bytes = size;
	measured->latency_us = np_median(us, ROUNDS);
	measured->bandwidth_MBps = np_nccl_bandwidth(size, measured->latency_us, g->n);
	np_debug("nccl: %llu B: %.2f us, %.1f MB/s", (unsigned long long)size, measured->latency_us,
		 measured->bandwidth_MBps);
	return 0;
}

static void say_ok(const struct group *g, struct np_rung_result *result)
{
	const struct np_rung_size *last = &result->sizes[result->n_sizes - 1];
	char from[32], to[32];

	np_size_str(result->sizes[0].size_bytes, from);
	np_size_str(last->size_bytes, to);
	if (g->n == 1)
		np_rung_ok(result,
			   "NCCL %s (%s), all-reduce of %s to %s on the one GPU, %s, every element "
			   "verified: this proves the library, its kernels and the driver, no path "
			   "between GPUs; %.1f GB/s algorithm bandwidth",
			   g->nccl->version_str, g->nccl->path, from, to, g->ranks[0].gpu->name,
			   last->bandwidth_MBps / 1000);
	else
		np_rung_ok(
			result,
			"NCCL %s (%s), all-reduce of %s to %s over %zu GPUs in one process, every "
			"element verified on each; %.1f GB/s bus bandwidth",
			g->nccl->version_str, g->nccl->path, from, to, g->n,
			last->bandwidth_MBps / 1000);
}

static int prove(struct group *g, struct np_rung_result *result, struct np_err *err)
{
	bool full = g->options->full;
	const uint64_t *sizes = full ? full_sizes : quick_sizes;
	size_t n = full ? NP_ARRAY_SIZE(full_sizes) : NP_ARRAY_SIZE(quick_sizes);
	int ret;

	g->size = sizes[n - 1];
	g->seed = np_seed_base();
	ret = open_group(g, err);
	for (size_t i = 0; i < n && ret == 0; i++) {
		ret = reduce(g, sizes[i], &result->sizes[i], err);
		if (ret == 0)
			result->n_sizes++;
	}
	if (ret == 0) {
		np_strcpy(result->transport, sizeof(result->transport), "nccl");
		say_ok(g, result);
	}
	close_group(g, ret == 0 || ret == -EBADMSG);
	return ret;
}

int np_rung_nccl(const struct np_rung_options *options, struct np_rung_report *report,
		 struct np_err *err)
{
	np_auto_gpu_set struct np_gpu_set set = { 0 };
	struct np_nccl nccl;
	struct group g = { .set = &set, .nccl = &nccl, .options = options };
	struct np_rung_result *result;
	struct np_err why;
	int ret = np_gpu_set_open("nccl", options, &set, report, err);

	if (ret <= 0)
		return ret;
	result = np_rung_add(report, "nccl", options->device);
	if (!result)
		return np_err_nomem(err);
	ret = np_nccl_open(&nccl, &why);
	if (ret == 0)
		ret = prove(&g, result, &why);
	if (ret > 0)
		np_rung_skip(result, &why);
	else if (ret < 0)
		np_rung_fail(result, &why);
	return 0;
}
