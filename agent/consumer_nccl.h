/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_CONSUMER_NCCL_H
#define NP_AGENT_CONSUMER_NCCL_H

#include "agent/consumer.h"

/* NCCL's reading of files and lists, on this node. Pure. */

/* Adds the variables of an nccl.conf so that np_settings_find takes what NCCL would: of a
 * name that stands there twice the first. A weaker file has to be added first. */
void np_nccl_conf_settings(struct np_settings *list, const char *file, const char *text,
			   size_t len);

/* The netdevs that NCCL's sockets would use for a value of NCCL_SOCKET_IFNAME (NULL: not
 * set), and what is wrong with it: nccl.matches_nothing, nccl.no_address. */
int np_nccl_judge_ifname(const char *value, const char *target, const struct np_facts *facts,
			 struct np_strv *matches, struct np_checks *out) np_must_check;
/* The ports for a value of NCCL_IB_HCA; NCCL takes ACTIVE ones alone. */
int np_nccl_judge_hca(const char *value, const char *target, const struct np_facts *facts,
		      struct np_strv *matches, struct np_checks *out) np_must_check;

/* A netdev has an address that NCCL and UCX over tcp can use. */
bool np_netdev_addressed(const struct np_netdev *dev);

#endif
