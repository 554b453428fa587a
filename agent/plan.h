/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_PLAN_H
#define NP_AGENT_PLAN_H

#include "agent/action.h"
#include "agent/facts.h"
#include "agent/select.h"
#include "agent/ucx_env.h"

/*
 * The policy: (configuration, facts) -> actions. Pure: no I/O, no clock, no
 * environment. An empty plan is the proof that the node is as wanted.
 */

enum np_plan_part {
	NP_PLAN_NETDEVS = 1 << 0,
	NP_PLAN_FILES = 1 << 1,
	NP_PLAN_MODULES = 1 << 2,
	NP_PLAN_ALL = NP_PLAN_MODULES | NP_PLAN_NETDEVS | NP_PLAN_FILES,
};

/*
 * Modules come first and may bring the netdevs: a plan with modules to load says no
 * more than that when what is asked for is not here yet.
 * Returns 0, or a negative errno with message when the change must not be made
 * here (exit 3): what np_select refuses; "netdev.address_in_use" -EADDRINUSE;
 * "netdev.cuts_default_route" -EBUSY without cfg->force.
 */
int np_plan_make(const struct np_config *cfg, const struct np_facts *facts, unsigned int parts,
		 struct np_actions *out, struct np_err *err) np_must_check;

/* The IPv4 and IPv6 addresses of one netdev; part of np_plan_make. */
int np_plan_addresses(const struct np_selected_netdev *sel, struct np_actions *out,
		      struct np_err *err) np_must_check;

/* Takes @gone away from a netdev and adds @back to it, where they are there or not there yet;
 * every other address stays, also where the kernel would take secondaries along. For an undo
 * that finds the netdev changed by others. Returns 0 or -ENOMEM with message. */
int np_plan_address_swap(const struct np_netdev *dev, const struct np_netdev_addr *gone,
			 size_t n_gone, const struct np_netdev_addr *back, size_t n_back,
			 struct np_actions *out, struct np_err *err) np_must_check;

/* Refuses what could cut the default route, or drop a route that somebody made: -EBUSY
 * ("netdev.cuts_default_route", "netdev.cuts_route"). Part of np_plan_make. */
int np_plan_refuse_cuts(const struct np_routes *routes, const struct np_actions *actions,
			struct np_err *err) np_must_check;

/* Is the broadcast address the one of its prefix (or is there none to have)? */
bool np_broadcast_is_right(const struct np_netdev_addr *addr);

/* Modules to load, before them the file with their options, and the node of gdrdrv; part
 * of np_plan_make. */
int np_plan_modules(const struct np_config *cfg, const struct np_facts *facts,
		    struct np_actions *out, struct np_err *err) np_must_check;

/* The file of modprobe.d; part of np_plan_modules. Returns 0 or a negative errno with message. */
int np_plan_modprobe_file(const struct np_config *cfg, const struct np_facts *facts,
			  struct np_actions *out, struct np_err *err) np_must_check;

/* The files that are not planned yet; part of np_plan_make. */
int np_plan_files(const struct np_config *cfg, const struct np_facts *facts,
		  const struct np_selection *sel, struct np_actions *out,
		  struct np_err *err) np_must_check;

/* Content of /etc/security/limits.d/nodeprep.conf; *wanted false: there is no HCA, the
 * site's own files give as much, or it must not be written. Returns 0 or -ENOMEM. */
int np_limits_file_content(const struct np_config *cfg, const struct np_facts *facts,
			   const struct np_file_fact *fact, bool *wanted,
			   struct np_buf *content) np_must_check;

/* Content of /etc/dask/nodeprep.yaml or /etc/nodeprep/dask.env; *wanted false: [dask] is
 * not enabled, or its netdev neither has nor gets an IPv4 address. Returns 0 or a negative
 * errno with message. */
int np_dask_file_content(const struct np_config *cfg, const struct np_facts *facts,
			 const struct np_selection *sel, enum np_file_role role, bool *wanted,
			 struct np_buf *content, struct np_err *err) np_must_check;

/* The netdev that Dask is given: [dask] interface, else the primary one. NULL: there is
 * none, or none of that name. */
const struct np_netdev *np_dask_netdev(const struct np_config *cfg, const struct np_facts *facts,
				       const struct np_selection *sel);

/* The content that one file shall have; *wanted false: nodeprep has nothing to say
 * about it. Returns 0 or a negative errno with message. */
int np_plan_file_content(const struct np_config *cfg, const struct np_facts *facts,
			 const struct np_selection *sel, const struct np_file_fact *fact,
			 bool *wanted, struct np_buf *content, struct np_err *err) np_must_check;

/* The variables of UCX as its files carry them; *wanted false: there is nothing to say.
 * np_env_done frees. Returns 0 or a negative errno with message. */
int np_plan_ucx_env(const struct np_config *cfg, const struct np_facts *facts,
		    const struct np_selection *sel, bool *wanted, struct np_env *env,
		    struct np_err *err) np_must_check;

/* Why NCCL's files are not written for [nccl] socket_ifname: "nccl.matches_nothing" or
 * "nccl.no_address" of this node; NULL where they may be. @sel may be NULL. */
const char *np_plan_ifname_refused(const struct np_config *cfg, const struct np_facts *facts,
				   const struct np_selection *sel);

#endif
