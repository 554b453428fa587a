/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_MODULE_POLICY_H
#define NP_AGENT_MODULE_POLICY_H

#include "agent/facts.h"

/* Which modules this node shall have, and how. Pure. */

/* What is asked of a module here: what the configuration says, else AUTO for those
 * that a node of this kind is expected to have, else NO:
 *   an HCA      ib_umad, ib_uverbs, ib_ipoib, rdma_ucm
 *   a GPU       gdrdrv (or when it is loaded), nvidia_uvm
 *   both        nvidia_peermem, unless GPU memory is exported by dma-buf */
enum np_require np_module_require(const struct np_config *cfg, const struct np_facts *facts,
				  const char *name);

/* Its options: those of the configuration, else for gdrdrv those that gdrcopy's own
 * insmod.sh gives, else "". */
const char *np_module_options(const struct np_config *cfg, const char *name);

/* The configuration says to load it although modprobe.d has it on a blacklist. */
bool np_module_ignores_blacklist(const struct np_config *cfg, const char *name);

/* It is missing, wanted, can be had, and no attempt of this run has failed. */
bool np_module_to_load(const struct np_config *cfg, const struct np_facts *facts,
		       const struct np_kmod *mod);

/* GPU memory can be registered with an HCA without nvidia_peermem: Linux 5.12 or newer
 * and NVIDIA's open kernel modules of driver 515 or newer (CUDA 11.7), the first that
 * export it. False when any of that is unknown. */
bool np_gpu_dmabuf_available(const struct np_facts *facts);

/* This node has a GPU: one that was handed to a virtual machine is not this node's. */
bool np_has_gpu(const struct np_facts *facts);

/* libgdrapi maps GPU memory without gdrdrv: its version and CUDA's are new enough
 * (modules/gdrdrv.h), and the GPU driver is not the proprietary one, which exports no
 * dma-buf. False when the libraries were not asked. */
bool np_gdr_dmabuf_usable(const struct np_facts *facts);

/* gdrdrv on disk (not loaded) was built for the other flavour of the GPU driver than
 * the one that is loaded: it would not load. */
bool np_gdrdrv_flavour_differs(const struct np_facts *facts);

/* What /dev/gdrdrv shall be; false: nothing is asked (gdrdrv is not loaded, not wanted,
 * or has no major). Without [module gdrdrv] mode and group a right node keeps what it
 * has, and a new one is like /dev/nvidiactl. */
bool np_gdrdrv_wanted_node(const struct np_config *cfg, const struct np_facts *facts,
			   struct np_file_attr *out);

/* Content of /etc/modules-load.d/nodeprep.conf or /etc/modprobe.d/nodeprep.conf;
 * *wanted false: there is nothing to say. Returns 0 or -ENOMEM. */
int np_module_file_content(const struct np_config *cfg, const struct np_facts *facts,
			   enum np_file_role role, bool *wanted, struct np_buf *content);

#endif
