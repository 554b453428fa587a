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

/* A message: where it goes and what is in it. */
struct np_ucp_message {
	uint64_t tag, seed;
	char *tx, *rx;
	size_t size;
};

/* The next message of this run, in slot @slot of the buffers. */
void np_ucp_message_next(struct np_ucp_buffers *buffers, size_t slot, uint64_t size,
			 struct np_ucp_message *m);
/* Its payload into tx; into rx what differs from it in every byte. */
int np_ucp_message_fill(struct np_ucp_buffers *buffers, const struct np_ucp_message *m,
			struct np_err *err) np_must_check;
int np_ucp_message_poison(struct np_ucp_buffers *buffers, const struct np_ucp_message *m,
			  struct np_err *err) np_must_check;
int np_ucp_message_verify(struct np_ucp_buffers *buffers, const struct np_ucp_message *m,
			  struct np_err *err) np_must_check;
void np_ucp_post_receive(struct np_ucp_link *link, int worker, const struct np_ucp_message *m,
			 struct np_ucp_request *request);
void np_ucp_post_send(struct np_ucp_link *link, int worker, const struct np_ucp_message *m,
		      struct np_ucp_request *request);
/* "sending 8 B over rc", for what may fail then. Returns @out. */
const char *np_ucp_doing(const struct np_ucp_link *link, uint64_t size, char out[96]);

/* How often: round trips of one size (the first NP_UCP_WARM_UP do not count), messages
 * outstanding in a window with a payload for each. */
#define NP_UCP_TRIPS_MAX  200u
#define NP_UCP_WINDOW_MAX 64u
#define NP_UCP_WARM_UP	  2u
size_t np_ucp_trips(uint64_t size);
size_t np_ucp_window(uint64_t size);

/* Median of half a round trip of a @size byte message, in microseconds, of many back to
 * back (ucp_rally.h); before those, trips with payloads of their own, verified. */
int np_ucp_latency(struct np_ucp_link *link, struct np_ucp_buffers *buffers, uint64_t size,
		   double *latency_us, struct np_err *err) np_must_check;

/* The rate at which many messages of @size bytes were complete at the receiver, in 10^6
 * bytes a second, in the middle of both ways (ucp_flow.h); before that, each way, a window
 * of messages with payloads of their own, verified. */
int np_ucp_bandwidth(struct np_ucp_link *link, struct np_ucp_buffers *buffers, uint64_t size,
		     double *bandwidth_MBps, struct np_err *err) np_must_check;

#endif
