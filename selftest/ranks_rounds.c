/* SPDX-License-Identifier: MIT */
#include "selftest/ranks_rounds.h"

int np_ranks_rounds(int n)
{
	return n % 2 == 0 ? n - 1 : n;
}

/*
 * One seat (the last) stays, the others sit on a circle of @seats places; in round r those
 * meet whose numbers add up to r. Who would meet itself meets the last seat; with an odd number of
 * ranks nobody sits there.
 */
int np_ranks_partner(int n, int round, int rank)
{
	int seats = np_ranks_rounds(n), partner;

	if (rank == seats) /* half of round, modulo an odd number */
		return (int)((long long)round * ((seats + 1) / 2) % seats);
	partner = (round - rank) % seats;
	if (partner < 0)
		partner += seats;
	if (partner != rank)
		return partner;
	return n % 2 == 0 ? seats : -1;
}
