/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_PATTERN_H
#define NP_SELFTEST_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Payloads. Each message has its own seed and so its own bytes: neither a stale
 * buffer nor another message can pass for it.
 */

/* The seed of message @sequence of a run with @base. */
uint64_t np_pattern_seed(uint64_t base, uint64_t sequence);

/* Writes the payload of @seed. */
void np_pattern_fill(void *buffer, size_t len, uint64_t seed);

/* Writes its complement: what a receive buffer holds beforehand, so that every
 * byte that does not arrive differs from what is expected. */
void np_pattern_poison(void *buffer, size_t len, uint64_t seed);

struct np_pattern_diff {
	size_t offset; /* first byte that differs */
	uint8_t expected, got;
};

/* Compares every byte. True when all are right, else @diff is filled. */
bool np_pattern_check(const void *buffer, size_t len, uint64_t seed, struct np_pattern_diff *diff);

#endif
