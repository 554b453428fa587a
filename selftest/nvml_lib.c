/* SPDX-License-Identifier: MIT */
#include "selftest/nvml_lib.h"

#include <dlfcn.h>
#include <string.h>

#define LIBRARY	      "libnvidia-ml.so.1"
#define SUCCESS	      0 /* nvmlReturn_t */
#define PROCESSES_MAX 64

/* nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v3: a PID and, aligned, its
 * bytes of GPU memory and two instance numbers */
#define PROCESS_WORDS 3

bool np_nvml_open(struct np_nvml *nvml)
{
	int (*init)(void);

	memset(nvml, 0, sizeof(*nvml));
	nvml->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!nvml->handle)
		return false;
	init = (int (*)(void))dlsym(nvml->handle, "nvmlInit_v2");
	nvml->shutdown = (int (*)(void))dlsym(nvml->handle, "nvmlShutdown");
	nvml->by_pci = (int (*)(const char *, void **))dlsym(nvml->handle,
							     "nvmlDeviceGetHandleByPciBusId_v2");
	nvml->processes = (int (*)(void *, unsigned int *, void *))dlsym(
		nvml->handle, "nvmlDeviceGetComputeRunningProcesses_v3");
	if (init && nvml->shutdown && nvml->by_pci && init() == SUCCESS)
		return true;
	dlclose(nvml->handle);
	nvml->handle = NULL;
	return false;
}

void np_nvml_close(struct np_nvml *nvml)
{
	if (!nvml || !nvml->handle)
		return;
	nvml->shutdown();
	dlclose(nvml->handle);
	nvml->handle = NULL;
}

int np_nvml_users(const struct np_nvml *nvml, const char *pci, unsigned int *pid)
{
	uint64_t infos[PROCESSES_MAX][PROCESS_WORDS];
	unsigned int n = PROCESSES_MAX;
	void *device = NULL;

	*pid = 0;
	if (!nvml->processes || nvml->by_pci(pci, &device) != SUCCESS ||
	    nvml->processes(device, &n, infos) != SUCCESS || n > PROCESSES_MAX)
		return -1;
	if (n > 0)
		memcpy(pid, infos[0], sizeof(*pid));
	return (int)n;
}
