/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_UCP_LINK_H
#define NP_SELFTEST_UCP_LINK_H

#include "selftest/ucp_engine.h"
#include "selftest/ucx_lanes.h"

/* Two workers of one process with an endpoint each way; or one, whose peer is another
 * process (then worker 1 is NULL). */
struct np_ucp_link {
	const struct np_ucp_spec *spec;
	ucp_context_h context;
	ucp_worker_h worker[2];
	ucp_ep_h ep[2];		  /* ep[i]: worker i to the other */
	uint64_t moved_bytes;	  /* sent by its workers */
	ucs_status_t peer_status; /* of the error callback, UCS_OK = none */
	/* asked now and then while waiting: the process at the other end failed or is gone;
	 * NULL when both ends are here */
	bool (*peer_failed)(void *arg);
	void *peer_arg;
	/* there are more such processes than processors: whoever waits lets others run */
	bool crowded;
};

/* Opens it. Errors: np_ucp_prove. */
int np_ucp_link_open(struct np_ucp_link *link, const struct np_ucp_spec *spec,
		     struct np_err *err) np_must_check;

/* Opens one end alone: worker 0. Then np_ucp_link_connect. Errors: np_ucp_prove. */
int np_ucp_link_open_half(struct np_ucp_link *link, const struct np_ucp_spec *spec,
			  struct np_err *err) np_must_check;

/* The endpoint of worker @from to the worker with @address. */
int np_ucp_link_connect(struct np_ucp_link *link, int from, const ucp_address_t *address,
			struct np_err *err) np_must_check;

/* Only for one that works and has no request under way; see np_ucp_abandoned. */
void np_ucp_link_close(struct np_ucp_link *link);

/* A message under way, or done (ptr is NULL or an error). */
struct np_ucp_request {
	ucs_status_ptr_t ptr;
	int worker; /* whose it is */
};

/* Lets both workers progress until none of the @n requests is under way, then
 * frees them. After a failure the link is of no use: requests may hold their
 * buffers for ever. @doing completes "while ...". */
int np_ucp_link_wait(struct np_ucp_link *link, struct np_ucp_request *requests, size_t n,
		     const char *doing, struct np_err *err) np_must_check;

/* UCS_INPROGRESS while it is under way, then how it ended. */
ucs_status_t np_ucp_request_status(const struct np_ucp_request *request);

/* Asked in each @round of waiting; what takes long is looked at in some of them only. 0, or
 * why to wait no longer: @failed, the peer's end, the deadline. */
int np_ucp_link_trouble(struct np_ucp_link *link, unsigned int round, ucs_status_t failed,
			const char *doing, struct np_err *err) np_must_check;

/* Lets what is under way go on. */
void np_ucp_link_progress(struct np_ucp_link *link);

/* -EPIPE with code selftest.peer_died. */
int np_ucp_peer_died(const char *doing, struct np_err *err);

/* Waits that end soon do not look at the clock: ask now and then. 0 or -ETIMEDOUT. */
int np_ucp_link_in_time(const struct np_ucp_link *link, const char *doing,
			struct np_err *err) np_must_check;

/* What carries the messages of both endpoints. */
int np_ucp_link_lanes(struct np_ucp_link *link, struct np_ucx_lanes *lanes,
		      struct np_err *err) np_must_check;

/* What copies between the host and the memory of the spec, in every worker. */
int np_ucp_link_memory(struct np_ucp_link *link, struct np_ucx_lanes *lanes,
		       struct np_err *err) np_must_check;

/* Error of a UCX call, with UCX's own first words about it. */
int np_ucp_link_error(const struct np_ucp_spec *spec, ucs_status_t status, const char *doing,
		      struct np_err *err);

#endif
