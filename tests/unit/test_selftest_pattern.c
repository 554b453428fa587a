/* SPDX-License-Identifier: MIT */
/* Payloads: each message its own bytes, each wrong byte found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "selftest/pattern.h"

static void every_byte_is_seen(void **state)
{
	unsigned char buffer[67];
	struct np_pattern_diff diff;

	(void)state;
	for (size_t len = 0; len <= sizeof(buffer); len++) {
		uint64_t seed = np_pattern_seed(7, len);

		np_pattern_fill(buffer, len, seed);
		assert_true(np_pattern_check(buffer, len, seed, &diff));
		for (size_t at = 0; at < len; at++) {
			unsigned char right = buffer[at];

			for (int bit = 0; bit < 8; bit++) {
				buffer[at] = right ^ (unsigned char)(1 << bit);
				assert_false(np_pattern_check(buffer, len, seed, &diff));
				assert_int_equal(diff.offset, at);
				assert_int_equal(diff.expected, right);
				assert_int_equal(diff.got, buffer[at]);
			}
			buffer[at] = right;
		}
	}
}

static void first_wrong_byte_is_told(void **state)
{
	unsigned char buffer[64];
	struct np_pattern_diff diff;

	(void)state;
	np_pattern_fill(buffer, sizeof(buffer), 1);
	buffer[20] ^= 1;
	buffer[19] ^= 1;
	buffer[63] ^= 1;
	assert_false(np_pattern_check(buffer, sizeof(buffer), 1, &diff));
	assert_int_equal(diff.offset, 19);
}

static void nothing_is_written_beyond(void **state)
{
	unsigned char buffer[24];

	(void)state;
	for (size_t len = 0; len < 16; len++) {
		memset(buffer, 0xee, sizeof(buffer));
		np_pattern_fill(buffer, len, 3);
		np_pattern_poison(buffer, len, 3);
		for (size_t i = len; i < sizeof(buffer); i++)
			assert_int_equal(buffer[i], 0xee);
	}
}

/* What did not arrive differs in every byte. */
static void poison_never_passes(void **state)
{
	unsigned char right[100], poison[100];

	(void)state;
	np_pattern_fill(right, sizeof(right), 5);
	np_pattern_poison(poison, sizeof(poison), 5);
	for (size_t i = 0; i < sizeof(right); i++)
		assert_int_equal(right[i] ^ poison[i], 0xff);
}

static void messages_differ(void **state)
{
	unsigned char a[64], b[64];
	struct np_pattern_diff diff;

	(void)state;
	for (uint64_t sequence = 0; sequence < 2000; sequence++) {
		np_pattern_fill(a, sizeof(a), np_pattern_seed(9, sequence));
		assert_false(
			np_pattern_check(a, sizeof(a), np_pattern_seed(9, sequence + 1), &diff));
		assert_false(np_pattern_check(a, sizeof(a), np_pattern_seed(10, sequence), &diff));
	}
	np_pattern_fill(a, sizeof(a), np_pattern_seed(9, 1));
	np_pattern_fill(b, sizeof(b), np_pattern_seed(9, 1));
	assert_memory_equal(a, b, sizeof(a));
}

/* A shift by a word, as a lost or doubled packet makes, is no match either. */
static void a_shift_is_seen(void **state)
{
	unsigned char buffer[4096];
	struct np_pattern_diff diff;

	(void)state;
	np_pattern_fill(buffer, sizeof(buffer), 11);
	memmove(buffer + 1024, buffer + 1032, sizeof(buffer) - 1032);
	assert_false(np_pattern_check(buffer, sizeof(buffer), 11, &diff));
	assert_int_equal(diff.offset / 8, 128);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_is_seen),
		cmocka_unit_test(first_wrong_byte_is_told),
		cmocka_unit_test(nothing_is_written_beyond),
		cmocka_unit_test(poison_never_passes),
		cmocka_unit_test(messages_differ),
		cmocka_unit_test(a_shift_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
