/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_PROBE_ADDRESSES_H
#define NP_AGENT_PROBE_ADDRESSES_H

#include "agent/action.h"
#include "agent/facts.h"
#include "agent/result.h"

/*
 * Before an IPv4 address goes on: does another node of the fabric have it? Asked for
 * are the addresses that a plan adds and whose netdev does not hold them yet with any
 * length. IPv6 has its own detection in the kernel. A plan without such an address
 * costs nothing, no packet either.
 */

/* Leaves in @planned no more than what has to be done before a question can be sent:
 * mode, MTU and link of netdevs that are down now. Where a netdev is up, nothing. Pure. */
void np_probe_keep_links(const struct np_facts *facts, struct np_actions *planned);

/*
 * Asks (200 ms for all), after a short wait for the carrier of netdevs that have none
 * yet, of no more than cfg->wait_s. What could not be asked for is told in @checks
 * (skip, "netdev.not_probed") and no reason to stop.
 * Returns 0; -EADDRINUSE "netdev.address_in_use" when somebody has one of them; -EINTR
 * or another negative errno; all with message.
 */
int np_probe_planned(const struct np_config *cfg, const struct np_facts *facts,
		     const struct np_actions *planned, struct np_checks *checks,
		     struct np_err *err) np_must_check;

#endif
