/* SPDX-License-Identifier: MIT */
#ifndef NP_NETLINK_OBSERVE_H
#define NP_NETLINK_OBSERVE_H

/* Private to netlink/: the parts that make up one observed netdev. */

#include <netlink/msg.h>

#include "netlink/netdev.h"
#include "netlink/socket.h"

/* Reads an RTM_NEWLINK into zeroed @dev. Returns 0, -ENOMEM or -EBADMSG; then
 * too np_netdev_done frees. */
int np_link_parse(const struct nlmsghdr *nlh, struct np_netdev *dev) np_must_check;
void np_netdev_done(struct np_netdev *dev);

/* Asks for one link, by index, or by @name when @ifindex is 0. @attr: IFLA_IFNAME
 * or IFLA_ALT_IFNAME. Returns 0 or a negative errno (-ENODEV: none), no message. */
int np_link_get(struct np_netlink *nl, int ifindex, int attr, const char *name,
		struct np_netdev *dev) np_must_check;

/* Reads an RTM_NEWADDR. Returns 1, 0 (neither IPv4 nor IPv6), or -EBADMSG. */
int np_addr_parse(const struct nlmsghdr *nlh, int *ifindex,
		  struct np_netdev_addr *addr) np_must_check;

/* Appends to dev->addrs. Returns 0 or -ENOMEM. */
int np_netdev_add_addr(struct np_netdev *dev, const struct np_netdev_addr *addr) np_must_check;

/* The addresses of @dev alone, and of all of @list (sorted by ifindex). Return
 * 0 or a negative errno without message. */
int np_addrs_observe(struct np_netlink *nl, struct np_netdev *dev) np_must_check;
int np_addrs_observe_all(struct np_netlink *nl, struct np_netdevs *list) np_must_check;

/* What netlink does not tell: IPoIB attributes where they lack, owner, the
 * sysctl in force. @promote_all: conf/all/promote_secondaries, read when first
 * needed. What cannot be read stays unknown. */
void np_link_complete(struct np_netdev *dev, enum np_tri *promote_all);

/* Who manages @dev, by the files below @root ("" = this system's) of those
 * that may. @out is "" when that cannot be told. */
void np_manager_look(const char *root, int ifindex, const char *name, char *out, size_t size);

#endif
