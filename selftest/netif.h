/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_NETIF_H
#define NP_SELFTEST_NETIF_H

#include <stdbool.h>

#include "base/str.h"

/* What must be true of a netdev before UCX's tcp can use it, from getifaddrs. */
struct np_netif {
	bool exists;
	bool up;		  /* IFF_UP */
	bool running;		  /* IFF_RUNNING: carrier */
	struct np_strv addresses; /* "10.0.0.50", IPv4 first, then IPv6 that is not link-local */
};

/* Returns 0 or a negative errno with message. np_netif_done frees. */
int np_netif_observe(const char *name, struct np_netif *out, struct np_err *err) np_must_check;
void np_netif_done(struct np_netif *netif);
#define np_auto_netif np_auto(np_netif_done)

/* "10.0.0.50/24" or "10.0.0.50" to the form that np_netif.addresses has. Returns
 * 0 or -EINVAL with message (code usage.address). */
int np_netif_address(const char *text, char out[64], struct np_err *err) np_must_check;

#endif
