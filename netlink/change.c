/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file.h"
#include "netlink/observe.h"

/* The flags that may be given; the others are the kernel's to set. */
#define SETTABLE_FLAGS \
	(IFA_F_NODAD | IFA_F_OPTIMISTIC | IFA_F_HOMEADDRESS | IFA_F_MANAGETEMPADDR | \
	 IFA_F_NOPREFIXROUTE | IFA_F_MCAUTOJOIN)

int np_netdev_set_up(struct np_netlink *nl, int ifindex, const char *name, bool up,
		     struct np_err *err)
{
	const struct ifinfomsg info = {
		.ifi_family = AF_UNSPEC,
		.ifi_index = ifindex,
		.ifi_flags = up ? IFF_UP : 0,
		.ifi_change = IFF_UP,
	};
	np_auto_nl_msg struct nl_msg *msg = np_nl_msg(RTM_NEWLINK, 0, &info, sizeof(info));
	int rc = msg ? np_nl_change(nl, msg) : -ENOMEM;

	if (rc < 0)
		return np_nl_fail(nl, rc, err, "netdev.kernel_refused", "cannot set %s %s", name,
				  up ? "up" : "down");
	return 0;
}

/* What the netdev would take instead. */
static void hint_mtu(struct np_netlink *nl, int ifindex, struct np_err *err)
{
	np_auto(np_netdev_done) struct np_netdev dev = { 0 };
	enum np_tri promote_all = NP_TRI_UNKNOWN;

	if (np_link_get(nl, ifindex, 0, NULL, &dev) < 0)
		return;
	np_link_complete(&dev, &promote_all);
	if (np_netdev_is_ipoib(&dev) && dev.mode == NP_IPOIB_DATAGRAM)
		np_err_hint(err,
			    "choose at most the port's IB MTU less 4 (2044 or 4092): %s is in "
			    "datagram mode",
			    dev.name);
	else if (dev.max_mtu)
		np_err_hint(err, "choose an MTU from %u to %u, which is what %s takes", dev.min_mtu,
			    dev.max_mtu, dev.name);
}

int np_netdev_set_mtu(struct np_netlink *nl, int ifindex, const char *name, uint32_t mtu,
		      struct np_err *err)
{
	const struct ifinfomsg info = { .ifi_family = AF_UNSPEC, .ifi_index = ifindex };
	np_auto_nl_msg struct nl_msg *msg = np_nl_msg(RTM_NEWLINK, 0, &info, sizeof(info));
	int rc;

	if (!msg || nla_put_u32(msg, IFLA_MTU, mtu) < 0)
		return np_err_nomem(err);
	rc = np_nl_change(nl, msg);
	if (rc < 0) {
		np_nl_fail(nl, rc, err, "netdev.kernel_refused", "cannot set the MTU of %s to %u",
			   name, mtu);
		if (rc == -EINVAL || rc == -ERANGE)
			hint_mtu(nl, ifindex, err);
		return rc;
	}
	return 0;
}

int np_netdev_set_mode(const char *name, enum np_ipoib_mode mode, struct np_err *err)
{
	char path[sizeof("/sys/class/net//mode") + IFNAMSIZ];
	int rc;

	if (mode == NP_IPOIB_MODE_UNKNOWN || !name[0] || strlen(name) >= IFNAMSIZ ||
	    strchr(name, '/') || name[0] == '.')
		return np_err_set(err, -EINVAL, "netdev.mode_refused", "no mode to set on '%s'",
				  name);
	snprintf(path, sizeof(path), "/sys/class/net/%s/mode", name);
	rc = np_file_write_attr_at(AT_FDCWD, path,
				   mode == NP_IPOIB_CONNECTED ? "connected\n" : "datagram\n");
	if (rc >= 0)
		return 0;
	np_nl_fail(NULL, rc, err, "netdev.mode_refused", "cannot set %s to %s mode", name,
		   np_ipoib_mode_str(mode));
	if (rc == -EINVAL && mode == NP_IPOIB_CONNECTED)
		np_err_hint(err, "keep datagram mode: enhanced IPoIB (ConnectX-4 and newer) has no "
				 "connected mode unless ib_ipoib is loaded with ipoib_enhanced=0");
	else if (rc == -ENOENT)
		np_err_hint(err,
			    "check that %s is an IPoIB netdev and that the kernel has IPoIB "
			    "connected mode",
			    name);
	return rc;
}

static bool put_addr_attrs(struct nl_msg *msg, const struct np_netdev_addr *addr, int len)
{
	const void *far = addr->has_peer ? addr->peer : addr->inet.bytes;

	if (nla_put(msg, IFA_LOCAL, len, addr->inet.bytes) < 0 ||
	    nla_put(msg, IFA_ADDRESS, len, far) < 0)
		return false;
	return addr->inet.family != AF_INET || !addr->label[0] ||
	       nla_put_string(msg, IFA_LABEL, addr->label) >= 0;
}

static bool put_addr_details(struct nl_msg *msg, const struct np_netdev_addr *addr)
{
	const struct ifa_cacheinfo life = {
		.ifa_valid = addr->valid_s,
		.ifa_prefered =
			addr->preferred_s < addr->valid_s ? addr->preferred_s : addr->valid_s,
	};

	if (addr->inet.family == AF_INET && addr->has_broadcast &&
	    nla_put(msg, IFA_BROADCAST, sizeof(addr->broadcast), addr->broadcast) < 0)
		return false;
	if ((addr->flags & SETTABLE_FLAGS) &&
	    nla_put_u32(msg, IFA_FLAGS, addr->flags & SETTABLE_FLAGS) < 0)
		return false;
	if (addr->metric && nla_put_u32(msg, IFA_RT_PRIORITY, addr->metric) < 0)
		return false;
	return !addr->valid_s || nla_put(msg, IFA_CACHEINFO, sizeof(life), &life) >= 0;
}

static struct nl_msg *addr_msg(int type, int flags, int ifindex, const struct np_netdev_addr *addr)
{
	const struct ifaddrmsg ifa = {
		.ifa_family = (uint8_t)addr->inet.family,
		.ifa_prefixlen = addr->inet.prefix_len,
		.ifa_scope = addr->scope,
		.ifa_index = (uint32_t)ifindex,
	};
	np_auto_nl_msg struct nl_msg *msg = np_nl_msg(type, flags, &ifa, sizeof(ifa));

	if (!msg || !put_addr_attrs(msg, addr, addr->inet.family == AF_INET ? 4 : 16) ||
	    (type == RTM_NEWADDR && !put_addr_details(msg, addr)))
		return NULL;
	return np_steal_pointer(&msg);
}

int np_addr_add(struct np_netlink *nl, int ifindex, const char *name,
		const struct np_netdev_addr *addr, struct np_err *err)
{
	np_auto_nl_msg struct nl_msg *msg =
		addr_msg(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, ifindex, addr);
	char text[NP_INET_STRLEN];
	int rc = msg ? np_nl_change(nl, msg) : -ENOMEM;

	if (rc < 0)
		return np_nl_fail(nl, rc, err,
				  rc == -EEXIST ? "netdev.address_exists" : "netdev.kernel_refused",
				  "cannot add %s to %s", np_inet_str(&addr->inet, text), name);
	return 0;
}

int np_addr_del(struct np_netlink *nl, int ifindex, const char *name,
		const struct np_netdev_addr *addr, struct np_err *err)
{
	np_auto_nl_msg struct nl_msg *msg = addr_msg(RTM_DELADDR, 0, ifindex, addr);
	char text[NP_INET_STRLEN];
	int rc = msg ? np_nl_change(nl, msg) : -ENOMEM;

	if (rc < 0)
		return np_nl_fail(nl, rc, err, "netdev.kernel_refused", "cannot remove %s from %s",
				  np_inet_str(&addr->inet, text), name);
	return 0;
}
