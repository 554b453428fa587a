/* SPDX-License-Identifier: MIT */
/* What rank 0 makes of the boards of all: the culprit, and not what follows from it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "selftest/ranks_verdict.h"

#define N 3

/* A job of one rank a host, all boards there, all pairs verified in the one trial. */
struct run {
	struct np_ranks_options options;
	struct np_ranks_job job;
	struct np_ranks_card cards[N];
	struct np_ranks_board *boards[N];
	char names[N][16];
	char *hosts[N];
	struct np_ranks_verdict verdict;
};

static int set_up(void **state)
{
	struct run *run = calloc(1, sizeof(*run));

	if (!run)
		return -1;
	run->options.trials = 1;
	run->options.factor = 3;
	run->options.no_allreduce = true;
	for (int i = 0; i < N; i++) {
		struct np_ranks_board *board = calloc(1, np_ranks_board_size(N));

		if (!board)
			return -1;
		snprintf(run->names[i], sizeof(run->names[i]), "h%d", i + 1);
		run->hosts[i] = run->names[i];
		board->rank = i;
		board->size = N;
		board->err_peer = -1;
		board->lost = -1;
		for (int j = 0; j < N; j++) {
			board->cells[j].status = i == j ? NP_CELL_NONE : NP_CELL_OK;
			board->cells[j].trials = i != j;
		}
		run->boards[i] = board;
	}
	run->job = (struct np_ranks_job){ .options = &run->options,
					  .size = N,
					  .cards = run->cards,
					  .hosts = run->hosts,
					  .gone = -1,
					  .boards = run->boards };
	*state = run;
	return 0;
}

static int tear_down(void **state)
{
	struct run *run = *state;

	np_ranks_verdict_done(&run->verdict);
	for (int i = 0; i < N; i++)
		free(run->boards[i]);
	free(run);
	return 0;
}

static void missing(struct run *run, int from, int to)
{
	run->boards[to]->cells[from].status = NP_CELL_MISSING;
}

static void ends(struct run *run, int rank, const char *code, int about)
{
	np_err_set(&run->boards[rank]->err, -ETIMEDOUT, code, "what rank %d says", rank);
	run->boards[rank]->err_peer = about;
}

/* The only failure; NULL = there is none. */
static void finds(struct run *run, const char *code, const char *target)
{
	const struct np_ranks_finding *failed = NULL;

	assert_int_equal(np_ranks_verdict_make(&run->job, &run->verdict), 0);
	assert_int_equal(run->verdict.n_fail, code != NULL);
	for (size_t i = 0; i < run->verdict.n; i++)
		if (run->verdict.v[i].weight == NP_FINDING_FAIL)
			failed = &run->verdict.v[i];
	if (!code)
		return;
	assert_non_null(failed);
	assert_string_equal(failed->code, code);
	assert_string_equal(failed->target, target);
}

static void all_is_well(void **state)
{
	finds(*state, NULL, NULL);
}

static void a_pair_has_one_name(void **state)
{
	missing(*state, 1, 0); /* only what goes from 1 to 0 */
	finds(*state, "ranks.unreachable", "rank 0 on h1 and rank 1 on h2");
}

static void a_node_that_hears_nobody(void **state)
{
	missing(*state, 1, 0);
	missing(*state, 2, 0);
	finds(*state, "ranks.node_unreachable", "rank 0 on h1");
}

/* 0 gave 1 up, 1 still waits for 0; 2 waits for 1 until it has no time left, and its end breaks
 * the endpoint that 0 has to it. */
static void who_left_is_not_unreachable(void **state)
{
	missing(*state, 1, 0);
	ends(*state, 1, "ranks.stalled", 0);
	ends(*state, 2, "ranks.stalled", 1);
	missing(*state, 2, 0);
	finds(*state, "ranks.unreachable", "rank 0 on h1 and rank 1 on h2");
}

/* The same where the time was up for all. */
static void who_was_late_is_not_unreachable(void **state)
{
	missing(*state, 1, 0);
	missing(*state, 2, 0);
	ends(*state, 1, "ranks.late", -1);
	ends(*state, 2, "ranks.late", -1);
	finds(*state, "ranks.late", "rank 1 on h2");
}

/* 0 waited for an answer of 1 in the middle of a trial, which 1 had been through; in the next
 * one 1 waited for 0 until the time was up. */
static void who_did_not_answer_is_unreachable(void **state)
{
	struct run *run = *state;
	struct np_ranks_board *board = run->boards[0];

	missing(run, 1, 0);
	board->n_notes = 1;
	board->notes[0].peer = 1;
	np_strcpy(board->notes[0].code, sizeof(board->notes[0].code), "ranks.pair_failed");
	ends(run, 1, "ranks.late", -1);
	finds(run, "ranks.unreachable", "rank 0 on h1 and rank 1 on h2");
}

/* It left, and blames the same pair. */
static void who_left_may_be_unreachable(void **state)
{
	missing(*state, 1, 0);
	missing(*state, 0, 1);
	ends(*state, 1, "ranks.late", -1);
	finds(*state, "ranks.unreachable", "rank 0 on h1 and rank 1 on h2");
}

/* Two that wait for each other, and one that waits for one of them. */
static void a_pair_that_waits_for_each_other(void **state)
{
	ends(*state, 0, "ranks.stalled", 1);
	ends(*state, 1, "ranks.stalled", 0);
	ends(*state, 2, "ranks.stalled", 1);
	finds(*state, "ranks.pair_cut", "rank 0 on h1 and rank 1 on h2");
}

/* The way between 1 and 2 is cut; 0 waits for 1, which is at work with 2 until the end. */
static void who_was_held_up_by_another(void **state)
{
	missing(*state, 2, 1);
	missing(*state, 1, 2);
	ends(*state, 0, "ranks.stalled", 1);
	ends(*state, 1, "ranks.late", -1);
	ends(*state, 2, "ranks.late", -1);
	finds(*state, "ranks.unreachable", "rank 1 on h2 and rank 2 on h3");
}

static void who_waited_for_a_late_one(void **state)
{
	ends(*state, 0, "ranks.stalled", 1);
	ends(*state, 1, "ranks.late", -1);
	finds(*state, "ranks.late", "rank 1 on h2");
}

/* Nothing else explains it. */
static void who_waited_for_one_that_says_nothing(void **state)
{
	ends(*state, 0, "ranks.stalled", 1);
	finds(*state, "ranks.stalled", "rank 1 on h2");
}

static void who_fails_by_itself_is_missing_to_all(void **state)
{
	struct run *run = *state;

	ends(run, 1, "ranks.memlock", -1);
	missing(run, 1, 0);
	missing(run, 1, 2);
	finds(run, "ranks.memlock", "rank 1 on h2");
}

static void who_gives_no_report(void **state)
{
	struct run *run = *state;

	free(run->boards[2]);
	run->boards[2] = NULL;
	missing(run, 2, 0);
	missing(run, 2, 1);
	finds(run, "ranks.silent", "rank 2 on h3");
}

static const char *said(struct run *run, size_t nth)
{
	for (size_t i = 0; i < run->verdict.n; i++)
		if (run->verdict.v[i].weight == NP_FINDING_FAIL && nth-- == 0)
			return run->verdict.v[i].message;
	return "";
}

/* The text has no more than the message: whom it is about is in it, with the port. */
static void every_error_has_a_name(void **state)
{
	struct run *run = *state;

	assert_int_equal(np_ranks_card_add(&run->cards[1], "port", "mlx5_0:1"), 0);
	ends(run, 1, "ranks.memlock", -1);
	finds(run, "ranks.memlock", "rank 1 on h2 (mlx5_0:1)");
	assert_string_equal(said(run, 0), "rank 1 on h2 (mlx5_0:1): what rank 1 says");
	np_ranks_verdict_done(&run->verdict);
	/* it is not named twice */
	np_err_set(&run->boards[1]->err, -EIO, "nccl.failed", "rank 1 on h2: NCCL failed");
	finds(run, "nccl.failed", "rank 1 on h2 (mlx5_0:1)");
	assert_string_equal(said(run, 0), "rank 1 on h2 (mlx5_0:1): NCCL failed");
	np_ranks_verdict_done(&run->verdict);
	np_err_set(&run->boards[1]->err, -EIO, "nccl.failed", "not rank 1 on h20, rank 1 on h2!");
	finds(run, "nccl.failed", "rank 1 on h2 (mlx5_0:1)");
	assert_string_equal(said(run, 0), "not rank 1 on h20, rank 1 on h2 (mlx5_0:1)!");
	np_ranks_verdict_done(&run->verdict);
	np_err_set(&run->boards[1]->err, -EIO, "ranks.died", "rank 1 on h2 (mlx5_0:1) died");
	finds(run, "ranks.died", "rank 1 on h2 (mlx5_0:1)");
	assert_string_equal(said(run, 0), "rank 1 on h2 (mlx5_0:1) died");
	np_ranks_card_done(&run->cards[1]);
}

/* UCX aborts a rank whose peer died: who died by itself is named, and aborts alone are. */
static void who_aborts_when_another_dies(void **state)
{
	struct run *run = *state;

	np_err_set(&run->boards[0]->err, -ECONNABORTED, "ranks.died", "rank 0 on h1 aborted");
	np_err_set(&run->boards[2]->err, -ECHILD, "ranks.died", "rank 2 on h3 was killed");
	finds(run, "ranks.died", "rank 2 on h3");
	np_ranks_verdict_done(&run->verdict);
	np_err_clear(&run->boards[2]->err);
	finds(run, "ranks.died", "rank 0 on h1");
	np_ranks_verdict_done(&run->verdict);
	ends(run, 1, "ranks.memlock", -1);
	assert_int_equal(np_ranks_verdict_make(&run->job, &run->verdict), 0);
	assert_int_equal(run->verdict.n_fail, 2);
}

static void the_same_of_all_is_told_once(void **state)
{
	struct run *run = *state;

	for (int i = 0; i < N; i++)
		np_err_set(&run->boards[i]->err, -EIO, "ranks.ucx", "no such device");
	finds(run, "ranks.ucx", "rank 0 on h1");
	assert_string_equal(said(run, 0), "rank 0 on h1 and 2 more: no such device");
}

/* 2 -> 0 is cut: 0 waits for 2 in step 4, 1 for 0 in step 5; 2 got step 4 and waits for 1 or to
 * be rid of its own. */
static void a_ring_that_stands_still(void **state)
{
	struct run *run = *state;
	static const int steps[N] = { 4, 5, 6 }, peers[N] = { 2, 0, 1 };

	for (int i = 0; i < N; i++) {
		ends(run, i, "ranks.allreduce", peers[i]);
		run->boards[i]->round = steps[i];
	}
	finds(run, "ranks.allreduce", "rank 0 on h1 and rank 2 on h3");
	assert_string_equal(said(run, 0), "the allreduce stood still between rank 0 on h1 and rank "
					  "2 on h3: what rank 0 says");
	np_ranks_verdict_done(&run->verdict);
	run->boards[2]->round = 4;
	run->boards[2]->err_peer = 0; /* seen from both ends */
	finds(run, "ranks.allreduce", "rank 0 on h1 and rank 2 on h3");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_is_well),
		TEST(a_pair_has_one_name),
		TEST(a_node_that_hears_nobody),
		TEST(who_left_is_not_unreachable),
		TEST(who_was_late_is_not_unreachable),
		TEST(who_did_not_answer_is_unreachable),
		TEST(who_left_may_be_unreachable),
		TEST(a_pair_that_waits_for_each_other),
		TEST(who_was_held_up_by_another),
		TEST(who_waited_for_a_late_one),
		TEST(who_waited_for_one_that_says_nothing),
		TEST(who_fails_by_itself_is_missing_to_all),
		TEST(who_gives_no_report),
		TEST(every_error_has_a_name),
		TEST(who_aborts_when_another_dies),
		TEST(the_same_of_all_is_told_once),
		TEST(a_ring_that_stands_still),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
