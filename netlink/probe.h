/* SPDX-License-Identifier: MIT */
#ifndef NP_NETLINK_PROBE_H
#define NP_NETLINK_PROBE_H

#include "netlink/netdev.h"

/*
 * Is an IPv4 address already used by another node of the IPoIB subnet? ARP probes
 * as in RFC 5227 2.1.1 (sender address 0.0.0.0), shortened; ARP over InfiniBand is
 * RFC 4391 section 9 (hardware type 32, 20-byte addresses).
 */

enum np_probe_outcome {
	NP_PROBE_NOT_POSSIBLE, /* netdev down, without carrier or hardware address, IPv6, no
				  privilege */
	NP_PROBE_FREE,	       /* nobody answered in time */
	NP_PROBE_IN_USE,
};

struct np_probe {
	/* in */
	const struct np_netdev *dev;
	struct np_inet inet;
	/* out */
	enum np_probe_outcome outcome;
	uint8_t owner_hwaddr[20];
	uint64_t owner_guid; /* port GUID of whoever answered: its last 8 bytes */
};

/* Asks for all addresses at once, @timeout_ms in all (two probes each). Each outcome
 * is in its entry; a failure of one netdev is "not possible" there and no more.
 * Returns 0, or -ENOMEM with message. */
int np_arp_probe(struct np_probe *probes, size_t n, int timeout_ms,
		 struct np_err *err) np_must_check;

#endif
