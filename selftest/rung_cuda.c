/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/child.h"
#include "base/log.h"
#include "selftest/gpu_set.h"
#include "selftest/measure.h"
#include "selftest/pattern.h"
#include "selftest/turn.h"

/*
 * Each GPU by the driver interface alone: a context, memory on it, copies from pinned
 * host memory to it, on it and back, every byte compared.
 */

/* Bytes that the round trips of one size move each way, and their number. */
#define TRIP_BYTES (8u << 20)
#define TRIPS_MIN  3u
#define TRIPS_MAX  200u
#define WARM_UP	   2u
/* A timed row of copies, each with a place of its own: bytes, and their number. */
#define ROW_BYTES (32u << 20)
#define ROW_MIN	  2u
#define ROW_MAX	  256u
#define ROUNDS	  3u

struct copier {
	const struct np_cuda *cuda;
	np_cu_device device;
	int64_t deadline_ms;
	size_t size;
	uint64_t largest; /* whose bandwidth is the rung's */
	char *tx, *rx;	  /* pinned */
	np_cu_ptr a, b;
	np_cu_stream stream;
	uint64_t base, sequence;
	double in_MBps, out_MBps; /* of the last size */
};

/* A row of copies one way. */
enum way { TO_GPU, FROM_GPU };

static int failed(const struct copier *c, np_cu_result result, const char *doing,
		  struct np_err *err)
{
	return result == NP_CU_SUCCESS ? 0 : np_cuda_error(c->cuda, c->device, result, doing, err);
}

static int open_copier(struct copier *c, struct np_err *err)
{
	const struct np_cuda *cuda = c->cuda;
	void *tx = NULL, *rx = NULL;
	char size[32], doing[80];
	int ret;

	snprintf(doing, sizeof(doing), "allocating %s on the GPU", np_size_str(c->size, size));
	ret = failed(c, cuda->mem_alloc(&c->a, c->size), doing, err);
	if (ret == 0)
		ret = failed(c, cuda->mem_alloc(&c->b, c->size), doing, err);
	snprintf(doing, sizeof(doing), "pinning %s of host memory", size);
	if (ret == 0)
		ret = failed(c, cuda->host_alloc(&tx, c->size, 0), doing, err);
	c->tx = tx;
	if (ret == 0)
		ret = failed(c, cuda->host_alloc(&rx, c->size, 0), doing, err);
	c->rx = rx;
	if (ret == 0)
		ret = failed(c, cuda->stream_create(&c->stream, NP_CU_STREAM_NON_BLOCKING),
			     "making a stream", err);
	return ret;
}

static void close_copier(struct copier *c)
{
	const struct np_cuda *cuda = c->cuda;

	if (c->stream)
		cuda->stream_destroy(c->stream);
	if (c->tx)
		cuda->host_free(c->tx);
	if (c->rx)
		cuda->host_free(c->rx);
	if (c->a)
		cuda->mem_free(c->a);
	if (c->b)
		cuda->mem_free(c->b);
}

/* A new payload in tx, its complement in rx. Returns its seed. */
static uint64_t prepare(struct copier *c, uint64_t size)
{
	uint64_t seed = np_pattern_seed(c->base, ++c->sequence);

	np_pattern_fill(c->tx, size, seed);
	np_pattern_poison(c->rx, size, seed);
	return seed;
}

static int verify(struct copier *c, uint64_t size, uint64_t seed, struct np_err *err)
{
	int ret = np_message_verify(c->rx, size, seed, c->sequence, err);

	if (ret == -EBADMSG)
		np_err_hint(err, "take this GPU out of service; see nvidia-smi -q -d ECC, test "
				 "its memory (dcgmi diag -r 3) and its PCIe link");
	return ret;
}

static int in_time(const struct copier *c, uint64_t size, struct np_err *err)
{
	char text[32], doing[64];

	if (np_now_ms() < c->deadline_ms)
		return 0;
	snprintf(doing, sizeof(doing), "copying %s to the GPU and back", np_size_str(size, text));
	return np_too_late(doing, err);
}

/* To the GPU and back, half the time of both. */
static int latency(struct copier *c, uint64_t size, double *us, struct np_err *err)
{
	double samples[TRIPS_MAX];
	size_t n = TRIP_BYTES / size;

	n = n < TRIPS_MIN ? TRIPS_MIN : n > TRIPS_MAX ? TRIPS_MAX : n;
	for (size_t i = 0; i < WARM_UP + n; i++) {
		uint64_t seed = prepare(c, size);
		double start = np_now_us();
		int ret;

		ret = failed(c, c->cuda->copy_in(c->a, c->tx, size), "copying to the GPU", err);
		if (ret == 0)
			ret = failed(c, c->cuda->copy_out(c->rx, c->a, size),
				     "copying from the GPU", err);
		if (i >= WARM_UP)
			samples[i - WARM_UP] = (np_now_us() - start) / 2;
		if (ret == 0)
			ret = verify(c, size, seed, err);
		if (ret == 0)
			ret = in_time(c, size, err);
		if (ret < 0)
			return ret;
	}
	*us = np_median(samples, n);
	return 0;
}

/* @n copies of @size bytes in a row; rate in 10^6 bytes a second. */
static int row(struct copier *c, enum way way, uint64_t size, size_t n, double *MBps,
	       struct np_err *err)
{
	const struct np_cuda *cuda = c->cuda;
	np_cu_result result = NP_CU_SUCCESS;
	double start;

	np_turn_take(size == c->largest);
	start = np_now_us();
	for (size_t at = 0; at < n * size && result == NP_CU_SUCCESS; at += size)
		result = way == TO_GPU ?
				 cuda->copy_in_async(c->a + at, c->tx + at, size, c->stream) :
				 cuda->copy_out_async(c->rx + at, c->b + at, size, c->stream);
	if (result == NP_CU_SUCCESS)
		result = cuda->stream_synchronize(c->stream);
	*MBps = (double)(n * size) / (np_now_us() - start);
	np_turn_give();
	return failed(c, result, way == TO_GPU ? "copying to the GPU" : "copying from the GPU",
		      err);
}

/* Both ways; what comes back went over a second buffer on the GPU, and the same bytes come
 * each round. */
static int bandwidth(struct copier *c, uint64_t size, struct np_err *err)
{
	double in[ROUNDS], out[ROUNDS];
	size_t n = ROW_BYTES / size;
	uint64_t seed;

	n = n < ROW_MIN ? ROW_MIN : n > ROW_MAX ? ROW_MAX : n;
	seed = prepare(c, n * size);
	for (size_t i = 0; i < ROUNDS; i++) {
		int ret;

		ret = row(c, TO_GPU, size, n, &in[i], err);
		if (ret == 0)
			ret = failed(c, c->cuda->copy_on(c->b, c->a, n * size),
				     "copying on the GPU", err);
		if (ret == 0)
			ret = failed(c, c->cuda->synchronize(), "copying on the GPU", err);
		if (ret == 0)
			ret = row(c, FROM_GPU, size, n, &out[i], err);
		if (ret == 0)
			ret = verify(c, n * size, seed, err);
		if (ret == 0)
			ret = in_time(c, size, err);
		if (ret < 0)
			return ret;
	}
	c->in_MBps = np_median(in, ROUNDS);
	c->out_MBps = np_median(out, ROUNDS);
	return 0;
}

static int prove_sizes(struct copier *c, bool full, struct np_rung_result *result,
		       struct np_err *err)
{
	size_t n;
	const uint64_t *sizes = np_sizes(full, &n);

	for (size_t i = 0; i < n; i++) {
		struct np_rung_size measured = { .size_bytes = sizes[i] };
		int ret = latency(c, sizes[i], &measured.latency_us, err);

		if (ret == 0)
			ret = bandwidth(c, sizes[i], err);
		if (ret < 0)
			return ret;
		measured.bandwidth_MBps = c->in_MBps < c->out_MBps ? c->in_MBps : c->out_MBps;
		np_debug("cuda: %llu B: %.2f us, to the GPU %.1f MB/s, from it %.1f MB/s",
			 (unsigned long long)sizes[i], measured.latency_us, c->in_MBps,
			 c->out_MBps);
		result->sizes[result->n_sizes++] = measured;
	}
	return 0;
}

static int prove(const struct np_gpu_set *set, const struct np_gpu_dev *gpu,
		 const struct np_rung_options *options, struct np_rung_result *result,
		 struct np_err *err)
{
	struct copier c = {
		.cuda = &set->cuda,
		.device = gpu->device,
		.deadline_ms = options->deadline_ms,
		.base = np_seed_base(),
	};
	char first[32], last[32], version[32];
	size_t n;
	const uint64_t *sizes = np_sizes(options->full, &n);
	int ret;

	c.largest = sizes[n - 1];
	c.size = ROW_MIN * sizes[n - 1] > ROW_BYTES ? ROW_MIN * sizes[n - 1] : ROW_BYTES;
	ret = open_copier(&c, err);
	if (ret == 0) {
		np_strcpy(result->transport, sizeof(result->transport), "cuda");
		ret = prove_sizes(&c, options->full, result, err);
	}
	close_copier(&c);
	if (ret < 0)
		return ret;
	np_rung_ok(result,
		   "GPU%zu, %s: %s to %s verified from host to GPU, on it and back; %.1f GB/s to "
		   "it, %.1f GB/s from it; CUDA %s",
		   gpu->number, gpu->name, np_size_str(result->sizes[0].size_bytes, first),
		   np_size_str(result->sizes[result->n_sizes - 1].size_bytes, last),
		   c.in_MBps / 1000, c.out_MBps / 1000,
		   np_cuda_version_str(set->cuda.version, version));
	return 0;
}

int np_rung_cuda(const struct np_rung_options *options, struct np_rung_report *report,
		 struct np_err *err)
{
	return np_gpu_rung("cuda", options, prove, report, err);
}
