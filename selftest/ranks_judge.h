/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_RANKS_JUDGE_H
#define NP_SELFTEST_RANKS_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/*
 * Which cells of a matrix are bad together. Pure. A matrix has a row for each sender and a
 * column for each receiver: cell [from * n + to].
 */

/* Row, column: that rank as sender, as receiver. A whole one that is bad is the rank's; what
 * is bad beside it is the path's. */
struct np_ranks_shape {
	int n;
	uint8_t *row, *column; /* by rank: bad as a whole */
	uint8_t *single;       /* by cell: bad, in no bad row or column */
	size_t n_bad, n_single;
};

/* @there: cells that count; @bad: those of them that are bad. A row is bad as a whole when
 * three in four of its cells are, and two at least. Returns 0 or -ENOMEM. */
int np_ranks_shape_make(int n, const uint8_t *there, const uint8_t *bad,
			struct np_ranks_shape *out) np_must_check;
void np_ranks_shape_done(struct np_ranks_shape *shape);

/* What a good quarter of the cells have, so that a few slow ones among few do not become the
 * measure: with @more (bandwidth) that of the better quarter above, else (latency) below.
 * Cells that are not @there, or 0, count for nothing; 0 when there are none, or no memory. */
double np_ranks_usual(int n, const uint8_t *there, const float *value, bool more);

/* Marks in @bad the cells that are @factor times worse than @usual. Returns how many. */
size_t np_ranks_slow_cells(int n, const uint8_t *there, const float *value, double usual,
			   double factor, bool more, uint8_t *bad);

/* Pairs that wait for each other: @waits by rank, -1 = for nobody. True when the wait of
 * @rank is a reason, not a consequence: the one it waits for waits for it, or for nobody. */
bool np_ranks_wait_is_cause(int n, const int *waits, int rank);

#endif
