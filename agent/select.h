/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_SELECT_H
#define NP_AGENT_SELECT_H

#include "agent/facts.h"

/* Which netdevs and ports the configuration means on this node. Pure. */

struct np_selection {
	/* one entry for each cfg->netdevs[i] that resolved, and at least the default
	 * IPoIB netdev when the node has one; pointers into facts and cfg */
	struct np_selected_netdev {
		const struct np_netdev *dev;
		const struct np_want_netdev *want; /* NULL: nothing asked of it */
		const struct np_inet *addrs;	   /* those it shall have; the flags' win */
		size_t n_addrs;
		bool keep_broadcast; /* a wrong one is not worth what renewing it would cut */
		bool renamed;	     /* not called ib0, taken because it is the only one */
	} * netdevs;
	size_t n_netdevs;
	const struct np_netdev *primary; /* the one that NCCL and UCX are given; NULL = none */
};

/* Returns 0, or -ENODEV / -ENOTUNIQ / -EINVAL with message when what is asked for
 * is not here or not to be told apart (exit 3; codes "netdev.no_such_interface",
 * "netdev.ambiguous", "netdev.not_ipoib"). np_selection_done frees. */
int np_select(const struct np_config *cfg, const struct np_facts *facts, struct np_selection *out,
	      struct np_err *err) np_must_check;
void np_selection_done(struct np_selection *sel);
#define np_auto_selection np_auto(np_selection_done)

/* The name of the primary netdev, when consumers can use it: it has, or is about to
 * get, an address. Else NULL. */
const char *np_consumer_netdev(const struct np_selection *sel);

/* Has @dev an IPv4 address, now and after the run, or does it get one? */
bool np_has_ipv4(const struct np_selection *sel, const struct np_netdev *dev);

enum np_port_role {
	NP_PORT_WANTED,
	NP_PORT_IGNORED,	/* [ports] ignore */
	NP_PORT_MANAGEMENT,	/* NVSwitch management */
	NP_PORT_NOT_INFINIBAND, /* Ethernet, iWARP, Omni-Path */
	NP_PORT_NOT_LISTED,	/* [ports] devices names others */
};

enum np_port_role np_port_role(const struct np_config *cfg, const struct np_ca *ca,
			       const struct np_port *port);

/* A wanted InfiniBand port that consumers may use now: ACTIVE, LinkUp, with a lid. */
bool np_port_usable(const struct np_config *cfg, const struct np_ca *ca,
		    const struct np_port *port);

/* "mlx5_0:1" of every usable port, natural order. Returns 0 or -ENOMEM. */
int np_usable_ports(const struct np_config *cfg, const struct np_facts *facts,
		    struct np_strv *out) np_must_check;

/* "CA" or "CA:PORT" of @list names this port. */
bool np_port_listed(const struct np_strv *list, const char *ca, int port);

#endif
