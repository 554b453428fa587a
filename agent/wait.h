/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_WAIT_H
#define NP_AGENT_WAIT_H

#include "agent/facts.h"
#include "agent/select.h"

/* Does anything that may still come up keep this node from being ready: a wanted
 * port that is not ACTIVE and not disabled, a selected netdev that is up and not
 * RUNNING? Pure. */
bool np_wait_needed(const struct np_config *cfg, const struct np_facts *facts,
		    const struct np_selection *sel);

/*
 * Waits until nothing of the kind is left, @timeout_s passed or a signal came;
 * port states in @facts are refreshed. Progress on a terminal.
 * Returns 0 (also when the time passed: what is left is a matter of judgement),
 * -EINTR on a signal, or another negative errno with message.
 */
int np_wait_ready(const struct np_config *cfg, struct np_netlink *nl, struct np_facts *facts,
		  const struct np_selection *sel, int timeout_s, struct np_err *err) np_must_check;

#endif
