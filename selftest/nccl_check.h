/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_NCCL_CHECK_H
#define NP_SELFTEST_NCCL_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Input of an all-reduce and its right answer. The elements are whole numbers whose sum over
 * all @ranks stays below 2^24: below 65536 for up to 256 ranks, the fewer bits the more ranks.
 * So every sum is exact in float32, in whatever order it is made.
 */

/* What rank @rank of @ranks puts in: @n elements from number @first on. */
void np_nccl_fill(float *out, size_t first, size_t n, uint64_t seed, size_t rank, size_t ranks);

struct np_nccl_diff {
	size_t element; /* number of the first one that differs */
	float expected, got;
};

/* Compares @n elements, from number @first on, with the sums over @ranks ranks. True when all are
 * right, else
 * @diff is filled. */
bool np_nccl_check(const float *sums, size_t first, size_t n, uint64_t seed, size_t ranks,
		   struct np_nccl_diff *diff);

/* In 10^6 bytes a second: bus bandwidth of an all-reduce as nccl-tests defines it, size /
 * time * 2 (n - 1) / n; for one rank, where no bus is crossed, size / time. */
double np_nccl_bandwidth(uint64_t size, double us, size_t ranks);

#endif
