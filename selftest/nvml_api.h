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

/* More than NVML_NVLINK_MAX_LINKS, which is 18 and grows: what a GPU has not is an invalid
 * argument */
enum { NP_NVML_LINKS = 64 };
enum { NP_NVML_VERSION_SIZE = 80 }; /* NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE */

enum { /* nvmlIntNvLinkDeviceType_t */
       NP_NVML_LINK_TO_GPU = 0,
       NP_NVML_LINK_TO_NPU = 1, /* of a POWER processor */
       NP_NVML_LINK_TO_SWITCH = 2,
       NP_NVML_LINK_TO_UNKNOWN = 255,
};

enum { NP_NVML_P2P_NVLINK = 2 };		      /* of nvmlGpuP2PCapsIndex_t */
enum { NP_NVML_P2P_OK = 0, NP_NVML_P2P_UNKNOWN = 6 }; /* nvmlGpuP2PStatus_t; between: no */

struct np_nvml_pci { /* nvmlPciInfo_t since _v3, and of RemotePciInfo since _v2 */
	char bus_id_legacy[16];
	unsigned int domain, bus, device;
	unsigned int device_id, subsystem_id;
	char bus_id[32];
};

/* X(member, symbol, parameters) */
#define NP_NVML_FUNCTIONS(X) \
	X(init, "nvmlInit_v2", (void)) \
	X(shutdown, "nvmlShutdown", (void)) \
	X(get_version, "nvmlSystemGetNVMLVersion", (char *text, unsigned int size)) \
	X(by_pci, "nvmlDeviceGetHandleByPciBusId_v2", (const char *pci, np_nvml_device *out)) \
	X(count, "nvmlDeviceGetCount_v2", (unsigned int *n)) \
	X(by_index, "nvmlDeviceGetHandleByIndex_v2", (unsigned int i, np_nvml_device *out)) \
	X(pci_info, "nvmlDeviceGetPciInfo_v3", (np_nvml_device device, struct np_nvml_pci * out)) \
	X(link_state, "nvmlDeviceGetNvLinkState", \
	  (np_nvml_device device, unsigned int link, unsigned int *active))

/* NULL in older drivers: the first is of 510 */
#define NP_NVML_OPTIONAL(X) \
	X(processes, "nvmlDeviceGetComputeRunningProcesses_v3", \
	  (np_nvml_device device, unsigned int *n, void *infos)) \
	X(remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType", \
	  (np_nvml_device device, unsigned int link, unsigned int *type)) \
	X(remote_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2", \
	  (np_nvml_device device, unsigned int link, struct np_nvml_pci *out)) \
	X(p2p_status, "nvmlDeviceGetP2PStatus", \
	  (np_nvml_device a, np_nvml_device b, unsigned int index, unsigned int *status))

#endif
