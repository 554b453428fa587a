/* SPDX-License-Identifier: MIT */
/* Findings of the matrices, of the allreduce, and of what differs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "selftest/ranks_judge.h"
#include "selftest/ranks_odd.h"
#include "selftest/ranks_verdict.h"

/* Four digits are enough. */
#define PLACES(value) ((value) < 10 ? 2 : (value) < 1000 ? 1 : 0)
/* More pairs of hosts than this are counted only. */
#define PAIRS_SHOWN 20

/* One kind of bad cell: how it is told. */
struct kind {
	const char *code_node, *code_path;
	enum np_ranks_weight weight;
	const char *sends, *receives, *both; /* of a rank: a whole row, column, both */
	const char *path;
	const char *hint_node, *hint_path;
	const float *value; /* NULL = none */
	double usual;
	const char *unit;
	const char *where; /* "between hosts", "within hosts"; "" */
};

/* NULL: @at has said nothing, or there was no room for it. */
static const struct np_ranks_note *note_of(const struct np_ranks_job *job, int at, int about)
{
	const struct np_ranks_board *board = job->boards[at];

	for (uint32_t i = 0; board && i < board->n_notes && i < NP_RANKS_NOTES_MAX; i++)
		if (board->notes[i].peer == about)
			return &board->notes[i];
	return NULL;
}

/* The median of a rank's row and column tells how bad. */
static double typical(const struct kind *kind, const uint8_t *there, int n, int rank, bool row)
{
	double sum = 0;
	int count = 0;

	for (int i = 0; i < n; i++) {
		size_t cell = row ? (size_t)rank * (size_t)n + (size_t)i :
				    (size_t)i * (size_t)n + (size_t)rank;

		if (there[cell] && kind->value[cell] > 0) {
			sum += (double)kind->value[cell];
			count++;
		}
	}
	return count ? sum / count : 0;
}

static void add_node(const struct np_ranks_job *job, struct np_ranks_verdict *verdict,
		     const struct kind *kind, const uint8_t *there,
		     const struct np_ranks_shape *shape, int rank)
{
	const char *what = shape->row[rank] && shape->column[rank] ? kind->both :
			   shape->row[rank]			   ? kind->sends :
								     kind->receives;
	char name[160], figures[120] = "";
	double value = 0;

	np_ranks_name(job, rank, name);
	if (kind->value)
		value = typical(kind, there, job->size, rank, shape->row[rank]);
	if (kind->value)
		snprintf(figures, sizeof(figures), ": %.*f %s, usual is %.*f", PLACES(value), value,
			 kind->unit, PLACES(kind->usual), kind->usual);
	np_ranks_verdict_add(verdict, kind->weight, kind->code_node, name, kind->hint_node,
			     "%s %s%s%s", name, what, kind->where, figures);
}

/* Ranks of the same two hosts with the same trouble are told once. */
struct host_pairs {
	int *host; /* number of a rank's host */
	size_t n;  /* hosts */
	uint32_t *count;
	uint8_t *told;
};

static void host_pairs_done(struct host_pairs *pairs)
{
	free(pairs->host);
	free(pairs->count);
	free(pairs->told);
}

static size_t pair_at(const struct host_pairs *pairs, int from, int to)
{
	size_t a = (size_t)pairs->host[from], b = (size_t)pairs->host[to];

	return a < b ? a * pairs->n + b : b * pairs->n + a;
}

/* From low to high, or from high to low where only that way is bad. */
static bool first_of_both(const struct np_ranks_shape *shape, int from, int to)
{
	size_t n = (size_t)shape->n;

	return shape->single[(size_t)from * n + (size_t)to] &&
	       (from < to || !shape->single[(size_t)to * n + (size_t)from]);
}

static int host_pairs_make(const struct np_ranks_job *job, const struct np_ranks_shape *shape,
			   struct host_pairs *out)
{
	memset(out, 0, sizeof(*out));
	out->host = malloc((size_t)job->size * sizeof(*out->host));
	for (int i = 0; out->host && i < job->size; i++) {
		int like = 0;

		while (!np_streq(job->hosts[like], job->hosts[i]))
			like++;
		out->host[i] = like < i ? out->host[like] : (int)out->n++;
	}
	if (!out->host || out->n == 0)
		return -ENOMEM;
	out->count = calloc(out->n * out->n, sizeof(*out->count));
	out->told = calloc(out->n * out->n, 1);
	if (!out->count || !out->told)
		return -ENOMEM;
	for (int i = 0; i < job->size; i++)
		for (int j = 0; j < job->size; j++)
			out->count[pair_at(out, i, j)] += first_of_both(shape, i, j);
	return 0;
}

static void add_path(const struct np_ranks_job *job, struct np_ranks_verdict *verdict,
		     const struct kind *kind, const struct np_ranks_shape *shape,
		     const struct host_pairs *pairs, int from, int to)
{
	size_t n = (size_t)job->size, cell = (size_t)from * n + (size_t)to;
	bool both = shape->single[(size_t)to * n + (size_t)from];
	const struct np_ranks_note *note = kind->value ? NULL : note_of(job, to, from);
	char one[160], other[160], target[360], more_text[64] = "", figures[120] = "";
	uint32_t more = pairs->count[pair_at(pairs, from, to)] - 1;
	double value = kind->value ? (double)kind->value[cell] : 0;

	np_ranks_name(job, from, one);
	np_ranks_name(job, to, other);
	/* the pair has one name, whichever way is bad */
	snprintf(target, sizeof(target), "%s and %s", from < to ? one : other,
		 from < to ? other : one);
	if (more > 0)
		snprintf(more_text, sizeof(more_text), ", and %u more pair%s of these hosts", more,
			 more == 1 ? "" : "s");
	if (kind->value)
		snprintf(figures, sizeof(figures), ": %.*f %s, usual is %.*f", PLACES(value), value,
			 kind->unit, PLACES(kind->usual), kind->usual);
	np_ranks_verdict_add(verdict, kind->weight, kind->code_path, target, kind->hint_path,
			     "%s %s %s %s%s%s: %s", both ? "between" : "from", one,
			     both ? "and" : "to", other, more_text, figures,
			     note && note->message[0] ? note->message : kind->path);
}

static void add_paths(const struct np_ranks_job *job, struct np_ranks_verdict *verdict,
		      const struct kind *kind, const struct np_ranks_shape *shape)
{
	struct host_pairs pairs;
	int shown = 0;

	if (host_pairs_make(job, shape, &pairs) < 0)
		verdict->no_memory = true;
	for (int i = 0; i < job->size && !verdict->no_memory; i++) {
		for (int j = 0; j < job->size; j++) {
			if (!first_of_both(shape, i, j) || pairs.told[pair_at(&pairs, i, j)])
				continue;
			pairs.told[pair_at(&pairs, i, j)] = 1;
			if (shown++ < PAIRS_SHOWN)
				add_path(job, verdict, kind, shape, &pairs, i, j);
		}
	}
	if (shown > PAIRS_SHOWN)
		np_ranks_verdict_add(verdict, kind->weight, kind->code_path, "the job",
				     kind->hint_path, "%d more pairs of hosts: %s",
				     shown - PAIRS_SHOWN, kind->path);
	host_pairs_done(&pairs);
}

static void add_kind(const struct np_ranks_job *job, struct np_ranks_verdict *verdict,
		     const struct kind *kind, const uint8_t *there, const uint8_t *bad)
{
	struct np_ranks_shape shape;

	if (np_ranks_shape_make(job->size, there, bad, &shape) < 0) {
		verdict->no_memory = true;
		return;
	}
	for (int i = 0; i < job->size; i++)
		if (shape.row[i] || shape.column[i])
			add_node(job, verdict, kind, there, &shape, i);
	if (shape.n_single > 0)
		add_paths(job, verdict, kind, &shape);
	np_ranks_shape_done(&shape);
}

/* ---- missing and corrupt ---- */

static const struct kind missing = {
	.code_node = "ranks.node_unreachable",
	.code_path = "ranks.unreachable",
	.weight = NP_FINDING_FAIL,
	.sends = "reaches nobody",
	.receives = "hears nobody",
	.both = "reaches and hears nobody",
	.path = "no message came through",
	.where = "",
	.hint_node = "look at that port: nodeprep check and nodeprep selftest on that host",
	.hint_path = "look at the cables, switches, partitions, routes and filters between the two",
};

static const struct kind corrupt = {
	.code_node = "ranks.node_corrupt",
	.code_path = "ranks.data_corrupt",
	.weight = NP_FINDING_FAIL,
	.sends = "sends corrupt data to everybody",
	.receives = "gets corrupt data from everybody",
	.both = "sends and gets corrupt data",
	.path = "data arrived corrupt",
	.where = "",
	.hint_node = "take that node out of service and test its HCA, memory and PCIe link",
	.hint_path = "look at the error counters of the ports and switches between the two",
};

/* A cell counts as tried once either side has a verdict on it. */
static void mark_status(const struct np_ranks_verdict *verdict, int n, uint8_t status,
			uint8_t *there, uint8_t *bad)
{
	for (size_t i = 0; i < (size_t)n * (size_t)n; i++) {
		there[i] = verdict->status[i] != NP_CELL_NONE;
		bad[i] = verdict->status[i] == status;
	}
}

/* @from gave up because of somebody else and took its endpoints with it: what its peers then
 * miss says nothing of their ways to it. Who waited for an answer until its time was up has no
 * broken endpoint. */
static bool left(const struct np_ranks_job *job, int from, int to)
{
	const struct np_ranks_board *board = job->boards[from];
	const struct np_ranks_note *note = note_of(job, to, from);

	if (note && !np_streq(note->code, "ranks.ucx"))
		return false;
	return board && board->err.num < 0 && np_ranks_may_follow(&board->err) &&
	       board->err_peer != to && board->cells[to].status <= NP_CELL_OK;
}

static void leave_out_those_who_left(const struct np_ranks_job *job, uint8_t *there, uint8_t *bad)
{
	size_t n = (size_t)job->size;

	for (size_t i = 0; i < n * n; i++)
		if (bad[i] && left(job, (int)(i / n), (int)(i % n)))
			there[i] = bad[i] = 0;
}

void np_ranks_judge_cells(const struct np_ranks_job *job, struct np_ranks_verdict *verdict)
{
	size_t cells = (size_t)job->size * (size_t)job->size;
	uint8_t *there = calloc(cells, 1), *bad = calloc(cells, 1);

	if (!there || !bad)
		verdict->no_memory = true;
	/* who died or hangs is missing to everybody */
	if (!verdict->no_memory && verdict->n_fail == 0) {
		mark_status(verdict, job->size, NP_CELL_MISSING, there, bad);
		leave_out_those_who_left(job, there, bad);
		add_kind(job, verdict, &missing, there, bad);
	}
	if (!verdict->no_memory) {
		mark_status(verdict, job->size, NP_CELL_CORRUPT, there, bad);
		add_kind(job, verdict, &corrupt, there, bad);
	}
	free(there);
	free(bad);
}

/* ---- slow ---- */

/* With more ranks than processors a rank waits for its turn, not for the network. */
static bool crowded(const struct np_ranks_job *job, struct np_ranks_verdict *verdict)
{
	for (int i = 0; i < job->size; i++) {
		uint64_t cpus = 0, ranks = 0;

		if (np_parse_u64(np_ranks_card_get(&job->cards[i], "cpus"), 10, UINT32_MAX, &cpus) <
		    0)
			continue;
		for (int j = 0; j < job->size; j++)
			ranks += np_streq(job->hosts[i], job->hosts[j]);
		if (ranks <= cpus)
			continue;
		np_ranks_verdict_add(verdict, NP_FINDING_SKIP, "ranks.crowded", job->hosts[i],
				     "start no more ranks on a host than it has processors",
				     "%s has %llu processors for %llu ranks: who is slow is not "
				     "judged",
				     job->hosts[i], (unsigned long long)cpus,
				     (unsigned long long)ranks);
		return true;
	}
	return false;
}

static void judge_class(const struct np_ranks_job *job, struct np_ranks_verdict *verdict,
			struct kind *kind, bool apart, bool more, uint8_t *there, uint8_t *bad)
{
	int n = job->size;

	for (size_t i = 0; i < (size_t)n * (size_t)n; i++)
		there[i] = verdict->status[i] == NP_CELL_OK && (verdict->apart[i] != 0) == apart;
	kind->where = apart ? " between hosts" : " within its host";
	kind->usual = np_ranks_usual(n, there, kind->value, more);
	if (np_ranks_slow_cells(n, there, kind->value, kind->usual, job->options->factor, more,
				bad) > 0)
		add_kind(job, verdict, kind, there, bad);
}

void np_ranks_judge_speed(const struct np_ranks_job *job, struct np_ranks_verdict *verdict)
{
	struct kind latency = {
		.weight = NP_FINDING_WARN,
		.code_node = "ranks.node_slow",
		.code_path = "ranks.pair_slow",
		.sends = "has a long latency to most",
		.receives = "has a long latency from most",
		.both = "has a long latency to and from most",
		.path = "this pair has a long latency",
		.hint_node =
			"compare that node's link, PCIe and processor settings with the others'",
		.hint_path = "look at the links and switches between the two",
		.value = verdict->latency_us,
		.unit = "us",
	};
	struct kind bandwidth = latency;
	size_t cells = (size_t)job->size * (size_t)job->size;
	uint8_t *there = calloc(cells, 1), *bad = calloc(cells, 1);
	bool judged = !crowded(job, verdict);

	bandwidth.sends = "sends slowly to most";
	bandwidth.receives = "receives slowly from most";
	bandwidth.both = "sends and receives slowly";
	bandwidth.path = "this pair is slow";
	bandwidth.value = verdict->bandwidth_MBps;
	bandwidth.unit = "MB/s";
	if (!there || !bad)
		verdict->no_memory = true;
	for (int apart = 0; apart < 2 && judged && !verdict->no_memory; apart++) {
		judge_class(job, verdict, &latency, apart, false, there, bad);
		judge_class(job, verdict, &bandwidth, apart, true, there, bad);
	}
	free(there);
	free(bad);
}

/* ---- the allreduce, and what differs ---- */

void np_ranks_judge_allreduce(const struct np_ranks_job *job, struct np_ranks_verdict *verdict)
{
	for (int i = 0; i < job->size && !job->options->no_allreduce; i++) {
		const struct np_ranks_board *board = job->boards[i];
		char name[160];

		if (!board || board->err.num < 0)
			continue;
		if (board->allreduce.verified &&
		    board->allreduce.clique_size == (uint32_t)job->size &&
		    board->allreduce.final_size == (uint32_t)job->size)
			continue;
		np_ranks_name(job, i, name);
		np_ranks_verdict_add(verdict, NP_FINDING_FAIL, "ranks.reduced_wrong", name,
				     "run nodeprep selftest on that host",
				     "%s: clique size %u, final_size %u, expected %d; %s", name,
				     board->allreduce.clique_size, board->allreduce.final_size,
				     job->size,
				     board->allreduce.verified ? "the elements were right" :
								 "not every element was right");
	}
}

/* "ranks 4, 5 and 2 more" is of no use where the host says it. */
static void add_odd(const struct np_ranks_job *job, struct np_ranks_verdict *verdict,
		    const struct np_ranks_odd *odd)
{
	char name[160], others[48] = "";

	np_ranks_name(job, odd->first, name);
	if (odd->count > 1)
		snprintf(others, sizeof(others), " (and %d more%s)", odd->count - 1,
			 odd->everywhere ? "" : " of this host");
	np_ranks_verdict_add(verdict, NP_FINDING_WARN, odd->code, name, odd->hint, "%s%s %s", name,
			     others, odd->message);
}

void np_ranks_judge_odds(const struct np_ranks_job *job, struct np_ranks_verdict *verdict)
{
	struct np_ranks_odds odds;

	for (int i = 0; i < job->size; i++) {
		const struct np_ranks_board *board = job->boards[i];

		if (board && board->allreduce.version[0] &&
		    !np_ranks_card_get(&job->cards[i], "nccl")[0] &&
		    np_ranks_card_add(&job->cards[i], "nccl", board->allreduce.version) < 0)
			verdict->no_memory = true;
	}
	if (verdict->no_memory ||
	    np_ranks_odds_find(job->cards, job->hosts, job->size, &odds) < 0) {
		verdict->no_memory = true;
		return;
	}
	for (size_t i = 0; i < odds.n; i++)
		add_odd(job, verdict, &odds.v[i]);
	np_ranks_odds_done(&odds);
}
