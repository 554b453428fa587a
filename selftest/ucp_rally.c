/* SPDX-License-Identifier: MIT */
#include "selftest/ucp_rally.h"

#include <stdlib.h>

#include "selftest/measure.h"

#define RALLY_US     50000.0 /* about so long for each size */
#define TRIPS_MIN    3u
#define EAGER_ROUNDS 1000u
#define TRIPS_MAX    10000u

size_t np_ucp_rally_trips(double half_us)
{
	double wanted = half_us > 0 ? RALLY_US / (2 * half_us) : TRIPS_MAX;

	if (wanted < TRIPS_MIN)
		return TRIPS_MIN;
	return wanted > TRIPS_MAX ? TRIPS_MAX : (size_t)wanted;
}

void np_ucp_rally_ready(struct np_ucp_side *side)
{
	np_ucp_post_receive(side->link, side->worker, side->in, &side->receive);
}

/* Most waits end within microseconds: first nothing but progress, then with an eye on the
 * clock and on the peer. */
static int wait_for(struct np_ucp_side *side, struct np_ucp_request *request, struct np_err *err)
{
	for (unsigned int i = 0; i < EAGER_ROUNDS; i++) {
		if (!request->ptr)
			return 0;
		if (UCS_PTR_IS_PTR(request->ptr) &&
		    ucp_request_check_status(request->ptr) == UCS_OK) {
			ucp_request_free(request->ptr);
			request->ptr = NULL;
			return 0;
		}
		np_ucp_link_progress(side->link);
	}
	return np_ucp_link_wait(side->link, request, 1, side->doing, err);
}

/* The send of the trip before, which the answer to it has overtaken, then the next one. */
static int stroke(struct np_ucp_side *side, struct np_err *err)
{
	int ret = wait_for(side, &side->send, err);

	if (ret == 0)
		np_ucp_post_send(side->link, side->worker, side->out, &side->send);
	return ret;
}

/* The message is there: the answer to it, and only then the place for the next one, for which
 * there is time while the answer travels. */
static int answer(struct np_ucp_side *side, bool last, struct np_err *err)
{
	int ret = wait_for(side, &side->receive, err);

	if (ret == 0)
		ret = stroke(side, err);
	if (ret == 0 && !last)
		np_ucp_rally_ready(side);
	return ret;
}

int np_ucp_rally_return(struct np_ucp_side *side, size_t n, struct np_err *err)
{
	int ret = 0;

	for (size_t i = 0; i < n && ret == 0; i++)
		ret = answer(side, i + 1 == n, err);
	return ret == 0 ? wait_for(side, &side->send, err) : ret;
}

/* @other: the returning end, when this thread plays it too. */
static int serve(struct np_ucp_side *side, struct np_ucp_side *other, size_t n, double *samples,
		 struct np_err *err)
{
	double start = np_now_us(), now;
	int ret = 0;

	for (size_t i = 0; i < n && ret == 0; i++) {
		ret = stroke(side, err);
		if (ret == 0)
			np_ucp_rally_ready(side);
		if (ret == 0 && other)
			ret = answer(other, i + 1 == n, err);
		if (ret == 0)
			ret = wait_for(side, &side->receive, err);
		now = np_now_us();
		samples[i] = (now - start) / 2;
		start = now;
	}
	if (ret == 0)
		ret = wait_for(side, &side->send, err);
	if (ret == 0 && other)
		ret = wait_for(other, &other->send, err);
	return ret;
}

static int rally(struct np_ucp_side *side, struct np_ucp_side *other, size_t n, double *half_us,
		 struct np_err *err)
{
	_cleanup_free_ double *samples = calloc(n, sizeof(*samples));
	size_t warm = n / 10;
	int ret;

	if (!samples)
		return np_err_nomem(err);
	ret = serve(side, other, n, samples, err);
	if (ret == 0)
		*half_us = np_median(samples + warm, n - warm);
	return ret;
}

int np_ucp_rally_serve(struct np_ucp_side *side, size_t n, double *half_us, struct np_err *err)
{
	return rally(side, NULL, n, half_us, err);
}

int np_ucp_rally_alone(struct np_ucp_side sides[2], size_t n, double *half_us, struct np_err *err)
{
	np_ucp_rally_ready(&sides[1]);
	return rally(&sides[0], &sides[1], n, half_us, err);
}
