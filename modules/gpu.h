/* SPDX-License-Identifier: MIT */
#ifndef NP_MODULES_GPU_H
#define NP_MODULES_GPU_H

#include "base/str.h"

/* NVIDIA GPUs on the PCI bus (vendor 0x10de, class 0x0300xx or 0x0302xx), by
 * sysfs alone: no driver is needed, nothing is initialised. */
struct np_gpu {
	char pci_address[16];	/* 0000:17:00.0 */
	uint16_t device_id;
	int numa_node;		/* -1 = none or unknown */
	char driver[32];	/* bound driver, "" = none */
};

struct np_gpus {
	struct np_gpu *v;	/* by PCI address */
	size_t n;
};

/* Returns 0 or a negative errno with message. No PCI bus is an empty list. */
int np_gpus_observe(struct np_gpus *out, struct np_err *err) np_must_check;
void np_gpus_done(struct np_gpus *list);

#endif
