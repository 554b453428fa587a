/* SPDX-License-Identifier: MIT */
/* What another rank gives is not taken on trust: boards, cards, and what is made of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "selftest/ranks_board.h"
#include "selftest/ranks_gpu.h"
#include "selftest/ranks_odd.h"
#include "selftest/ranks_report.h"

#define N     3
#define TIMES 2000

static uint32_t seed = 1;

/* The same on each run. */
static uint32_t any(void)
{
	seed = seed * 1664525u + 1013904223u;
	return seed >> 8;
}

static void fill_any(void *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((unsigned char *)data)[i] = (unsigned char)any();
}

/* As published by a rank that verified everything; exactly so large, for sanitizers to see. */
static struct np_ranks_board *good(int rank)
{
	struct np_ranks_board *board = calloc(1, np_ranks_board_size(N));

	assert_non_null(board);
	board->protocol = NP_RANKS_PROTOCOL;
	board->rank = rank;
	board->size = N;
	board->err_peer = -1;
	board->lost = -1;
	board->n_lanes = 1;
	np_strcpy(board->lanes[0], sizeof(board->lanes[0]), "rc/mlx5_0:1");
	for (int i = 0; i < N; i++)
		if (i != rank)
			board->cells[i] = (struct np_ranks_cell){ .status = NP_CELL_OK,
								  .lane = 1,
								  .trials = 1,
								  .latency_us = 2,
								  .in_MBps = 12000 };
	return board;
}

static struct np_ranks_board *read_it(struct np_ranks_board *raw, int rank)
{
	struct np_ranks_board *board = np_ranks_board_read(raw, np_ranks_board_size(N), rank, N);

	free(raw);
	return board;
}

/* Both forms of the report, with @board as that of rank 1. */
static void report(struct np_ranks_board *board)
{
	struct np_ranks_options options = { .trials = 1, .factor = 3 };
	char h1[] = "h1", h2[] = "h2", h3[] = "h3";
	char *hosts[N] = { h1, h2, h3 };
	struct np_ranks_card cards[N] = { 0 };
	struct np_ranks_board *boards[N] = { good(0), board, good(2) };
	struct np_ranks_job job = { .options = &options,
				    .size = N,
				    .cards = cards,
				    .hosts = hosts,
				    .gone = -1,
				    .board = boards[0],
				    .boards = boards };

	for (int json = 0; json < 2; json++) {
		np_auto_buf struct np_buf text = { 0 };
		json_t *document;

		options.json = json;
		(void)np_ranks_report(&job, &text);
		assert_false(text.failed);
		assert_non_null(text.data);
		for (size_t i = 0; i < text.len; i++) {
			unsigned char c = (unsigned char)text.data[i];

			assert_true(c == '\n' || (c >= 0x20 && c != 0x7f));
		}
		if (!json)
			continue;
		document = json_loads(text.data, 0, NULL);
		assert_non_null(document);
		for (int i = 0; i < N; i++) {
			json_t *of = json_object_get(document, "ranks");

			assert_int_equal(json_array_size(json_array_get(
						 json_object_get(of, "latency_us"), (size_t)i)),
					 N);
			assert_int_equal(json_array_size(json_array_get(
						 json_object_get(of, "bandwidth_MBps"), (size_t)i)),
					 N);
		}
		json_decref(document);
	}
	for (int i = 0; i < N; i++) {
		np_ranks_card_done(&cards[i]);
		if (i != 1)
			free(boards[i]);
	}
	free(board);
}

static void a_good_one_is_kept(void **state)
{
	struct np_ranks_board *board = read_it(good(1), 1), *same = good(1);

	(void)state;
	assert_non_null(board);
	assert_memory_equal(board, same, np_ranks_board_size(N));
	free(same);
	report(board);
}

static void what_is_none(void **state)
{
	struct np_ranks_board *board = good(1);
	size_t size = np_ranks_board_size(N);

	(void)state;
	assert_null(np_ranks_board_read(NULL, 0, 1, N));
	assert_null(np_ranks_board_read(board, size - 1, 1, N));
	assert_null(np_ranks_board_read(board, size, 1, N - 1));
	assert_null(np_ranks_board_read(board, size, 2, N)); /* of another rank */
	board->protocol++;
	assert_null(read_it(board, 1));
}

static void numbers_that_none_has(void **state)
{
	struct np_ranks_board *board = good(1);

	(void)state;
	board->err_peer = N;
	board->n_lanes = UINT32_MAX;
	board->allreduce.n_sizes = UINT32_MAX;
	board->allreduce.backend = 9;
	board->cells[0].lane = 200;
	board->cells[0].latency_us = INFINITY;
	board->cells[0].in_MBps = NAN;
	board->cells[1].status = NP_CELL_OK; /* from itself */
	board->cells[1].trials = 1;
	board->cells[2].status = 77;
	board = read_it(board, 1);
	assert_non_null(board);
	assert_int_equal(board->err_peer, -1);
	assert_int_equal(board->n_lanes, NP_RANKS_LANES_MAX);
	assert_int_equal(board->allreduce.n_sizes, NP_RANKS_SIZES_MAX);
	assert_int_equal(board->allreduce.backend, NP_BACKEND_NONE);
	assert_int_equal(board->cells[0].lane, 0);
	assert_true(board->cells[0].latency_us == 0 && board->cells[0].in_MBps == 0);
	assert_int_equal(board->cells[0].status, NP_CELL_OK);
	assert_int_equal(board->cells[1].trials, 0);
	assert_int_equal(board->cells[2].status, NP_CELL_NONE);
	report(board);
}

static void texts_without_an_end(void **state)
{
	struct np_ranks_board *board = good(1);

	(void)state;
	memset(board->lanes, 'l', sizeof(board->lanes));
	memset(board->notes, 'n', sizeof(board->notes));
	memset(&board->allreduce.device, 'd', sizeof(board->allreduce.device));
	memset(&board->allreduce.version, 'v', sizeof(board->allreduce.version));
	memset(board->err.message, 'm', sizeof(board->err.message));
	memset(board->err.hint, '\x1b', sizeof(board->err.hint));
	np_strcpy(board->err.code, sizeof(board->err.code), "ranks.\"\n");
	board->err.num = 5;
	board->n_notes = board->n_lanes = 16;
	board = read_it(board, 1);
	assert_non_null(board);
	assert_int_equal(strlen(board->lanes[3]), sizeof(board->lanes[3]) - 1);
	assert_string_equal(board->err.code, "");
	assert_true(board->err.num < 0);
	assert_null(strchr(board->err.hint, '\x1b'));
	report(board);
}

/* Bytes of a good one changed, few and many; nothing but the sanitizers and report() to judge. */
static void any_bytes(void **state)
{
	size_t head = offsetof(struct np_ranks_board, tick_ms), size = np_ranks_board_size(N);

	(void)state;
	for (int i = 0; i < TIMES; i++) {
		struct np_ranks_board *board = good(1);
		size_t at = head + any() % (size - head), len = 1 + any() % (1u << any() % 14);

		if (len > size - at)
			len = size - at;
		fill_any((char *)board + at, len);
		board = read_it(board, 1);
		assert_non_null(board);
		report(board);
	}
}

static void any_card(void **state)
{
	static const char *const pieces[] = { "differs.", "lacks.",   "conf.",	 "=",
					      "\n",	  "nodeprep", "UCX_TLS", "mtu=",
					      "host=",	  "\x1b[2J",  "%s%n",	 "" };
	char h[] = "h";
	char *hosts[2] = { h, h };

	(void)state;
	for (int i = 0; i < TIMES; i++) {
		struct np_ranks_card cards[2] = { 0 };
		np_auto_buf struct np_buf text = { 0 };
		struct np_ranks_odds odds;
		const char *usual;

		for (uint32_t n = any() % 60; n > 0; n--) {
			char piece[300];
			size_t len = any() % 8 ? 0 : any() % sizeof(piece);

			fill_any(piece, len);
			np_buf_str(&text, pieces[any() % NP_ARRAY_SIZE(pieces)]);
			np_buf_add(&text, piece, len);
		}
		assert_int_equal(np_ranks_card_read(text.data, text.len, &cards[1]), 0);
		for (size_t k = 0; k < cards[1].n; k++)
			for (const char *c = cards[1].v[k].name; *c; c++)
				assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
		(void)np_ranks_odd_one(cards, 2, "nodeprep", &usual);
		assert_int_equal(np_ranks_odds_find(cards, hosts, 2, &odds), 0);
		np_ranks_odds_done(&odds);
		np_ranks_card_done(&cards[1]);
	}
}

static void a_gpu_card_without_an_end(void **state)
{
	struct np_ranks_gpu_card raw, card;

	(void)state;
	memset(&raw, 'x', sizeof(raw));
	raw.message[3] = '\n';
	assert_true(np_ranks_gpu_card_read(&raw, sizeof(raw) - 1, &card) < 0);
	assert_true(np_ranks_gpu_card_read(NULL, 0, &card) < 0);
	assert_int_equal(np_ranks_gpu_card_read(&raw, sizeof(raw), &card), 0);
	assert_int_equal(strlen(card.hint), sizeof(card.hint) - 1);
	assert_int_equal(strlen(card.pci), sizeof(card.pci) - 1);
	assert_null(strchr(card.message, '\n'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_one_is_kept),
		cmocka_unit_test(what_is_none),
		cmocka_unit_test(numbers_that_none_has),
		cmocka_unit_test(texts_without_an_end),
		cmocka_unit_test(any_bytes),
		cmocka_unit_test(any_card),
		cmocka_unit_test(a_gpu_card_without_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
