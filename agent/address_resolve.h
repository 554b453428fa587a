/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_ADDRESS_RESOLVE_H
#define NP_AGENT_ADDRESS_RESOLVE_H

#include "agent/facts.h"

/* Asks the address sources of the configuration: the name service, files, other NICs. */

/*
 * Puts what the sources say among the addresses of their netdevs, each in its place of
 * the list; one that has its answer is not asked again, so that a run goes on as it
 * began. Those that --ip overrides are not asked. facts->netdevs has the NICs of the
 * offsets. Stops at the first source without an answer, whose netdev keeps what it had.
 * Returns 0, or a negative errno with message:
 * -EADDRNOTAVAIL  there is no such address on this node, now (exit 3)
 * -EBADMSG        a map file is faulty (exit 2)
 * -EINTR          a signal came
 */
int np_address_sources_resolve(struct np_config *cfg, const struct np_facts *facts,
			       struct np_err *err) np_must_check;

/* The same for a verb that only shows: every source is tried, and has its failure in it.
 * Returns 0, -ENOMEM or -EINTR. */
int np_address_sources_try(struct np_config *cfg, const struct np_facts *facts,
			   struct np_err *err) np_must_check;

#endif
