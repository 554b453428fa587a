/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_NVML_LIB_H
#define NP_SELFTEST_NVML_LIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/* NVML, the GPU driver's management library, opened at run time. Names, structures and
 * constants are those of its stable interface (nvml.h of CUDA, version 11 and newer;
 * symbols with _v2 and _v3 stay). It needs no CUDA context. */

struct np_nvml {
	void *handle;
	int (*shutdown)(void);
	int (*by_pci)(const char *pci, void **device);		      /* GetHandleByPciBusId_v2 */
	int (*processes)(void *device, unsigned int *n, void *infos); /* _v3, or NULL */
};

/* Opens and starts it. False where there is none or it does not start: then what it would
 * tell is unknown. np_nvml_close ends it. */
bool np_nvml_open(struct np_nvml *nvml) np_must_check;
void np_nvml_close(struct np_nvml *nvml);
#define np_auto_nvml np_auto(np_nvml_close)

/* Processes with a compute context on the GPU at @pci ("0000:17:00.0"): their number, or -1
 * when it cannot be told. @pid is one of them (0 = not seen from this PID namespace). */
int np_nvml_users(const struct np_nvml *nvml, const char *pci, unsigned int *pid);

#endif
