/* SPDX-License-Identifier: MIT */
/*
 * FAKE libnvidia-ml.so.1 (fake.h). FAKE_NVML:
 *   users=N    compute processes on each GPU, default 0; the first has PID 4711
 *   init=N     what nvmlInit_v2 returns
 */
#include <string.h>

#include "fake.h"

struct info {
	unsigned int pid;
	unsigned long long bytes;
	unsigned int instances[2];
};

FAKE_EXPORT int nvmlInit_v2(void)
{
	return (int)fake_number("FAKE_NVML", "init=", 0);
}

FAKE_EXPORT int nvmlShutdown(void)
{
	return 0;
}

FAKE_EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **device)
{
	*device = (void *)pci;
	return strlen(pci) == strlen("0000:17:00.0") ? 0 : 2;
}

FAKE_EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *n, void *infos)
{
	unsigned int users = (unsigned int)fake_number("FAKE_NVML", "users=", 0);
	struct info *info = infos;

	(void)device;
	if (users > *n)
		return 7; /* insufficient size */
	for (unsigned int i = 0; i < users; i++)
		info[i] = (struct info){ .pid = 4711 + i };
	*n = users;
	return 0;
}
