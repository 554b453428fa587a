/* SPDX-License-Identifier: MIT */
#include "netlink/observe.h"

#include <errno.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "netlink/attr.h"

/* Kernel header linux/if.h: ALTIFNAMSIZ, not exported. */
#define ALTNAME_SIZE 128

static int take_altnames(struct np_netdev *dev, struct nlattr *list)
{
	struct nlattr *pos;
	int rest;

	if (!list)
		return 0;
	nla_for_each_nested(pos, list, rest)
	{
		char name[ALTNAME_SIZE];

		if (nla_type(pos) == IFLA_ALT_IFNAME && np_attr_str(pos, name, sizeof(name)) &&
		    np_strv_add(&dev->altnames, name) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void take_linkinfo(struct np_netdev *dev, struct nlattr *linkinfo)
{
	struct nlattr *info[IFLA_INFO_MAX + 1];
	struct nlattr *data[IFLA_IPOIB_MAX + 1];
	uint16_t value;

	np_attr_nested(info, IFLA_INFO_MAX, linkinfo);
	np_attr_str(info[IFLA_INFO_KIND], dev->kind, sizeof(dev->kind));
	if (!np_streq(dev->kind, "ipoib"))
		return;
	np_attr_nested(data, IFLA_IPOIB_MAX, info[IFLA_INFO_DATA]);
	dev->has_pkey = np_attr_bytes(data[IFLA_IPOIB_PKEY], &dev->pkey, sizeof(dev->pkey));
	if (np_attr_bytes(data[IFLA_IPOIB_MODE], &value, sizeof(value))) {
		if (value == IPOIB_MODE_DATAGRAM)
			dev->mode = NP_IPOIB_DATAGRAM;
		else if (value == IPOIB_MODE_CONNECTED)
			dev->mode = NP_IPOIB_CONNECTED;
	}
	if (np_attr_bytes(data[IFLA_IPOIB_UMCAST], &value, sizeof(value)))
		dev->umcast = value ? NP_TRI_YES : NP_TRI_NO;
}

static void take_stats(struct np_netdev *dev, const struct nlattr *attr)
{
	/* The first six members of struct rtnl_link_stats64, which only grows. */
	uint64_t first[6];

	if (!np_attr_bytes(attr, first, sizeof(first)))
		return;
	dev->has_stats = true;
	dev->rx_packets = first[0];
	dev->tx_packets = first[1];
	dev->rx_bytes = first[2];
	dev->tx_bytes = first[3];
	dev->rx_errors = first[4];
	dev->tx_errors = first[5];
}

/* The netdev's own IPv4 sysctl comes along with the link: an array of __s32 in
 * the order of linux/ip.h. */
static void take_promote(struct np_netdev *dev, struct nlattr *af_spec)
{
	struct nlattr *af[AF_INET + 1];
	struct nlattr *inet[IFLA_INET_MAX + 1];
	int32_t conf[IPV4_DEVCONF_PROMOTE_SECONDARIES];

	np_attr_nested(af, AF_INET, af_spec);
	np_attr_nested(inet, IFLA_INET_MAX, af[AF_INET]);
	if (np_attr_bytes(inet[IFLA_INET_CONF], conf, sizeof(conf)))
		dev->promote_secondaries =
			conf[IPV4_DEVCONF_PROMOTE_SECONDARIES - 1] ? NP_TRI_YES : NP_TRI_NO;
}

/* Takes an address of up to @size bytes; returns its length, 0 = none. */
static uint8_t take_hwaddr(uint8_t *out, size_t size, const struct nlattr *attr)
{
	if (!attr || nla_len(attr) > (int)size)
		return 0;
	np_attr_bytes(attr, out, (size_t)nla_len(attr));
	return (uint8_t)nla_len(attr);
}

int np_link_parse(const struct nlmsghdr *nlh, struct np_netdev *dev)
{
	struct nlattr *tb[IFLA_MAX + 1];
	struct ifinfomsg info;

	/* libnl takes a pointer to non-const and only reads it. */
	if (nlh->nlmsg_type != RTM_NEWLINK ||
	    nlmsg_parse((struct nlmsghdr *)(uintptr_t)nlh, sizeof(info), tb, IFLA_MAX, NULL) < 0)
		return -EBADMSG;
	memcpy(&info, nlmsg_data(nlh), sizeof(info));
	if (info.ifi_index <= 0 || !np_attr_str(tb[IFLA_IFNAME], dev->name, sizeof(dev->name)))
		return -EBADMSG;
	dev->ifindex = info.ifi_index;
	dev->type = info.ifi_type;
	dev->flags = info.ifi_flags;
	dev->operstate = np_attr_u8(tb[IFLA_OPERSTATE], IF_OPER_UNKNOWN);
	if ((dev->flags & IFF_UP) && tb[IFLA_CARRIER])
		dev->carrier = np_attr_u8(tb[IFLA_CARRIER], 0) ? NP_TRI_YES : NP_TRI_NO;
	dev->mtu = np_attr_u32(tb[IFLA_MTU], 0);
	dev->min_mtu = np_attr_u32(tb[IFLA_MIN_MTU], 0);
	dev->max_mtu = np_attr_u32(tb[IFLA_MAX_MTU], 0);
	/* A parent in another namespace has an index that means nothing here. */
	if (!tb[IFLA_LINK_NETNSID])
		dev->parent_ifindex = (int)np_attr_u32(tb[IFLA_LINK], 0);
	dev->master_ifindex = (int)np_attr_u32(tb[IFLA_MASTER], 0);
	dev->hwaddr_len = take_hwaddr(dev->hwaddr, sizeof(dev->hwaddr), tb[IFLA_ADDRESS]);
	dev->hwbroadcast_len =
		take_hwaddr(dev->hwbroadcast, sizeof(dev->hwbroadcast), tb[IFLA_BROADCAST]);
	take_linkinfo(dev, tb[IFLA_LINKINFO]);
	take_stats(dev, tb[IFLA_STATS64]);
	take_promote(dev, tb[IFLA_AF_SPEC]);
	return take_altnames(dev, tb[IFLA_PROP_LIST]);
}

void np_netdev_done(struct np_netdev *dev)
{
	np_strv_done(&dev->altnames);
	free(dev->addrs);
	memset(dev, 0, sizeof(*dev));
}

static int take_one(const struct nlmsghdr *nlh, void *arg)
{
	return np_link_parse(nlh, arg);
}

static struct nl_msg *link_request(int ifindex)
{
	const struct ifinfomsg info = { .ifi_family = AF_UNSPEC, .ifi_index = ifindex };
	np_auto_nl_msg struct nl_msg *msg = np_nl_msg(RTM_GETLINK, 0, &info, sizeof(info));

	/* Spares the kernel the IPv6 counters, gathered over every CPU; the link's
	 * own come all the same. VF information is never asked for: it can exceed
	 * a message. */
	if (!msg || nla_put_u32(msg, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS) < 0)
		return NULL;
	return np_steal_pointer(&msg);
}

static void restart_one(void *arg)
{
	np_netdev_done(arg);
}

int np_link_get(struct np_netlink *nl, int ifindex, int attr, const char *name,
		struct np_netdev *dev)
{
	np_auto(np_netdev_done) struct np_netdev got = { 0 };
	const struct np_nl_reader reader = { take_one, restart_one, &got };
	np_auto_nl_msg struct nl_msg *msg = link_request(ifindex);
	int rc;

	if (!msg || (!ifindex && nla_put_string(msg, attr, name) < 0))
		return -ENOMEM;
	rc = np_nl_get(nl, msg, &reader);
	if (rc < 0)
		return rc;
	if (got.ifindex == 0)
		return -ENODEV;
	*dev = got;
	memset(&got, 0, sizeof(got));
	return 0;
}

struct collect {
	struct np_netdevs list;
	size_t size;
};

static int append(struct collect *c, struct np_netdev *dev)
{
	if (c->list.n == c->size) {
		size_t size = c->size ? c->size * 2 : 8;
		struct np_netdev *v = reallocarray(c->list.v, size, sizeof(*v));

		if (!v)
			return -ENOMEM;
		c->list.v = v;
		c->size = size;
	}
	c->list.v[c->list.n++] = *dev;
	memset(dev, 0, sizeof(*dev));
	return 0;
}

static int take_each(const struct nlmsghdr *nlh, void *arg)
{
	np_auto(np_netdev_done) struct np_netdev dev = { 0 };
	int rc = np_link_parse(nlh, &dev);

	return rc < 0 ? rc : append(arg, &dev);
}

static void collect_done(void *arg)
{
	struct collect *c = arg;

	np_netdevs_done(&c->list);
	c->size = 0;
}

static int by_ifindex(const void *a, const void *b)
{
	const struct np_netdev *x = a, *y = b;

	return (x->ifindex > y->ifindex) - (x->ifindex < y->ifindex);
}

static int by_name(const void *a, const void *b)
{
	const struct np_netdev *x = a, *y = b;

	return np_natural_cmp(x->name, y->name);
}

static void drop_stats(struct np_netdev *dev)
{
	dev->has_stats = false;
	dev->rx_bytes = dev->tx_bytes = 0;
	dev->rx_packets = dev->tx_packets = 0;
	dev->rx_errors = dev->tx_errors = 0;
}

static void complete(struct np_netdevs *list, unsigned int detail)
{
	enum np_tri promote_all = NP_TRI_UNKNOWN;

	for (size_t i = 0; i < list->n; i++) {
		struct np_netdev *dev = &list->v[i];

		np_link_complete(dev, &promote_all);
		if (!(detail & NP_NETDEV_STATS))
			drop_stats(dev);
		if (detail & NP_NETDEV_MANAGER)
			np_manager_look("", dev->ifindex, dev->name, dev->manager,
					sizeof(dev->manager));
	}
}

static int observe_all(struct np_netlink *nl, unsigned int detail, struct collect *c)
{
	const struct np_nl_reader reader = { take_each, collect_done, c };
	np_auto_nl_msg struct nl_msg *msg = link_request(0);
	int rc;

	if (!msg)
		return -ENOMEM;
	rc = np_nl_dump(nl, msg, &reader);
	if (rc < 0)
		return rc;
	if (c->list.n)
		qsort(c->list.v, c->list.n, sizeof(*c->list.v), by_ifindex);
	rc = np_addrs_observe_all(nl, &c->list);
	if (rc < 0)
		return rc;
	if (c->list.n)
		qsort(c->list.v, c->list.n, sizeof(*c->list.v), by_name);
	complete(&c->list, detail);
	return 0;
}

int np_netdevs_observe_all(struct np_netlink *nl, unsigned int detail, struct np_netdevs *out,
			   struct np_err *err)
{
	np_auto(collect_done) struct collect c = { 0 };
	int rc = observe_all(nl, detail, &c);

	if (rc < 0)
		return np_nl_fail(nl, rc, err, "netlink.query", "cannot list the netdevs");
	*out = c.list;
	memset(&c, 0, sizeof(c));
	return 0;
}

static int link_by_any_name(struct np_netlink *nl, const char *name, struct np_netdev *dev)
{
	size_t len = strlen(name);
	int rc = -ENODEV;

	if (len == 0 || len >= ALTNAME_SIZE)
		return -ENODEV;
	if (len < IFNAMSIZ)
		rc = np_link_get(nl, 0, IFLA_IFNAME, name, dev);
	if (rc == -ENODEV) {
		rc = np_link_get(nl, 0, IFLA_ALT_IFNAME, name, dev);
		/* Kernels before 5.5 know no altnames. */
		if (rc == -EINVAL || rc == -EOPNOTSUPP)
			rc = -ENODEV;
	}
	return rc;
}

static bool has_ifindex(const struct np_netdevs *list, int ifindex)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->v[i].ifindex == ifindex)
			return true;
	return false;
}

static int observe_one(struct np_netlink *nl, const char *name, struct collect *c)
{
	np_auto(np_netdev_done) struct np_netdev dev = { 0 };
	int rc = link_by_any_name(nl, name, &dev);

	if (rc == 0 && has_ifindex(&c->list, dev.ifindex))
		return 0;
	if (rc == 0)
		rc = np_addrs_observe(nl, &dev);
	if (rc == 0)
		rc = append(c, &dev);
	/* No such netdev, or it went away between the two questions. */
	return rc == -ENODEV ? 0 : rc;
}

int np_netdevs_observe_named(struct np_netlink *nl, const struct np_strv *names,
			     unsigned int detail, struct np_netdevs *out, struct np_err *err)
{
	np_auto(collect_done) struct collect c = { 0 };

	for (size_t i = 0; i < names->n; i++) {
		int rc = observe_one(nl, names->v[i], &c);

		if (rc < 0)
			return np_nl_fail(nl, rc, err, "netlink.query", "cannot read netdev %s",
					  names->v[i]);
	}
	complete(&c.list, detail);
	*out = c.list;
	memset(&c, 0, sizeof(c));
	return 0;
}
