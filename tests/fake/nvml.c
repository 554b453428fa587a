/* SPDX-License-Identifier: MIT */
/*
 * FAKE libnvidia-ml.so.1 (fake.h). FAKE_NVML:
 *   users=N    compute processes on each GPU, default 0; the first has PID 4711
 *   gpus=N     2
 *   links=N    of NVLink, that each GPU has, 18
 *   active=N   of these, 18; of the last GPU alone
 *   init=N     what nvmlInit_v2 returns
 *   count=N    what nvmlDeviceGetCount_v2 returns
 *   state=N    what nvmlDeviceGetNvLinkState returns
 *   hang=init  nvmlInit_v2 never returns
 */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"

struct info {
	unsigned int pid;
	unsigned long long bytes;
	unsigned int instances[2];
};

FAKE_EXPORT int nvmlInit_v2(void)
{
	const char *hang = fake_word("FAKE_NVML", "hang=");

	while (hang && strncmp(hang, "init", 4) == 0)
		pause();
	return (int)fake_number("FAKE_NVML", "init=", 0);
}

FAKE_EXPORT int nvmlShutdown(void)
{
	return 0;
}

FAKE_EXPORT int nvmlSystemGetNVMLVersion(char *text, unsigned int size)
{
	snprintf(text, size, "13.580.65.06");
	return 0;
}

FAKE_EXPORT const char *nvmlErrorString(int result)
{
	return result == 9 ? "Driver Not Loaded" : "Unknown Error";
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

FAKE_EXPORT int nvmlDeviceGetCount_v2(unsigned int *n)
{
	*n = (unsigned int)fake_number("FAKE_NVML", "gpus=", 2);
	return (int)fake_number("FAKE_NVML", "count=", 0);
}

FAKE_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int i, void **out)
{
	*out = (void *)(uintptr_t)(i + 1);
	return 0;
}

/* A GPU without NVLink says not supported, one with fewer links invalid argument. */
FAKE_EXPORT int nvmlDeviceGetNvLinkState(void *device, unsigned int link, unsigned int *active)
{
	long last = fake_number("FAKE_NVML", "gpus=", 2);

	if (link >= fake_number("FAKE_NVML", "links=", 18))
		return link == 0 ? 3 : 2;
	*active = (uintptr_t)device == (uintptr_t)last &&
		  link < fake_number("FAKE_NVML", "active=", 18);
	return (int)fake_number("FAKE_NVML", "state=", 0);
}
