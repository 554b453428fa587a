/* SPDX-License-Identifier: MIT */
#include "selftest/ranks_verdict.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "selftest/ranks_judge.h"
#include "selftest/ranks_odd.h"

void np_ranks_verdict_add(struct np_ranks_verdict *verdict, enum np_ranks_weight weight,
			  const char *code, const char *target, const char *hint, const char *fmt,
			  ...)
{
	struct np_ranks_finding *grown =
					realloc(verdict->v, (verdict->n + 1) * sizeof(*verdict->v)),
				*new;
	va_list args;

	if (!grown) {
		verdict->no_memory = true;
		return;
	}
	verdict->v = grown;
	new = &grown[verdict->n++];
	memset(new, 0, sizeof(*new));
	new->weight = weight;
	np_strcpy(new->code, sizeof(new->code), code);
	np_strcpy(new->target, sizeof(new->target), target);
	np_strcpy(new->hint, sizeof(new->hint),
		  hint && *hint ? hint : "read what all ranks say on stderr");
	va_start(args, fmt);
	vsnprintf(new->message, sizeof(new->message), fmt, args);
	va_end(args);
	np_one_line(new->message, sizeof(new->message));
	np_one_line(new->target, sizeof(new->target));
	verdict->n_fail += weight == NP_FINDING_FAIL;
}

/* Those after which the rank goes on to the end with the others, or at which they arrive too
 * before long. */
bool np_ranks_fatal(const struct np_err *err)
{
	static const char *const codes[] = { "ranks.late",	   "ranks.stalled",   "ranks.ended",
					     "ranks.exchange",	   "ranks.allreduce", "ranks.nccl",
					     "ranks.reduced_wrong" };

	for (size_t i = 0; i < NP_ARRAY_SIZE(codes); i++)
		if (np_streq(err->code, codes[i]))
			return false;
	return err->num < 0;
}

/* ---- what ranks came to ---- */

bool np_ranks_may_follow(const struct np_err *err)
{
	static const char *const codes[] = { "ranks.ended",	"ranks.exchange", "ranks.stalled",
					     "ranks.allreduce", "ranks.pmix",	  "ranks.late" };

	for (size_t i = 0; i < NP_ARRAY_SIZE(codes); i++)
		if (np_streq(err->code, codes[i]))
			return true;
	return false;
}

static bool said(const struct np_ranks_verdict *verdict, const char *code, const char *target)
{
	for (size_t i = 0; i < verdict->n; i++)
		if (np_streq(verdict->v[i].code, code) && np_streq(verdict->v[i].target, target))
			return true;
	return false;
}

static int about(const struct np_ranks_job *job, const struct np_ranks_board *board)
{
	return board->err_peer >= 0 && board->err_peer < job->size ? board->err_peer : board->rank;
}

/* The same words about each rank itself: how many after @rank have them; -1 = one before has. */
static int like_it(const struct np_ranks_job *job, int rank)
{
	const struct np_err *err = &job->boards[rank]->err;
	int more = 0;

	for (int i = 0; i < job->size; i++) {
		const struct np_ranks_board *other = job->boards[i];

		if (!other || i == rank || other->err.num == 0 || about(job, other) != i ||
		    !np_streq(other->err.code, err->code) ||
		    !np_streq(other->err.message, err->message))
			continue;
		if (i < rank)
			return -1;
		more++;
	}
	return more;
}

/* Where "rank 1 on h1" stands in a message, and not "rank 1 on h10"; NULL = nowhere. */
static const char *named_in(const char *message, const char *bare)
{
	const char *at = strstr(message, bare);

	while (at) {
		char next = at[strlen(bare)];

		if (next == '\0' || (!isalnum((unsigned char)next) && !strchr("-._", next)))
			return at;
		at = strstr(at + 1, bare);
	}
	return NULL;
}

static void add_error(const struct np_ranks_job *job, struct np_ranks_verdict *verdict,
		      const struct np_ranks_board *board)
{
	const struct np_err *err = &board->err;
	const char *code = err->code[0] ? err->code : "internal", *at;
	int whom = about(job, board), more = whom == board->rank ? like_it(job, whom) : 0;
	char name[160], bare[96], others[48] = "";

	np_ranks_name(job, whom, name);
	if (more < 0 || said(verdict, code, name))
		return;
	snprintf(bare, sizeof(bare), "rank %d on %.64s", whom, job->hosts[whom]);
	if (more > 0)
		snprintf(others, sizeof(others), " and %d more", more);
	at = named_in(err->message, bare);
	if (strstr(err->message, name))
		np_ranks_verdict_add(verdict, NP_FINDING_FAIL, code, name, err->hint, "%s",
				     err->message);
	else if (at) /* the worker knows no ports */
		np_ranks_verdict_add(verdict, NP_FINDING_FAIL, code, name, err->hint, "%.*s%s%s",
				     (int)(at - err->message), err->message, name,
				     at + strlen(bare));
	else
		np_ranks_verdict_add(verdict, NP_FINDING_FAIL, code, name, err->hint, "%s%s: %s",
				     name, others, err->message);
}

/* Who was at work with another one until the end had no time for those that waited for it. */
static bool held_up(const struct np_ranks_board *board)
{
	for (int i = 0; i < board->size; i++)
		if (board->cells[i].status == NP_CELL_MISSING)
			return true;
	return np_streq(board->err.code, "ranks.late");
}

/* Those that waited for each other have the path between them to blame. */
static void add_stall(const struct np_ranks_job *job, struct np_ranks_verdict *verdict,
		      const int *waits, int rank)
{
	int peer = waits[rank];
	char one[160], other[160], both[360];

	if (!np_ranks_wait_is_cause(job->size, waits, rank) || !job->boards[peer])
		return;
	if (job->boards[peer]->cells[rank].status > NP_CELL_OK)
		return; /* the other one had given this way up: its cell says so */
	np_ranks_name(job, rank, one);
	np_ranks_name(job, peer, other);
	if (waits[peer] != rank) {
		if (held_up(job->boards[peer]))
			return;
		add_error(job, verdict, job->boards[rank]);
		return;
	}
	if (peer < rank)
		return;
	snprintf(both, sizeof(both), "%s and %s", one, other);
	np_ranks_verdict_add(verdict, NP_FINDING_FAIL, "ranks.pair_cut", both,
			     "look at the cables and switches between them, and at filters of "
			     "packets",
			     "%s and %s waited for each other in trial %d: the way between them "
			     "was cut during the run",
			     one, other, job->boards[rank]->trial);
}

static void judge_stalls(const struct np_ranks_job *job, struct np_ranks_verdict *verdict)
{
	int *waits = malloc((size_t)job->size * sizeof(*waits));

	if (!waits) {
		verdict->no_memory = true;
		return;
	}
	for (int i = 0; i < job->size; i++) {
		const struct np_ranks_board *board = job->boards[i];

		waits[i] =
			board && np_streq(board->err.code, "ranks.stalled") ? board->err_peer : -1;
	}
	for (int i = 0; i < job->size; i++)
		if (waits[i] >= 0)
			add_stall(job, verdict, waits, i);
	free(waits);
}

/* How far a rank came in the allreduce before it waited in vain; INT32_MAX = it did not. */
static int32_t step_of(const struct np_ranks_board *board)
{
	return board && board->err_peer >= 0 && np_streq(board->err.code, "ranks.allreduce") ?
		       board->round :
		       INT32_MAX;
}

static void add_ring(const struct np_ranks_job *job, struct np_ranks_verdict *verdict, int rank)
{
	int peer = job->boards[rank]->err_peer;
	char one[160], other[160], both[360];

	if (peer >= job->size || !job->boards[peer])
		return;
	np_ranks_name(job, rank < peer ? rank : peer, one);
	np_ranks_name(job, rank < peer ? peer : rank, other);
	snprintf(both, sizeof(both), "%s and %s", one, other);
	if (said(verdict, "ranks.allreduce", both))
		return;
	np_ranks_verdict_add(verdict, NP_FINDING_FAIL, "ranks.allreduce", both,
			     "look at the cables and switches between them, and at filters of "
			     "packets",
			     "the allreduce stood still between %s and %s: %s", one, other,
			     job->boards[rank]->err.message);
}

/* One that waits makes all others wait, one after the other: those that came least far are the
 * first. */
static void judge_ring(const struct np_ranks_job *job, struct np_ranks_verdict *verdict)
{
	int32_t least = INT32_MAX;

	for (int i = 0; i < job->size; i++)
		if (step_of(job->boards[i]) < least)
			least = step_of(job->boards[i]);
	for (int i = 0; i < job->size && least < INT32_MAX; i++)
		if (step_of(job->boards[i]) == least)
			add_ring(job, verdict, i);
}

/* Ranks of one host that have given no report are one finding. */
static void judge_silent(const struct np_ranks_job *job, struct np_ranks_verdict *verdict)
{
	for (int i = 0; i < job->size; i++) {
		int more = 0;
		bool before = false;
		char name[160], others[64] = "";

		for (int j = 0; j < job->size && !job->boards[i]; j++) {
			bool like = !job->boards[j] && np_streq(job->hosts[i], job->hosts[j]);

			before |= like && j < i;
			more += like && j > i;
		}
		if (job->boards[i] || before)
			continue;
		if (more)
			snprintf(others, sizeof(others), " and %d more of this host", more);
		np_ranks_name(job, i, name);
		np_ranks_verdict_add(verdict, NP_FINDING_FAIL, "ranks.silent", name,
				     "look on that host whether its process is stopped or waits "
				     "in the kernel",
				     "%s%s did not report before the deadline", name, others);
	}
}

/* UCX aborts where a peer goes away in the middle of a message ("Assertion `comp->count > 0'",
 * seen with 1.13.1): it is gone because another one died, which is told. */
static bool died_with_another(const struct np_ranks_job *job, const struct np_ranks_board *board)
{
	if (board->err.num != -ECONNABORTED)
		return false;
	for (int i = 0; i < job->size; i++)
		if (job->boards[i] && job->boards[i]->err.num == -ECHILD &&
		    np_streq(job->boards[i]->err.code, "ranks.died"))
			return true;
	return false;
}

static void add_errors(const struct np_ranks_job *job, struct np_ranks_verdict *verdict)
{
	for (int i = 0; i < job->size; i++) {
		const struct np_ranks_board *board = job->boards[i];

		if (board && board->err.num < 0 && !np_ranks_may_follow(&board->err) &&
		    !died_with_another(job, board))
			add_error(job, verdict, board);
	}
}

/* What may follow from another error is told by one rank only; who waited for one that was
 * late says less than that one. */
static void add_follower(const struct np_ranks_job *job, struct np_ranks_verdict *verdict)
{
	const struct np_ranks_board *first = NULL;

	for (int i = 0; i < job->size; i++) {
		const struct np_ranks_board *board = job->boards[i];

		if (!board || board->err.num == 0)
			continue;
		if (!first || (np_streq(board->err.code, "ranks.late") &&
			       !np_streq(first->err.code, "ranks.late")))
			first = board;
	}
	if (first)
		add_error(job, verdict, first);
}

void np_ranks_judge_errors(const struct np_ranks_job *job, struct np_ranks_verdict *verdict)
{
	add_errors(job, verdict);
	if (verdict->n_fail == 0)
		judge_stalls(job, verdict);
	if (verdict->n_fail == 0)
		judge_ring(job, verdict);
	if (verdict->n_fail == 0 && !job->ended)
		judge_silent(job, verdict);
}

/* ---- all of it ---- */

static void fill_matrices(const struct np_ranks_job *job, struct np_ranks_verdict *out)
{
	size_t n = (size_t)job->size;

	for (size_t to = 0; to < n; to++) {
		const struct np_ranks_board *board = job->boards[to];

		for (size_t from = 0; from < n; from++) {
			size_t cell = from * n + to;

			if (from == to)
				continue;
			out->pairs++;
			out->apart[cell] = !np_streq(job->hosts[from], job->hosts[to]);
			if (!board)
				continue;
			out->status[cell] = board->cells[from].status;
			out->latency_us[cell] = board->cells[from].latency_us;
			out->bandwidth_MBps[cell] = board->cells[from].in_MBps;
			out->verified += board->cells[from].status == NP_CELL_OK &&
					 board->cells[from].trials == job->options->trials;
		}
	}
}

int np_ranks_verdict_make(const struct np_ranks_job *job, struct np_ranks_verdict *out)
{
	size_t cells = (size_t)job->size * (size_t)job->size;

	memset(out, 0, sizeof(*out));
	out->latency_us = calloc(cells, sizeof(*out->latency_us));
	out->bandwidth_MBps = calloc(cells, sizeof(*out->bandwidth_MBps));
	out->status = calloc(cells, 1);
	out->apart = calloc(cells, 1);
	if (!out->latency_us || !out->bandwidth_MBps || !out->status || !out->apart) {
		np_ranks_verdict_done(out);
		return -ENOMEM;
	}
	fill_matrices(job, out);
	np_ranks_judge_errors(job, out);
	np_ranks_judge_cells(job, out);
	if (out->n_fail == 0) { /* nothing else explains them */
		add_follower(job, out);
		np_ranks_judge_allreduce(job, out);
	}
	if (2 * out->verified > out->pairs)
		np_ranks_judge_speed(job, out);
	np_ranks_judge_odds(job, out);
	if (out->n_fail == 0 && out->verified < out->pairs)
		np_ranks_verdict_add(out, NP_FINDING_FAIL, "ranks.incomplete", "the job",
				     "allow more time with --timeout",
				     "%zu of %zu ways between ranks were verified", out->verified,
				     out->pairs);
	if (!out->no_memory)
		return 0;
	np_ranks_verdict_done(out);
	return -ENOMEM;
}

void np_ranks_verdict_done(struct np_ranks_verdict *verdict)
{
	free(verdict->v);
	free(verdict->latency_us);
	free(verdict->bandwidth_MBps);
	free(verdict->status);
	free(verdict->apart);
	memset(verdict, 0, sizeof(*verdict));
}
