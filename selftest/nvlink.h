/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_NVLINK_H
#define NP_SELFTEST_NVLINK_H

#include "selftest/nvml_lib.h"

/* NVLink between GPUs, which is not in sysfs: NVML alone tells. */

enum { NP_NVLINK_GPUS = 64 }; /* what is looked at; more than a node has */

enum np_nvlink_far {
	NP_NVLINK_GPU,
	NP_NVLINK_SWITCH,
	NP_NVLINK_OTHER,
	NP_NVLINK_HIDDEN, /* NVML does not say: in virtual machines */
};

struct np_nvlink_gpu {
	np_nvml_device device;
	char pci[16]; /* "0000:17:00.0"; "" = unknown */
	bool told;    /* of each of its links whether it is active */
	struct {
		enum np_nvlink_far kind;
		char pci[16]; /* of a GPU; "" = unknown */
	} active[NP_NVML_LINKS];
	size_t n_active;
};

struct np_nvlinks {
	struct np_nvlink_gpu *v; /* in NVML's order, which is that of the PCI addresses */
	size_t n;
	bool known;  /* false: no link is active, and a GPU did not tell, or there is none */
	bool active; /* a link of a GPU is */
};

/* Returns 0, or a negative errno: -ENOMEM, or -EIO with nvml.failed when the GPUs cannot be
 * counted. np_nvlinks_done frees. @nvml has to be open. */
int np_nvlinks_look(const struct np_nvml *nvml, struct np_nvlinks *out,
		    struct np_err *err) np_must_check;
void np_nvlinks_done(struct np_nvlinks *links);
#define np_auto_nvlinks np_auto(np_nvlinks_done)

/* How many links connect two of them, through NVSwitches too; where one has fewer active
 * than the other, as many as that one. What the driver lets no GPU use is none. -1 = unknown. */
int np_nvlinks_between(const struct np_nvml *nvml, const struct np_nvlinks *links, size_t a,
		       size_t b);

#endif
