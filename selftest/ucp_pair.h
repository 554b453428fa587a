/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_UCP_PAIR_H
#define NP_SELFTEST_UCP_PAIR_H

#include <sys/types.h>

#include "selftest/ucp_engine.h"

/*
 * The same proof as np_ucp_prove between two processes: for transports that work only
 * between processes. They are made by fork before either touches CUDA or UCX, and tell
 * each other addresses, times and errors over a socket.
 */

struct np_ucp_pair {
	int fd;	     /* to the other process */
	int side;    /* 0 asks and reports, 1 serves */
	pid_t child; /* on side 0 */
};

/* What side 0 wants of side 1. */
struct np_ucp_order {
	char pci[16]; /* the GPU of side 1 */
	bool full;
	int64_t deadline_ms;
	uint64_t base; /* seed of this run */
};

/* Forks. The child calls @serve with each order and its own end until the other end is
 * closed or @serve returns nonzero, and ends. Returns 0 or a negative errno with message. */
int np_ucp_pair_start(struct np_ucp_pair *pair,
		      int (*serve)(struct np_ucp_pair *pair, const struct np_ucp_order *order),
		      struct np_err *err) np_must_check;
/* Side 0: an end to it. */
void np_ucp_pair_stop(struct np_ucp_pair *pair);

/* Side 0: gives the order. */
int np_ucp_pair_order(struct np_ucp_pair *pair, const struct np_ucp_order *order,
		      struct np_err *err) np_must_check;

/* Side 1: tells side 0, which is in np_ucp_pair_prove, why it cannot take part. */
void np_ucp_pair_refuse(struct np_ucp_pair *pair, const struct np_err *why);

/* One end of the proof, called on both sides with the same spec but for its memory.
 * Fills @result (side 1 may pass one that it throws away). Errors: np_ucp_prove, of
 * either side ("in the other process: ..."), and selftest.peer_died (-EPIPE). */
int np_ucp_pair_prove(struct np_ucp_pair *pair, const struct np_ucp_spec *spec, uint64_t base,
		      struct np_rung_result *result, struct np_err *err) np_must_check;

#endif
