/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_RANKS_UCX_H
#define NP_SELFTEST_RANKS_UCX_H

#include "selftest/ranks.h"
#include "selftest/ucp_link.h"

/* UCX of one rank: a context and a worker as the environment configures them, an address of
 * each peer, and endpoints to them. */

#define NP_RANKS_WORDS 128u

struct np_ranks_peer {
	struct np_ranks_ucx *ucx; /* for the error handler */
	struct np_buf address;
	ucp_ep_h ep;	     /* NULL = none (yet) */
	ucs_status_t status; /* of the error handler; UCS_OK = none */
	bool cut;	     /* given up: no more messages to it */
};

struct np_ranks_ucx {
	struct np_ucp_spec spec;
	struct np_ucp_link link; /* to the peer that it is at work with */
	int current;		 /* that peer, -1 = none */
	struct np_ranks_peer *peers;
	int n;
	char *tx, *rx; /* of one message each */
	void *words;   /* NP_RANKS_WORDS bytes for what partners tell each other */
	size_t size;
	struct np_ranks *ranks;
};

/* What a message is, in its tag: no two that may be under way between two ranks at the same
 * time are alike. */
enum np_ranks_tag {
	NP_TAG_HELLO = 1,
	NP_TAG_SYNC,
	NP_TAG_VERIFY,
	NP_TAG_TRIP,
	NP_TAG_GO,
	NP_TAG_FLOW,
	NP_TAG_RESULT,
	NP_TAG_REDUCE,
};
uint64_t np_ranks_tag(enum np_ranks_tag what, int number, int sender);

/* Opens the devices and learns every address. Codes: ranks.ucx, ranks.memlock, ranks.exchange. */
int np_ranks_ucx_open(struct np_ranks *ranks, struct np_err *err) np_must_check;

/* An endpoint to every peer and a message over each, both ways. What does not work is a cell
 * with its note, on both sides; an error is only what ends the job. */
int np_ranks_connect(struct np_ranks *ranks, struct np_err *err) np_must_check;

/* ucx->link becomes that to @peer, with an endpoint; @timeout_ms from now is its deadline. */
int np_ranks_turn_to(struct np_ranks *ranks, int peer, int timeout_ms,
		     struct np_err *err) np_must_check;
/* Closes the endpoint to @to, with all that was sent delivered. */
void np_ranks_close(struct np_ranks *ranks, int to);

/* Memory that a failed message may still hold is left to it, and new memory taken. */
int np_ranks_new_buffers(struct np_ranks *ranks, struct np_err *err) np_must_check;

/* Waits for @n messages that may be long in coming: sleeps in between. @patience_ms. */
int np_ranks_await(struct np_ranks *ranks, struct np_ucp_request *requests, size_t n,
		   int patience_ms, const char *doing, struct np_err *err) np_must_check;

/* Until all that was sent has left this rank, which may stop to care for UCX then; a second or
 * two at most. */
void np_ranks_flush(struct np_ranks *ranks);

/* The cell of @peer is broken: status, and a note of why. */
void np_ranks_cell_fail(struct np_ranks *ranks, int peer, enum np_ranks_cell_status status,
			const struct np_err *why);

#endif
