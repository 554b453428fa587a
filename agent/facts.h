/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_FACTS_H
#define NP_AGENT_FACTS_H

#include "agent/config.h"
#include "agent/libraries.h"
#include "agent/target_file.h"
#include "ibmad/ca.h"
#include "modules/gdrdrv.h"
#include "modules/gpu.h"
#include "modules/module.h"
#include "netlink/netdev.h"

/* What is: everything that the plan and the judgement look at, read in one go. */

/* Who has a wanted address, other than the netdev that shall have it. */
struct np_addr_fact {
	struct np_inet inet;
	struct np_addr_owner owner; /* owner.local false: nobody on this node */
};

enum np_file_role {
	NP_ROLE_NCCL_HOME,
	NP_ROLE_NCCL_ETC,
	NP_ROLE_PROFILE_SH,
	NP_ROLE_PROFILE_CSH,
	NP_ROLE_UCX_ENV,
	NP_ROLE_MODULES_LOAD,
	NP_ROLE_MODPROBE,
};

struct np_file_fact {
	enum np_file_role role;
	struct np_target_file file;
};

struct np_facts {
	struct np_strv netdev_names; /* all of them, names only */
	struct np_netdevs netdevs;   /* those of interest, or all (see np_observe) */
	struct np_cas cas;
	struct np_routes routes;
	struct np_addr_fact *addrs;
	size_t n_addrs;
	struct np_kmods kmods;
	char kernel[65]; /* release */
	struct np_gdrdrv gdrdrv;
	struct np_file_attr gdrdrv_default; /* of a new /dev/gdrdrv; read when gdrdrv is loaded */
	struct {
		bool known; /* [module gdrdrv] group is in the group database */
		gid_t gid;
	} gdrdrv_group;
	bool gdrdrv_node_failed; /* set by a caller that tried: not to be tried again */
	struct np_gpus gpus;
	struct np_gpu_driver gpu_driver; /* read when there are GPUs */
	struct np_libraries libraries;	 /* set by who asks (np_libraries_ask) */
	struct np_file_fact *files;
	size_t n_files;
};

enum np_observe_scope {
	NP_OBSERVE_WANTED, /* what apply needs: time does not grow with the rest of the host */
	NP_OBSERVE_ALL,	   /* every netdev, counters, managers: for show */
};

/* Reads all; nothing is changed. @facts is zeroed first; np_facts_done frees,
 * also after a failure. Returns 0 or a negative errno with message. */
int np_observe(const struct np_config *cfg, enum np_observe_scope scope, struct np_facts *facts,
	       struct np_err *err) np_must_check;
void np_facts_done(struct np_facts *facts);
#define np_auto_facts np_auto(np_facts_done)

#endif
