/* SPDX-License-Identifier: MIT */
#include "selftest/verbs_move.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/child.h"
#include "base/log.h"
#include "selftest/measure.h"
#include "selftest/pattern.h"

/* The clock is read, and errors are looked for, once in so many empty polls. */
#define CLOCK_EVERY 4096
/* Every so many sends ask for a completion; the others are covered by the next. */
#define SIGNAL_EVERY 32u
#define POLL_BATCH   16

#define PINGPONG_MIN  3u
#define PINGPONG_MAX  5000u
#define PINGPONG_WARM 10u
#define PINGPONG_MS   100 /* per size; with full four times that */
#define ROUND_TRIPS   200u
#define ROUNDS	      3u /* of windows, each way */
#define ROUND_MS      40 /* each; with full four times that */
#define ROUND_MIN     2u
#define ROUND_MAX     (1u << 22)
#define FIRST_BYTES   (16u << 20) /* the round that tells how many the others take */
#define FULL_TIMES    4

static int completion_failed(const struct np_verbs_link *link, int end, const struct ibv_wc *wc,
			     struct np_err *err)
{
	const char *name = link->end[end].dev.port.name, *peer = link->end[1 - end].dev.port.name;
	bool lost = wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_RNR_RETRY_EXC_ERR;

	if (lost) {
		np_err_set(err, -EHOSTUNREACH, "selftest.verbs.no_path",
			   "%s got no acknowledgement from %s: %s (vendor error 0x%x)", name, peer,
			   ibv_wc_status_str(wc->status), wc->vendor_err);
		np_err_hint(err, "%s",
			    link->path.grh ?
				    "check the GIDs, VLANs and addresses of both ports, and that "
				    "the fabric carries RoCE" :
				    "see that both ports are on one fabric (ibtracert), and their "
				    "error counters");
		return -EHOSTUNREACH;
	}
	np_err_set(err, -EIO, "selftest.verbs.completion",
		   "a work request on %s to %s ended with %s (vendor error 0x%x)", name, peer,
		   ibv_wc_status_str(wc->status), wc->vendor_err);
	np_err_hint(err, "read the kernel log for messages of the HCA's driver");
	return -EIO;
}

/* What a poll found: the last send of a row that is done, and receives. */
struct progress {
	uint64_t sent; /* wr_id of the newest completion of a send */
	unsigned int received;
};

static int poll_once(struct np_verbs_link *link, int end, struct progress *progress,
		     struct np_err *err)
{
	struct ibv_wc wc[POLL_BATCH];
	int n = ibv_poll_cq(link->end[end].cq, POLL_BATCH, wc);

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			return completion_failed(link, end, &wc[i], err);
		if (wc[i].opcode & IBV_WC_RECV)
			progress->received++;
		else
			progress->sent = wc[i].wr_id;
	}
	if (n >= 0)
		return n;
	np_err_set(err, -EIO, "selftest.verbs.completion",
		   "the completion queue on %s cannot be read", link->end[end].dev.port.name);
	np_err_hint(err, "read the kernel log for messages of the HCA's driver");
	return -EIO;
}

static int too_late(uint64_t size, struct np_err *err)
{
	char doing[64], text[32];

	snprintf(doing, sizeof(doing), "sending %s over verbs", np_size_str(size, text));
	return np_too_late(doing, err);
}

/* Until the send with @wr_id is done, and @received receives are. */
static int wait_for(struct np_verbs_link *link, int end, struct progress *progress, uint64_t wr_id,
		    unsigned int received, uint64_t size, struct np_err *err)
{
	for (unsigned int empty = 0; progress->sent < wr_id || progress->received < received;) {
		int n = poll_once(link, end, progress, err);

		if (n < 0)
			return n;
		if (n == 0 && ++empty % CLOCK_EVERY == 0 && np_now_ms() >= link->deadline_ms)
			return too_late(size, err);
	}
	return 0;
}

static int refused(const struct np_verbs_link *link, int end, int num, struct np_err *err)
{
	np_err_set(err, -num, "selftest.verbs.post", "a work request on %s was refused: %s",
		   link->end[end].dev.port.name, strerror(num));
	np_err_hint(err, "read the kernel log for messages of the HCA's driver");
	return -num;
}

/* A work request from tx of one end to rx of the other, made once and posted often. */
struct request {
	struct ibv_sge sge;
	struct ibv_send_wr wr;
};

static void make_request(const struct np_verbs_link *link, int from, enum ibv_wr_opcode opcode,
			 uint64_t size, struct request *out)
{
	const struct np_verbs_end *end = &link->end[from], *peer = &link->end[1 - from];

	memset(out, 0, sizeof(*out));
	out->sge.addr = (uintptr_t)end->tx;
	out->sge.length = (uint32_t)size;
	out->sge.lkey = end->mr->lkey;
	out->wr.sg_list = &out->sge;
	out->wr.num_sge = size ? 1 : 0;
	out->wr.opcode = opcode;
	out->wr.send_flags = size && size <= end->inline_max ? IBV_SEND_INLINE : 0;
	out->wr.wr.rdma.remote_addr = (uintptr_t)peer->rx;
	out->wr.wr.rdma.rkey = peer->mr->rkey;
}

static inline int post(struct np_verbs_link *link, int from, struct request *request,
		       uint64_t wr_id, bool signaled)
{
	struct ibv_send_wr *bad;

	request->wr.wr_id = wr_id;
	if (signaled)
		request->wr.send_flags |= IBV_SEND_SIGNALED;
	else
		request->wr.send_flags &= ~(unsigned int)IBV_SEND_SIGNALED;
	return ibv_post_send(link->end[from].qp, &request->wr, &bad);
}

static int post_receive(struct np_verbs_link *link, int end, uint64_t size, struct np_err *err)
{
	struct ibv_sge sge = { .addr = (uintptr_t)link->end[end].rx,
			       .length = (uint32_t)size,
			       .lkey = link->end[end].mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = size ? 1 : 0 }, *bad;
	int ret = ibv_post_recv(link->end[end].qp, &wr, &bad);

	return ret ? refused(link, end, ret, err) : 0;
}

/* One message that the receiver is told of, so that its memory is sure to hold all. */
static int send_one(struct np_verbs_link *link, int from, enum ibv_wr_opcode opcode, uint64_t size,
		    struct np_err *err)
{
	struct progress sent = { 0 }, received = { 0 };
	struct request request;
	int ret;

	make_request(link, from, opcode, size, &request);
	ret = post_receive(link, 1 - from, opcode == IBV_WR_SEND ? size : 0, err);
	if (ret < 0)
		return ret;
	ret = post(link, from, &request, 1, true);
	if (ret)
		return refused(link, from, ret, err);
	ret = wait_for(link, from, &sent, 1, 0, size, err);
	if (ret == 0)
		ret = wait_for(link, 1 - from, &received, 0, 1, size, err);
	link->moved_bytes += size;
	return ret;
}

/* A new payload in tx of @from, its complement in rx of the other end. */
static int prepare(struct np_verbs_link *link, int from, uint64_t size, uint64_t *seed,
		   struct np_err *err)
{
	const struct np_verbs_mem *mem = link->mem;
	char *tx = link->end[from].tx, *rx = link->end[1 - from].rx;
	int ret = 0;

	*seed = np_pattern_seed(link->seed_base, ++link->sequence);
	np_pattern_fill(mem ? link->host : tx, size, *seed);
	if (mem)
		ret = mem->write(mem->ctx, tx, link->host, size, err);
	np_pattern_poison(mem ? link->host : rx, size, *seed);
	if (mem && ret == 0)
		ret = mem->write(mem->ctx, rx, link->host, size, err);
	return ret;
}

static int verify(struct np_verbs_link *link, int from, uint64_t size, uint64_t seed,
		  struct np_err *err)
{
	const struct np_verbs_mem *mem = link->mem;
	char *rx = link->end[1 - from].rx;
	int ret = mem ? mem->read(mem->ctx, link->host, rx, size, err) : 0;

	if (ret < 0)
		return ret;
	return np_message_verify(mem ? link->host : rx, size, seed, ++link->verified, err);
}

static int verify_messages(struct np_verbs_link *link, uint64_t size, struct np_err *err)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND };

	for (size_t i = 0; i < NP_ARRAY_SIZE(opcodes); i++) {
		for (int from = 0; from < 2; from++) {
			uint64_t seed;
			int ret = prepare(link, from, size, &seed, err);

			if (ret == 0)
				ret = send_one(link, from, opcodes[i], size, err);
			if (ret == 0)
				ret = verify(link, from, size, seed, err);
			if (ret < 0)
				return ret;
		}
	}
	return 0;
}

/* ---- latency ---- */

struct ping_pong {
	struct request request[2];
	struct progress progress[2];
	uint64_t size, n;
};

/* Spins on the last byte of a message: it is there when the byte has that value. */
static int spin(struct np_verbs_link *link, struct ping_pong *game, int end, char value,
		struct np_err *err)
{
	const volatile char *last = link->end[end].rx + game->size - 1;

	for (unsigned int round = 1; *last != value; round++) {
		int ret;

		if (round % CLOCK_EVERY)
			continue;
		ret = poll_once(link, 1 - end, &game->progress[1 - end], err);
		if (ret < 0) /* a failed send never arrives */
			return ret;
		if (np_now_ms() >= link->deadline_ms)
			return too_late(game->size, err);
	}
	return 0;
}

/* There and back. */
static int volley(struct np_verbs_link *link, struct ping_pong *game, struct np_err *err)
{
	uint64_t n = ++game->n;
	bool signaled = n % SIGNAL_EVERY == 0;
	char value = (char)(n % 255 + 1);

	for (int from = 0; from < 2; from++) {
		int ret;

		link->end[from].tx[game->size - 1] = value;
		ret = post(link, from, &game->request[from], n, signaled);
		if (ret)
			return refused(link, from, ret, err);
		ret = spin(link, game, 1 - from, value, err);
		if (ret < 0)
			return ret;
	}
	for (int from = 0; signaled && from < 2; from++) {
		int ret = wait_for(link, from, &game->progress[from], n, 0, game->size, err);

		if (ret < 0)
			return ret;
	}
	return 0;
}

/* The sends since the last completion: one more that has one. */
static int finish(struct np_verbs_link *link, struct ping_pong *game, struct np_err *err)
{
	while (game->n % SIGNAL_EVERY) {
		int ret = volley(link, game, err);

		if (ret < 0)
			return ret;
	}
	return 0;
}

static int play(struct np_verbs_link *link, struct ping_pong *game, bool full, double *latency_us,
		struct np_err *err)
{
	int64_t until = np_now_ms() + PINGPONG_MS * (full ? FULL_TIMES : 1);
	static double samples[PINGPONG_MAX];
	double start, now;
	size_t n = 0;

	for (unsigned int i = 0; i < PINGPONG_WARM; i++) {
		int ret = volley(link, game, err);

		if (ret < 0)
			return ret;
		if (np_now_ms() >= until)
			break;
	}
	start = np_now_us();
	while (n < PINGPONG_MAX) {
		int ret = volley(link, game, err);

		if (ret < 0)
			return ret;
		now = np_now_us();
		samples[n++] = (now - start) / 2;
		start = now;
		if (n >= PINGPONG_MIN && n % 16 == PINGPONG_MIN && np_now_ms() >= until)
			break;
	}
	*latency_us = np_median(samples, n);
	return finish(link, game, err);
}

static int measure_latency(struct np_verbs_link *link, bool full, struct np_rung_size *size,
			   struct np_err *err)
{
	struct ping_pong game = { .size = size->size_bytes };
	uint64_t seed[2];
	char last[2];
	int ret;

	for (int from = 0; from < 2; from++) {
		ret = prepare(link, from, game.size, &seed[from], err);
		if (ret < 0)
			return ret;
		last[from] = link->end[from].tx[game.size - 1];
		link->end[1 - from].rx[game.size - 1] = 0;
		make_request(link, from, IBV_WR_RDMA_WRITE, game.size, &game.request[from]);
	}
	ret = play(link, &game, full, &size->latency_us, err);
	link->moved_bytes += 2 * game.n * game.size;
	for (int from = 0; from < 2 && ret == 0; from++) {
		ret = send_one(link, from, IBV_WR_RDMA_WRITE_WITH_IMM, 0, err); /* all is there */
		if (ret < 0)
			break;
		link->end[1 - from].rx[game.size - 1] = last[from];
		ret = verify(link, from, game.size, seed[from], err);
	}
	return ret;
}

/* Memory that the CPU cannot watch: there and back by completions. */
static int measure_round_trips(struct np_verbs_link *link, struct np_rung_size *size,
			       struct np_err *err)
{
	int64_t until = np_now_ms() + PINGPONG_MS;
	double samples[ROUND_TRIPS];
	size_t n = 0;

	while (n < ROUND_TRIPS && (n < PINGPONG_MIN || np_now_ms() < until)) {
		double start = np_now_us();

		for (int from = 0; from < 2; from++) {
			int ret = send_one(link, from, IBV_WR_RDMA_WRITE_WITH_IMM, size->size_bytes,
					   err);

			if (ret < 0)
				return ret;
		}
		samples[n++] = (np_now_us() - start) / 2;
	}
	size->latency_us = np_median(samples, n);
	return 0;
}

/* ---- bandwidth ---- */

/* @n messages one way, a window of them outstanding. */
static int stream(struct np_verbs_link *link, int from, uint64_t size, uint64_t n, double *us,
		  struct np_err *err)
{
	struct progress progress = { 0 };
	struct request request;
	uint64_t posted = 0;
	unsigned int empty = 0;
	double start;

	make_request(link, from, IBV_WR_RDMA_WRITE, size, &request);
	start = np_now_us();
	while (progress.sent < n) {
		int ret;

		while (posted < n && posted - progress.sent < NP_VERBS_DEPTH) {
			posted++;
			ret = post(link, from, &request, posted,
				   posted % SIGNAL_EVERY == 0 || posted == n);
			if (ret)
				return refused(link, from, ret, err);
		}
		ret = poll_once(link, from, &progress, err);
		if (ret < 0)
			return ret;
		if (ret == 0 && ++empty % CLOCK_EVERY == 0 && np_now_ms() >= link->deadline_ms)
			return too_late(size, err);
	}
	*us = np_now_us() - start;
	link->moved_bytes += n * size;
	return 0;
}

static uint64_t between(double wanted, uint64_t least, uint64_t most)
{
	if (wanted < (double)least)
		return least;
	return wanted > (double)most ? most : (uint64_t)wanted;
}

/* How many messages take a round's time, from a first, short one. */
static int count_messages(struct np_verbs_link *link, bool full, uint64_t size, uint64_t *n,
			  struct np_err *err)
{
	double round_us = 1000.0 * ROUND_MS * (full ? FULL_TIMES : 1), us = 1;
	uint64_t first = between((double)FIRST_BYTES / (double)size, ROUND_MIN, 4 * NP_VERBS_DEPTH);
	int ret = stream(link, 0, size, first, &us, err);

	if (ret == 0)
		*n = between((double)first * round_us / us, ROUND_MIN, ROUND_MAX);
	return ret;
}

static int measure_bandwidth(struct np_verbs_link *link, bool full, struct np_rung_size *size,
			     struct np_err *err)
{
	uint64_t seed[2], bytes = size->size_bytes, n = 0;
	double samples[2 * ROUNDS];
	size_t taken = 0;
	int ret = 0;

	for (int from = 0; from < 2 && ret == 0; from++)
		ret = prepare(link, from, bytes, &seed[from], err);
	if (ret == 0)
		ret = count_messages(link, full, bytes, &n, err);
	for (unsigned int round = 0; round < ROUNDS && ret == 0; round++) {
		for (int from = 0; from < 2 && ret == 0; from++) {
			double us = 0;

			ret = stream(link, from, bytes, n, &us, err);
			samples[taken++] = us > 0 ? (double)(n * bytes) / us : 0;
		}
	}
	for (int from = 0; from < 2 && ret == 0; from++) {
		ret = send_one(link, from, IBV_WR_RDMA_WRITE_WITH_IMM, 0, err);
		if (ret == 0)
			ret = verify(link, from, bytes, seed[from], err);
	}
	if (ret == 0)
		size->bandwidth_MBps = np_median(samples, taken);
	return ret;
}

int np_verbs_prove_size(struct np_verbs_link *link, bool full, struct np_rung_size *size,
			struct np_err *err)
{
	int ret = verify_messages(link, size->size_bytes, err);

	if (ret == 0)
		ret = link->mem ? measure_round_trips(link, size, err) :
				  measure_latency(link, full, size, err);
	if (ret == 0)
		ret = measure_bandwidth(link, full, size, err);
	if (ret == 0)
		np_debug("verbs: %llu B: %.2f us, %.1f MB/s", (unsigned long long)size->size_bytes,
			 size->latency_us, size->bandwidth_MBps);
	return ret;
}
