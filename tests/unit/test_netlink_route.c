/* SPDX-License-Identifier: MIT */
#include "test_netlink_help.h"

static struct np_addr_owner owner_of(const char *a, int but)
{
	struct np_netdev_addr addr = address(a);
	struct np_addr_owner owner;

	assert_int_equal(np_addr_find_owner(nl, &addr.inet, but, &owner, &err), 0);
	return owner;
}

static struct np_addr_owner looked_up(const char *a)
{
	struct np_netdev_addr addr = address(a);
	struct np_addr_owner owner;

	if (np_addr_lookup_owner(nl, &addr.inet, &owner, &err) < 0)
		fail_msg("%s: %s", a, err.message);
	return owner;
}

static void owner_both_ways(void **state)
{
	(void)state;
	assert_int_equal(run("ip link add eth1 type veth peer name peer1 && ip link set eth1 up && "
			     "ip link set peer1 up && ip link set lo up && "
			     "ip addr add 10.0.0.50/16 dev eth1 && "
			     "ip addr add 2001:db8::50/64 dev eth1 nodad && "
			     "ip addr add 192.168.7.7/32 dev lo && "
			     "ip route add default via 10.0.0.1 dev eth1"),
			 0);
	assert_true(owner_of("10.0.0.50/24", 0).local);
	assert_string_equal(owner_of("10.0.0.50/24", 0).ifname, "eth1");
	assert_int_equal(owner_of("10.0.0.50/24", 0).ifindex, index_of("eth1"));
	assert_false(owner_of("10.0.0.50/24", index_of("eth1")).local);
	assert_string_equal(owner_of("2001:db8::50/64", 0).ifname, "eth1");
	assert_string_equal(looked_up("10.0.0.50/24").ifname, "eth1");
	assert_string_equal(looked_up("2001:db8::50/64").ifname, "eth1");
	assert_string_equal(looked_up("192.168.7.7/24").ifname, "lo");
	/* Reachable by the subnet or the default route is not ours. */
	assert_false(looked_up("10.0.0.51/24").local);
	assert_false(looked_up("172.16.0.1/24").local);
	assert_false(looked_up("2001:db8::51/64").local);
	assert_false(owner_of("10.0.0.51/24", 0).local);
}

/* The kernel answers for IPv4 addresses of a netdev that is down; an IPv6 one is
 * tentative until it is up, and only the dump tells. */
static void down_netdev(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");

	(void)state;
	assert_int_equal(add("ib0", "10.0.0.50/24"), 0);
	assert_int_equal(add("ib0", "2001:db8::50/64"), 0);
	assert_string_equal(owner_of("10.0.0.50/24", 0).ifname, "ib0");
	assert_string_equal(owner_of("2001:db8::50/64", 0).ifname, "ib0");
	assert_string_equal(looked_up("10.0.0.50/24").ifname, "ib0");
	assert_false(looked_up("2001:db8::50/64").local);
	assert_int_equal(run("ip link set ib0 up && ip link set ib0 down"), 0);
	assert_string_equal(looked_up("10.0.0.50/24").ifname, "ib0");
}

static void no_route_is_no_owner(void **state)
{
	(void)state;
	assert_int_equal(
		run("ip link set lo up && ip route add blackhole 10.1.0.0/16 && "
		    "ip route add unreachable 10.2.0.0/16 && "
		    "ip route add prohibit 10.3.0.0/16 && ip route add throw 10.4.0.0/16 && "
		    "ip -6 route add blackhole 2001:db8:1::/48 && "
		    "ip -6 route add unreachable 2001:db8:2::/48 && "
		    "ip -6 route add prohibit 2001:db8:3::/48"),
		0);
	assert_false(looked_up("10.9.0.1/24").local);
	assert_false(looked_up("10.1.0.1/24").local);
	assert_false(looked_up("10.2.0.1/24").local);
	assert_false(looked_up("10.3.0.1/24").local);
	assert_false(looked_up("10.4.0.1/24").local);
	assert_false(looked_up("2001:db8:9::1/64").local);
	assert_false(looked_up("2001:db8:1::1/64").local);
	assert_false(looked_up("2001:db8:2::1/64").local);
	assert_false(looked_up("2001:db8:3::1/64").local);
}

static const struct np_route *find(const struct np_routes *routes, int family, bool is_default,
				   const char *ifname)
{
	for (size_t i = 0; i < routes->n; i++)
		np_route_name(nl, &routes->v[i]);
	for (size_t i = 0; i < routes->n; i++)
		if (routes->v[i].family == family && routes->v[i].is_default == is_default &&
		    np_streq(routes->v[i].ifname, ifname))
			return &routes->v[i];
	return NULL;
}

static void routes_of_the_main_table(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");
	np_auto(np_routes_done) struct np_routes routes = { 0 };
	const struct np_route *route;
	char text[NP_INET_STRLEN];

	(void)state;
	assert_int_equal(np_routes_observe(nl, NULL, &routes, &err), 0);
	assert_int_equal(routes.n, 0);
	assert_int_equal(
		run("ip link add eth1 type veth peer name p1 && ip link set eth1 up && "
		    "ip link set p1 up && ip link set ib0 up && "
		    "ip addr add 10.0.0.50/24 dev ib0 && ip addr add 10.0.0.7/20 dev eth1 && "
		    "ip addr add 2001:db8::50/64 dev ib0 nodad && "
		    "ip route add 172.16.0.0/12 via 10.0.0.1 dev ib0 && "
		    "ip route add 172.32.0.0/16 dev eth1 table 77 && "
		    "ip route add default metric 10 nexthop via 10.0.0.1 dev ib0 nexthop via 10.0.1.1 dev eth1 && "
		    "ip -6 route add default via 2001:db8::1 dev ib0"),
		0);
	assert_int_equal(np_routes_observe(nl, NULL, &routes, &err), 0);
	assert_int_equal(routes.n, 6);
	route = find(&routes, AF_INET, false, "ib0");
	assert_non_null(route);
	assert_string_equal(np_inet_str(&route->dst, text), "10.0.0.0/24");
	assert_int_equal(route->ifindex, index_of("ib0"));
	route = find(&routes, AF_INET, false, "eth1");
	assert_non_null(route);
	assert_string_equal(np_inet_str(&route->dst, text), "10.0.0.0/20");
	assert_non_null(find(&routes, AF_INET, true, "ib0"));
	assert_non_null(find(&routes, AF_INET, true, "eth1"));
	assert_int_equal(find(&routes, AF_INET, true, "ib0")->dst.family, 0);
	route = find(&routes, AF_INET6, false, "ib0");
	assert_non_null(route);
	assert_string_equal(np_inet_str(&route->dst, text), "2001:db8::/64");
	assert_non_null(find(&routes, AF_INET6, true, "ib0"));
}

static void routes_that_matter(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");
	np_auto(np_routes_done) struct np_routes routes = { 0 };
	const struct np_inet ours[] = { address("10.0.0.50/24").inet, address("10.9.0.1/16").inet };
	struct np_routes_scope scope = { .nets = ours, .n_nets = NP_ARRAY_SIZE(ours) };
	char text[NP_INET_STRLEN];
	int ifindex;

	(void)state;
	assert_int_equal(
		run("ip link add eth1 type veth peer name p1 && ip link set eth1 up && "
		    "ip link set p1 up && ip link set ib0 up && "
		    "ip addr add 10.0.0.7/20 dev eth1 && ip addr add 10.1.0.7/16 dev eth1 && "
		    "ip addr add 10.9.3.1/32 dev p1 && ip addr add 10.8.3.1/30 dev p1 && "
		    "ip addr add 2001:db8::50/64 dev ib0 nodad && "
		    "ip addr add 2001:db8:1::50/64 dev eth1 nodad"),
		0);
	assert_int_equal(run("ip route add 172.16.0.0/12 via 10.1.0.1 dev eth1 src 10.1.0.7 && "
			     "ip route add default via 10.1.0.1 dev eth1 && "
			     "ip -6 route add default metric 5 via 2001:db8::1 dev ib0 && "
			     "ip -6 route add default metric 9 nexthop via 2001:db8::2 dev ib0 "
			     "nexthop via 2001:db8:1::2 dev eth1"),
			 0);
	/* nothing of ours is IPv6; far networks are left out, whoever has them */
	assert_int_equal(np_routes_observe(nl, &scope, &routes, &err), 0);
	assert_int_equal(routes.n, 3);
	assert_string_equal(np_inet_str(&find(&routes, AF_INET, false, "eth1")->dst, text),
			    "10.0.0.0/20");
	assert_true(routes.v[0].is_default + routes.v[1].is_default + routes.v[2].is_default == 1);
	assert_true(routes.v[0].by_source + routes.v[1].by_source + routes.v[2].by_source == 1);

	/* of that family what runs over one netdev, beside what is there already */
	ifindex = index_of("ib0");
	scope = (struct np_routes_scope){ .family = AF_INET6,
					  .ifindexes = &ifindex,
					  .n_ifindexes = 1 };
	assert_int_equal(np_routes_observe(nl, &scope, &routes, &err), 0);
	assert_int_equal(routes.n, 5);
	for (size_t i = 3; i < 5; i++) {
		assert_true(routes.v[i].family == AF_INET6 && routes.v[i].is_default);
		assert_int_equal(routes.v[i].ifindex, ifindex);
	}
	/* a netdev that is gone has none */
	ifindex = 4711;
	assert_int_equal(np_routes_observe(nl, &scope, &routes, &err), 0);
	assert_int_equal(routes.n, 5);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fresh_net, close_net)
	const struct CMUnitTest tests[] = {
		T(owner_both_ways),	     T(down_netdev),	    T(no_route_is_no_owner),
		T(routes_of_the_main_table), T(routes_that_matter),
	};

	need_namespaces("test_netlink_route");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
