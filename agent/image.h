/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_IMAGE_H
#define NP_AGENT_IMAGE_H

#include "agent/config.h"
#include "agent/facts.h"
#include "agent/result.h"

/*
 * apply --root DIR: the files of an image's tree, as far as the configuration alone says
 * what is in them. The node that will boot it is not known, so nothing is asked of the
 * kernel: the facts are made of what the configuration names, and the plan is the same.
 */

/* The facts, and in @left what is left for the first boot. @cfg loses the netdevs that only
 * a node can tell (match, addresses without a name). The files are read from this process'
 * root (np_root_enter). Returns 0 or a negative errno with message; np_facts_done frees. */
int np_image_observe(struct np_config *cfg, struct np_facts *facts, struct np_checks *left,
		     struct np_err *err) np_must_check;

/* The part of it that asks nothing of the system. As above, without the files. Returns 0 or
 * -ENOMEM. */
int np_image_facts(struct np_config *cfg, struct np_facts *facts,
		   struct np_checks *left) np_must_check;

/* A plan for an image takes nothing away: what it does not know it leaves as it is. */
void np_image_keep(struct np_actions *planned);

#endif
