/* SPDX-License-Identifier: MIT */
#include "selftest/ucp_move.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "selftest/measure.h"
#include "selftest/pattern.h"
#include "selftest/turn.h"
#include "selftest/ucp_flow.h"
#include "selftest/ucp_rally.h"

/* Bytes outstanding at most, unless a single message is larger. */
#define WINDOW_BYTES  (16u << 20)
#define WINDOW_MIN    2u
#define LARGEST_QUICK (8u << 20)
#define LARGEST_FULL  (64u << 20)
/* Bytes that the ping-pong of one size moves each way, and its least iterations. */
#define PINGPONG_BYTES (8u << 20)
#define PINGPONG_MIN   3u

static size_t within(size_t n, size_t least, size_t most)
{
	return n < least ? least : n > most ? most : n;
}

size_t np_ucp_trips(uint64_t size)
{
	return within(PINGPONG_BYTES / size, PINGPONG_MIN, NP_UCP_TRIPS_MAX);
}

size_t np_ucp_window(uint64_t size)
{
	return within(WINDOW_BYTES / size, WINDOW_MIN, NP_UCP_WINDOW_MAX);
}

int np_ucp_buffers_alloc(struct np_ucp_buffers *buffers, const struct np_ucp_spec *spec,
			 struct np_err *err)
{
	size_t largest = spec->full ? LARGEST_FULL : LARGEST_QUICK;
	size_t size = WINDOW_MIN * largest > WINDOW_BYTES ? WINDOW_MIN * largest : WINDOW_BYTES;

	buffers->mem = spec->mem;
	buffers->size = size;
	buffers->tx = spec->mem->alloc(spec->mem->ctx, size, err);
	if (!buffers->tx)
		return -ENOMEM;
	buffers->rx = spec->mem->alloc(spec->mem->ctx, size, err);
	if (!buffers->rx)
		return -ENOMEM;
	if (spec->mem->write) {
		buffers->host = malloc(largest);
		if (!buffers->host)
			return np_err_nomem(err);
	}
	buffers->base = np_seed_base();
	return 0;
}

void np_ucp_buffers_done(struct np_ucp_buffers *buffers)
{
	if (!buffers)
		return;
	if (buffers->tx)
		buffers->mem->release(buffers->mem->ctx, buffers->tx, buffers->size);
	if (buffers->rx)
		buffers->mem->release(buffers->mem->ctx, buffers->rx, buffers->size);
	free(buffers->host);
	memset(buffers, 0, sizeof(*buffers));
}

void np_ucp_message_next(struct np_ucp_buffers *buffers, size_t slot, uint64_t size,
			 struct np_ucp_message *m)
{
	m->tag = ++buffers->sequence;
	m->seed = np_pattern_seed(buffers->base, m->tag);
	m->size = size;
	m->tx = buffers->tx + slot * size;
	m->rx = buffers->rx + slot * size;
}

int np_ucp_message_fill(struct np_ucp_buffers *buffers, const struct np_ucp_message *m,
			struct np_err *err)
{
	const struct np_ucp_mem *mem = buffers->mem;

	np_pattern_fill(mem->write ? buffers->host : m->tx, m->size, m->seed);
	return mem->write ? mem->write(mem->ctx, m->tx, buffers->host, m->size, err) : 0;
}

int np_ucp_message_poison(struct np_ucp_buffers *buffers, const struct np_ucp_message *m,
			  struct np_err *err)
{
	const struct np_ucp_mem *mem = buffers->mem;

	np_pattern_poison(mem->write ? buffers->host : m->rx, m->size, m->seed);
	return mem->write ? mem->write(mem->ctx, m->rx, buffers->host, m->size, err) : 0;
}

static int prepare(struct np_ucp_buffers *buffers, size_t slot, uint64_t size,
		   struct np_ucp_message *m, struct np_err *err)
{
	int ret;

	np_ucp_message_next(buffers, slot, size, m);
	ret = np_ucp_message_fill(buffers, m, err);
	return ret < 0 ? ret : np_ucp_message_poison(buffers, m, err);
}

int np_ucp_message_verify(struct np_ucp_buffers *buffers, const struct np_ucp_message *m,
			  struct np_err *err)
{
	const struct np_ucp_mem *mem = buffers->mem;
	char *received = mem->read ? buffers->host : m->rx;
	int ret;

	if (mem->read) {
		ret = mem->read(mem->ctx, received, m->rx, m->size, err);
		if (ret < 0)
			return ret;
	}
	return np_message_verify(received, m->size, m->seed, ++buffers->verified, err);
}

void np_ucp_post_receive(struct np_ucp_link *link, int worker, const struct np_ucp_message *m,
			 struct np_ucp_request *request)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE,
		.memory_type = link->spec->mem->type,
	};

	request->worker = worker;
	request->ptr =
		ucp_tag_recv_nbx(link->worker[worker], m->rx, m->size, m->tag, UINT64_MAX, &param);
}

void np_ucp_post_send(struct np_ucp_link *link, int worker, const struct np_ucp_message *m,
		      struct np_ucp_request *request)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE,
		.memory_type = link->spec->mem->type,
	};

	request->worker = worker;
	link->moved_bytes += m->size;
	request->ptr = ucp_tag_send_nbx(link->ep[worker], m->tx, m->size, m->tag, &param);
}

const char *np_ucp_doing(const struct np_ucp_link *link, uint64_t size, char out[96])
{
	char text[32];

	snprintf(out, 96, "sending %s over %s", np_size_str(size, text), link->spec->tls);
	return out;
}

/* One message there and one back. */
static int ping_pong(struct np_ucp_link *link, struct np_ucp_buffers *buffers, uint64_t size,
		     double *half_us, struct np_err *err)
{
	struct np_ucp_request receive[2] = { 0 }, send[2] = { 0 };
	struct np_ucp_message m[2];
	char doing[96];
	double start;
	int ret;

	for (int i = 0; i < 2; i++) {
		ret = prepare(buffers, (size_t)i, size, &m[i], err);
		if (ret < 0)
			return ret;
	}
	np_ucp_doing(link, size, doing);
	ret = np_ucp_link_in_time(link, doing, err);
	if (ret < 0)
		return ret;
	start = np_now_us();
	for (int i = 0; i < 2; i++) {
		np_ucp_post_receive(link, 1 - i, &m[i], &receive[i]);
		np_ucp_post_send(link, i, &m[i], &send[i]);
		ret = np_ucp_link_wait(link, &receive[i], 1, doing, err);
		if (i == 1)
			*half_us = (np_now_us() - start) / 2;
		if (ret < 0)
			break;
	}
	if (ret == 0)
		ret = np_ucp_link_wait(link, send, 2, doing, err);
	for (int i = 0; i < 2 && ret == 0; i++)
		ret = np_ucp_message_verify(buffers, &m[i], err);
	return ret;
}

/* Many more, back to back. */
static int rally(struct np_ucp_link *link, struct np_ucp_buffers *buffers, uint64_t size,
		 double *half_us, struct np_err *err)
{
	struct np_ucp_message m[2];
	struct np_ucp_side sides[2];
	char doing[96];
	int ret;

	for (int i = 0; i < 2; i++) {
		ret = prepare(buffers, (size_t)i, size, &m[i], err);
		if (ret < 0)
			return ret;
	}
	np_ucp_doing(link, size, doing);
	for (int i = 0; i < 2; i++)
		sides[i] = (struct np_ucp_side){
			.link = link, .worker = i, .out = &m[i], .in = &m[1 - i], .doing = doing
		};
	ret = np_ucp_link_in_time(link, doing, err);
	if (ret == 0)
		ret = np_ucp_rally_alone(sides, np_ucp_rally_trips(*half_us), half_us, err);
	for (int i = 0; i < 2 && ret == 0; i++)
		ret = np_ucp_message_verify(buffers, &m[i], err);
	return ret;
}

int np_ucp_latency(struct np_ucp_link *link, struct np_ucp_buffers *buffers, uint64_t size,
		   double *latency_us, struct np_err *err)
{
	double samples[NP_UCP_TRIPS_MAX];
	size_t n = np_ucp_trips(size);

	for (size_t i = 0; i < NP_UCP_WARM_UP + n; i++) {
		double half_us = 0;
		int ret = ping_pong(link, buffers, size, &half_us, err);

		if (ret < 0)
			return ret;
		if (i >= NP_UCP_WARM_UP)
			samples[i - NP_UCP_WARM_UP] = half_us;
	}
	*latency_us = np_median(samples, n);
	return rally(link, buffers, size, latency_us, err);
}

/* A window of messages one way, each with its own payload. */
static int window(struct np_ucp_link *link, struct np_ucp_buffers *buffers, uint64_t size, int from,
		  double *MBps, struct np_err *err)
{
	struct np_ucp_request receives[NP_UCP_WINDOW_MAX], sends[NP_UCP_WINDOW_MAX];
	struct np_ucp_message m[NP_UCP_WINDOW_MAX];
	size_t n = np_ucp_window(size);
	char doing[96];
	double start;
	int ret;

	for (size_t i = 0; i < n; i++) {
		ret = prepare(buffers, i, size, &m[i], err);
		if (ret < 0)
			return ret;
	}
	np_ucp_doing(link, size, doing);
	ret = np_ucp_link_in_time(link, doing, err);
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < n; i++)
		np_ucp_post_receive(link, 1 - from, &m[i], &receives[i]);
	start = np_now_us();
	for (size_t i = 0; i < n; i++)
		np_ucp_post_send(link, from, &m[i], &sends[i]);
	ret = np_ucp_link_wait(link, receives, n, doing, err);
	*MBps = (double)(n * size) / (np_now_us() - start);
	if (ret == 0)
		ret = np_ucp_link_wait(link, sends, n, doing, err);
	for (size_t i = 0; i < n && ret == 0; i++)
		ret = np_ucp_message_verify(buffers, &m[i], err);
	return ret;
}

/* Many at the rate that the window had. What the last of them brought is compared too. */
static int measure(struct np_ucp_link *link, struct np_ucp_buffers *buffers, uint64_t size,
		   int from, double *MBps, struct np_err *err)
{
	size_t n = np_ucp_flow_length(link->spec, size, *MBps);
	struct np_ucp_flow flows[2];
	struct np_ucp_message m;
	char doing[96];
	double start;
	int ret = prepare(buffers, 0, size, &m, err);

	if (ret < 0)
		return ret;
	np_ucp_flow_start(&flows[0], &m, 1 - from, false, n);
	np_ucp_flow_start(&flows[1], &m, from, true, n);
	np_ucp_flow_post(link, &flows[0]);
	start = np_now_us();
	ret = np_ucp_flow_run(link, flows, 2, np_ucp_doing(link, size, doing), err);
	if (ret < 0)
		return ret;
	*MBps = (double)n * (double)size / (flows[0].end_us - start);
	return np_ucp_message_verify(buffers, &m, err);
}

int np_ucp_bandwidth(struct np_ucp_link *link, struct np_ucp_buffers *buffers, uint64_t size,
		     double *bandwidth_MBps, struct np_err *err)
{
	double samples[2];

	for (int from = 0; from < 2; from++) {
		int ret = window(link, buffers, size, from, &samples[from], err);

		if (ret == 0) {
			np_ucp_flow_turn(link->spec, size);
			ret = measure(link, buffers, size, from, &samples[from], err);
			np_turn_give();
		}
		if (ret < 0)
			return ret;
	}
	*bandwidth_MBps = np_median(samples, 2);
	return 0;
}
