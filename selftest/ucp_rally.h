/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_UCP_RALLY_H
#define NP_SELFTEST_UCP_RALLY_H

#include "selftest/ucp_move.h"

/*
 * Round trips of one message back to back, as ucx_perftest measures them: what lies between
 * two of them (a payload of its own, the comparison of every byte, a word with the other
 * process) cools caches and lets a peer fall asleep, and is no latency. The rally follows
 * trips that were verified one by one, and what its last trip brought is verified too.
 */

/* How many trips take a fair time, when half of one takes about @half_us. */
size_t np_ucp_rally_trips(double half_us);

/* What one end sends and what it gets, over and over, on one worker of @link. */
struct np_ucp_side {
	struct np_ucp_link *link;
	int worker;
	const struct np_ucp_message *out, *in;
	const char *doing;
	struct np_ucp_request send, receive;
};

/* The end that begins: *@half_us is the median of half a trip, the first tenth of the trips
 * left out. Both return 0 or a negative errno of np_ucp_link_wait. */
int np_ucp_rally_serve(struct np_ucp_side *side, size_t n, double *half_us,
		       struct np_err *err) np_must_check;
/* The end that returns, when np_ucp_rally_ready has been called before the other one began. */
int np_ucp_rally_return(struct np_ucp_side *side, size_t n, struct np_err *err) np_must_check;
void np_ucp_rally_ready(struct np_ucp_side *side);

/* Both ends in one thread. */
int np_ucp_rally_alone(struct np_ucp_side sides[2], size_t n, double *half_us,
		       struct np_err *err) np_must_check;

#endif
