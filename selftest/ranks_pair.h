/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_RANKS_PAIR_H
#define NP_SELFTEST_RANKS_PAIR_H

#include "selftest/ranks.h"

/* All rounds of all trials. In each round a rank and its partner send each other a message of
 * which every byte is verified, then measure. What goes wrong between the two is a cell with
 * its note, on both sides; an error is what ends the job: the partner never came
 * (ranks.stalled, board->err_peer), or an exchange failed. */
int np_ranks_all_rounds(struct np_ranks *ranks, struct np_err *err) np_must_check;

#endif
