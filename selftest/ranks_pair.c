/* SPDX-License-Identifier: MIT */
#include "selftest/ranks_pair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "base/log.h"
#include "selftest/measure.h"
#include "selftest/pattern.h"
#include "selftest/ranks_rounds.h"
#include "selftest/ranks_ucx.h"
#include "selftest/ucp_flow.h"
#include "selftest/ucp_rally.h"

/* What two that met may take for it; a path that is cut in the middle is found by it. */
#define PAIR_MS 10000
/* How long a rank waits for its partner, who may be held up by another one that is cut. */
#define PARTNER_MS 45000
/* Who has waited less than this when the deadline comes, has not waited in vain. */
#define PATIENCE_MS 3000
/* Round trips of 8 B: a few tell how many take about TRIPS_US. */
#define TRIP_BYTES 8u
#define TRIPS_FEW  5u
#define TRIPS_MAX  200u
#define TRIPS_US   5000.0
/* Messages that measure bandwidth: so many as take about FLOW_US. */
#define FLOW_MIN 4u
#define FLOW_MAX 64u
#define FLOW_US	 5000.0

/* What partners tell each other between the measurements. */
struct word {
	uint64_t magic;
	uint32_t trial, round;
	uint64_t size_bytes; /* --size: both must have the same */
	uint64_t count;	     /* of what comes next */
	double latency_us;
};
#define MAGIC UINT64_C(0x72616e6b73303031)

/* The two of a round. */
struct pair {
	struct np_ranks *ranks;
	struct np_ranks_ucx *ucx;
	struct np_ranks_cell *cell;
	int peer, trial, round;
	bool first; /* the lower rank leads */
	double latency_us, in_MBps;
	double verify_us; /* what the verified messages took */
};

static uint64_t seed_of(const struct pair *pair, int from, int to)
{
	return np_pattern_seed((uint64_t)from << 32 | (uint32_t)to, (uint64_t)pair->trial + 1);
}

static void outgoing(const struct pair *pair, enum np_ranks_tag what, const void *tx, size_t size,
		     struct np_ucp_message *m)
{
	memset(m, 0, sizeof(*m));
	m->tag = np_ranks_tag(what, pair->trial, pair->ranks->rank);
	m->seed = seed_of(pair, pair->ranks->rank, pair->peer);
	m->tx = (char *)(uintptr_t)tx;
	m->size = size;
}

static void incoming(const struct pair *pair, enum np_ranks_tag what, void *rx, size_t size,
		     struct np_ucp_message *m)
{
	memset(m, 0, sizeof(*m));
	m->tag = np_ranks_tag(what, pair->trial, pair->peer);
	m->seed = seed_of(pair, pair->peer, pair->ranks->rank);
	m->rx = rx;
	m->size = size;
}

static int swap(struct pair *pair, const struct np_ucp_message *out,
		const struct np_ucp_message *in, int patience_ms, const char *doing,
		struct np_err *err)
{
	struct np_ucp_link *link = &pair->ucx->link;
	struct np_ucp_request requests[2] = { 0 };

	np_ucp_post_receive(link, 0, in, &requests[0]);
	np_ucp_post_send(link, 0, out, &requests[1]);
	pair->ranks->board->messages++;
	pair->ranks->board->bytes += out->size;
	if (patience_ms > 0)
		return np_ranks_await(pair->ranks, requests, 2, patience_ms, doing, err);
	return np_ucp_link_wait(link, requests, 2, doing, err);
}

/* A word each way. Its memory outlives a failure: UCX may still write to it. */
static int tell(struct pair *pair, enum np_ranks_tag what, struct word *mine, struct word *theirs,
		int patience_ms, const char *doing, struct np_err *err)
{
	struct word *o = pair->ucx->words, *i = o + 1;
	struct np_ucp_message to, from;
	int ret;

	_Static_assert(2 * sizeof(*o) <= NP_RANKS_WORDS, "too small");
	mine->magic = MAGIC;
	mine->trial = (uint32_t)pair->trial;
	mine->round = (uint32_t)pair->round;
	mine->size_bytes = pair->ranks->options->size_bytes;
	*o = *mine;
	memset(i, 0, sizeof(*i));
	outgoing(pair, what, o, sizeof(*o), &to);
	incoming(pair, what, i, sizeof(*i), &from);
	ret = swap(pair, &to, &from, patience_ms, doing, err);
	if (ret < 0)
		return ret;
	*theirs = *i;
	if (i->magic != MAGIC || i->trial != o->trial || i->round != o->round)
		return np_err_set(err, -EBADMSG, "ranks.data_corrupt",
				  "a message about the trial arrived corrupt");
	if (i->size_bytes != o->size_bytes)
		return np_err_set(err, -EPROTO, "ranks.options_differ",
				  "it has --size %llu, this rank %llu",
				  (unsigned long long)i->size_bytes,
				  (unsigned long long)o->size_bytes);
	return 0;
}

#ifdef NP_TEST_HOOKS
/* Tests only: NP_TEST_RANKS_CORRUPT="FROM:TO" flips a bit of what FROM sends to TO; "FROM:*"
 * of all that it sends. */
static void corrupt_for_test(const struct pair *pair)
{
	const char *wanted = getenv("NP_TEST_RANKS_CORRUPT");
	char this[32], any[32];

	snprintf(this, sizeof(this), "%d:%d", pair->ranks->rank, pair->peer);
	snprintf(any, sizeof(any), "%d:*", pair->ranks->rank);
	if (np_streq(wanted, this) || np_streq(wanted, any))
		pair->ucx->tx[pair->ucx->size / 2] ^= 0x10;
}
#else
static inline void corrupt_for_test(const struct pair *pair)
{
	(void)pair;
}
#endif

static int check(const struct pair *pair, const char *what, uint64_t size, struct np_err *err)
{
	struct np_pattern_diff diff;

	if (np_pattern_check(pair->ucx->rx, size, seed_of(pair, pair->peer, pair->ranks->rank),
			     &diff))
		return 0;
	return np_err_set(err, -EBADMSG, "ranks.data_corrupt",
			  "%s of trial %d arrived corrupt: byte at offset %zu of %llu is 0x%02x, "
			  "expected 0x%02x",
			  what, pair->trial, diff.offset, (unsigned long long)size, diff.got,
			  diff.expected);
}

static void poison(const struct pair *pair)
{
	np_pattern_poison(pair->ucx->rx, pair->ucx->size,
			  seed_of(pair, pair->peer, pair->ranks->rank));
}

/* The message of the guide's test: each to the other, every byte looked at. */
static int verified(struct pair *pair, struct np_err *err)
{
	struct np_ranks_ucx *ucx = pair->ucx;
	struct np_ucp_message out, in;
	double start;
	int ret;

	outgoing(pair, NP_TAG_VERIFY, ucx->tx, ucx->size, &out);
	incoming(pair, NP_TAG_VERIFY, ucx->rx, ucx->size, &in);
	np_pattern_fill(ucx->tx, ucx->size, out.seed);
	corrupt_for_test(pair);
	poison(pair);
	start = np_now_us();
	ret = swap(pair, &out, &in, 0, "sending the verified message", err);
	pair->verify_us = np_now_us() - start;
	return ret < 0 ? ret : check(pair, "the message", ucx->size, err);
}

static size_t within(double wanted, size_t least, size_t most)
{
	return wanted < (double)least ? least : wanted > (double)most ? most : (size_t)wanted;
}

/* The second one is ready before the first one begins: its receive stands before its word. */
static int rally(struct pair *pair, size_t n, double *half_us, struct np_err *err)
{
	struct np_ucp_message out, in;
	struct np_ucp_side side = {
		.link = &pair->ucx->link, .out = &out, .in = &in, .doing = "measuring latency"
	};
	struct word mine = { .count = n }, theirs;
	int ret;

	outgoing(pair, NP_TAG_TRIP, pair->ucx->tx, TRIP_BYTES, &out);
	incoming(pair, NP_TAG_TRIP, pair->ucx->rx, TRIP_BYTES, &in);
	if (!pair->first)
		np_ucp_rally_ready(&side);
	ret = tell(pair, NP_TAG_GO, &mine, &theirs, 0, "starting to measure", err);
	if (ret < 0)
		return ret;
	if (!pair->first)
		n = theirs.count;
	pair->ranks->board->messages += n;
	pair->ranks->board->bytes += n * TRIP_BYTES;
	return pair->first ? np_ucp_rally_serve(&side, n, half_us, err) :
			     np_ucp_rally_return(&side, n, err);
}

static int latency(struct pair *pair, struct np_err *err)
{
	double half_us = 0;
	int ret = rally(pair, TRIPS_FEW, &half_us, err);

	if (ret < 0)
		return ret;
	return rally(pair, within(TRIPS_US / (2 * half_us + 0.01), TRIPS_FEW, TRIPS_MAX),
		     &pair->latency_us, err);
}

/* Many messages one way, at the end what the last one brought. The clock of the receiver runs
 * from the word that comes ahead of the first. */
static int flow(struct pair *pair, bool sends, struct np_err *err)
{
	struct np_ranks_ucx *ucx = pair->ucx;
	size_t n = within(FLOW_US / (pair->verify_us + 1), FLOW_MIN, FLOW_MAX);
	struct word mine = { .count = n }, theirs;
	struct np_ucp_message m;
	struct np_ucp_flow side;
	double start;
	int ret;

	if (!sends)
		poison(pair);
	ret = tell(pair, NP_TAG_GO, &mine, &theirs, 0, "starting to measure", err);
	if (ret < 0)
		return ret;
	n = pair->first ? n : theirs.count; /* both by the leader's word */
	if (sends)
		outgoing(pair, NP_TAG_FLOW, ucx->tx, ucx->size, &m);
	else
		incoming(pair, NP_TAG_FLOW, ucx->rx, ucx->size, &m);
	start = np_now_us();
	np_ucp_flow_start(&side, &m, 0, sends, n);
	np_ucp_flow_post(&ucx->link, &side);
	ret = np_ucp_flow_run(&ucx->link, &side, 1, "measuring bandwidth", err);
	if (ret < 0)
		return ret;
	if (sends) {
		pair->ranks->board->messages += n;
		pair->ranks->board->bytes += n * ucx->size;
		return 0;
	}
	pair->in_MBps = (double)n * (double)ucx->size / (side.end_us - start);
	return check(pair, "the last of many messages", ucx->size, err);
}

/* Index of what carries messages to the peer, in the board's list. */
static void note_lane(struct pair *pair)
{
	struct np_ranks_board *board = pair->ranks->board;
	struct np_ucx_lanes lanes;
	char text[sizeof(board->lanes[0])];
	uint32_t i;

	if (np_ucp_link_lanes(&pair->ucx->link, &lanes, NULL) < 0)
		return;
	np_ucx_lanes_str(&lanes, text, sizeof(text));
	for (i = 0; i < board->n_lanes; i++)
		if (np_streq(board->lanes[i], text))
			break;
	if (i == NP_RANKS_LANES_MAX)
		return;
	if (i == board->n_lanes) {
		np_strcpy(board->lanes[i], sizeof(board->lanes[i]), text);
		board->n_lanes++;
	}
	pair->cell->lane = (uint8_t)(i + 1);
}

static void keep_best(struct pair *pair)
{
	struct np_ranks_cell *cell = pair->cell;

	if (cell->latency_us <= 0 || pair->latency_us < (double)cell->latency_us)
		cell->latency_us = (float)pair->latency_us;
	if (pair->in_MBps > (double)cell->in_MBps)
		cell->in_MBps = (float)pair->in_MBps;
	cell->trials++;
	if (cell->status == NP_CELL_NONE)
		cell->status = NP_CELL_OK;
}

/* Corrupt data is no reason to leave the partner alone: the measurement goes on. */
static int remember_corrupt(struct pair *pair, int ret, const struct np_err *why)
{
	if (ret != -EBADMSG)
		return ret;
	if (pair->cell->status != NP_CELL_CORRUPT)
		np_ranks_cell_fail(pair->ranks, pair->peer, NP_CELL_CORRUPT, why);
	pair->ucx->peers[pair->peer].cut = false;
	return 0;
}

static int measure(struct pair *pair, struct np_err *err)
{
	struct word mine = { 0 }, theirs = { 0 };
	int ret = remember_corrupt(pair, verified(pair, err), err);

	if (ret == 0)
		ret = latency(pair, err);
	for (int leg = 0; leg < 2 && ret == 0; leg++)
		ret = remember_corrupt(pair, flow(pair, pair->first == (leg == 0), err), err);
	if (ret < 0)
		return ret;
	mine.latency_us = pair->latency_us;
	ret = tell(pair, NP_TAG_RESULT, &mine, &theirs, 0, "ending the trial", err);
	if (ret < 0)
		return ret;
	if (!pair->first)
		pair->latency_us = theirs.latency_us;
	note_lane(pair);
	keep_best(pair);
	return 0;
}

/* Nobody came, and nothing says that the way is cut; or it just became late. */
static int stalled(struct pair *pair, int64_t waited_ms, struct np_err *err)
{
	struct np_ranks *ranks = pair->ranks;
	char why[256];

	np_strcpy(why, sizeof(why), err->message);
	if (waited_ms < PATIENCE_MS) {
		np_err_set(err, -ETIMEDOUT, "ranks.late",
			   "the deadline came in trial %d, round %d of %d", pair->trial,
			   pair->round, np_ranks_rounds(ranks->size));
		np_err_hint(err, "allow more time with --timeout, or ask for fewer --trials");
		return -ETIMEDOUT;
	}
	ranks->board->err_peer = pair->peer;
	np_err_set(err, -ETIMEDOUT, "ranks.stalled",
		   "rank %d on %s waited in vain for rank %d on %s in trial %d: %s", ranks->rank,
		   ranks->hosts[ranks->rank], pair->peer, ranks->hosts[pair->peer], pair->trial,
		   why);
	np_err_hint(err, "look at that host and the way to it, or allow more time with --timeout");
	return -ETIMEDOUT;
}

static int broken(struct pair *pair, const struct np_err *why, struct np_err *err)
{
	struct np_err shown = *why;

	if (!np_starts_with(shown.code, "ranks."))
		np_strcpy(shown.code, sizeof(shown.code), "ranks.pair_failed");
	np_ranks_cell_fail(pair->ranks, pair->peer, NP_CELL_MISSING, &shown);
	return np_ranks_new_buffers(pair->ranks, err);
}

static int meet(struct pair *pair, struct np_err *err)
{
	struct np_ranks *ranks = pair->ranks;
	bool alone = ranks->options->close_endpoints;
	struct word mine = { 0 }, theirs;
	int64_t start = np_now_ms();
	struct np_err why;
	int ret;

	np_err_clear(&why);
	ret = np_ranks_turn_to(ranks, pair->peer, alone ? PAIR_MS : PARTNER_MS, &why);
	if (ret == 0)
		ret = tell(pair, NP_TAG_SYNC, &mine, &theirs, alone ? PAIR_MS : PARTNER_MS,
			   "waiting for it", &why);
	if (ret == -ETIMEDOUT && !alone) {
		*err = why;
		return stalled(pair, np_now_ms() - start, err);
	}
	if (ret == 0) {
		start = np_now_ms();
		ret = np_ranks_turn_to(ranks, pair->peer, PAIR_MS, &why);
	}
	if (ret == 0)
		ret = measure(pair, &why);
	if (ret == -ETIMEDOUT && ranks->deadline_ms - start < PATIENCE_MS) {
		*err = why; /* the deadline came, that is all */
		return stalled(pair, 0, err);
	}
	ret = ret < 0 ? broken(pair, &why, err) : 0;
	if (alone)
		np_ranks_close(ranks, pair->peer);
	return ret;
}

static int one_round(struct np_ranks *ranks, int trial, int round, struct np_err *err)
{
	int peer = np_ranks_partner(ranks->size, round, ranks->rank);
	struct pair pair = { .ranks = ranks,
			     .ucx = ranks->ucx,
			     .peer = peer,
			     .trial = trial,
			     .round = round,
			     .first = ranks->rank < peer };
	int ret = 0;

	np_ranks_tick(ranks);
	ranks->board->trial = trial;
	ranks->board->round = round;
	if (ranks->options->close_endpoints)
		ret = np_ranks_fence(ranks, "the start of a round", err);
	if (ret < 0 || peer < 0 || ranks->ucx->peers[peer].cut)
		return ret;
	pair.cell = &ranks->board->cells[peer];
	ranks->board->peer = peer;
	ret = meet(&pair, err);
	ranks->board->peer = -1;
	return ret;
}

int np_ranks_all_rounds(struct np_ranks *ranks, struct np_err *err)
{
	int64_t start = np_now_ms();
	int ret = 0;

	ranks->board->phase = NP_PHASE_ROUNDS;
	for (int trial = 0; trial < ranks->options->trials && ret == 0; trial++)
		for (int round = 0; round < np_ranks_rounds(ranks->size) && ret == 0; round++)
			ret = one_round(ranks, trial, round, err);
	ranks->board->rounds_ms = (uint64_t)(np_now_ms() - start);
	return ret;
}
