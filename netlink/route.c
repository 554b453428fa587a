/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "netlink/attr.h"
#include "netlink/observe.h"

#define LOOPBACK_IFINDEX 1 /* include/net/net_namespace.h, always the first */

struct lookup {
	int type;
	int ifindex;
	struct np_inet src;
};

static int take_lookup(const struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *tb[RTA_MAX + 1];
	struct lookup *l = arg;
	struct rtmsg rtm;

	if (nlh->nlmsg_type != RTM_NEWROUTE ||
	    nlmsg_parse((struct nlmsghdr *)(uintptr_t)nlh, sizeof(rtm), tb, RTA_MAX, NULL) < 0)
		return -EBADMSG;
	memcpy(&rtm, nlmsg_data(nlh), sizeof(rtm));
	l->type = rtm.rtm_type;
	l->ifindex = (int)np_attr_u32(tb[RTA_OIF], 0);
	l->src.prefix_len = rtm.rtm_family == AF_INET ? 32 : 128;
	if (np_attr_bytes(tb[RTA_PREFSRC], l->src.bytes, l->src.prefix_len / 8))
		l->src.family = rtm.rtm_family;
	return 0;
}

/* What the kernel answers when an address is no route's: nothing leads there,
 * or a prohibit, unreachable, throw or blackhole route does (the last -EINVAL). */
static bool means_no_route(const struct np_netlink *nl, int num)
{
	return num == -ENETUNREACH || num == -EHOSTUNREACH || num == -EACCES || num == -ENOENT ||
	       (num == -EINVAL && !nl->reason[0]);
}

/* @flags: RTM_F_* */
static int lookup(struct np_netlink *nl, const struct np_inet *a, unsigned int flags,
		  struct lookup *l)
{
	const int len = a->family == AF_INET ? 4 : 16;
	const struct rtmsg rtm = {
		.rtm_family = (uint8_t)a->family,
		.rtm_dst_len = (uint8_t)(len * 8),
		.rtm_flags = flags,
	};
	const struct np_nl_reader reader = { take_lookup, NULL, l };
	np_auto_nl_msg struct nl_msg *msg = np_nl_msg(RTM_GETROUTE, 0, &rtm, sizeof(rtm));

	if (!msg || nla_put(msg, RTA_DST, len, a->bytes) < 0)
		return -ENOMEM;
	return np_nl_get(nl, msg, &reader);
}

int np_addr_lookup_owner(struct np_netlink *nl, const struct np_inet *a, struct np_addr_owner *out,
			 struct np_err *err)
{
	struct np_addr_owner owner = { 0 };
	struct lookup l = { 0 };
	char text[NP_INET_STRLEN];
	/* The table's own entry: a local address's route ends at lo, its entry names the
	 * netdev. */
	int rc = lookup(nl, a, RTM_F_FIB_MATCH, &l);

	if (rc < 0 && !means_no_route(nl, rc))
		return np_nl_fail(nl, rc, err, "netlink.query", "cannot look up who has %s",
				  np_inet_addr_str(a, text));
	if (rc == 0 && l.type == RTN_LOCAL) {
		/* Kernels before 4.13 do not know RTM_F_FIB_MATCH and say lo. */
		if (l.ifindex <= LOOPBACK_IFINDEX) {
			rc = np_addr_find_owner(nl, a, 0, &owner, err);
			if (rc < 0)
				return rc;
		}
		if (!owner.local) {
			owner.local = true;
			owner.ifindex = l.ifindex;
			np_nl_ifname(nl, l.ifindex, owner.ifname);
		}
	}
	*out = owner;
	return 0;
}

int np_route_lookup(struct np_netlink *nl, const struct np_inet *dst, int *ifindex,
		    struct np_inet *src, struct np_err *err)
{
	struct lookup l = { 0 };
	char text[NP_INET_STRLEN];
	int rc = lookup(nl, dst, 0, &l);

	if (rc < 0 && !means_no_route(nl, rc))
		return np_nl_fail(nl, rc, err, "netlink.query", "cannot look up the way to %s",
				  np_inet_addr_str(dst, text));
	*ifindex = rc < 0 ? 0 : l.ifindex;
	*src = l.src;
	return 0;
}

struct collect {
	struct np_netlink *nl;
	const struct np_routes_scope *scope;
	struct np_routes list;
	size_t size;  /* there is room for */
	size_t start; /* where this dump's begin */
	int family;
	int ifindex; /* 0 = any */
};

static int append(struct collect *c, const struct np_route *route)
{
	struct np_routes *list = &c->list;

	/* other next hops; and kernels before 4.20 ignore the filter */
	if (c->ifindex && route->ifindex != c->ifindex)
		return 0;
	if (list->n == c->size) {
		size_t size = c->size ? c->size * 2 : 16;
		struct np_route *v = reallocarray(list->v, size, sizeof(*v));

		if (!v)
			return -ENOMEM;
		list->v = v;
		c->size = size;
	}
	list->v[list->n++] = *route;
	return 0;
}

void np_route_name(struct np_netlink *nl, struct np_route *route)
{
	np_nl_ifname(nl, route->ifindex, route->ifname);
}

/* A default route over several netdevs counts once for each. */
static int take_hops(struct collect *c, struct np_route *route, struct nlattr *multipath)
{
	struct rtnexthop hop;
	size_t rest = (size_t)nla_len(multipath);
	const char *pos = nla_data(multipath);

	while (rest >= sizeof(hop)) {
		size_t step;
		int rc;

		memcpy(&hop, pos, sizeof(hop));
		if (hop.rtnh_len < sizeof(hop) || hop.rtnh_len > rest)
			return -EBADMSG;
		route->ifindex = hop.rtnh_ifindex;
		rc = append(c, route);
		if (rc < 0)
			return rc;
		step = RTNH_ALIGN((size_t)hop.rtnh_len);
		if (step >= rest)
			break;
		pos += step;
		rest -= step;
	}
	return 0;
}

static bool is_connected(const struct rtmsg *rtm, struct nlattr *const *tb)
{
	if (rtm->rtm_protocol != RTPROT_KERNEL || !tb[RTA_OIF] || !tb[RTA_DST])
		return false;
	/* IPv6 routes have no scope. */
	return rtm->rtm_family == AF_INET ? rtm->rtm_scope == RT_SCOPE_LINK : !tb[RTA_GATEWAY];
}

static bool is_link_local(const struct np_inet *net)
{
	return net->family == AF_INET6 && net->bytes[0] == 0xfe && (net->bytes[1] & 0xc0) == 0x80;
}

static bool is_far(const struct np_routes_scope *scope, const struct np_inet *net)
{
	for (size_t i = 0; scope && i < scope->n_nets; i++)
		if (np_inet_overlap(&scope->nets[i], net))
			return false;
	return scope != NULL;
}

/* A route that somebody gave a source address: it goes when that address goes. */
static void take_source(const struct rtmsg *rtm, struct nlattr *const *tb, size_t len,
			struct np_route *route)
{
	if (rtm->rtm_protocol == RTPROT_KERNEL || !tb[RTA_PREFSRC])
		return;
	route->has_src = np_attr_bytes(tb[RTA_PREFSRC], route->src.bytes, len);
	route->src.family = rtm->rtm_family;
	route->src.prefix_len = (uint8_t)(len * 8);
}

static int take_route(const struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *tb[RTA_MAX + 1];
	struct collect *c = arg;
	struct np_route route = { 0 };
	struct rtmsg rtm;
	size_t len = c->family == AF_INET ? 4 : 16;

	if (nlh->nlmsg_type != RTM_NEWROUTE ||
	    nlmsg_parse((struct nlmsghdr *)(uintptr_t)nlh, sizeof(rtm), tb, RTA_MAX, NULL) < 0)
		return -EBADMSG;
	memcpy(&rtm, nlmsg_data(nlh), sizeof(rtm));
	/* Kernels before 4.20 ignore the filter and send all tables. */
	if (rtm.rtm_family != c->family || rtm.rtm_type != RTN_UNICAST ||
	    (rtm.rtm_flags & RTM_F_CLONED) ||
	    np_attr_u32(tb[RTA_TABLE], rtm.rtm_table) != RT_TABLE_MAIN)
		return 0;
	route.family = rtm.rtm_family;
	route.is_default = rtm.rtm_dst_len == 0;
	route.ifindex = (int)np_attr_u32(tb[RTA_OIF], 0);
	take_source(&rtm, tb, len, &route);
	if (!route.is_default) {
		route.by_source = !is_connected(&rtm, tb);
		if (route.by_source && !route.has_src)
			return 0;
		if (rtm.rtm_dst_len > len * 8 || !np_attr_bytes(tb[RTA_DST], route.dst.bytes, len))
			return -EBADMSG;
		route.dst.family = rtm.rtm_family;
		route.dst.prefix_len = rtm.rtm_dst_len;
		if (is_link_local(&route.dst) || (!route.by_source && is_far(c->scope, &route.dst)))
			return 0;
	}
	if (route.is_default && tb[RTA_MULTIPATH])
		return take_hops(c, &route, tb[RTA_MULTIPATH]);
	return append(c, &route);
}

static void restart_routes(void *arg)
{
	struct collect *c = arg;

	/* All dumps go into one list: forget this one's. */
	c->list.n = c->start;
}

static int dump(struct collect *c, int family, int ifindex)
{
	const struct rtmsg rtm = { .rtm_family = (uint8_t)family, .rtm_table = RT_TABLE_MAIN };
	const struct np_nl_reader reader = { take_route, restart_routes, c };
	np_auto_nl_msg struct nl_msg *msg = np_nl_msg(RTM_GETROUTE, 0, &rtm, sizeof(rtm));
	int rc;

	if (!msg || (ifindex && nla_put_u32(msg, RTA_OIF, (uint32_t)ifindex) < 0))
		return -ENOMEM;
	c->family = family;
	c->ifindex = ifindex;
	c->start = c->list.n;
	rc = np_nl_dump(c->nl, msg, &reader);
	/* No such table yet, a kernel without this family, or the netdev is gone. */
	if (rc == -ENOENT || rc == -EAFNOSUPPORT || rc == -EOPNOTSUPP || (rc == -ENODEV && ifindex))
		rc = 0;
	return rc;
}

static int dump_family(struct collect *c, int family)
{
	bool all = !c->scope;
	int rc = 0;

	for (size_t i = 0; !all && i < c->scope->n_nets; i++)
		all = c->scope->nets[i].family == family;
	if (all)
		return dump(c, family, 0);
	for (size_t i = 0; i < c->scope->n_ifindexes && rc == 0; i++)
		rc = dump(c, family, c->scope->ifindexes[i]);
	return rc;
}

int np_routes_observe(struct np_netlink *nl, const struct np_routes_scope *scope,
		      struct np_routes *out, struct np_err *err)
{
	struct collect c = { .nl = nl, .scope = scope, .list = *out, .size = out->n };
	int family = scope ? scope->family : 0, rc = 0;

	if (family != AF_INET6)
		rc = dump_family(&c, AF_INET);
	if (rc == 0 && family != AF_INET)
		rc = dump_family(&c, AF_INET6);
	if (rc < 0)
		c.list.n = out->n;
	*out = c.list; /* what was there may have moved */
	if (rc < 0)
		return np_nl_fail(nl, rc, err, "netlink.query", "cannot list the routes");
	return 0;
}

void np_routes_done(struct np_routes *list)
{
	if (!list)
		return;
	free(list->v);
	memset(list, 0, sizeof(*list));
}
