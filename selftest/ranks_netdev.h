/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_RANKS_NETDEV_H
#define NP_SELFTEST_RANKS_NETDEV_H

/* The netdev and the HCA that a rank goes by: those that UCX_NET_DEVICES names; where it
 * names none, the first IPoIB netdev that is up, else the first other one, and all HCAs. */
struct np_ranks_netdev {
	char ifname[16];    /* "" = none */
	char family[16];    /* "IPv4", "IPv6", "IPv4+IPv6"; "" = it has no address */
	int mtu;	    /* 0 = unknown */
	char port[80];	    /* "mlx5_0:1", or the netdev; what messages call the port */
	char firmware[128]; /* of the HCAs, each once; "" = there are none */
};

void np_ranks_netdev_find(const char *net_devices, struct np_ranks_netdev *out);

#endif
