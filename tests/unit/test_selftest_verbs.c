/* SPDX-License-Identifier: MIT */
/* The rung verbs without an HCA: GID, MTU, partition and lid of a path; port counters; the
 * judgement of a message. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "selftest/measure.h"
#include "selftest/pattern.h"
#include "selftest/port_bytes.h"
#include "selftest/rung.h"
#include "selftest/verbs_pick.h"

#define LINK_LOCAL \
	{ \
		0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0xff, 0xfe, 0, 0, 0x50 \
	}
#define GLOBAL \
	{ \
		0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x50 \
	}
#define MAPPED \
	{ \
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 50 \
	}

/* As a ConnectX lists them: each address as v1 and v2. */
static struct np_verbs_gid roce_gids[] = {
	{ 0, NP_GID_ROCE_V1, LINK_LOCAL }, { 1, NP_GID_ROCE_V2, LINK_LOCAL },
	{ 2, NP_GID_ROCE_V1, MAPPED },	   { 3, NP_GID_ROCE_V2, MAPPED },
	{ 4, NP_GID_ROCE_V1, GLOBAL },	   { 5, NP_GID_ROCE_V2, GLOBAL },
};
static struct np_verbs_gid ib_gids[] = { { 0, NP_GID_IB, LINK_LOCAL } };
static uint16_t default_pkeys[] = { 0xffff, 0 };

static struct np_verbs_port ib_port(const char *name, uint16_t lid)
{
	struct np_verbs_port port = { .lid = lid,
				      .mtu = IBV_MTU_4096,
				      .gids = ib_gids,
				      .n_gids = 1,
				      .gid_table = 8,
				      .pkeys = default_pkeys,
				      .n_pkeys = 2 };

	np_strcpy(port.name, sizeof(port.name), name);
	return port;
}

/* The GIDs from @first on, @n of them. */
static struct np_verbs_port roce_port(const char *name, size_t first, size_t n)
{
	struct np_verbs_port port = ib_port(name, 0);

	port.ethernet = true;
	port.mtu = IBV_MTU_1024;
	port.gids = roce_gids + first;
	port.n_gids = n;
	return port;
}

static int choose(const struct np_verbs_port *a, const struct np_verbs_port *b, int gid_index,
		  struct np_verbs_path *path, struct np_err *err)
{
	const struct np_verbs_port *const ports[2] = { a, b };

	memset(path, 0xa5, sizeof(*path));
	return np_verbs_choose(ports, gid_index, path, err);
}

static void ranks(void **state)
{
	static const int expected[] = { 1, 2, 1, 4, 1, 3 };

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(roce_gids); i++)
		assert_int_equal(np_gid_rank(&roce_gids[i]), expected[i]);
	assert_int_equal(np_gid_rank(&ib_gids[0]), 0);
}

static void mtus(void **state)
{
	struct np_verbs_port a = ib_port("mlx5_0:1", 2), b = ib_port("mlx5_1:1", 3);
	struct np_verbs_path path;
	struct np_err err;

	(void)state;
	assert_int_equal(np_mtu_bytes(IBV_MTU_256), 256);
	assert_int_equal(np_mtu_bytes(IBV_MTU_4096), 4096);
	assert_int_equal(np_mtu_bytes((enum ibv_mtu)0), 0);
	assert_int_equal(np_mtu_bytes((enum ibv_mtu)6), 0);
	b.mtu = IBV_MTU_2048;
	assert_int_equal(choose(&a, &b, -1, &path, &err), 0);
	assert_int_equal(path.mtu, IBV_MTU_2048);
	assert_int_equal(choose(&b, &a, -1, &path, &err), 0);
	assert_int_equal(path.mtu, IBV_MTU_2048);
}

static void infiniband_goes_by_lid(void **state)
{
	struct np_verbs_port a = ib_port("mlx5_0:1", 0xf), b = ib_port("mlx5_1:1", 6);
	struct np_verbs_path path;
	struct np_err err;
	char text[160];

	(void)state;
	assert_int_equal(choose(&a, &a, -1, &path, &err), 0);
	assert_false(path.grh);
	np_verbs_path_str(&a, &path, 0, text, sizeof(text));
	assert_string_equal(text, "lid 0xf, MTU 4096, pkey 0xffff");
	a.grh_required = true;
	assert_int_equal(choose(&b, &a, -1, &path, &err), 0);
	assert_true(path.grh && path.gid[0].index == 0 && path.gid[1].index == 0);
	a.grh_required = false;
	b.lid = 0;
	assert_int_equal(choose(&a, &b, -1, &path, &err), 0);
	assert_true(path.grh);
	b.n_gids = 0;
	assert_int_equal(choose(&a, &b, -1, &path, &err), -EADDRNOTAVAIL);
	assert_string_equal(err.code, "selftest.verbs.no_gid");
	assert_non_null(strstr(err.message, "mlx5_1:1 has no GID"));
}

static void roce_takes_the_best_that_both_have(void **state)
{
	struct np_verbs_port all = roce_port("mlx5_0:1", 0, 6), v1 = roce_port("mlx5_1:1", 0, 1),
			     local = roce_port("mlx5_2:1", 0, 2),
			     none = roce_port("mlx5_3:1", 0, 0),
			     global = roce_port("mlx5_4:1", 5, 1);
	struct np_verbs_path path;
	struct np_err err;
	char text[160];

	(void)state;
	assert_int_equal(choose(&all, &all, -1, &path, &err), 0);
	assert_true(path.grh && path.gid[0].index == 3 && path.gid[1].index == 3);
	np_verbs_path_str(&all, &path, 1, text, sizeof(text));
	assert_string_equal(text, "GID 3 (RoCE v2) ::ffff:10.0.0.50, MTU 1024, pkey 0xffff");
	assert_int_equal(choose(&all, &global, -1, &path, &err), 0);
	assert_true(path.gid[0].index == 5 && path.gid[1].index == 5);
	assert_int_equal(choose(&local, &all, -1, &path, &err), 0);
	assert_true(path.gid[0].index == 1 && path.gid[1].index == 1);
	assert_int_equal(choose(&v1, &all, -1, &path, &err), 0);
	assert_int_equal(path.gid[0].index, 0);
	assert_int_equal(choose(&global, &v1, -1, &path, &err), -EADDRNOTAVAIL);
	assert_non_null(strstr(err.message, "no kind of GID in common"));
	assert_int_equal(choose(&none, &none, -1, &path, &err), -EADDRNOTAVAIL);
	assert_string_equal(err.code, "selftest.verbs.no_gid");
	assert_non_null(strstr(err.hint, "netdev"));
}

static void a_gid_index_that_was_named(void **state)
{
	struct np_verbs_port a = roce_port("mlx5_0:1", 0, 6), b = roce_port("mlx5_1:1", 0, 2);
	struct np_verbs_path path;
	struct np_err err;

	(void)state;
	assert_int_equal(choose(&a, &a, 4, &path, &err), 0);
	assert_int_equal(path.gid[1].index, 4);
	assert_int_equal(choose(&a, &b, 4, &path, &err), -EINVAL);
	assert_string_equal(err.code, "selftest.verbs.gid_index");
	assert_non_null(
		strstr(err.message, "port mlx5_1:1 has no GID of index 4: the entry is empty"));
	assert_int_equal(choose(&a, &a, 8, &path, &err), -EINVAL);
	assert_non_null(strstr(err.message, "its table ends before"));
	a = ib_port("mlx5_0:1", 2);
	assert_int_equal(choose(&a, &a, 0, &path, &err), 0);
	assert_true(path.grh);
}

static void partitions(void **state)
{
	uint16_t limited[] = { 0x7fff, 0x8001, 0x0002 }, other[] = { 0x8003, 0, 0x8001 };
	uint16_t late[] = { 0x8001, 0xffff };
	struct np_verbs_port a = ib_port("mlx5_0:1", 2), b = ib_port("mlx5_1:1", 3);
	struct np_verbs_path path;
	struct np_err err;

	(void)state;
	a.pkeys = late;
	assert_int_equal(choose(&a, &b, -1, &path, &err), 0);
	assert_true(path.pkey == 0xffff && path.pkey_index[0] == 1 && path.pkey_index[1] == 0);
	a.pkeys = limited, a.n_pkeys = 3;
	b.pkeys = other, b.n_pkeys = 3;
	assert_int_equal(choose(&a, &b, -1, &path, &err), 0);
	assert_true(path.pkey == 0x8001 && path.pkey_index[0] == 1 && path.pkey_index[1] == 2);
	a.n_pkeys = 1;
	assert_int_equal(choose(&a, &b, -1, &path, &err), -EACCES);
	assert_string_equal(err.code, "selftest.verbs.no_pkey");
	assert_int_equal(choose(&a, &a, -1, &path, &err), -EACCES);
	assert_non_null(strstr(err.message, "mlx5_0:1 is full member of no partition"));
}

static void ports_of_two_kinds(void **state)
{
	struct np_verbs_port a = ib_port("mlx5_0:1", 2), b = roce_port("mlx5_1:1", 0, 6);
	struct np_verbs_path path;
	struct np_err err;

	(void)state;
	assert_int_equal(choose(&a, &b, -1, &path, &err), -EPROTOTYPE);
	assert_string_equal(err.code, "selftest.verbs.unlike");
}

static struct np_port_growth grown(uint64_t xmit, uint64_t rcv, uint64_t moved)
{
	struct np_port_bytes before = { true, 1000, 2000 },
			     after = { true, 1000 + xmit, 2000 + rcv };
	struct np_port_growth growth = { .known = true, .moved = moved };

	np_port_growth_add(&growth, &before, &after);
	return growth;
}

static void counters(void **state)
{
	struct np_port_bytes unknown = { 0 }, some = { true, 5, 5 }, less = { true, 4, 5 };
	struct np_port_growth growth;
	char text[160];

	(void)state;
	growth = grown(1010000, 1020000, 1000000);
	assert_int_equal(np_port_growth_crossed(&growth), NP_CROSSED_YES);
	assert_string_equal(np_port_growth_str(&growth, true, text, sizeof(text)),
			    "the port counted 1.0 MB out and 1.0 MB in for 1.0 MB moved");
	growth = grown(500, 0, 1000000);
	assert_int_equal(np_port_growth_crossed(&growth), NP_CROSSED_NO);
	assert_non_null(strstr(np_port_growth_str(&growth, false, text, sizeof(text)),
			       "looped back inside the HCA"));
	growth = grown(1000000, 999999, 1000000);
	assert_int_equal(np_port_growth_crossed(&growth), NP_CROSSED_PARTLY);
	/* two ports: the sum */
	growth = grown(600000, 400000, 1000000);
	np_port_growth_add(&growth, &(struct np_port_bytes){ true, 0, 0 },
			   &(struct np_port_bytes){ true, 400000, 600000 });
	assert_int_equal(np_port_growth_crossed(&growth), NP_CROSSED_YES);
	np_port_growth_add(&growth, &unknown, &some);
	assert_int_equal(np_port_growth_crossed(&growth), NP_CROSSED_UNKNOWN);
	growth = grown(1, 1, 1);
	np_port_growth_add(&growth, &some, &less); /* set back meanwhile */
	assert_false(growth.known);
	assert_false(np_port_bytes_read("no_such_hca", 1).known);
}

/* The hook of the test build flips a bit in the message that it is told. */
static void corruption_is_seen(void **state)
{
	static const size_t sizes[] = { 1, 8, 4096 };
	char message[4096];
	struct np_err err;

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(sizes); i++) {
		np_pattern_fill(message, sizes[i], 7);
		assert_int_equal(np_message_verify(message, sizes[i], 7, 41, &err), 0);
		assert_int_equal(setenv("NP_TEST_CORRUPT", "42", 1), 0);
		assert_int_equal(np_message_verify(message, sizes[i], 7, 41, &err), 0);
		assert_int_equal(np_message_verify(message, sizes[i], 7, 42, &err), -EBADMSG);
		assert_int_equal(unsetenv("NP_TEST_CORRUPT"), 0);
		assert_string_equal(err.code, "selftest.data_corrupt");
		assert_non_null(strstr(err.message, "message 42 "));
		np_pattern_poison(message, sizes[i], 7); /* nothing arrived */
		assert_int_equal(np_message_verify(message, sizes[i], 7, 1, &err), -EBADMSG);
	}
}

static void medians_and_sizes(void **state)
{
	double odd[] = { 3, 1, 2 }, even[] = { 4, 1, 2, 3 };
	size_t n;
	const uint64_t *sizes;

	(void)state;
	assert_true(np_median(odd, 3) == 2 && np_median(even, 4) == 2.5);
	sizes = np_sizes(false, &n);
	assert_true(n == 5 && sizes[0] == 8 && sizes[4] == 8 << 20);
	sizes = np_sizes(true, &n);
	assert_true(n == 14 && sizes[0] == 1 && sizes[13] == 64 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks),
		cmocka_unit_test(mtus),
		cmocka_unit_test(infiniband_goes_by_lid),
		cmocka_unit_test(roce_takes_the_best_that_both_have),
		cmocka_unit_test(a_gid_index_that_was_named),
		cmocka_unit_test(partitions),
		cmocka_unit_test(ports_of_two_kinds),
		cmocka_unit_test(counters),
		cmocka_unit_test(corruption_is_seen),
		cmocka_unit_test(medians_and_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
