/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "netlink/attr.h"
#include "netlink/observe.h"

#define FOREVER UINT32_MAX /* struct ifa_cacheinfo; include/net/addrconf.h INFINITY_LIFE_TIME */

static void take_lifetimes(struct np_netdev_addr *addr, const struct nlattr *attr)
{
	struct ifa_cacheinfo info;

	if (!np_attr_bytes(attr, &info, sizeof(info)) ||
	    (info.ifa_valid == FOREVER && info.ifa_prefered == FOREVER))
		return;
	/* 0 means forever here; what is about to end has a second left. */
	addr->valid_s = info.ifa_valid ? info.ifa_valid : 1;
	addr->preferred_s = info.ifa_prefered;
}

int np_addr_parse(const struct nlmsghdr *nlh, int *ifindex, struct np_netdev_addr *addr)
{
	struct nlattr *tb[IFA_MAX + 1];
	struct np_netdev_addr got = { 0 };
	struct ifaddrmsg ifa;
	uint8_t far[16];
	size_t len;

	if (nlh->nlmsg_type != RTM_NEWADDR ||
	    nlmsg_parse((struct nlmsghdr *)(uintptr_t)nlh, sizeof(ifa), tb, IFA_MAX, NULL) < 0)
		return -EBADMSG;
	memcpy(&ifa, nlmsg_data(nlh), sizeof(ifa));
	if (ifa.ifa_family != AF_INET && ifa.ifa_family != AF_INET6)
		return 0;
	len = ifa.ifa_family == AF_INET ? 4 : 16;
	if (ifa.ifa_prefixlen > len * 8 || !np_attr_bytes(tb[IFA_ADDRESS], far, len))
		return -EBADMSG;
	/* IFA_ADDRESS is the far end of a point-to-point address, else the same. */
	if (!np_attr_bytes(tb[IFA_LOCAL], got.inet.bytes, len))
		memcpy(got.inet.bytes, far, len);
	if (memcmp(got.inet.bytes, far, len) != 0) {
		got.has_peer = true;
		memcpy(got.peer, far, len);
	}
	got.inet.family = ifa.ifa_family;
	got.inet.prefix_len = ifa.ifa_prefixlen;
	got.has_broadcast = ifa.ifa_family == AF_INET &&
			    np_attr_bytes(tb[IFA_BROADCAST], got.broadcast, sizeof(got.broadcast));
	got.flags = np_attr_u32(tb[IFA_FLAGS], ifa.ifa_flags);
	got.scope = ifa.ifa_scope;
	got.metric = np_attr_u32(tb[IFA_RT_PRIORITY], 0);
	np_attr_str(tb[IFA_LABEL], got.label, sizeof(got.label));
	take_lifetimes(&got, tb[IFA_CACHEINFO]);
	*ifindex = (int)ifa.ifa_index;
	*addr = got;
	return 1;
}

int np_netdev_add_addr(struct np_netdev *dev, const struct np_netdev_addr *addr)
{
	size_t n = dev->n_addrs;

	/* Full at each power of two. */
	if ((n & (n - 1)) == 0) {
		struct np_netdev_addr *v = reallocarray(dev->addrs, n ? n * 2 : 1, sizeof(*v));

		if (!v)
			return -ENOMEM;
		dev->addrs = v;
	}
	dev->addrs[dev->n_addrs++] = *addr;
	return 0;
}

static int dump(struct np_netlink *nl, int family, int ifindex, const struct np_nl_reader *reader)
{
	const struct ifaddrmsg ifa = { .ifa_family = (uint8_t)family,
				       .ifa_index = (uint32_t)ifindex };
	np_auto_nl_msg struct nl_msg *msg = np_nl_msg(RTM_GETADDR, 0, &ifa, sizeof(ifa));

	return msg ? np_nl_dump(nl, msg, reader) : -ENOMEM;
}

static int take_for_one(const struct nlmsghdr *nlh, void *arg)
{
	struct np_netdev *dev = arg;
	struct np_netdev_addr addr;
	int ifindex, rc = np_addr_parse(nlh, &ifindex, &addr);

	/* Kernels before 4.20 ignore the filter and send all. */
	if (rc <= 0 || ifindex != dev->ifindex)
		return rc < 0 ? rc : 0;
	return np_netdev_add_addr(dev, &addr);
}

static void restart_one(void *arg)
{
	struct np_netdev *dev = arg;

	free(dev->addrs);
	dev->addrs = NULL;
	dev->n_addrs = 0;
}

int np_addrs_observe(struct np_netlink *nl, struct np_netdev *dev)
{
	const struct np_nl_reader reader = { take_for_one, restart_one, dev };

	return dump(nl, AF_UNSPEC, dev->ifindex, &reader);
}

struct spread {
	struct np_netdevs *list;
	struct np_netdev *last; /* addresses come a netdev at a time */
};

static struct np_netdev *find_sorted(const struct np_netdevs *list, int ifindex)
{
	size_t low = 0, high = list->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list->v[middle].ifindex == ifindex)
			return &list->v[middle];
		if (list->v[middle].ifindex < ifindex)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static int take_for_all(const struct nlmsghdr *nlh, void *arg)
{
	struct spread *s = arg;
	struct np_netdev_addr addr;
	int ifindex, rc = np_addr_parse(nlh, &ifindex, &addr);

	if (rc <= 0)
		return rc;
	if (!s->last || s->last->ifindex != ifindex)
		s->last = find_sorted(s->list, ifindex);
	/* None: that netdev came after the links were listed. */
	return s->last ? np_netdev_add_addr(s->last, &addr) : 0;
}

static void restart_all(void *arg)
{
	struct spread *s = arg;

	for (size_t i = 0; i < s->list->n; i++)
		restart_one(&s->list->v[i]);
}

int np_addrs_observe_all(struct np_netlink *nl, struct np_netdevs *list)
{
	struct spread s = { .list = list };
	const struct np_nl_reader reader = { take_for_all, restart_all, &s };

	return dump(nl, AF_UNSPEC, 0, &reader);
}

struct owner_search {
	const struct np_inet *addr;
	int but_ifindex;
	int found;
};

static int take_for_owner(const struct nlmsghdr *nlh, void *arg)
{
	struct owner_search *s = arg;
	struct np_netdev_addr addr;
	int ifindex, rc = np_addr_parse(nlh, &ifindex, &addr);

	if (rc <= 0)
		return rc;
	if (!s->found && ifindex != s->but_ifindex && np_inet_same_addr(&addr.inet, s->addr))
		s->found = ifindex;
	return 0;
}

static void restart_search(void *arg)
{
	((struct owner_search *)arg)->found = 0;
}

int np_addr_find_owner(struct np_netlink *nl, const struct np_inet *a, int but_ifindex,
		       struct np_addr_owner *out, struct np_err *err)
{
	struct owner_search s = { .addr = a, .but_ifindex = but_ifindex };
	const struct np_nl_reader reader = { take_for_owner, restart_search, &s };
	struct np_addr_owner owner = { 0 };
	char text[NP_INET_STRLEN];
	int rc = dump(nl, a->family, 0, &reader);

	if (rc < 0)
		return np_nl_fail(nl, rc, err, "netlink.query", "cannot look for the owner of %s",
				  np_inet_addr_str(a, text));
	if (s.found) {
		owner.local = true;
		owner.ifindex = s.found;
		np_nl_ifname(nl, s.found, owner.ifname);
	}
	*out = owner;
	return 0;
}
