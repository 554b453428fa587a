/* SPDX-License-Identifier: MIT */
#ifndef NP_NETLINK_NETDEV_H
#define NP_NETLINK_NETDEV_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/inet.h"
#include "base/str.h"

/*
 * A network device as the kernel sees it. What could not be read is unknown
 * (NP_TRI_UNKNOWN, 0, "" or -1 as noted), never "fine".
 */

enum np_ipoib_mode { NP_IPOIB_MODE_UNKNOWN, NP_IPOIB_DATAGRAM, NP_IPOIB_CONNECTED };

enum np_tri { NP_TRI_UNKNOWN, NP_TRI_NO, NP_TRI_YES };

struct np_netdev_addr {
	struct np_inet inet; /* IFA_LOCAL (IPv4) or IFA_ADDRESS (IPv6), with prefix length */
	bool has_broadcast;
	uint8_t broadcast[4];
	uint32_t flags;	      /* IFA_F_*, linux/if_addr.h */
	uint8_t scope;	      /* RT_SCOPE_*, linux/rtnetlink.h */
	char label[IFNAMSIZ]; /* IPv4 label, "" = none */
	/* what an exact undo of a removal needs; all 0 for an ordinary address */
	bool has_peer; /* point-to-point: IFA_ADDRESS differs from IFA_LOCAL */
	uint8_t peer[16];
	uint32_t valid_s, preferred_s; /* lifetimes left, seconds, UINT32_MAX = forever; valid 0 =
					  both forever */
	uint32_t metric;	       /* IFA_RT_PRIORITY of its prefix route, 0 = the default */
};

struct np_netdev {
	int ifindex;
	char name[IFNAMSIZ];
	struct np_strv altnames;
	uint16_t type;			/* ARPHRD_*, linux/if_arp.h; 32 = InfiniBand */
	char kind[16];			/* IFLA_INFO_KIND, "" = none */
	uint32_t flags;			/* IFF_*, linux/if.h */
	uint8_t operstate;		/* IF_OPER_*, linux/if.h */
	enum np_tri carrier;		/* unknown while the netdev is down */
	uint32_t mtu, min_mtu, max_mtu; /* bytes; max 0 = unknown */
	uint8_t hwaddr[32];
	uint8_t hwaddr_len; /* 20 for IPoIB; 0 = none */
	uint8_t hwbroadcast[32];
	uint8_t hwbroadcast_len; /* 20 for IPoIB; 0 = none, then it cannot send by itself */
	int parent_ifindex;	 /* IFLA_LINK, 0 = none or in another network namespace */
	int master_ifindex;	 /* IFLA_MASTER: the bond or bridge that it is part of, 0 = none */
	uint64_t rx_bytes, tx_bytes, rx_packets, tx_packets, rx_errors, tx_errors;
	bool has_stats;

	/* IPoIB; from IFLA_INFO_DATA for kind "ipoib", else from sysfs */
	enum np_ipoib_mode mode;
	bool has_pkey;
	uint16_t pkey;
	enum np_tri umcast;

	/* owner, by sysfs (device/infiniband/<ca>, dev_port); "" and 0 = unknown */
	char ca[64];
	int port;	    /* 1-based */
	uint64_t port_guid; /* last 8 bytes of the hardware address; 0 = unknown */

	enum np_tri promote_secondaries; /* IPv4 sysctl in force for this netdev */
	char manager[24]; /* "NetworkManager", "systemd-networkd", "ifupdown", "none"; "" = not
			     looked at */

	struct np_netdev_addr *addrs; /* in kernel order, both families */
	size_t n_addrs;
};

struct np_netdevs {
	struct np_netdev *v;
	size_t n;
};

/* Who would answer for an address on this node, by the kernel's local table. */
struct np_addr_owner {
	bool local; /* the address is one of this node's */
	int ifindex;
	char ifname[IFNAMSIZ];
};

/* A route of the main table that matters to the policy. */
struct np_route {
	int family;
	bool is_default;    /* else: connected (proto kernel, scope link), or by_source */
	bool by_source;	    /* neither; here because the kernel drops it with address src */
	struct np_inet dst; /* network; family 0 for the default */
	bool has_src;	    /* preferred source address of a route that is not the kernel's own */
	struct np_inet src; /* its length is that of a host */
	int ifindex;
	char ifname[IFNAMSIZ]; /* "" until np_route_name: a host has many routes, few matter */
};

struct np_routes {
	struct np_route *v;
	size_t n;
};

struct np_netlink; /* one NETLINK_ROUTE socket: extended ACK and strict checking on */

/* Opens; *@out owned by the caller (np_netlink_close; NULL allowed).
 * Returns 0 or a negative errno with message. */
int np_netlink_open(struct np_netlink **out, struct np_err *err) np_must_check;
void np_netlink_close(struct np_netlink **nl);
#define np_auto_netlink np_auto(np_netlink_close)

enum np_netdev_detail {
	NP_NETDEV_BASIC = 0,
	NP_NETDEV_STATS = 1 << 0,
	NP_NETDEV_MANAGER = 1 << 1,
};

/* All netdevs with all their addresses, by full dumps; started again on ENOBUFS
 * or an interrupted dump. @detail: enum np_netdev_detail bits.
 * Sorted by natural order of names. Returns 0 or a negative errno with message. */
int np_netdevs_observe_all(struct np_netlink *nl, unsigned int detail, struct np_netdevs *out,
			   struct np_err *err) np_must_check;

/* The named netdevs alone (those that do not exist are left out), each link and
 * address list asked for by itself: time does not grow with what else the host
 * has. An altname finds its netdev too. In the order of @names, each netdev once. */
int np_netdevs_observe_named(struct np_netlink *nl, const struct np_strv *names,
			     unsigned int detail, struct np_netdevs *out,
			     struct np_err *err) np_must_check;
void np_netdevs_done(struct np_netdevs *list);
const struct np_netdev *np_netdevs_find(const struct np_netdevs *list, const char *name_or_altname);
static inline bool np_netdev_is_ipoib(const struct np_netdev *dev)
{
	return dev->type == 32;
}

/* Connected mode is not to be had: the address lacks the RC bit (RFC 4755 section 3,
 * IPOIB_FLAGS_RC in Linux), as with enhanced IPoIB. False when the address is unknown. */
static inline bool np_netdev_lacks_connected(const struct np_netdev *dev)
{
	return dev->hwaddr_len == 20 && !(dev->hwaddr[0] & 0x80);
}

/* Names of all netdevs (from /sys/class/net, no dump), in no order: a host may have thousands.
 * Returns 0 or a negative errno with message. */
int np_netdev_names(struct np_strv *out, struct np_err *err) np_must_check;

/* Which netdev of this node has address @a, down netdevs included; other than
 * @but_ifindex (0 = any). Dumps all addresses of that family.
 * out->local false when none. */
int np_addr_find_owner(struct np_netlink *nl, const struct np_inet *a, int but_ifindex,
		       struct np_addr_owner *out, struct np_err *err) np_must_check;

/* The same through the kernel's routing lookup: one message, whatever the host
 * has. Names one netdev where several have @a. Sees IPv4 addresses of netdevs that
 * are down too, but no IPv6 ones of those, and nothing within a VRF. */
int np_addr_lookup_owner(struct np_netlink *nl, const struct np_inet *a, struct np_addr_owner *out,
			 struct np_err *err) np_must_check;

/* The way to @dst: its netdev, and the address it is left with (family 0: the kernel does not
 * say). *ifindex 0: no route leads there. Returns 0 or a negative errno with message. */
int np_route_lookup(struct np_netlink *nl, const struct np_inet *dst, int *ifindex,
		    struct np_inet *src, struct np_err *err) np_must_check;
/* Which routes matter to somebody who knows @nets and @ifindexes. */
struct np_routes_scope {
	int family;		    /* of this alone; 0 = both */
	const struct np_inet *nets; /* of connected networks those that overlap one of these; a
				     * family that has none here is not looked at, but for: */
	size_t n_nets;
	const int
		*ifindexes; /* of such a family the routes over these netdevs; the kernel filters */
	size_t n_ifindexes;
};

/* Default routes (one entry for each next hop's netdev) and connected networks of
 * the main table; IPv6 link-local networks, which every netdev has, are left out.
 * @scope NULL: all of them. They are added to @out, which stays as it is on failure. */
int np_routes_observe(struct np_netlink *nl, const struct np_routes_scope *scope,
		      struct np_routes *out, struct np_err *err) np_must_check;
/* Fills in route->ifname; "" when the netdev is gone. One system call. */
void np_route_name(struct np_netlink *nl, struct np_route *route);
void np_routes_done(struct np_routes *list);

/* ---- changes; each returns 0 or a negative errno with the kernel's own reason
 * (extended ACK) in the message, code "netdev.kernel_refused" or nearer ---- */

int np_netdev_set_up(struct np_netlink *nl, int ifindex, const char *name, bool up,
		     struct np_err *err) np_must_check;
int np_netdev_set_mtu(struct np_netlink *nl, int ifindex, const char *name, uint32_t mtu,
		      struct np_err *err) np_must_check;
/* By sysfs `mode`, which works for every kernel that has IPoIB. -EINVAL: refused
 * (enhanced IPoIB has no connected mode), code "netdev.mode_refused". */
int np_netdev_set_mode(const char *name, enum np_ipoib_mode mode, struct np_err *err) np_must_check;
/* IPv4 addresses get addr->broadcast when has_broadcast. -EEXIST when there already. */
int np_addr_add(struct np_netlink *nl, int ifindex, const char *name,
		const struct np_netdev_addr *addr, struct np_err *err) np_must_check;
int np_addr_del(struct np_netlink *nl, int ifindex, const char *name,
		const struct np_netdev_addr *addr, struct np_err *err) np_must_check;

/* ---- waiting ---- */

/* Waits until netdev @ifindex has IFF_RUNNING, a link event at a time.
 * Returns 1 running, 0 deadline passed or a signal came, negative errno with message. */
int np_netdev_wait_running(struct np_netlink *nl, int ifindex, int timeout_ms,
			   struct np_err *err) np_must_check;

/* ---- words ---- */
const char *np_ipoib_mode_str(enum np_ipoib_mode mode); /* "datagram", "connected", "unknown" */
const char *np_operstate_str(uint8_t operstate);	/* as iproute2: "up", "down", ... */
/* "80:00:..." ; returns @out */
const char *np_hwaddr_str(const struct np_netdev *dev, char out[32 * 3]);

#endif
