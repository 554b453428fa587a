/* SPDX-License-Identifier: MIT */
#include "test_netlink_help.h"

#include <time.h>

#define OTHERS	   200
#define ADDRS_EACH 10

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Median time of np_netdevs_observe_named for ib0, after opening a socket or not. */
static double median_us(bool with_open)
{
	enum { ROUNDS = 1000 };
	static double took[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		np_auto_netdevs struct np_netdevs list = { 0 };
		double start = now_us();

		if (with_open) {
			np_netlink_close(&nl);
			assert_int_equal(np_netlink_open(&nl, &err), 0);
		}
		list = observe("ib0", 0);
		took[i] = now_us() - start;
		assert_int_equal(list.n, 1);
	}
	qsort(took, ROUNDS, sizeof(took[0]), by_value);
	return took[ROUNDS / 2];
}

static void make_others(void)
{
	FILE *batch = popen("ip -batch -", "we");

	assert_non_null(batch);
	for (int i = 0; i < OTHERS / 2; i++)
		fprintf(batch, "link add ve%d type veth peer name vp%d\n", i, i);
	for (int i = 0; i < OTHERS / 2; i++)
		for (int j = 0; j < ADDRS_EACH; j++)
			fprintf(batch,
				"addr add 10.%d.%d.1/24 dev ve%d\naddr add 10.%d.%d.2/24 dev vp%d\n",
				i + 1, j, i, i + 1, j + 100, i);
	assert_int_equal(pclose(batch), 0);
}

static void a_crowded_host(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");
	np_auto_netdevs struct np_netdevs all = { 0 };
	struct np_netdev_addr addr = address("10.7.3.1/24");
	struct np_addr_owner owner;
	double alone, crowded, start, dump;
	char text[512];

	(void)state;
	assert_int_equal(add("ib0", "10.0.0.50/24"), 0);
	alone = median_us(false);
	printf("observe_named, alone:             %.1f us (%.1f us with opening the socket)\n",
	       alone, median_us(true));
	make_others();
	crowded = median_us(false);
	printf("observe_named, %d netdevs, %d addresses beside: %.1f us (%.1f us with opening)\n",
	       OTHERS, OTHERS * ADDRS_EACH, crowded, median_us(true));

	start = now_us();
	assert_int_equal(np_netdevs_observe_all(nl, 0, &all, &err), 0);
	dump = now_us() - start;
	printf("observe_all there:                %.1f us\n", dump);
	assert_int_equal(all.n, OTHERS + 2);
	assert_string_equal(all.v[0].name, "ib0");
	assert_string_equal(all.v[1].name, "lo");
	assert_string_equal(all.v[2].name, "ve0");
	assert_string_equal(all.v[12].name, "ve10");
	for (size_t i = 2; i < all.n; i++)
		assert_int_equal(all.v[i].n_addrs, ADDRS_EACH);
	assert_string_equal(addr_list(&all.v[2], text, sizeof(text)),
			    "10.1.0.1/24 10.1.1.1/24 10.1.2.1/24 10.1.3.1/24 10.1.4.1/24 "
			    "10.1.5.1/24 10.1.6.1/24 10.1.7.1/24 10.1.8.1/24 10.1.9.1/24 ");
	start = now_us();
	assert_int_equal(np_addr_find_owner(nl, &addr.inet, 0, &owner, &err), 0);
	printf("find_owner there:                 %.1f us\n", now_us() - start);
	assert_string_equal(owner.ifname, "ve6");
	start = now_us();
	assert_int_equal(np_addr_lookup_owner(nl, &addr.inet, &owner, &err), 0);
	printf("lookup_owner there:               %.1f us\n", now_us() - start);
	assert_string_equal(owner.ifname, "ve6");
	/* Flat: generous, since other work may share the machine. */
	assert_true(crowded < alone * 3 + 200);
}

/* Addresses come and go while we list: the same answer, or a plain error. */
static void a_restless_host(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");
	FILE *churn;
	int failed = 0;

	(void)state;
	assert_int_equal(add("ib0", "10.0.0.50/24"), 0);
	make_others();
	churn = popen("(for i in $(seq 1500); do echo addr add 172.16.0.1/24 dev lo; "
		      "echo addr del 172.16.0.1/24 dev lo; done) | ip -batch - >/dev/null",
		      "re");
	assert_non_null(churn);
	for (int i = 0; i < 40; i++) {
		np_auto_netdevs struct np_netdevs all = { 0 }, one = { 0 };

		if (np_netdevs_observe_all(nl, 0, &all, &err) < 0) {
			failed++;
			assert_int_equal(err.num, -EAGAIN);
		} else {
			assert_int_equal(all.n, OTHERS + 2);
			assert_int_equal(np_netdevs_find(&all, "vp99")->n_addrs, ADDRS_EACH);
		}
		one = observe("ib0", 0);
		assert_int_equal(one.v[0].n_addrs, 1);
	}
	assert_int_equal(pclose(churn), 0);
	printf("full lists given up under churn:  %d of 40\n", failed);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fresh_net, close_net)
	const struct CMUnitTest tests[] = { T(a_crowded_host), T(a_restless_host) };

	need_namespaces("test_netlink_scale");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
