/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_CONSUMER_HARM_H
#define NP_AGENT_CONSUMER_HARM_H

#include "agent/facts.h"
#include "agent/result.h"

/* Values that are right elsewhere and do harm on this node. Pure. */

/* Adds what is to be said of @name=@value, which @target (file:line) sets:
 * nccl.no_infiniband, nccl.path_disabled, nccl.gid_index, ucx.no_infiniband,
 * ucx.no_sockaddr_fallback. Nothing for any other name. */
void np_consumer_judge_harm(const char *name, const char *value, const char *target,
			    const struct np_facts *facts, struct np_checks *out);

/* A soft memlock limit of @bytes: limits.low_memlock where this node has InfiniBand. */
void np_consumer_judge_memlock(uint64_t bytes, const char *target, const struct np_facts *facts,
			       struct np_checks *out);

/* The soft limit of a unit's LimitMEMLOCK=, in bytes. False: it is none. */
bool np_consumer_unit_memlock(const char *text, uint64_t *bytes);

#endif
