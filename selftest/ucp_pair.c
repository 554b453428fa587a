/* SPDX-License-Identifier: MIT */
#include "selftest/ucp_pair.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/child.h"
#include "base/log.h"
#include "selftest/gpu_workers.h"
#include "selftest/measure.h"
#include "selftest/turn.h"
#include "selftest/ucp_flow.h"
#include "selftest/ucp_link.h"
#include "selftest/ucp_move.h"
#include "selftest/ucp_rally.h"

#define ADDRESS_MAX 65536u
#define CLOCK_EVERY 512u

/* What each side says in step with the other; a struct np_err follows when ret < 0. */
struct beat {
	int ret;
	double value;
};

/* One end at work. */
struct end {
	struct np_ucp_pair *pair;
	struct np_ucp_link link;
	struct np_ucp_buffers buffers;
};

/* ---- the socket ---- */

/* All of it, while the messages under way go on. */
static int transfer(struct np_ucp_pair *pair, struct np_ucp_link *link, void *data, size_t len,
		    bool out, int64_t deadline_ms, struct np_err *err)
{
	const char *doing = "talking to it";
	char *at = data;

	for (unsigned int round = 1; len > 0; round++) {
		ssize_t n = out ? send(pair->fd, at, len, MSG_DONTWAIT | MSG_NOSIGNAL) :
				  recv(pair->fd, at, len, MSG_DONTWAIT);

		if (n > 0) {
			at += n;
			len -= (size_t)n;
			continue;
		}
		if (n == 0 || (errno != EAGAIN && errno != EINTR))
			return np_ucp_peer_died(doing, err);
		if (link)
			np_ucp_link_progress(link);
		if (round % CLOCK_EVERY != 0)
			continue;
		if (np_now_ms() >= deadline_ms)
			return np_too_late("waiting for the other process", err);
		sched_yield(); /* it may want this processor */
	}
	return 0;
}

static int put(struct end *end, void *data, size_t len, struct np_err *err)
{
	return transfer(end->pair, &end->link, data, len, true, end->link.spec->deadline_ms, err);
}

static int get(struct end *end, void *data, size_t len, struct np_err *err)
{
	return transfer(end->pair, &end->link, data, len, false, end->link.spec->deadline_ms, err);
}

/* What the other side has to say. Returns 0 with @value, or its error. */
static int listen_to(struct end *end, double *value, struct np_err *err)
{
	struct beat theirs;
	struct np_err said;
	int ret = get(end, &theirs, sizeof(theirs), err);

	if (ret < 0)
		return ret;
	if (theirs.ret == 0) {
		if (value)
			*value = theirs.value;
		return 0;
	}
	ret = get(end, &said, sizeof(said), err);
	if (ret < 0)
		return ret;
	*err = said;
	np_err_context(err, "in the other process");
	return theirs.ret < 0 ? theirs.ret : -EIO;
}

/* Both sides come here; each learns how the other fared so far. */
static int meet(struct end *end, int ret, double *value, struct np_err *err)
{
	struct beat mine = { .ret = ret, .value = value ? *value : 0 };
	struct np_err said;
	int told = put(end, &mine, sizeof(mine), &said), heard;

	if (told == 0 && ret < 0)
		told = put(end, err, sizeof(*err), &said);
	/* one that went away may have left word */
	heard = told == 0 || told == -EPIPE ? listen_to(end, value, &said) : told;
	/* that the other failed is the consequence, not the cause */
	if (ret < 0 && (ret != -EPIPE || heard == 0))
		return ret;
	if (heard < 0)
		*err = said;
	return heard;
}

/* It is gone, or waits to say that it failed. */
static bool peer_failed(void *arg)
{
	const struct end *end = arg;
	struct beat beat;
	ssize_t n = recv(end->pair->fd, &beat, sizeof(beat), MSG_PEEK | MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) ||
	       (n == (ssize_t)sizeof(beat) && beat.ret < 0);
}

/* ---- opening ---- */

static int swap_addresses(struct end *end, struct np_err *err)
{
	_cleanup_free_ void *theirs = NULL;
	ucp_address_t *mine = NULL;
	size_t len, other = 0;
	ucs_status_t status = ucp_worker_get_address(end->link.worker[0], &mine, &len);
	int ret;

	if (status != UCS_OK)
		return np_ucp_link_error(end->link.spec, status, "asking for the worker address",
					 err);
	ret = put(end, &len, sizeof(len), err);
	if (ret == 0)
		ret = put(end, mine, len, err);
	ucp_worker_release_address(end->link.worker[0], mine);
	if (ret == 0)
		ret = get(end, &other, sizeof(other), err);
	if (ret < 0)
		return ret;
	if (other == 0 || other > ADDRESS_MAX)
		return np_ucp_peer_died("telling its address", err);
	theirs = malloc(other);
	if (!theirs)
		return np_err_nomem(err);
	ret = get(end, theirs, other, err);
	return ret < 0 ? ret : np_ucp_link_connect(&end->link, 0, theirs, err);
}

static int open_end(struct end *end, const struct np_ucp_spec *spec, uint64_t base,
		    struct np_err *err)
{
	int ret = np_ucp_link_open_half(&end->link, spec, err);

	end->link.peer_failed = peer_failed;
	end->link.peer_arg = end;
	if (ret == 0)
		ret = np_ucp_buffers_alloc(&end->buffers, spec, err);
	end->buffers.base = base;
	ret = meet(end, ret, NULL, err);
	if (ret == 0)
		ret = swap_addresses(end, err);
	return ret == -EPIPE ? ret : meet(end, ret, NULL, err);
}

/* ---- messages ---- */

/* One from side 0 to side 1 and one back; half the time on side 0. */
static int trip(struct end *end, uint64_t size, double *half_us, struct np_err *err)
{
	struct np_ucp_message m[2];
	struct np_ucp_request send = { 0 }, receive = { 0 };
	int side = end->pair->side, ret;
	const struct np_ucp_message *out = &m[side], *in = &m[1 - side];
	char doing[96];
	double start;

	for (size_t i = 0; i < 2; i++)
		np_ucp_message_next(&end->buffers, i, size, &m[i]);
	np_ucp_doing(&end->link, size, doing);
	ret = np_ucp_message_fill(&end->buffers, out, err);
	if (ret == 0)
		ret = np_ucp_message_poison(&end->buffers, in, err);
	if (ret == 0)
		np_ucp_post_receive(&end->link, 0, in, &receive);
	ret = meet(end, ret, NULL, err);
	if (ret < 0)
		return ret;
	start = np_now_us();
	if (side == 0)
		np_ucp_post_send(&end->link, 0, out, &send);
	ret = np_ucp_link_wait(&end->link, &receive, 1, doing, err);
	*half_us = (np_now_us() - start) / 2;
	if (ret == 0 && side == 1)
		np_ucp_post_send(&end->link, 0, out, &send);
	if (ret == 0)
		ret = np_ucp_link_wait(&end->link, &send, 1, doing, err);
	return ret < 0 ? ret : np_ucp_message_verify(&end->buffers, in, err);
}

/* Many more, back to back; side 0 says how many. */
static int rally(struct end *end, uint64_t size, double *half_us, struct np_err *err)
{
	struct np_ucp_message m[2];
	struct np_ucp_side side = { .link = &end->link };
	int number = end->pair->side, ret;
	double n = (double)np_ucp_rally_trips(*half_us), wanted = n;
	char doing[96];

	for (size_t i = 0; i < 2; i++)
		np_ucp_message_next(&end->buffers, i, size, &m[i]);
	side.out = &m[number];
	side.in = &m[1 - number];
	side.doing = np_ucp_doing(&end->link, size, doing);
	ret = np_ucp_message_fill(&end->buffers, side.out, err);
	if (ret == 0)
		ret = np_ucp_message_poison(&end->buffers, side.in, err);
	if (ret == 0 && number == 1)
		np_ucp_rally_ready(&side);
	ret = meet(end, ret, &wanted, err);
	if (ret < 0)
		return ret;
	if (number == 0)
		ret = np_ucp_rally_serve(&side, (size_t)n, half_us, err);
	else
		ret = np_ucp_rally_return(&side, (size_t)wanted, err);
	return ret < 0 ? ret : np_ucp_message_verify(&end->buffers, side.in, err);
}

static int latency(struct end *end, uint64_t size, double *us, struct np_err *err)
{
	double samples[NP_UCP_TRIPS_MAX], half = 0;
	size_t n = np_ucp_trips(size);
	int ret = 0;

	for (size_t i = 0; i < NP_UCP_WARM_UP + n && ret == 0; i++) {
		ret = trip(end, size, &half, err);
		if (i >= NP_UCP_WARM_UP)
			samples[i - NP_UCP_WARM_UP] = half;
		if (ret < 0) /* else the next trip says so */
			return meet(end, ret, NULL, err);
	}
	*us = np_median(samples, n);
	ret = rally(end, size, us, err);
	return ret < 0 ? meet(end, ret, NULL, err) : 0;
}

/* A window from side @from to the other: from its first send to the last arrival. */
static int window(struct end *end, uint64_t size, int from, double *MBps, struct np_err *err)
{
	struct np_ucp_request requests[NP_UCP_WINDOW_MAX] = { 0 };
	struct np_ucp_message m[NP_UCP_WINDOW_MAX];
	bool sends = end->pair->side == from;
	size_t n = np_ucp_window(size);
	double mine, theirs;
	char doing[96];
	int ret = 0;

	np_ucp_doing(&end->link, size, doing);
	for (size_t i = 0; i < n && ret == 0; i++) {
		np_ucp_message_next(&end->buffers, i, size, &m[i]);
		ret = sends ? np_ucp_message_fill(&end->buffers, &m[i], err) :
			      np_ucp_message_poison(&end->buffers, &m[i], err);
	}
	for (size_t i = 0; i < n && ret == 0 && !sends; i++)
		np_ucp_post_receive(&end->link, 0, &m[i], &requests[i]);
	ret = meet(end, ret, NULL, err);
	if (ret < 0)
		return ret;
	mine = np_now_us();
	for (size_t i = 0; i < n && sends; i++)
		np_ucp_post_send(&end->link, 0, &m[i], &requests[i]);
	ret = np_ucp_link_wait(&end->link, requests, n, doing, err);
	if (!sends)
		mine = np_now_us();
	for (size_t i = 0; i < n && ret == 0 && !sends; i++)
		ret = np_ucp_message_verify(&end->buffers, &m[i], err);
	theirs = mine; /* the clock is the same in all processes */
	ret = meet(end, ret, &theirs, err);
	*MBps = (double)(n * size) / (sends ? theirs - mine : mine - theirs);
	return ret;
}

/* Many at the rate that the window had: the side that sends counts them. */
static int measure(struct end *end, uint64_t size, int from, double *MBps, struct np_err *err)
{
	bool sends = end->pair->side == from;
	double n = (double)np_ucp_flow_length(end->link.spec, size, *MBps), theirs = n, mine;
	struct np_ucp_message m;
	struct np_ucp_flow flow;
	char doing[96];
	int ret = meet(end, 0, &theirs, err);

	if (ret < 0)
		return ret;
	n = sends ? n : theirs;
	np_ucp_message_next(&end->buffers, 0, size, &m);
	ret = sends ? np_ucp_message_fill(&end->buffers, &m, err) :
		      np_ucp_message_poison(&end->buffers, &m, err);
	np_ucp_flow_start(&flow, &m, 0, sends, (size_t)n);
	if (ret == 0 && !sends)
		np_ucp_flow_post(&end->link, &flow);
	ret = meet(end, ret, NULL, err);
	if (ret < 0)
		return ret;
	mine = np_now_us();
	ret = np_ucp_flow_run(&end->link, &flow, 1, np_ucp_doing(&end->link, size, doing), err);
	if (!sends)
		mine = flow.end_us;
	if (ret == 0 && !sends)
		ret = np_ucp_message_verify(&end->buffers, &m, err);
	theirs = mine;
	ret = meet(end, ret, &theirs, err);
	*MBps = n * (double)size / (sends ? theirs - mine : mine - theirs);
	return ret;
}

static int bandwidth(struct end *end, uint64_t size, double *MBps, struct np_err *err)
{
	double samples[2];

	for (int from = 0; from < 2; from++) {
		int ret = window(end, size, from, &samples[from], err);

		if (ret == 0 && end->pair->side == 0) /* for both */
			np_ucp_flow_turn(end->link.spec, size);
		if (ret == 0)
			ret = measure(end, size, from, &samples[from], err);
		if (end->pair->side == 0)
			np_turn_give();
		if (ret < 0)
			return ret;
	}
	*MBps = np_median(samples, 2);
	return 0;
}

static int prove_sizes(struct end *end, struct np_rung_result *result, struct np_err *err)
{
	size_t n;
	const uint64_t *sizes = np_ucp_sizes(end->link.spec, &n);

	for (size_t i = 0; i < n; i++) {
		struct np_rung_size measured = { .size_bytes = sizes[i] };
		int ret = latency(end, sizes[i], &measured.latency_us, err);

		if (ret < 0)
			return ret;
		if (i == 0) {
			ret = np_ucp_check_carrier(&end->link, result, err);
			ret = meet(end, ret, NULL, err);
		}
		if (ret == 0)
			ret = bandwidth(end, sizes[i], &measured.bandwidth_MBps, err);
		if (ret < 0)
			return ret;
		np_debug("%s: %llu B: %.2f us, %.1f MB/s", end->link.spec->rung,
			 (unsigned long long)sizes[i], measured.latency_us,
			 measured.bandwidth_MBps);
		result->sizes[result->n_sizes++] = measured;
	}
	return np_ucp_check_carrier(&end->link, result, err);
}

int np_ucp_pair_prove(struct np_ucp_pair *pair, const struct np_ucp_spec *spec, uint64_t base,
		      struct np_rung_result *result, struct np_err *err)
{
	struct end end = { .pair = pair };
	int ret = open_end(&end, spec, base, err);

	if (ret == 0) {
		ret = prove_sizes(&end, result, err);
		if (ret == 0 || ret == -EPROTO)
			ret = meet(&end, ret, NULL, err);
	}
	np_ucp_finish(&end.link, &end.buffers, ret);
	return ret;
}

/* ---- the other process ---- */

static void serve_orders(struct np_ucp_pair *pair,
			 int (*serve)(struct np_ucp_pair *pair, const struct np_ucp_order *order))
{
	struct np_ucp_order order;

	while (recv(pair->fd, &order, sizeof(order), MSG_WAITALL) == (ssize_t)sizeof(order))
		if (serve(pair, &order) != 0)
			return;
}

int np_ucp_pair_start(struct np_ucp_pair *pair,
		      int (*serve)(struct np_ucp_pair *pair, const struct np_ucp_order *order),
		      struct np_err *err)
{
	pid_t parent = getpid();
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return np_err_set(err, -errno, "internal", "socketpair: %s", strerror(errno));
	pair->child = fork();
	if (pair->child < 0) {
		close(fds[0]);
		close(fds[1]);
		return np_err_set(err, -errno, "internal", "fork: %s", strerror(errno));
	}
	pair->fd = fds[pair->child == 0];
	pair->side = pair->child == 0;
	close(fds[pair->child != 0]);
	if (pair->child != 0)
		return 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	np_gpu_workers_leave();
	if (getppid() == parent)
		serve_orders(pair, serve);
	_exit(0);
}

void np_ucp_pair_stop(struct np_ucp_pair *pair)
{
	close(pair->fd);
	pair->fd = -1;
	kill(pair->child, SIGKILL);
	waitpid(pair->child, NULL, 0);
}

int np_ucp_pair_order(struct np_ucp_pair *pair, const struct np_ucp_order *order,
		      struct np_err *err)
{
	struct np_ucp_order copy = *order;

	return transfer(pair, NULL, &copy, sizeof(copy), true, order->deadline_ms, err);
}

void np_ucp_pair_refuse(struct np_ucp_pair *pair, const struct np_err *why)
{
	struct beat beat = { .ret = why->num < 0 ? why->num : -EIO };
	struct np_err copy = *why, unused;
	int64_t until = np_now_ms() + 1000;

	if (transfer(pair, NULL, &beat, sizeof(beat), true, until, &unused) == 0 &&
	    transfer(pair, NULL, &copy, sizeof(copy), true, until, &unused) < 0)
		np_debug("the other process is gone");
}
