/* SPDX-License-Identifier: MIT */
#ifndef NP_MODULES_GPU_H
#define NP_MODULES_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/pci.h"
#include "base/str.h"

/* NVIDIA GPUs on the PCI bus (vendor 0x10de, class 0x0300xx or 0x0302xx), by
 * sysfs alone: no driver is needed, nothing is initialised. */
struct np_gpu {
	char pci_address[16]; /* 0000:17:00.0 */
	uint16_t device_id;
	int numa_node;	   /* -1 = none or unknown */
	char driver[32];   /* bound driver, "" = none */
	struct np_pci pci; /* by np_gpus_read_pci alone */
};

struct np_gpus {
	struct np_gpu *v; /* by PCI address */
	size_t n;
	size_t n_nvswitches; /* NVIDIA's functions of class 0x0680xx; none on boards whose
			      * switches hide behind management HCAs */
};

/* NVIDIA's kernel driver comes in two flavours; modules built for one (gdrdrv) do not
 * load beside the other, and dma-buf export needs the open one. */
enum np_gpu_flavour { NP_GPU_FLAVOUR_UNKNOWN, NP_GPU_FLAVOUR_OPEN, NP_GPU_FLAVOUR_PROPRIETARY };

const char *np_gpu_flavour_str(enum np_gpu_flavour f); /* "open", "proprietary", "unknown" */

struct np_gpu_driver {
	bool loaded; /* by /proc/driver/nvidia/version; the next two are of that one */
	enum np_gpu_flavour flavour;
	char version[32]; /* "580.65.06"; "" = unknown */

	/* of the nvidia module on disk, by np_gpu_driver_look_up alone; it differs from
	 * the loaded one after an update without a reboot */
	bool installed;
	enum np_gpu_flavour installed_flavour; /* by its license */
	char installed_version[32];
};

/* The loaded driver. Never fails; one small file is read. */
void np_gpu_driver_observe(struct np_gpu_driver *out);
/* Adds the installed one: opens libkmod, costs milliseconds. Returns 0 or the error of
 * np_kmod_look_up; then nothing was added. */
int np_gpu_driver_look_up(struct np_gpu_driver *driver, struct np_err *err) np_must_check;

/* Returns 0 or a negative errno with message. No PCI bus is an empty list. */
int np_gpus_observe(struct np_gpus *out, struct np_err *err) np_must_check;
void np_gpus_done(struct np_gpus *list);

/* Adds place and link of each on PCI (base/pci.h): a dozen small reads a GPU. */
void np_gpus_read_pci(struct np_gpus *list);

/* Bound to vfio-pci or pci-stub: a virtual machine has it, it is not for jobs of this node. */
bool np_gpu_is_given_away(const struct np_gpu *gpu);

#endif
