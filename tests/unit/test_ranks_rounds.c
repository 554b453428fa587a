/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "selftest/ranks_rounds.h"

/* Every round pairs everybody off, and after all of them each met each other once. */
static void check_tournament(int n)
{
	size_t cells = (size_t)n * (size_t)n;
	unsigned char *met = calloc(cells, 1);

	assert_non_null(met);
	for (int round = 0; round < np_ranks_rounds(n); round++) {
		int idle = 0;

		for (int rank = 0; rank < n; rank++) {
			int partner = np_ranks_partner(n, round, rank);

			if (partner < 0) {
				idle++;
				continue;
			}
			assert_in_range(partner, 0, n - 1);
			assert_int_not_equal(partner, rank);
			assert_int_equal(np_ranks_partner(n, round, partner), rank);
			met[(size_t)rank * (size_t)n + (size_t)partner]++;
		}
		assert_int_equal(idle, n % 2);
	}
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			assert_int_equal(met[(size_t)i * (size_t)n + (size_t)j], i != j);
	free(met);
}

static void small_numbers(void **state)
{
	(void)state;
	for (int n = 1; n <= 65; n++)
		check_tournament(n);
}

static void many(void **state)
{
	(void)state;
	check_tournament(1023);
	check_tournament(1024);
	assert_int_equal(np_ranks_rounds(1024), 1023);
	assert_int_equal(np_ranks_rounds(1023), 1023);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_numbers),
		cmocka_unit_test(many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
