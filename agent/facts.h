/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_FACTS_H
#define NP_AGENT_FACTS_H

#include "agent/census.h"
#include "agent/dask_version.h"
#include "agent/libraries.h"
#include "agent/login_limits.h"
#include "agent/services.h"
#include "agent/target_file.h"
#include "ibmad/ca.h"
#include "modules/gdrdrv.h"
#include "modules/gpu.h"
#include "modules/gpu_services.h"
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
	NP_ROLE_MODULEFILE,	/* by [ucx] modulefile */
	NP_ROLE_MODULEFILE_OLD, /* that ucx.env names, where it is another */
	NP_ROLE_MODULES_LOAD,
	NP_ROLE_MODPROBE,
	NP_ROLE_LIMITS,
	NP_ROLE_DASK_YAML,
	NP_ROLE_DASK_ENV,
};

struct np_file_fact {
	enum np_file_role role;
	struct np_target_file file;
};

struct np_facts {
	struct np_strv netdev_names; /* all of them, names only, in no order */
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
	/* by np_observe_pci alone, as are cas.v[].pci and gpus.v[].pci */
	struct np_gpu_services gpu_services;
	bool one_numa_node;
	struct np_libraries libraries; /* set by who asks (np_libraries_ask) */
	struct np_census census;       /* set by who looks (np_census_look) */
	struct np_file_fact *files;
	size_t n_files;
	struct {
		bool looked;		     /* there is an HCA, and [limits] is not keep */
		struct np_limit_texts texts; /* limits.conf and limits.d */
		bool group_known;	     /* [limits] group is in the group database */
		bool refuses_login; /* a hard limit that cannot be set would end logins here */
	} limits;
	struct np_dask_versions dask; /* read when [dask] is enabled */
	struct np_services services;  /* that start jobs; read by np_services_observe */
};

enum np_observe_scope {
	NP_OBSERVE_WANTED, /* what apply needs: time does not grow with the rest of the host */
	NP_OBSERVE_PATHS,  /* the same, but no address source is asked: for the self-test */
	NP_OBSERVE_ALL,	   /* every netdev, counters, managers, no address source: for show */
};

/* Reads all; nothing is changed, but that the address sources of @cfg get their answers
 * (address_resolve.h). @facts is zeroed first; np_facts_done frees, also after a failure.
 * Returns 0 or a negative errno with message: -EADDRNOTAVAIL for a source without an
 * answer (exit 3), -EBADMSG for one that is faulty (exit 2). */
int np_observe(struct np_config *cfg, enum np_observe_scope scope, struct np_facts *facts,
	       struct np_err *err) np_must_check;
/* The part of it that reads the files, in homes and in /etc. */
int np_facts_observe_files(const struct np_config *cfg, struct np_facts *facts,
			   struct np_err *err) np_must_check;

/* Adds what topology and its judgement need: place and link of HCAs and GPUs, and the
 * services that NVSwitches need. Some hundred reads on a node with many: for callers
 * that show it, and for the judgement of a node with GPUs. Nothing fails. */
void np_observe_pci(struct np_facts *facts);
/* The first file of that role, NULL = none was looked at. */
const struct np_file_fact *np_facts_file(const struct np_facts *facts, enum np_file_role role);
void np_facts_done(struct np_facts *facts);
#define np_auto_facts np_auto(np_facts_done)

#endif
