/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_UCP_FLOW_H
#define NP_SELFTEST_UCP_FLOW_H

#include "selftest/ucp_move.h"

/*
 * Many messages one way, for bandwidth: as many outstanding as ucx_perftest keeps (its
 * option -O for the tests of UCP), all from the same memory and into the same memory, as
 * there, but fewer of large ones. Which bytes they bring is proven by others
 * (np_ucp_bandwidth).
 */

#define NP_UCP_OUTSTANDING 32u

/* One side of it. */
struct np_ucp_flow {
	const struct np_ucp_message *message;
	int worker;
	bool sends;
	size_t to_post, posted, done, outstanding;
	double end_us; /* np_now_us() when the last one was done */
	struct np_ucp_request requests[NP_UCP_OUTSTANDING];
};

/* So many messages of @size bytes that they last long enough to be measured, at the rate
 * of @MBps that a few of them had; fewer than 3 only where even those take too long. */
size_t np_ucp_flow_length(const struct np_ucp_spec *spec, uint64_t size, double MBps);

/* Takes the turn to measure (turn.h) a flow of @size bytes each: alone for the largest size,
 * whose bandwidth is the rung's. */
void np_ucp_flow_turn(const struct np_ucp_spec *spec, uint64_t size);

/* @n messages @message from or to worker @worker. */
void np_ucp_flow_start(struct np_ucp_flow *flow, const struct np_ucp_message *message, int worker,
		       bool sends, size_t n);

/* Posts what may be outstanding: receives, before the other side sends. */
void np_ucp_flow_post(struct np_ucp_link *link, struct np_ucp_flow *flow);

/* Until all @n flows are done. Errors as np_ucp_link_wait. */
int np_ucp_flow_run(struct np_ucp_link *link, struct np_ucp_flow *flows, size_t n,
		    const char *doing, struct np_err *err) np_must_check;

#endif
