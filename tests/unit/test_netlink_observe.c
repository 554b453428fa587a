/* SPDX-License-Identifier: MIT */
#include "test_netlink_help.h"

#include <linux/if_addr.h>
#include <sys/stat.h>

static void named_finds_by_name_and_altname(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");
	np_auto_netdevs struct np_netdevs list = { 0 };
	np_auto_strv struct np_strv names = { 0 };
	const char *const asked[] = { "nothere",   "ibp65s0f0np0v1-quite-a-long-name",
				      "ib0",	   "",
				      "short-alt", "lo" };

	(void)state;
	assert_int_equal(
		run("ip link property add dev ib0 altname ibp65s0f0np0v1-quite-a-long-name "
		    "altname short-alt"),
		0);
	for (size_t i = 0; i < NP_ARRAY_SIZE(asked); i++)
		assert_int_equal(np_strv_add(&names, asked[i]), 0);
	assert_int_equal(np_netdevs_observe_named(nl, &names, 0, &list, &err), 0);
	assert_int_equal(list.n, 2);
	assert_string_equal(list.v[0].name, "ib0");
	assert_string_equal(list.v[1].name, "lo");
	assert_int_equal(list.v[0].altnames.n, 2);
	assert_ptr_equal(np_netdevs_find(&list, "short-alt"), &list.v[0]);
	assert_null(np_netdevs_find(&list, "nothere"));
	assert_true(np_netdev_is_ipoib(&list.v[0]));
	assert_false(np_netdev_is_ipoib(&list.v[1]));
}

static void no_names_no_netdevs(void **state)
{
	np_auto_netdevs struct np_netdevs list = { 0 };
	const struct np_strv none = { 0 };

	(void)state;
	assert_int_equal(np_netdevs_observe_named(nl, &none, 0, &list, &err), 0);
	assert_int_equal(list.n, 0);
}

static void link_attributes(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");
	np_auto_netdevs struct np_netdevs down = { 0 }, up = { 0 };

	(void)state;
	down = observe("ib0", NP_NETDEV_BASIC);
	assert_int_equal(down.v[0].type, 32);
	assert_string_equal(down.v[0].kind, "tun");
	assert_int_equal(down.v[0].carrier, NP_TRI_UNKNOWN);
	assert_false(down.v[0].flags & IFF_UP);
	assert_int_equal(down.v[0].mtu, 1500);
	assert_int_equal(down.v[0].max_mtu, 65521);
	assert_false(down.v[0].has_stats);
	assert_int_equal(down.v[0].mode, NP_IPOIB_MODE_UNKNOWN);
	assert_int_equal(down.v[0].umcast, NP_TRI_UNKNOWN);
	assert_false(down.v[0].has_pkey);
	assert_string_equal(down.v[0].ca, "");
	assert_string_equal(down.v[0].manager, "");
	assert_int_equal(np_netdev_set_up(nl, down.v[0].ifindex, "ib0", true, &err), 0);
	set_carrier(fd, 0);
	up = observe("ib0", NP_NETDEV_STATS | NP_NETDEV_MANAGER);
	assert_int_equal(up.v[0].carrier, NP_TRI_NO);
	assert_string_equal(np_operstate_str(up.v[0].operstate), "down");
	assert_true(up.v[0].has_stats);
	assert_string_not_equal(up.v[0].manager, "");
	np_netdevs_done(&up);
	set_carrier(fd, 1);
	up = observe("ib0", NP_NETDEV_BASIC);
	assert_int_equal(up.v[0].carrier, NP_TRI_YES);
}

static void addresses_in_order(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");
	np_auto_netdevs struct np_netdevs list = { 0 }, all = { 0 };
	const struct np_netdev_addr *addr;
	char text[256];

	(void)state;
	assert_int_equal(
		run("ip link add e0 type veth peer name e1 && ip addr add 10.9.9.9/24 dev e0 && "
		    "ip addr add 10.0.0.50/24 brd + dev ib0 && "
		    "ip addr add 10.0.0.51/24 dev ib0 label ib0:1 && "
		    "ip addr add 10.1.0.1 peer 10.2.0.1/32 dev ib0 valid_lft 500 preferred_lft 400 && "
		    "ip addr add 2001:db8::50/64 dev ib0 nodad metric 77 && "
		    "ip addr add 2001:db8::51/64 dev ib0 nodad preferred_lft 0"),
		0);
	list = observe("ib0", 0);
	assert_int_equal(list.v[0].n_addrs, 5);
	addr = list.v[0].addrs;
	assert_string_equal(
		addr_list(&list.v[0], text, sizeof(text)),
		"10.0.0.50/24 10.1.0.1/32 10.0.0.51/24 2001:db8::51/64 2001:db8::50/64 ");
	assert_true(addr[0].has_broadcast);
	assert_memory_equal(addr[0].broadcast, "\x0a\0\0\xff", 4);
	assert_false(addr[0].flags & IFA_F_SECONDARY);
	assert_true(addr[0].flags & IFA_F_PERMANENT);
	assert_int_equal(addr[0].valid_s, 0);
	assert_string_equal(addr[0].label, "ib0");
	assert_true(addr[1].has_peer);
	assert_memory_equal(addr[1].peer, "\x0a\x02\0\x01", 4);
	assert_in_range(addr[1].valid_s, 498, 500);
	assert_in_range(addr[1].preferred_s, 398, 400);
	assert_true(addr[2].flags & IFA_F_SECONDARY);
	assert_false(addr[2].has_broadcast);
	assert_string_equal(addr[2].label, "ib0:1");
	assert_int_equal(addr[3].valid_s, UINT32_MAX);
	assert_int_equal(addr[3].preferred_s, 0);
	assert_true(addr[3].flags & IFA_F_DEPRECATED);
	assert_int_equal(addr[4].metric, 77);
	assert_true(addr[4].flags & IFA_F_NODAD);
	assert_false(addr[4].has_peer);

	/* The full dump tells the same. */
	assert_int_equal(np_netdevs_observe_all(nl, 0, &all, &err), 0);
	assert_int_equal(all.n, 4);
	assert_string_equal(all.v[0].name, "e0");
	assert_string_equal(all.v[1].name, "e1");
	assert_string_equal(all.v[2].name, "ib0");
	assert_string_equal(all.v[3].name, "lo");
	assert_int_equal(all.v[2].n_addrs, 5);
	assert_memory_equal(&all.v[2].addrs[0], &addr[0], sizeof(*addr));
	assert_string_equal(addr_list(&all.v[0], text, sizeof(text)), "10.9.9.9/24 ");
	assert_int_equal(all.v[0].parent_ifindex, all.v[1].ifindex);
}

static enum np_tri promote(const char *all, const char *own)
{
	np_auto_netdevs struct np_netdevs list = { 0 };

	assert_int_equal(put_file("/proc/sys/net/ipv4/conf/all/promote_secondaries", all), 0);
	assert_int_equal(put_file("/proc/sys/net/ipv4/conf/ib0/promote_secondaries", own), 0);
	list = observe("ib0", 0);
	return list.v[0].promote_secondaries;
}

static void promote_secondaries_in_force(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");

	(void)state;
	assert_int_equal(promote("0", "0"), NP_TRI_NO);
	assert_int_equal(promote("1", "0"), NP_TRI_YES);
	assert_int_equal(promote("0", "1"), NP_TRI_YES);
	assert_int_equal(promote("1", "1"), NP_TRI_YES);
}

static void names_from_sysfs(void **state)
{
	np_auto_strv struct np_strv names = { 0 };
	_cleanup_close_ int ib10 = make_ib("ib10");
	_cleanup_close_ int ib2 = make_ib("ib2");

	(void)state;
	assert_int_equal(np_netdev_names(&names, &err), 0);
	assert_int_equal(names.n, 3);
	np_strv_sort_natural(&names);
	assert_string_equal(names.v[0], "ib2");
	assert_string_equal(names.v[1], "ib10");
	assert_string_equal(names.v[2], "lo");
}

#define IB0_DIR "/sys/devices/virtual/net/ib0"

/* Lays made-up files (a directory where the text is NULL) over @where. */
static void lay(const char *where, const char *const files[][2], size_t n)
{
	char dir[] = "/tmp/np-test-XXXXXX", path[256], options[512];

	assert_int_equal(mount("tmpfs", "/tmp", "tmpfs", 0, NULL), 0);
	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < n; i++) {
		if (!files[i][1])
			assert_int_equal(run("mkdir -p %s/%s", dir, files[i][0]), 0);
		snprintf(path, sizeof(path), "%s/%s", dir, files[i][0]);
		if (files[i][1])
			assert_int_equal(put_file(path, files[i][1]), 0);
	}
	snprintf(options, sizeof(options), "lowerdir=%s:%s", dir, where);
	if (mount("overlay", where, "overlay", 0, options) < 0) {
		fprintf(stderr, "SKIP %s: no overlay mount here: %s\n", where, strerror(errno));
		skip();
	}
	assert_int_equal(umount2("/tmp", MNT_DETACH), 0);
}

#define GUIDE_HWADDR "80:00:02:08:fe:80:00:00:00:00:00:00:50:6b:4b:03:00:f5:ce:9c"

static void ipoib_by_sysfs(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");
	np_auto_netdevs struct np_netdevs list = { 0 };
	const struct np_netdev *dev;
	char text[32 * 3];
	static const char *const files[][2] = {
		{ "address", GUIDE_HWADDR "\n" },
		{ "mode", "connected\n" },
		{ "pkey", "0xffff\n" },
		{ "umcast", "0\n" },
		{ "dev_port", "1\n" },
		{ "device/infiniband/mlx4_0", NULL },
	};

	(void)state;
	lay(IB0_DIR, files, NP_ARRAY_SIZE(files));
	list = observe("ib0", 0);
	dev = &list.v[0];
	assert_int_equal(dev->hwaddr_len, 20);
	assert_string_equal(np_hwaddr_str(dev, text), GUIDE_HWADDR);
	assert_true(dev->port_guid == 0x506b4b0300f5ce9c);
	assert_int_equal(dev->mode, NP_IPOIB_CONNECTED);
	assert_true(dev->has_pkey);
	assert_int_equal(dev->pkey, 0xffff);
	assert_int_equal(dev->umcast, NP_TRI_NO);
	assert_string_equal(dev->ca, "mlx4_0");
	assert_int_equal(dev->port, 2);
}

static void nonsense_in_sysfs_is_unknown(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");
	np_auto_netdevs struct np_netdevs list = { 0 };
	static const char *const files[][2] = {
		{ "address", "80:00:zz\n" },
		{ "mode", "hybrid\n" },
		{ "pkey", "0x1ffff\n" },
		{ "umcast", "perhaps\n" },
		{ "dev_port", "-1\n" },
		{ "dev_id", "\n" },
		{ "device/infiniband/mlx5_0", NULL },
	};

	(void)state;
	lay(IB0_DIR, files, NP_ARRAY_SIZE(files));
	list = observe("ib0", 0);
	assert_int_equal(list.v[0].hwaddr_len, 0);
	assert_true(list.v[0].port_guid == 0);
	assert_int_equal(list.v[0].mode, NP_IPOIB_MODE_UNKNOWN);
	assert_false(list.v[0].has_pkey);
	assert_int_equal(list.v[0].umcast, NP_TRI_UNKNOWN);
	assert_string_equal(list.v[0].ca, "");
	assert_int_equal(list.v[0].port, 0);
}

/* A software HCA: the netdev hangs on no device. */
static void owner_by_port_guid(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");
	np_auto_netdevs struct np_netdevs list = { 0 };
	static const char *const netdev[][2] = { { "address", GUIDE_HWADDR "\n" } };
	static const char *const class[][2] = {
		{ "infiniband/mlx5_0/ports/1/gids", NULL },
		{ "infiniband/mlx5_0/ports/1/gids/0", "fe80:0000:0000:0000:506b:4b03:0049:4236\n" },
		{ "infiniband/swhca0/ports/1/gids", NULL },
		{ "infiniband/swhca0/ports/1/gids/0", "not a gid\n" },
		{ "infiniband/swhca0/ports/2/gids", NULL },
		{ "infiniband/swhca0/ports/2/gids/0", "fe80:0000:0000:0001:506b:4b03:00f5:ce9c\n" },
	};

	(void)state;
	lay("/sys/class", class, NP_ARRAY_SIZE(class));
	lay(IB0_DIR, netdev, NP_ARRAY_SIZE(netdev));
	list = observe("ib0", 0);
	assert_string_equal(list.v[0].ca, "swhca0");
	assert_int_equal(list.v[0].port, 2);
}

/* /sys of another network namespace speaks of another netdev: unknown. */
static void foreign_sysfs_is_not_believed(void **state)
{
	_cleanup_close_ int fd = make_ib("ib0");
	np_auto_netdevs struct np_netdevs list = { 0 };
	static const char *const files[][2] = {
		{ "ifindex", "4711\n" },
		{ "address", GUIDE_HWADDR "\n" },
		{ "mode", "connected\n" },
	};

	(void)state;
	lay(IB0_DIR, files, NP_ARRAY_SIZE(files));
	list = observe("ib0", 0);
	assert_int_equal(list.v[0].hwaddr_len, 0);
	assert_int_equal(list.v[0].mode, NP_IPOIB_MODE_UNKNOWN);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fresh_net, close_net)
	const struct CMUnitTest tests[] = {
		T(named_finds_by_name_and_altname),
		T(no_names_no_netdevs),
		T(link_attributes),
		T(addresses_in_order),
		T(promote_secondaries_in_force),
		T(names_from_sysfs),
		T(ipoib_by_sysfs),
		T(nonsense_in_sysfs_is_unknown),
		T(owner_by_port_guid),
		T(foreign_sysfs_is_not_believed),
	};

	need_namespaces("test_netlink_observe");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
