/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "agent/nccl_conf.h"

static uint64_t seed = 88172645463325252ull;

static unsigned int rnd(unsigned int below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned int)(seed % below);
}

/* ---- matching ---- */

static void strv(struct np_strv *list, const char *words)
{
	assert_int_equal(np_strv_split(list, words, " "), 0);
}

static void test_matches(void **state)
{
	(void)state;
	assert_true(np_nccl_matches(NULL, "ib0", -1));
	assert_true(np_nccl_matches("", "ib0", -1));
	assert_false(np_nccl_matches("^", "ib0", -1));
	assert_true(np_nccl_matches("ib", "ib0", -1));
	assert_true(np_nccl_matches("ib0", "ib0.8001", -1));
	assert_false(np_nccl_matches("=ib0", "ib0.8001", -1));
	assert_true(np_nccl_matches("=ib0", "ib0", -1));
	assert_false(np_nccl_matches("ib0", "ib", -1));
	assert_false(np_nccl_matches("^docker,lo", "lo", -1));
	assert_true(np_nccl_matches("^docker,lo", "eth0", -1));
	assert_true(np_nccl_matches("^=lo", "lo1", -1));
	assert_false(np_nccl_matches("^=lo", "lo", -1));
	assert_true(np_nccl_matches("mlx5_1:1", "mlx5_10", 1));
	assert_false(np_nccl_matches("=mlx5_1:1", "mlx5_10", 1));
	assert_true(np_nccl_matches("=mlx5_1:1", "mlx5_1", 1));
	assert_false(np_nccl_matches("=mlx5_1:1", "mlx5_1", 2));
	assert_true(np_nccl_matches("=mlx5_1", "mlx5_1", 2));
	assert_true(np_nccl_matches("=mlx5_1:", "mlx5_1", 2));
	assert_true(np_nccl_matches("=mlx5_1:2:0:1", "mlx5_1", 2));
	assert_true(np_nccl_matches(",,mlx5_3", "mlx5_3", 1));
	assert_true(np_nccl_matches(":1", "mlx5_3", 1));
	/* entry 17 of a list of netdevs is not read, entry 17 of HCAs is */
	assert_false(np_nccl_matches("a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,ib0", "ib0", -1));
	assert_true(np_nccl_matches("a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,ib0", "ib0", 1));
}

static void check_ifname(const char *names, const char *all, const char *wanted)
{
	np_auto_strv struct np_strv n = { 0 }, a = { 0 };
	_cleanup_free_ char *value = NULL;

	strv(&n, names);
	strv(&a, all);
	value = np_nccl_ifname_value(&n, &a);
	if (wanted)
		assert_string_equal(value, wanted);
	else
		assert_null(value);
}

static void test_ifname(void **state)
{
	np_auto_strv struct np_strv all = { 0 };

	(void)state;
	check_ifname("ib0", "lo eth0 ib0", "ib0");
	check_ifname("ib0", "ib0 ib0.8001 ib01", "=ib0"); /* C1 */
	check_ifname("ibp65s0", "lo ibp65s0 ibp65s0d1", "=ibp65s0");
	check_ifname("ib0 ib1", "ib0 ib1 eth0", "ib0,ib1");
	check_ifname("ib0 ib1", "ib0 ib1 ib10", "=ib0,ib1");
	check_ifname("ib0 ib0.8001", "ib0 ib0.8001", "ib0,ib0.8001");
	check_ifname("a", "a b", "=a"); /* NCCL takes one letter for unset */
	check_ifname("=ib0", "=ib0", NULL);
	check_ifname("ib,0", "ib,0", NULL);
	check_ifname("", "ib0", NULL);
	assert_int_equal(errno, EINVAL);
	check_ifname("a1 a2 a3 a4 a5 a6 a7 a8 b1 b2 b3 b4 b5 b6 b7 b8 c1", "lo", NULL);
	assert_int_equal(errno, ERANGE);
	strv(&all, "ib0 ib01");
	assert_false(np_nccl_plain_is_exact("ib0", &all));
	assert_true(np_nccl_plain_is_exact("ib01", &all));
}

static void check_hca(const char *ports, const char *all, const char *wanted)
{
	np_auto_strv struct np_strv p = { 0 }, a = { 0 };
	_cleanup_free_ char *value = NULL;

	strv(&p, ports);
	strv(&a, all);
	assert_int_equal(np_nccl_hca_value(&p, &a, &value), 0);
	if (wanted)
		assert_string_equal(value, wanted);
	else
		assert_null(value);
}

static void test_hca(void **state)
{
	np_auto_strv struct np_strv wanted = { 0 }, all = { 0 };
	_cleanup_free_ char *value = NULL;

	(void)state;
	check_hca("mlx5_1:1", "mlx5_1:1 mlx5_10:1 mlx5_11:1", "=mlx5_1:1"); /* C2 */
	check_hca("mlx5_0:1 mlx5_1:1", "mlx5_0:1 mlx5_1:1", NULL);
	check_hca("", "mlx5_0:1", NULL);
	check_hca("mlx5_0:1 mlx5_3:1", "mlx5_0:1 mlx5_1:1 mlx5_2:1 mlx5_3:1", "mlx5_0:1,mlx5_3:1");
	check_hca("mlx5_0:1", "mlx5_0:1 mlx5_0:2", "mlx5_0:1");
	check_hca("mlx5_1:1", "mlx5_1:1 mlx5_1:2 mlx5_10:2", "mlx5_1:1");

	/* more than NCCL's list holds: name the others */
	for (int i = 10; i < 50; i++) {
		char name[32];

		snprintf(name, sizeof(name), "mlx5_%d:1", i);
		assert_int_equal(np_strv_add(&all, name), 0);
		if (i != 11 && i != 44)
			assert_int_equal(np_strv_add(&wanted, name), 0);
	}
	assert_int_equal(np_nccl_hca_value(&wanted, &all, &value), 0);
	assert_string_equal(value, "^=mlx5_11:1,mlx5_44:1");
}

/* Whatever is wanted out of whatever there is, the simulation takes just that. */
static void test_hca_property(void **state)
{
	(void)state;
	for (int i = 0; i < 5000; i++) {
		np_auto_strv struct np_strv wanted = { 0 }, all = { 0 };
		_cleanup_free_ char *value = NULL;

		for (int ca = 0; ca < 14; ca++) {
			for (int port = 1; port <= 2; port++) {
				char name[32];

				snprintf(name, sizeof(name), "mlx5_%d:%d", ca, port);
				if (rnd(3) == 0)
					continue;
				assert_int_equal(np_strv_add(&all, name), 0);
				if (rnd(2))
					assert_int_equal(np_strv_add(&wanted, name), 0);
			}
		}
		assert_int_equal(np_nccl_hca_value(&wanted, &all, &value), 0);
		for (size_t n = 0; value && n < all.n; n++) {
			char name[32];
			char *colon;

			np_strcpy(name, sizeof(name), all.v[n]);
			colon = strchr(name, ':');
			*colon = '\0';
			assert_int_equal(np_nccl_matches(value, name, colon[1] - '0'),
					 np_strv_has(&wanted, all.v[n]));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matches),
		cmocka_unit_test(test_ifname),
		cmocka_unit_test(test_hca),
		cmocka_unit_test(test_hca_property),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
