/* SPDX-License-Identifier: MIT */
#include "test_netlink_help.h"

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>

#include "netlink/observe.h"

/* ---- messages: attributes of every size, copied so that ASan sees an over-read ---- */

static struct nl_msg *ipoib_link(void)
{
	const struct ifinfomsg info = { .ifi_index = 7, .ifi_type = 32, .ifi_flags = IFF_UP };
	struct nl_msg *msg = np_nl_msg(RTM_NEWLINK, 0, &info, sizeof(info));
	uint8_t hwaddr[20] = { 0x80 };
	uint32_t conf[40] = { 0 };
	struct nlattr *outer, *inner;

	assert_non_null(msg);
	conf[IPV4_DEVCONF_PROMOTE_SECONDARIES - 1] = 1;
	hwaddr[19] = 0x9c;
	nla_put_string(msg, IFLA_IFNAME, "ib0");
	nla_put_u32(msg, IFLA_MTU, 65520);
	nla_put_u8(msg, IFLA_CARRIER, 1);
	nla_put(msg, IFLA_ADDRESS, sizeof(hwaddr), hwaddr);
	nla_put(msg, IFLA_BROADCAST, sizeof(hwaddr), hwaddr);
	outer = nla_nest_start(msg, IFLA_LINKINFO);
	nla_put_string(msg, IFLA_INFO_KIND, "ipoib");
	inner = nla_nest_start(msg, IFLA_INFO_DATA);
	nla_put_u16(msg, IFLA_IPOIB_PKEY, 0x8001);
	nla_put_u16(msg, IFLA_IPOIB_MODE, IPOIB_MODE_CONNECTED);
	nla_put_u16(msg, IFLA_IPOIB_UMCAST, 1);
	nla_nest_end(msg, inner);
	nla_nest_end(msg, outer);
	outer = nla_nest_start(msg, IFLA_AF_SPEC);
	inner = nla_nest_start(msg, AF_INET);
	nla_put(msg, IFLA_INET_CONF, sizeof(conf), conf);
	nla_nest_end(msg, inner);
	nla_nest_end(msg, outer);
	outer = nla_nest_start(msg, IFLA_PROP_LIST);
	nla_put_string(msg, IFLA_ALT_IFNAME, "ibp65s0");
	nla_nest_end(msg, outer);
	return msg;
}

static void ipoib_by_netlink(void **state)
{
	np_auto_nl_msg struct nl_msg *msg = ipoib_link();
	np_auto(np_netdev_done) struct np_netdev dev = { 0 };

	(void)state;
	assert_int_equal(np_link_parse(nlmsg_hdr(msg), &dev), 0);
	assert_string_equal(dev.kind, "ipoib");
	assert_int_equal(dev.mode, NP_IPOIB_CONNECTED);
	assert_true(dev.has_pkey);
	assert_int_equal(dev.pkey, 0x8001);
	assert_int_equal(dev.umcast, NP_TRI_YES);
	assert_int_equal(dev.hwaddr_len, 20);
	assert_int_equal(dev.hwbroadcast_len, 20);
	assert_int_equal(dev.hwbroadcast[19], 0x9c);
	assert_int_equal(dev.carrier, NP_TRI_YES);
	assert_int_equal(dev.promote_secondaries, NP_TRI_YES);
	assert_int_equal(dev.altnames.n, 1);
	assert_string_equal(dev.altnames.v[0], "ibp65s0");
}

/* A header cut anywhere, any attribute of any length: no answer, or a sane one. */
static void parse_copy(const struct nlmsghdr *from, size_t len, size_t at, uint16_t value)
{
	np_auto(np_netdev_done) struct np_netdev dev = { 0 };
	_cleanup_free_ char *copy = malloc(len);

	assert_non_null(copy);
	memcpy(copy, from, len);
	((struct nlmsghdr *)copy)->nlmsg_len = (uint32_t)len;
	if (at + sizeof(value) <= len && at >= NLMSG_HDRLEN)
		memcpy(copy + at, &value, sizeof(value));
	if (np_link_parse((struct nlmsghdr *)copy, &dev) == 0) {
		assert_true(dev.ifindex > 0);
		assert_true(dev.name[0]);
		assert_true(strlen(dev.name) < sizeof(dev.name));
		assert_true(dev.hwaddr_len <= sizeof(dev.hwaddr));
		assert_true(dev.hwbroadcast_len <= sizeof(dev.hwbroadcast));
	}
}

static void malformed_links(void **state)
{
	static const uint16_t values[] = { 0, 1, 3, 4, 5, 6, 8, 0xff, 0x7fff, 0xffff };
	np_auto_nl_msg struct nl_msg *msg = ipoib_link();
	const struct nlmsghdr *nlh = nlmsg_hdr(msg);

	(void)state;
	for (size_t len = NLMSG_HDRLEN; len <= nlh->nlmsg_len; len++)
		parse_copy(nlh, len, 0, 0);
	for (size_t at = NLMSG_HDRLEN; at < nlh->nlmsg_len; at += 2)
		for (size_t i = 0; i < NP_ARRAY_SIZE(values); i++)
			parse_copy(nlh, nlh->nlmsg_len, at, values[i]);
}

static void malformed_addresses(void **state)
{
	const struct ifaddrmsg ifa = { .ifa_family = AF_INET6,
				       .ifa_prefixlen = 64,
				       .ifa_index = 7 };
	np_auto_nl_msg struct nl_msg *msg = np_nl_msg(RTM_NEWADDR, 0, &ifa, sizeof(ifa));
	const uint8_t bytes[16] = { 0x20, 0x01, 0x0d, 0xb8 };
	const struct nlmsghdr *nlh = nlmsg_hdr(msg);
	struct np_netdev_addr addr;
	int ifindex = 0;

	(void)state;
	assert_int_equal(np_addr_parse(nlh, &ifindex, &addr), -EBADMSG);
	nla_put(msg, IFA_ADDRESS, sizeof(bytes), bytes);
	assert_int_equal(np_addr_parse(nlh, &ifindex, &addr), 1);
	assert_int_equal(ifindex, 7);
	for (size_t len = NLMSG_HDRLEN; len < nlh->nlmsg_len; len++) {
		_cleanup_free_ struct nlmsghdr *copy = malloc(len);

		memcpy(copy, nlh, len);
		copy->nlmsg_len = (uint32_t)len;
		assert_int_equal(np_addr_parse(copy, &ifindex, &addr), -EBADMSG);
	}
	((struct ifaddrmsg *)nlmsg_data(nlh))->ifa_prefixlen = 129;
	assert_int_equal(np_addr_parse(nlh, &ifindex, &addr), -EBADMSG);
	((struct ifaddrmsg *)nlmsg_data(nlh))->ifa_family = AF_PACKET;
	assert_int_equal(np_addr_parse(nlh, &ifindex, &addr), 0);
}

/* ---- who manages it ---- */

static char root[64];

static void put(const char *path, const char *contents)
{
	char full[256];

	snprintf(full, sizeof(full), "%s%s", root, path);
	assert_int_equal(run("mkdir -p $(dirname %s)", full), 0);
	assert_int_equal(put_file(full, contents), 0);
}

static const char *manager(const char *name)
{
	static char out[24];

	np_manager_look(root, 7, name, out, sizeof(out));
	return out;
}

static int new_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/np-root-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	(void)state;
	return run("rm -rf %s", root);
}

static void managers(void **state)
{
	(void)state;
	assert_string_equal(manager("ib0"), "none");
	put("/run/systemd/netif/links/7", "# private\nADMIN_STATE=unmanaged\nOPER_STATE=off\n");
	put("/run/NetworkManager/devices/7", "[device]\nmanaged=false\n");
	assert_string_equal(manager("ib0"), "none");
	put("/run/systemd/netif/links/7", "ADMIN_STATE=configured\n");
	assert_string_equal(manager("ib0"), "systemd-networkd");
	put("/run/NetworkManager/devices/7", "[device]\nmanaged=true\nconnection-uuid=x\n");
	assert_string_equal(manager("ib0"), "NetworkManager");
	/* Another netdev's file says nothing. */
	put("/run/NetworkManager/devices/7", "");
	put("/run/NetworkManager/devices/77", "[device]\nmanaged=true\n");
	put("/run/systemd/netif/links/7", "");
	assert_string_equal(manager("ib0"), "none");
}

static void ifupdown_files(void **state)
{
	(void)state;
	put("/etc/network/interfaces", "# auto ib0\nauto lo \\\n eth0\n\n  iface eth0 inet dhcp\n"
				       "iface eth1 inet ib0\nsource interfaces.d/*\n");
	assert_string_equal(manager("ib0"), "none");
	assert_string_equal(manager("eth0"), "ifupdown");
	assert_string_equal(manager("lo"), "ifupdown");
	put("/etc/network/interfaces.d/ib0.conf", "allow-hotplug\tib0");
	assert_string_equal(manager("ib0"), "ifupdown");
	assert_string_equal(manager("ib1"), "none");
	put("/run/network/ifstate.ib1", "");
	assert_string_equal(manager("ib1"), "none");
	put("/run/network/ifstate.ib1", "ib1=ib1\n");
	assert_string_equal(manager("ib1"), "ifupdown");
}

static void unreadable_is_unknown(void **state)
{
	(void)state;
	assert_int_equal(run("mkdir -p %s/etc/network/interfaces", root), 0);
	assert_string_equal(manager("ib0"), "");
	/* What can be read still counts. */
	put("/run/systemd/netif/links/7", "ADMIN_STATE=configured\n");
	assert_string_equal(manager("ib0"), "systemd-networkd");
}

static void words(void **state)
{
	struct np_netdev dev = { .hwaddr_len = 32 };
	char out[32 * 3];

	(void)state;
	memset(dev.hwaddr, 0xab, sizeof(dev.hwaddr));
	assert_int_equal(strlen(np_hwaddr_str(&dev, out)), 32 * 3 - 1);
	dev.hwaddr_len = 0;
	assert_string_equal(np_hwaddr_str(&dev, out), "");
	assert_string_equal(np_ipoib_mode_str(NP_IPOIB_CONNECTED), "connected");
	assert_string_equal(np_ipoib_mode_str((enum np_ipoib_mode)9), "unknown");
	assert_string_equal(np_operstate_str(6), "up");
	assert_string_equal(np_operstate_str(200), "unknown");
	np_netdevs_done(NULL);
	np_routes_done(NULL);
	np_netlink_close(NULL);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, new_root, remove_root)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipoib_by_netlink),
		cmocka_unit_test(malformed_links),
		cmocka_unit_test(malformed_addresses),
		cmocka_unit_test(words),
		T(managers),
		T(ifupdown_files),
		T(unreadable_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
