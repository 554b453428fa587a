/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_UCP_MOVE_H
#define NP_SELFTEST_UCP_MOVE_H

#include "selftest/ucp_link.h"

/* Send and receive memory, a slot for each message outstanding. */
struct np_ucp_buffers {
	const struct np_ucp_mem *mem;
	char *tx, *rx; /* of mem */
	char *host;    /* one message, where the CPU cannot reach mem; else NULL */
	size_t size;   /* of tx, and of rx */
	size_t host_size;
	uint64_t base;	   /* seed of this run */
	uint64_t sequence; /* messages posted */
	uint64_t verified; /* messages received and compared */
};

int np_ucp_buffers_alloc(struct np_ucp_buffers *buffers, const struct np_ucp_spec *spec,
			 struct np_err *err) np_must_check;
void np_ucp_buffers_done(struct np_ucp_buffers *buffers);

/* Median of half a round trip of a @size byte message, in microseconds. */
int np_ucp_latency(struct np_ucp_link *link, struct np_ucp_buffers *buffers, uint64_t size,
		   double *latency_us, struct np_err *err) np_must_check;

/* Median over rounds, both ways, of the rate at which windows of @size byte
 * messages were complete at the receiver, in 10^6 bytes a second. */
int np_ucp_bandwidth(struct np_ucp_link *link, struct np_ucp_buffers *buffers, uint64_t size,
		     double *bandwidth_MBps, struct np_err *err) np_must_check;

#endif
