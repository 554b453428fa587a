/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_RANKS_ROUNDS_H
#define NP_SELFTEST_RANKS_ROUNDS_H

/* Who meets whom: a tournament in which each rank has one partner a round, and after all
 * rounds has met each other rank once (the circle method). Pure. */

/* n - 1 rounds when @n is even, n when it is odd: then each rank sits out once. */
int np_ranks_rounds(int n);

/* The partner of @rank in @round; -1: it sits out. */
int np_ranks_partner(int n, int round, int rank);

#endif
