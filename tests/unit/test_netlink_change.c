/* SPDX-License-Identifier: MIT */
#include "test_netlink_help.h"

#include <linux/if_addr.h>

static char text[256];

static const char *ib0_addrs(void)
{
	np_auto_netdevs struct np_netdevs list = observe("ib0", 0);

	return addr_list(&list.v[0], text, sizeof(text));
}

static bool ib0_is_up(void)
{
	np_auto_netdevs struct np_netdevs list = observe("ib0", 0);

	return list.v[0].flags & IFF_UP;
}

static void up_and_down(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");

	(void)state;
	assert_int_equal(np_netdev_set_up(nl, index_of("ib0"), "ib0", true, &err), 0);
	assert_true(ib0_is_up());
	assert_int_equal(np_netdev_set_up(nl, index_of("ib0"), "ib0", true, &err), 0);
	assert_int_equal(np_netdev_set_up(nl, index_of("ib0"), "ib0", false, &err), 0);
	assert_false(ib0_is_up());
	assert_int_equal(np_netdev_set_up(nl, 4711, "ib7", true, &err), -ENODEV);
	assert_string_equal(err.code, "netdev.kernel_refused");
	assert_non_null(strstr(err.message, "ib7"));
	assert_string_not_equal(err.hint, "");
}

static void mtu(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");
	np_auto_netdevs struct np_netdevs list = { 0 };

	(void)state;
	assert_int_equal(np_netdev_set_mtu(nl, index_of("ib0"), "ib0", 65520, &err), 0);
	list = observe("ib0", 0);
	assert_int_equal(list.v[0].mtu, 65520);
	assert_int_equal(np_netdev_set_mtu(nl, index_of("ib0"), "ib0", 70000, &err), -EINVAL);
	assert_string_equal(err.code, "netdev.kernel_refused");
	/* The kernel's own words, and what would do. */
	assert_non_null(strstr(err.message, "mtu greater than device maximum"));
	assert_non_null(strstr(err.hint, "65521"));
	assert_int_equal(np_netdev_set_mtu(nl, index_of("ib0"), "ib0", 10, &err), -EINVAL);
	assert_non_null(strstr(err.message, "mtu less than device minimum"));
}

static void add_and_delete(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");
	np_auto_netdevs struct np_netdevs list = { 0 };
	struct np_netdev_addr addr;

	(void)state;
	assert_int_equal(add("ib0", "10.0.0.50/24"), 0);
	assert_int_equal(add("ib0", "2001:db8::50/64"), 0);
	assert_string_equal(ib0_addrs(), "10.0.0.50/24 2001:db8::50/64 ");
	list = observe("ib0", 0);
	assert_true(list.v[0].addrs[0].has_broadcast);
	assert_memory_equal(list.v[0].addrs[0].broadcast, "\x0a\0\0\xff", 4);

	assert_int_equal(add("ib0", "10.0.0.50/24"), -EEXIST);
	assert_string_equal(err.code, "netdev.address_exists");
	assert_int_equal(add("ib0", "2001:db8::50/64"), -EEXIST);
	assert_string_equal(err.code, "netdev.address_exists");
	assert_non_null(strstr(err.message, "2001:db8::50/64 to ib0"));
	/* Another length is another entry to the kernel, so the second goes alone. */
	assert_int_equal(add("ib0", "10.0.0.50/16"), 0);
	addr = address("10.0.0.50/24");
	assert_int_equal(np_addr_del(nl, index_of("ib0"), "ib0", &addr, &err), 0);
	assert_string_equal(ib0_addrs(), "10.0.0.50/16 2001:db8::50/64 ");
	assert_int_equal(np_addr_del(nl, index_of("ib0"), "ib0", &addr, &err), -EADDRNOTAVAIL);
	assert_non_null(strstr(err.message, "10.0.0.50/24 from ib0"));
	addr = address("2001:db8::50/64");
	assert_int_equal(np_addr_del(nl, index_of("ib0"), "ib0", &addr, &err), 0);
	assert_string_equal(ib0_addrs(), "10.0.0.50/16 ");
}

static void kernel_reason_for_addresses(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");
	struct np_netdev_addr addr = address("10.0.0.50/24");

	(void)state;
	addr.inet.prefix_len = 33;
	assert_int_equal(np_addr_add(nl, index_of("ib0"), "ib0", &addr, &err), -EINVAL);
	assert_non_null(strstr(err.message, "Invalid prefix length"));
	assert_int_equal(np_addr_add(nl, 4711, "ib7", &addr, &err), -EINVAL);
	addr.inet.prefix_len = 24;
	assert_int_equal(np_addr_add(nl, 4711, "ib7", &addr, &err), -ENODEV);
	/* An earlier reason must not stick to a later failure. */
	assert_null(strstr(err.message, "prefix"));
}

/* What was removed comes back as it was: label, flags, peer, metric, lifetimes. */
static void removal_is_undone_exactly(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");
	np_auto_netdevs struct np_netdevs before = { 0 }, after = { 0 };
	int ifindex = index_of("ib0");

	(void)state;
	assert_int_equal(
		run("ip addr add 10.0.0.50/24 brd 10.0.0.254 dev ib0 label ib0:x noprefixroute && "
		    "ip addr add 10.1.0.1 peer 10.2.0.0/16 dev ib0 metric 50 && "
		    "ip addr add 10.3.0.1/8 dev ib0 scope link valid_lft 5000 preferred_lft 4000 && "
		    "ip addr add 2001:db8::1/64 dev ib0 nodad preferred_lft 0 && "
		    "ip addr add 2001:db8::2 peer 2001:db8:1::/64 dev ib0 nodad metric 9"),
		0);
	before = observe("ib0", 0);
	assert_int_equal(before.v[0].n_addrs, 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(np_addr_del(nl, ifindex, "ib0", &before.v[0].addrs[i], &err), 0);
	assert_string_equal(ib0_addrs(), "");
	/* The kernel puts wider IPv6 scopes and newer addresses first. */
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(np_addr_add(nl, ifindex, "ib0", &before.v[0].addrs[i], &err), 0);
	for (size_t i = 5; i-- > 3;)
		assert_int_equal(np_addr_add(nl, ifindex, "ib0", &before.v[0].addrs[i], &err), 0);
	after = observe("ib0", 0);
	assert_int_equal(after.v[0].n_addrs, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_in_range(before.v[0].addrs[i].valid_s - after.v[0].addrs[i].valid_s, 0, 2);
		after.v[0].addrs[i].valid_s = before.v[0].addrs[i].valid_s;
		after.v[0].addrs[i].preferred_s = before.v[0].addrs[i].preferred_s;
		assert_memory_equal(&before.v[0].addrs[i], &after.v[0].addrs[i],
				    sizeof(struct np_netdev_addr));
	}
}

static void mode_is_refused_where_there_is_none(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");

	(void)state;
	assert_true(np_netdev_set_mode("ib0", NP_IPOIB_CONNECTED, &err) < 0);
	assert_string_equal(err.code, "netdev.mode_refused");
	assert_string_not_equal(err.hint, "");
	assert_int_equal(np_netdev_set_mode("../ib0", NP_IPOIB_CONNECTED, &err), -EINVAL);
	assert_int_equal(np_netdev_set_mode("..", NP_IPOIB_CONNECTED, &err), -EINVAL);
	assert_int_equal(np_netdev_set_mode("", NP_IPOIB_CONNECTED, &err), -EINVAL);
	assert_int_equal(np_netdev_set_mode("ib0", NP_IPOIB_MODE_UNKNOWN, &err), -EINVAL);
}

static void mode_is_written(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");
	char line[32] = "";
	FILE *f;

	(void)state;
	/* A file stands in for the driver's attribute. */
	assert_int_equal(mount("tmpfs", "/tmp", "tmpfs", 0, NULL), 0);
	assert_int_equal(run("mkdir /tmp/w /tmp/u /tmp/l && echo datagram >/tmp/u/mode && "
			     "mount -t overlay o -o lowerdir=/tmp/l:/sys/devices/virtual/net/ib0,"
			     "upperdir=/tmp/u,workdir=/tmp/w /sys/devices/virtual/net/ib0"),
			 0);
	assert_int_equal(np_netdev_set_mode("ib0", NP_IPOIB_CONNECTED, &err), 0);
	f = fopen("/tmp/u/mode", "re");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	fclose(f);
	assert_string_equal(line, "connected\n");
	umount2("/tmp", MNT_DETACH);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fresh_net, close_net)
	const struct CMUnitTest tests[] = {
		T(up_and_down),
		T(mtu),
		T(add_and_delete),
		T(kernel_reason_for_addresses),
		T(removal_is_undone_exactly),
		T(mode_is_refused_where_there_is_none),
		T(mode_is_written),
	};

	need_namespaces("test_netlink_change");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
