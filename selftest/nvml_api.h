/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_NVML_API_H
#define NP_SELFTEST_NVML_API_H

/*
 * The part of NVML, the GPU driver's management library, that is used here, declared by
 * hand: names, types and values are those of its stable interface (nvml.h of CUDA, version
 * 11 and newer; symbols with _v2 and _v3 stay). It needs no CUDA context.
 */

typedef int np_nvml_result; /* nvmlReturn_t */
enum {
	NP_NVML_SUCCESS = 0,
	NP_NVML_INVALID_ARGUMENT = 2, /* of a link: the GPU has not so many */
	NP_NVML_NOT_SUPPORTED = 3,    /* of a link: the GPU has no NVLink */
};

typedef void *np_nvml_device; /* nvmlDevice_t, opaque */

enum { NP_NVML_LINKS = 18 };	    /* NVML_NVLINK_MAX_LINKS */
enum { NP_NVML_VERSION_SIZE = 80 }; /* NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE */

/* X(member, symbol, parameters) */
#define NP_NVML_FUNCTIONS(X) \
	X(init, "nvmlInit_v2", (void)) \
	X(shutdown, "nvmlShutdown", (void)) \
	X(get_version, "nvmlSystemGetNVMLVersion", (char *text, unsigned int size)) \
	X(by_pci, "nvmlDeviceGetHandleByPciBusId_v2", (const char *pci, np_nvml_device *out)) \
	X(count, "nvmlDeviceGetCount_v2", (unsigned int *n)) \
	X(by_index, "nvmlDeviceGetHandleByIndex_v2", (unsigned int i, np_nvml_device *out)) \
	X(link_state, "nvmlDeviceGetNvLinkState", \
	  (np_nvml_device device, unsigned int link, unsigned int *active))

/* NULL in a driver older than 510 */
#define NP_NVML_OPTIONAL(X) \
	X(processes, "nvmlDeviceGetComputeRunningProcesses_v3", \
	  (np_nvml_device device, unsigned int *n, void *infos))

#endif
