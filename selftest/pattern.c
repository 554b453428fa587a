/* SPDX-License-Identifier: MIT */
#include "selftest/pattern.h"

#include <string.h>

/* SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
 * Generators, 2014): its increment and its finalizer. */
#define GOLDEN 0x9e3779b97f4a7c15u

static inline uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t np_pattern_seed(uint64_t base, uint64_t sequence)
{
	return mix(mix(base + GOLDEN) + (sequence + 1) * GOLDEN);
}

static void fill(void *buffer, size_t len, uint64_t seed, uint64_t flip)
{
	unsigned char *out = buffer;
	uint64_t word;

	for (; len >= sizeof(word); len -= sizeof(word), out += sizeof(word)) {
		seed += GOLDEN;
		word = mix(seed) ^ flip;
		memcpy(out, &word, sizeof(word));
	}
	if (len > 0) {
		word = mix(seed + GOLDEN) ^ flip;
		memcpy(out, &word, len);
	}
}

void np_pattern_fill(void *buffer, size_t len, uint64_t seed)
{
	fill(buffer, len, seed, 0);
}

void np_pattern_poison(void *buffer, size_t len, uint64_t seed)
{
	fill(buffer, len, seed, UINT64_MAX);
}

bool np_pattern_check(const void *buffer, size_t len, uint64_t seed, struct np_pattern_diff *diff)
{
	const unsigned char *in = buffer;
	unsigned char expected[sizeof(uint64_t)];
	uint64_t word, got;
	size_t at = 0;

	/* whole words that are right, quickly */
	for (; len - at >= sizeof(got); at += sizeof(got), seed += GOLDEN) {
		memcpy(&got, in + at, sizeof(got));
		if (got != mix(seed + GOLDEN))
			break;
	}
	for (; at < len; at += sizeof(expected)) {
		size_t part = len - at < sizeof(expected) ? len - at : sizeof(expected);

		seed += GOLDEN;
		word = mix(seed);
		memcpy(expected, &word, sizeof(word));
		if (memcmp(in + at, expected, part) == 0)
			continue;
		/* cppcheck-suppress knownConditionTrueFalse ; part is never 0 */
		for (size_t i = 0; i < part; i++) {
			if (in[at + i] == expected[i])
				continue;
			diff->offset = at + i;
			diff->expected = expected[i];
			diff->got = in[at + i];
			return false;
		}
	}
	return true;
}
