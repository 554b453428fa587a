/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "selftest/ranks_report.h"
#include "selftest/rung.h"

/* ---- the guide's lists ---- */

static void received(const struct np_ranks_job *job, int trial, int rank, struct np_buf *out)
{
	const struct np_ranks_board *board = job->boards[rank];
	const char *comma = "";

	np_buf_printf(out, "Rank %d received: [", rank);
	for (int from = 0; from < job->size && board; from++) {
		if (board->cells[from].trials <= trial)
			continue;
		np_buf_printf(out, "%s%d", comma, from);
		comma = ", ";
	}
	np_buf_str(out, "]\n");
}

static void trials(const struct np_ranks_job *job, struct np_buf *out)
{
	for (int trial = 0; trial < job->options->trials; trial++) {
		np_buf_printf(out, "Trial %d\n", trial);
		for (int rank = 0; rank < job->size; rank++)
			received(job, trial, rank, out);
	}
}

static void cliques(const struct np_ranks_job *job, struct np_buf *out)
{
	for (int rank = 0; rank < job->size; rank++) {
		const struct np_ranks_board *board = job->boards[rank];

		if (board && board->allreduce.backend)
			np_buf_printf(out, "Rank %d Clique size: %u final_size: %u\n", rank,
				      board->allreduce.clique_size, board->allreduce.final_size);
	}
}

/* ---- figures ---- */

/* Least, middle and most of the cells of one carrier. */
struct spread {
	double low, middle, high;
	size_t n;
};

static int cmp_float(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static const char *lane_of(const struct np_ranks_job *job, int from, int to)
{
	const struct np_ranks_board *board = job->boards[to];
	uint8_t lane = board ? board->cells[from].lane : 0;

	return lane > 0 && lane <= NP_RANKS_LANES_MAX ? board->lanes[lane - 1] : "";
}

static struct spread spread_of(const struct np_ranks_job *job, const float *value, const char *lane,
			       float *space)
{
	struct spread out = { 0 };
	size_t n = (size_t)job->size;

	for (int i = 0; i < job->size; i++)
		for (int j = 0; j < job->size; j++)
			if (value[(size_t)i * n + (size_t)j] > 0 &&
			    np_streq(lane_of(job, i, j), lane))
				space[out.n++] = value[(size_t)i * n + (size_t)j];
	if (out.n == 0)
		return out;
	qsort(space, out.n, sizeof(*space), cmp_float);
	out.low = (double)space[0];
	out.middle = (double)space[out.n / 2];
	out.high = (double)space[out.n - 1];
	return out;
}

/* A line for each carrier, as often as the first rank that has it names it. */
static void carriers(const struct np_ranks_job *job, const struct np_ranks_verdict *verdict,
		     struct np_buf *out)
{
	size_t cells = (size_t)job->size * (size_t)job->size;
	_cleanup_free_ float *space = malloc(cells * sizeof(*space));
	np_auto_strv struct np_strv seen = { 0 };
	char size[32];

	if (!space)
		return;
	for (int i = 0; i < job->size; i++) {
		const struct np_ranks_board *board = job->boards[i];

		for (uint32_t l = 0; board && l < board->n_lanes && l < NP_RANKS_LANES_MAX; l++) {
			struct spread us, rate;

			if (np_strv_has(&seen, board->lanes[l]) ||
			    np_strv_add(&seen, board->lanes[l]) < 0)
				continue;
			us = spread_of(job, verdict->latency_us, board->lanes[l], space);
			rate = spread_of(job, verdict->bandwidth_MBps, board->lanes[l], space);
			np_buf_printf(out,
				      "%s: %zu ways; 8 B in %.2f us (%.2f to %.2f); %s messages at "
				      "%.0f MB/s (%.0f to %.0f)\n",
				      board->lanes[l], rate.n, us.middle, us.low, us.high,
				      np_size_str(job->options->size_bytes, size), rate.middle,
				      rate.low, rate.high);
		}
	}
}

static void reduced(const struct np_ranks_job *job, struct np_buf *out)
{
	const struct np_ranks_allreduce *of = &job->boards[0]->allreduce;
	char size[32];

	if (!of->backend)
		return;
	if (of->backend == NP_BACKEND_NCCL)
		np_buf_printf(out, "allreduce by NCCL %s over GPUs:\n", of->version);
	else
		np_buf_str(out, "allreduce over UCX in host memory, not by NCCL and no GPU:\n");
	if (job->size == 1)
		np_buf_str(out, "  one rank: this proves the library, no path\n");
	for (uint32_t i = 0; i < of->n_sizes && i < NP_RANKS_SIZES_MAX; i++)
		np_buf_printf(out, "  %10s  %10.1f us  bus bandwidth %.1f MB/s\n",
			      np_size_str(of->sizes[i].size_bytes, size), of->sizes[i].time_us,
			      of->sizes[i].bus_MBps);
}

/* ---- findings and the verdict ---- */

static void findings(const struct np_ranks_verdict *verdict, enum np_ranks_weight weight,
		     struct np_buf *out)
{
	static const char *const words[] = { "FAIL", "warn", "skip" };

	for (size_t i = 0; i < verdict->n; i++) {
		const struct np_ranks_finding *f = &verdict->v[i];

		if (f->weight != weight)
			continue;
		np_buf_printf(out, "%s: %s [%s]\n", words[weight], f->message, f->code);
		if (f->hint[0])
			np_buf_printf(out, "      fix: %s\n", f->hint);
	}
}

static int count_hosts(const struct np_ranks_job *job)
{
	int n = 0;

	for (int i = 0; i < job->size; i++) {
		int like = 0;

		while (!np_streq(job->hosts[like], job->hosts[i]))
			like++;
		n += like == i;
	}
	return n;
}

void np_ranks_text(const struct np_ranks_job *job, const struct np_ranks_verdict *verdict,
		   struct np_buf *out)
{
	if (!job->options->quiet) {
		trials(job, out);
		cliques(job, out);
	}
	carriers(job, verdict, out);
	reduced(job, out);
	findings(verdict, NP_FINDING_SKIP, out);
	findings(verdict, NP_FINDING_WARN, out);
	findings(verdict, NP_FINDING_FAIL, out);
	np_buf_printf(out,
		      "%s: %d ranks on %d hosts, %zu of %zu ways verified in %d trials, %.1f s\n",
		      verdict->n_fail ? "not ready" : "ready", job->size, count_hosts(job),
		      verdict->verified, verdict->pairs, job->options->trials,
		      (double)(np_now_ms() - job->start_ms) / 1000);
}
