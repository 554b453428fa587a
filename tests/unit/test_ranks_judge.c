/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "selftest/ranks_judge.h"
#include "selftest/ranks_odd.h"

#define N 6

struct matrix {
	uint8_t there[N * N], bad[N * N];
	float value[N * N];
};

static void fresh(struct matrix *m, float value)
{
	memset(m, 0, sizeof(*m));
	for (int i = 0; i < N * N; i++) {
		m->there[i] = i / N != i % N;
		m->value[i] = m->there[i] ? value : 0;
	}
}

static void row(struct matrix *m, int rank, float value)
{
	for (int j = 0; j < N; j++)
		if (j != rank)
			m->value[rank * N + j] = value;
}

static void column(struct matrix *m, int rank, float value)
{
	for (int i = 0; i < N; i++)
		if (i != rank)
			m->value[i * N + rank] = value;
}

static size_t judge(struct matrix *m, bool more, struct np_ranks_shape *shape)
{
	double usual = np_ranks_usual(N, m->there, m->value, more);
	size_t n = np_ranks_slow_cells(N, m->there, m->value, usual, 3, more, m->bad);

	assert_int_equal(np_ranks_shape_make(N, m->there, m->bad, shape), 0);
	assert_int_equal(shape->n_bad, n);
	return n;
}

static void nothing_slow(void **state)
{
	struct np_ranks_shape shape;
	struct matrix m;

	(void)state;
	fresh(&m, 10000);
	m.value[1] = 4000; /* less than 3 times slower */
	assert_int_equal(judge(&m, true, &shape), 0);
	assert_int_equal(shape.n_single, 0);
	for (int i = 0; i < N; i++)
		assert_false(shape.row[i] || shape.column[i]);
	np_ranks_shape_done(&shape);
}

static void one_pair(void **state)
{
	struct np_ranks_shape shape;
	struct matrix m;

	(void)state;
	fresh(&m, 10);
	m.value[2 * N + 4] = 40; /* latency: more is worse */
	m.value[4 * N + 2] = 40;
	assert_int_equal(judge(&m, false, &shape), 2);
	assert_int_equal(shape.n_single, 2);
	assert_true(shape.single[2 * N + 4] && shape.single[4 * N + 2]);
	for (int i = 0; i < N; i++)
		assert_false(shape.row[i] || shape.column[i]);
	np_ranks_shape_done(&shape);
}

static void one_node(void **state)
{
	struct np_ranks_shape shape;
	struct matrix m;

	(void)state;
	fresh(&m, 10000);
	row(&m, 3, 1000);
	column(&m, 3, 1000);
	judge(&m, true, &shape);
	for (int i = 0; i < N; i++) {
		assert_int_equal(shape.row[i], i == 3);
		assert_int_equal(shape.column[i], i == 3);
	}
	assert_int_equal(shape.n_single, 0);
	np_ranks_shape_done(&shape);
}

static void sender_and_a_pair_beside(void **state)
{
	struct np_ranks_shape shape;
	struct matrix m;

	(void)state;
	fresh(&m, 10000);
	row(&m, 0, 1000);
	m.value[1 * N + 2] = 900;
	judge(&m, true, &shape);
	assert_true(shape.row[0]);
	assert_false(shape.column[0]);
	assert_int_equal(shape.n_single, 1);
	assert_true(shape.single[1 * N + 2]);
	np_ranks_shape_done(&shape);
}

/* Of three nodes one that is slow makes most of the pairs slow. */
static void one_of_three(void **state)
{
	struct np_ranks_shape shape;
	struct matrix m;

	(void)state;
	fresh(&m, 10000);
	row(&m, 2, 100);
	column(&m, 2, 100);
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			if (i > 2 || j > 2)
				m.there[i * N + j] = 0;
	judge(&m, true, &shape);
	assert_true(shape.row[2] && shape.column[2]);
	assert_false(shape.row[0] || shape.row[1] || shape.column[0] || shape.column[1]);
	assert_int_equal(shape.n_single, 0);
	np_ranks_shape_done(&shape);
}

/* What was not measured is not slow, and no measure. */
static void unmeasured(void **state)
{
	struct np_ranks_shape shape;
	struct matrix m;

	(void)state;
	fresh(&m, 10);
	row(&m, 1, 0);
	assert_int_equal(judge(&m, true, &shape), 0);
	np_ranks_shape_done(&shape);
	fresh(&m, 0);
	assert_true(np_ranks_usual(N, m.there, m.value, true) == 0);
	assert_int_equal(judge(&m, true, &shape), 0);
	np_ranks_shape_done(&shape);
}

static void who_waits_for_whom(void **state)
{
	/* 0 and 1 for each other; 2 for 0; 3 for 5, who does not wait; 4 for 2 */
	static const int waits[N] = { 1, 0, 0, 5, 2, -1 };
	static const bool cause[N] = { true, true, false, true, false, false };

	(void)state;
	for (int i = 0; i < N; i++)
		assert_int_equal(np_ranks_wait_is_cause(N, waits, i), cause[i]);
}

/* ---- what differs ---- */

static void add(struct np_ranks_card *card, const char *name, const char *value)
{
	assert_int_equal(np_ranks_card_add(card, name, value), 0);
}

static void odd_ranks(void **state)
{
	static char h1[] = "h1", h2[] = "h2", h3[] = "h3";
	char *hosts[] = { h1, h1, h2, h2, h3 };
	struct np_ranks_card cards[5] = { 0 };
	struct np_ranks_odds odds;

	(void)state;
	for (int i = 0; i < 5; i++) {
		add(&cards[i], "ucx", "1.13.1");
		add(&cards[i], "mtu", i / 2 == 1 ? "2044" : "65520");
		add(&cards[i], "firmware", i == 4 ? "" : "20.31");
	}
	add(&cards[4], "differs.UCX_TLS", "tcp");
	add(&cards[4], "conf.UCX_TLS", "rc,tcp");
	add(&cards[0], "lacks.UCX_NET_DEVICES", "");
	add(&cards[0], "conf.UCX_NET_DEVICES", "mlx5_0:1,ib0");
	add(&cards[3], "lacks.UCX_NET_DEVICES", "");
	add(&cards[3], "conf.UCX_NET_DEVICES", "mlx5_1:1,ib0");
	assert_int_equal(np_ranks_odds_find(cards, hosts, 5, &odds), 0);
	assert_int_equal(odds.n, 3);
	assert_string_equal(odds.v[0].code, "ranks.mtu_differs");
	assert_int_equal(odds.v[0].first, 2); /* both ranks of h2 are one finding */
	assert_int_equal(odds.v[0].count, 2);
	assert_string_equal(odds.v[0].message, "has an MTU of 2044, most ranks have 65520");
	assert_string_equal(odds.v[1].code, "ranks.env_lacks");
	assert_int_equal(odds.v[1].first, 0);
	assert_non_null(strstr(odds.v[1].message, "UCX_NET_DEVICES"));
	assert_int_equal(odds.v[1].count, 2); /* on two hosts: one finding */
	assert_string_equal(odds.v[2].code, "ranks.env_differs");
	assert_int_equal(odds.v[2].first, 4);
	assert_non_null(strstr(odds.v[2].message, "UCX_TLS=tcp in"));
	assert_non_null(strstr(odds.v[2].message, "rc,tcp"));
	for (size_t i = 0; i < odds.n; i++)
		assert_true(odds.v[i].hint[0]);
	np_ranks_odds_done(&odds);
	for (int i = 0; i < 5; i++)
		np_ranks_card_done(&cards[i]);
}

static void majority(void **state)
{
	struct np_ranks_card cards[4] = { 0 };
	const char *usual;

	(void)state;
	add(&cards[0], "nodeprep", "0.1.0");
	add(&cards[1], "nodeprep", "0.2.0");
	assert_int_equal(np_ranks_odd_one(cards, 2, "nodeprep", &usual), 1); /* the lowest counts */
	assert_string_equal(usual, "0.1.0");
	add(&cards[2], "nodeprep", "0.2.0");
	assert_int_equal(np_ranks_odd_one(cards, 3, "nodeprep", &usual), 0);
	assert_string_equal(usual, "0.2.0");
	assert_int_equal(np_ranks_odd_one(cards, 3, "mtu", &usual), -1);
	assert_null(usual);
	for (int i = 0; i < 4; i++)
		np_ranks_card_done(&cards[i]);
}

static void cards_as_text(void **state)
{
	struct np_ranks_card card = { 0 }, back;
	struct np_buf text = { 0 };

	(void)state;
	add(&card, "host", "h1");
	add(&card, "tls", "a=b\nhost=evil"); /* a value stays one line */
	assert_int_equal(np_ranks_card_write(&card, &text), 0);
	assert_int_equal(np_ranks_card_read(text.data, text.len, &back), 0);
	assert_int_equal(back.n, 2);
	assert_string_equal(np_ranks_card_get(&back, "host"), "h1");
	assert_string_equal(np_ranks_card_get(&back, "tls"), "a=b\\x0ahost=evil");
	assert_string_equal(np_ranks_card_get(&back, "none"), "");
	np_ranks_card_done(&back);
	assert_int_equal(np_ranks_card_read("no equals\n\n=x\n", 14, &back), 0);
	np_ranks_card_done(&back);
	np_ranks_card_done(&card);
	np_buf_done(&text);
}

static void assignments(void **state)
{
	static const struct {
		const char *line, *name, *value;
	} rows[] = {
		{ "UCX_TLS=rc,tcp", "UCX_TLS", "rc,tcp" },
		{ "  UCX_TLS = \"rc\" ", "UCX_TLS", "rc" },
		{ "A='b c'", "A", "b c" },
		{ "A=", "A", "" },
		{ "# A=b", NULL, NULL },
		{ "", NULL, NULL },
		{ "=x", NULL, NULL },
		{ "words alone", NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(rows); i++) {
		const char *name = NULL, *value = NULL;
		char line[64];

		np_strcpy(line, sizeof(line), rows[i].line);
		assert_int_equal(np_ranks_assignment(line, &name, &value), rows[i].name != NULL);
		if (!rows[i].name)
			continue;
		assert_string_equal(name, rows[i].name);
		assert_string_equal(value, rows[i].value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_slow),	      cmocka_unit_test(one_pair),
		cmocka_unit_test(one_node),	      cmocka_unit_test(sender_and_a_pair_beside),
		cmocka_unit_test(one_of_three),	      cmocka_unit_test(unmeasured),
		cmocka_unit_test(who_waits_for_whom), cmocka_unit_test(odd_ranks),
		cmocka_unit_test(majority),	      cmocka_unit_test(cards_as_text),
		cmocka_unit_test(assignments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
