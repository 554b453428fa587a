/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_JUDGE_H
#define NP_AGENT_JUDGE_H

#include "agent/facts.h"
#include "agent/result.h"
#include "agent/select.h"

/* The judgement: what is wrong, by cause, in the words of the field. Pure. */

/* Every port, each with one check. */
void np_judge_ports(const struct np_config *cfg, const struct np_facts *facts,
		    struct np_checks *out);
/* Wanted netdevs: carrier, addresses, overlaps, managers. */
void np_judge_netdevs(const struct np_config *cfg, const struct np_facts *facts,
		      const struct np_selection *sel, struct np_checks *out);
void np_judge_modules(const struct np_config *cfg, const struct np_facts *facts,
		      struct np_checks *out);
/* Links of HCAs and GPUs that are slower than they could be, and the services of
 * NVSwitches. Where np_observe_pci did not look, nothing is said. */
void np_judge_pci(const struct np_config *cfg, const struct np_facts *facts, struct np_checks *out);
/* Versions of libraries that do not suit, transports that UCX lacks. Says nothing where
 * the libraries were not asked. */
void np_judge_libraries(const struct np_config *cfg, const struct np_facts *facts,
			const struct np_selection *sel, struct np_checks *out);
/* NCCL older than [nccl] version_min on a search path, libraries that hide others, and a
 * loader cache that does not know what is there. Says nothing where nobody looked. */
void np_judge_census(const struct np_config *cfg, const struct np_census *c, struct np_checks *out);
/* Whether nodeprep-selftest shall be asked for the libraries (np_libraries_ask): on a node
 * with GPUs for every plan, since what UCX is told depends on it; on one with HCAs alone
 * for a judgement that is not in a hurry. */
bool np_libraries_matter(const struct np_facts *facts, bool thorough);
/* Whether NVML shall be asked too: [dask] leaves it to the node whether there is NVLink. */
bool np_nvlink_matters(const struct np_config *cfg, const struct np_facts *facts);
/* Refused and unreadable files, lines that NCCL will not read. */
void np_judge_files(const struct np_config *cfg, const struct np_facts *facts,
		    struct np_checks *out);

/* Whether NCCL and UCX will take what is written: homes whose lines win over /etc/nccl.conf,
 * [nccl] and [ucx] that do not suit this node. */
void np_judge_consumers(const struct np_config *cfg, const struct np_facts *facts,
			const struct np_selection *sel, struct np_checks *out);

/* memlock: what logins get and what keeps them from it, and running services that
 * limits.conf does not reach. */
void np_judge_limits(const struct np_config *cfg, const struct np_facts *facts,
		     struct np_checks *out);

/* [dask]: what keeps its files from being written. */
void np_judge_dask(const struct np_config *cfg, const struct np_facts *facts,
		   const struct np_selection *sel, struct np_checks *out);

/* All of them. */
void np_judge(const struct np_config *cfg, const struct np_facts *facts,
	      const struct np_selection *sel, struct np_checks *out);

#endif
