/* SPDX-License-Identifier: MIT */
#include "selftest/nccl_check.h"

#define BLOCK 1024u

/* Multiplicative hashing (Knuth, The Art of Computer Programming 3, 6.4); loops of it
 * become vector instructions. */
#define GOLDEN 2654435769u

static inline uint32_t element(uint32_t start, size_t i, unsigned int shift)
{
	uint32_t x = (start + (uint32_t)i) * GOLDEN;

	x ^= x >> 15;
	return x * GOLDEN >> shift;
}

/* 16 bits of 32 for up to 256 ranks, one less for each doubling. */
static unsigned int shift_of(size_t ranks)
{
	unsigned int shift = 16;

	while (shift < 31 && ranks > (size_t)1 << (shift - 8))
		shift++;
	return shift;
}

static inline uint32_t start_of(uint64_t seed, size_t rank)
{
	return (uint32_t)(seed ^ seed >> 32) + (uint32_t)rank * 0x85ebca6bu;
}

void np_nccl_fill(float *out, size_t first, size_t n, uint64_t seed, size_t rank, size_t ranks)
{
	uint32_t start = start_of(seed, rank);
	unsigned int shift = shift_of(ranks);

	for (size_t i = 0; i < n; i++)
		out[i] = (float)(int32_t)element(start, first + i, shift);
}

bool np_nccl_check(const float *sums, size_t first, size_t n, uint64_t seed, size_t ranks,
		   struct np_nccl_diff *diff)
{
	unsigned int shift = shift_of(ranks);

	for (size_t at = 0; at < n; at += BLOCK) {
		size_t len = n - at < BLOCK ? n - at : BLOCK;
		uint32_t expected[BLOCK] = { 0 };

		for (size_t rank = 0; rank < ranks; rank++) {
			uint32_t start = start_of(seed, rank);

			/* cppcheck-suppress knownConditionTrueFalse ; len is never 0 */
			for (size_t i = 0; i < len; i++)
				expected[i] += element(start, first + at + i, shift);
		}
		/* cppcheck-suppress knownConditionTrueFalse */
		for (size_t i = 0; i < len; i++) {
			/* so that a NaN differs too */
			if (sums[at + i] == (float)(int32_t)expected[i])
				continue;
			diff->element = first + at + i;
			diff->expected = (float)(int32_t)expected[i];
			diff->got = sums[at + i];
			return false;
		}
	}
	return true;
}

double np_nccl_bandwidth(uint64_t size, double us, size_t ranks)
{
	double factor = ranks > 1 ? 2.0 * (double)(ranks - 1) / (double)ranks : 1.0;

	return (double)size / us * factor;
}
