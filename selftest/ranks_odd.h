/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_RANKS_ODD_H
#define NP_SELFTEST_RANKS_ODD_H

#include "selftest/ranks_card.h"

/* Ranks that are not as the others. Pure. */

/* The first rank whose field @name is not what most of them have (of equally many, what the
 * lowest rank has), or -1. Empty values and ranks without a card count for nothing.
 * *@usual is what most have. */
int np_ranks_odd_one(const struct np_ranks_card *cards, int n, const char *name,
		     const char **usual);

/* One finding: ranks of one host with the same odd value of one field; a variable that is not
 * set is one finding over all hosts. */
struct np_ranks_odd {
	int first;	 /* rank */
	int count;	 /* ranks of that host with that value */
	bool everywhere; /* ... of all hosts */
	char code[48];
	char message[560]; /* without the rank and its host */
	char hint[320];
};

struct np_ranks_odds {
	struct np_ranks_odd *v;
	size_t n;
};

/* Everything that differs: among the ranks, and between a rank's environment and its node's
 * configuration. @hosts by rank. Returns 0 or -ENOMEM; np_ranks_odds_done frees. */
int np_ranks_odds_find(const struct np_ranks_card *cards, char *const *hosts, int n,
		       struct np_ranks_odds *out) np_must_check;
void np_ranks_odds_done(struct np_ranks_odds *odds);

#endif
