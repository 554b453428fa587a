/* SPDX-License-Identifier: MIT */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "selftest/document.h"
#include "selftest/ranks_report.h"

#ifndef NP_VERSION
#define NP_VERSION "0"
#endif

/* To three places: finer is noise. */
static json_t *rounded(double value)
{
	return isfinite(value) && value > 0 ? json_real(round(value * 1000) / 1000) : json_null();
}

/* A row a sender; null is not measured, and the diagonal. */
static json_t *matrix(int n, const float *value)
{
	json_t *rows = json_array();

	for (int i = 0; i < n; i++) {
		json_t *row = json_array();

		for (int j = 0; j < n; j++)
			json_array_append_new(
				row, rounded((double)value[(size_t)i * (size_t)n + (size_t)j]));
		json_array_append_new(rows, row);
	}
	return rows;
}

/* What carried each way, as a number into the list of names; as its receiver saw it. */
static json_t *carriers(const struct np_ranks_job *job, json_t *rows)
{
	np_auto_strv struct np_strv names = { 0 };
	json_t *list = json_array();

	for (int i = 0; i < job->size; i++)
		json_array_append_new(rows, json_array());
	for (int to = 0; to < job->size; to++) {
		const struct np_ranks_board *board = job->boards[to];

		for (int from = 0; from < job->size; from++) {
			uint8_t lane = board ? board->cells[from].lane : 0;
			const char *name = lane > 0 && lane <= NP_RANKS_LANES_MAX ?
						   board->lanes[lane - 1] :
						   NULL;
			size_t i = 0;

			while (name && i < names.n && !np_streq(names.v[i], name))
				i++;
			if (name && i == names.n && np_strv_add(&names, name) == 0)
				json_array_append_new(list, np_document_text(name));
			json_array_append_new(json_array_get(rows, (size_t)from),
					      name ? json_integer((json_int_t)i) : json_null());
		}
	}
	return list;
}

static json_t *text_of(const struct np_ranks_card *card, const char *name)
{
	const char *value = np_ranks_card_get(card, name);

	return *value ? np_document_text(value) : json_null();
}

static json_t *rank_json(const struct np_ranks_job *job, int rank)
{
	static const char *const names[] = { "nodeprep", "ucx",	   "nccl", "port",
					     "ifname",	 "family", "mtu",  "firmware" };
	const struct np_ranks_board *board = job->boards[rank];
	json_t *entry = json_object(), *peers = json_array();

	json_object_set_new(entry, "rank", json_integer(rank));
	json_object_set_new(entry, "host", np_document_text(job->hosts[rank]));
	for (size_t i = 0; i < NP_ARRAY_SIZE(names); i++)
		json_object_set_new(entry, names[i], text_of(&job->cards[rank], names[i]));
	json_object_set_new(entry, "reported", json_boolean(board != NULL));
	for (int from = 0; from < job->size && board; from++)
		if (board->cells[from].status == NP_CELL_OK &&
		    board->cells[from].trials == job->options->trials)
			json_array_append_new(peers, json_integer(from));
	json_object_set_new(entry, "received", peers);
	json_object_set_new(entry, "clique_size",
			    board ? json_integer(board->allreduce.clique_size) : json_null());
	json_object_set_new(entry, "final_size",
			    board ? json_integer(board->allreduce.final_size) : json_null());
	json_object_set_new(entry, "gpu",
			    board && board->allreduce.device[0] ?
				    np_document_text(board->allreduce.device) :
				    json_null());
	json_object_set_new(entry, "memory_kB",
			    board ? json_pack("{s:I, s:I, s:I}", "open", (json_int_t)board->open_kb,
					      "connected", (json_int_t)board->connected_kb, "end",
					      (json_int_t)board->rss_kb) :
				    json_null());
	json_object_set_new(entry, "messages",
			    board ? json_integer((json_int_t)board->messages) : json_null());
	json_object_set_new(entry, "milliseconds",
			    board ? json_pack("{s:I, s:I, s:I}", "connect",
					      (json_int_t)board->connect_ms, "rounds",
					      (json_int_t)board->rounds_ms, "allreduce",
					      (json_int_t)board->allreduce_ms) :
				    json_null());
	return entry;
}

static json_t *allreduce_json(const struct np_ranks_job *job)
{
	const struct np_ranks_allreduce *of = &job->boards[0]->allreduce;
	json_t *sizes = json_array();

	for (uint32_t i = 0; i < of->n_sizes && i < NP_RANKS_SIZES_MAX; i++)
		json_array_append_new(sizes, json_pack("{s:I, s:o, s:o}", "size_bytes",
						       (json_int_t)of->sizes[i].size_bytes,
						       "time_us", rounded(of->sizes[i].time_us),
						       "bus_MBps", rounded(of->sizes[i].bus_MBps)));
	return json_pack("{s:s, s:o, s:o}", "backend", np_ranks_backend_str(of->backend), "version",
			 of->version[0] ? np_document_text(of->version) : json_null(), "sizes",
			 sizes);
}

static json_t *sum_of(const struct np_ranks_job *job, bool bytes)
{
	json_int_t sum = 0;

	for (int i = 0; i < job->size; i++)
		if (job->boards[i])
			sum += (json_int_t)(bytes ? job->boards[i]->bytes :
						    job->boards[i]->messages);
	return json_integer(sum);
}

static json_t *ranks_json(const struct np_ranks_job *job, const struct np_ranks_verdict *verdict)
{
	json_t *list = json_array(), *rows = json_array(), *names;

	for (int i = 0; i < job->size; i++)
		json_array_append_new(list, rank_json(job, i));
	names = carriers(job, rows);
	return json_pack("{s:i, s:i, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			 "size", job->size, "trials", job->options->trials, "size_bytes",
			 (json_int_t)job->options->size_bytes, "ways", (json_int_t)verdict->pairs,
			 "verified", (json_int_t)verdict->verified, "messages", sum_of(job, false),
			 "bytes", sum_of(job, true), "seconds",
			 rounded((double)(np_now_ms() - job->start_ms) / 1000), "list", list,
			 "carriers", names, "carrier", rows, "latency_us",
			 matrix(job->size, verdict->latency_us), "bandwidth_MBps",
			 matrix(job->size, verdict->bandwidth_MBps), "allreduce",
			 allreduce_json(job));
}

static json_t *check_json(const struct np_ranks_finding *finding)
{
	static const char *const words[] = { "fail", "warn", "skip" };

	return json_pack("{s:s, s:o, s:s, s:s, s:o, s:o}", "id", "ranks", "target",
			 np_document_text(finding->target), "status", words[finding->weight],
			 "code", finding->code, "message", np_document_text(finding->message),
			 "hint", np_document_text(finding->hint));
}

void np_ranks_json(const struct np_ranks_job *job, const struct np_ranks_verdict *verdict,
		   struct np_buf *out)
{
	json_t *checks = json_array(), *document;
	char *text = NULL;

	for (size_t i = 0; i < verdict->n; i++)
		json_array_append_new(checks, check_json(&verdict->v[i]));
	document = json_pack("{s:i, s:s, s:s, s:b, s:b, s:[], s:o, s:[], s:o}", "schema", 1, "verb",
			     "ranks", "version", NP_VERSION, "changed", 0, "ready",
			     verdict->n_fail == 0, "actions", "checks", checks, "selftest", "ranks",
			     ranks_json(job, verdict));
	if (document)
		text = json_dumps(document, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(12));
	json_decref(document);
	if (text)
		np_buf_printf(out, "%s\n", text);
	else
		out->failed = true;
	free(text);
}
