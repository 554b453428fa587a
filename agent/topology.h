/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_TOPOLOGY_H
#define NP_AGENT_TOPOLOGY_H

#include "agent/facts.h"

/* How near GPUs and HCAs are to each other on PCIe. Pure; np_observe_pci has read it. */

/* The words of `nvidia-smi topo -m` and nvmlGpuTopologyLevel_t, nearest first. NVLink is
 * not in sysfs and not in here (nvlink.h). */
enum np_distance {
	NP_DISTANCE_PIX,  /* at most one PCIe switch between them */
	NP_DISTANCE_PXB,  /* several PCIe switches, no host bridge */
	NP_DISTANCE_PHB,  /* through the host bridge that they share */
	NP_DISTANCE_NODE, /* two host bridges of one NUMA node */
	NP_DISTANCE_SYS,  /* two NUMA nodes */
	NP_DISTANCE_UNKNOWN,
};

const char *np_distance_str(enum np_distance d); /* "PIX", ..., "unknown" */

/* Of two devices, either order. Two functions of one device are PIX. @one_node: the
 * machine has one NUMA node, so that a device without one is on it. */
enum np_distance np_distance(const struct np_pci *a, const struct np_pci *b, bool one_node);

struct np_topology_device {
	char name[64];		  /* "GPU0" by PCI address, as nvidia-smi counts; "mlx5_0" */
	const struct np_gpu *gpu; /* one of these is NULL; pointers into facts */
	const struct np_ca *ca;
	const struct np_pci *pci;
};

struct np_topology {
	struct np_topology_device *v; /* GPUs, then HCAs in natural order */
	size_t n;
	bool one_node;
};

/* All but GPUs given to virtual machines and HCAs that manage NVSwitches. Returns 0 or
 * -ENOMEM. np_topology_done frees. */
int np_topology_make(const struct np_facts *facts, struct np_topology *out) np_must_check;
void np_topology_done(struct np_topology *t);
#define np_auto_topology np_auto(np_topology_done)

/* "mlx5_0:1" of the usable ports that are nearest to @gpu, all those of one distance,
 * natural order: what a process that works with this GPU should use. Returns 0 or
 * -ENOMEM. */
int np_topology_nearest(const struct np_config *cfg, const struct np_topology *t,
			const struct np_topology_device *gpu, struct np_strv *out) np_must_check;

#endif
