/* SPDX-License-Identifier: MIT */
#include "selftest/ucp_flow.h"

#include <string.h>

#include "selftest/measure.h"
#include "selftest/turn.h"

/* How long a flow is to last: for the one that gives the rung's bandwidth, for the others,
 * and with --full. */
#define LARGEST_US (50 * 1000.0)
#define OTHERS_US  (10 * 1000.0)
#define FULL_US	   (100 * 1000.0)
#define LENGTH_MAX 100000.0
/* More than this takes no flow, however few messages it then has. */
#define LATE_US (150 * 1000.0)

/*
 * GPU memory goes through host memory that UCX pins as it needs more: with 256 MiB
 * outstanding an H200 was seen busy with that, at 10 GB/s instead of 38.
 */
#define OUTSTANDING_BYTES (32u << 20)

static size_t outstanding(uint64_t size)
{
	size_t n = OUTSTANDING_BYTES / (size ? size : 1);

	return n < 2 ? 2 : n > NP_UCP_OUTSTANDING ? NP_UCP_OUTSTANDING : n;
}

/* Of the size whose bandwidth is the rung's. */
static bool is_largest(const struct np_ucp_spec *spec, uint64_t size)
{
	size_t n;
	const uint64_t *sizes = np_ucp_sizes(spec, &n);

	return size == sizes[n - 1];
}

void np_ucp_flow_turn(const struct np_ucp_spec *spec, uint64_t size)
{
	np_turn_take(is_largest(spec, size));
}

size_t np_ucp_flow_length(const struct np_ucp_spec *spec, uint64_t size, double MBps)
{
	double us = spec->full ? FULL_US : is_largest(spec, size) ? LARGEST_US : OTHERS_US;
	double each_us = (double)size / (MBps > 0 ? MBps : 1), least, length = us / each_us;

	/* twice what is outstanding: ends and beginnings would show */
	least = LATE_US / each_us;
	if (least > (double)(2 * outstanding(size)))
		least = (double)(2 * outstanding(size));
	if (length < least)
		length = least;
	if (length > LENGTH_MAX)
		length = LENGTH_MAX;
	return length < 2 ? 2 : (size_t)length;
}

void np_ucp_flow_start(struct np_ucp_flow *flow, const struct np_ucp_message *message, int worker,
		       bool sends, size_t n)
{
	memset(flow, 0, sizeof(*flow));
	flow->message = message;
	flow->worker = worker;
	flow->sends = sends;
	flow->to_post = n;
	flow->outstanding = outstanding(message->size);
}

void np_ucp_flow_post(struct np_ucp_link *link, struct np_ucp_flow *flow)
{
	while (flow->posted < flow->to_post && flow->posted - flow->done < flow->outstanding) {
		struct np_ucp_request *next = &flow->requests[flow->posted++ % NP_UCP_OUTSTANDING];

		if (flow->sends)
			np_ucp_post_send(link, flow->worker, flow->message, next);
		else
			np_ucp_post_receive(link, flow->worker, flow->message, next);
	}
}

/* Messages of one tag end in the order in which they were posted. */
static ucs_status_t take_done(struct np_ucp_flow *flow)
{
	while (flow->done < flow->posted) {
		struct np_ucp_request *oldest = &flow->requests[flow->done % NP_UCP_OUTSTANDING];
		ucs_status_t status = np_ucp_request_status(oldest);

		if (status == UCS_INPROGRESS)
			return UCS_OK;
		if (status != UCS_OK)
			return status;
		if (UCS_PTR_IS_PTR(oldest->ptr))
			ucp_request_free(oldest->ptr);
		oldest->ptr = NULL;
		flow->done++;
	}
	return UCS_OK;
}

/* True when it is done. */
static bool advance(struct np_ucp_link *link, struct np_ucp_flow *flow, ucs_status_t *failed)
{
	ucs_status_t status;

	if (flow->done == flow->to_post)
		return true;
	status = take_done(flow);
	if (status != UCS_OK)
		*failed = status;
	else
		np_ucp_flow_post(link, flow);
	if (flow->done < flow->to_post)
		return false;
	flow->end_us = np_now_us();
	return true;
}

int np_ucp_flow_run(struct np_ucp_link *link, struct np_ucp_flow *flows, size_t n,
		    const char *doing, struct np_err *err)
{
	ucs_status_t failed = UCS_OK;

	for (unsigned int round = 1;; round++) {
		bool all = true;
		int ret;

		/* receives stand first: there must be one for what is sent */
		for (size_t i = 0; i < n; i++)
			all &= advance(link, &flows[i], &failed);
		if (all && failed == UCS_OK && link->peer_status == UCS_OK)
			return 0;
		ret = np_ucp_link_trouble(link, round, failed, doing, err);
		if (ret < 0)
			return ret;
		np_ucp_link_progress(link);
	}
}
