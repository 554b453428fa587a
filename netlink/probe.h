/* SPDX-License-Identifier: MIT */
#ifndef NP_NETLINK_PROBE_H
#define NP_NETLINK_PROBE_H

#include "netlink/netdev.h"

/*
 * Is an IPv4 address already used by another node of the IPoIB subnet? ARP probes
 * as in RFC 5227 section 2.1.1 (sender address 0.0.0.0), shortened; ARP over
 * InfiniBand is RFC 4391 section 9.3 (hardware type 32, 20-byte addresses).
 *
 * The address must not be one of this node's own: Linux answers on every netdev for
 * any local address (arp_ignore 0), so its other port would answer.
 */

enum np_probe_outcome {
	NP_PROBE_NOT_POSSIBLE,
	NP_PROBE_FREE, /* nobody answered in time */
	NP_PROBE_IN_USE,
};

struct np_probe {
	/* in */
	const struct np_netdev *dev;
	struct np_inet inet;
	/* out */
	enum np_probe_outcome outcome;
	char why[96];	     /* NP_PROBE_NOT_POSSIBLE: "it has no carrier" */
	uint64_t owner_guid; /* NP_PROBE_IN_USE: port GUID of whoever answered, host order */
};

/* Has @dev what it takes to send, once it is up and RUNNING? Pure. */
bool np_probe_has_hwaddr(const struct np_netdev *dev);

/* Asks for all addresses at once, @timeout_ms in all (two probes each). Each outcome
 * is in its entry; what fails for one (netdev down, no privilege) is "not possible"
 * there and no more.
 * Returns 0, -EINTR on a signal or -ENOMEM, both with message. */
int np_arp_probe(struct np_probe *probes, size_t n, int timeout_ms,
		 struct np_err *err) np_must_check;

#endif
