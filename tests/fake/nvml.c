/* SPDX-License-Identifier: MIT */
/*
 * FAKE libnvidia-ml.so.1 (fake.h). FAKE_NVML:
 *   gpus=N          2
 *   links=N         that each GPU has, 18
 *   active=N        of these, 18; of the last GPU alone
 *   init=CODE       nvmlInit_v2 fails
 *   count=CODE      nvmlDeviceGetCount_v2 fails
 *   state=CODE      nvmlDeviceGetNvLinkState fails
 *   hang=init       nvmlInit_v2 never returns
 */

#include <stdint.h>
#include <unistd.h>

#include "fake.h"

#define NAME "FAKE_NVML"

FAKE_EXPORT int nvmlInit_v2(void)
{
	const char *hang = fake_word(NAME, "hang=");

	while (hang && strncmp(hang, "init", 4) == 0)
		pause();
	return (int)fake_number(NAME, "init=", 0);
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

FAKE_EXPORT int nvmlDeviceGetCount_v2(unsigned int *n)
{
	*n = (unsigned int)fake_number(NAME, "gpus=", 2);
	return (int)fake_number(NAME, "count=", 0);
}

FAKE_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int i, void **out)
{
	*out = (void *)(uintptr_t)(i + 1);
	return 0;
}

FAKE_EXPORT int nvmlDeviceGetNvLinkState(void *device, unsigned int link, unsigned int *active)
{
	long last = fake_number(NAME, "gpus=", 2);

	if (link >= fake_number(NAME, "links=", 18))
		return link == 0 ? 3 : 2; /* not supported; invalid argument */
	*active = (uintptr_t)device == (uintptr_t)last && link < fake_number(NAME, "active=", 18);
	return (int)fake_number(NAME, "state=", 0);
}

FAKE_EXPORT const char *nvmlErrorString(int result)
{
	return result == 9 ? "Driver Not Loaded" : "Unknown Error";
}
