/* SPDX-License-Identifier: MIT */
/*
 * FAKE libnvidia-ml.so.1 (fake.h). FAKE_NVML:
 *   users=N    compute processes on each GPU, default 0; the first has PID 4711
 *   gpus=N     2
 *   links=N    of NVLink, that each GPU has, 18
 *   active=N   of these, 18; of the last GPU alone, unless far= is given
 *   pci=A,B    the addresses of the GPUs, 0000:17:00.0, 0000:18:00.0 and so on
 *   far=WHAT   what the active links of every GPU lead to: "switch"; "gpu", the other of a
 *              pair (0 and 1, 2 and 3); "hidden", which NVML does not tell
 *   first=N    the active links of the first GPU, active=
 *   p2p=N      what nvmlDeviceGetP2PStatus says of two GPUs, 0; with far=gpu 5 of two that
 *              are no pair
 *   p2pfails=N what it returns
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

struct pci {
	char bus_id_legacy[16];
	unsigned int domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
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

static bool far_is(const char *what)
{
	const char *far = fake_word("FAKE_NVML", "far=");

	return far && strncmp(far, what, strlen(what)) == 0;
}

/* The n-th of pci=. */
static void put_address(unsigned int gpu, struct pci *out)
{
	const char *text = fake_word("FAKE_NVML", "pci=");
	unsigned int n = gpu;

	memset(out, 0, sizeof(*out));
	while (text && n > 0 && strcspn(text, ", \n") == strcspn(text, ",")) {
		text += strcspn(text, ",");
		text += *text == ',';
		n--;
	}
	if (!text || n > 0 || sscanf(text, "%x:%x:%x", &out->domain, &out->bus, &out->device) != 3)
		out->bus = 0x17 + gpu;
	snprintf(out->bus_id, sizeof(out->bus_id), "%08X:%02X:%02X.0", out->domain, out->bus,
		 out->device);
}

static unsigned int index_of(void *device)
{
	return (unsigned int)(uintptr_t)device - 1;
}

FAKE_EXPORT int nvmlDeviceGetPciInfo_v3(void *device, struct pci *out)
{
	put_address(index_of(device), out);
	return 0;
}

/* A GPU without NVLink says not supported, one with fewer links invalid argument. */
FAKE_EXPORT int nvmlDeviceGetNvLinkState(void *device, unsigned int link, unsigned int *active)
{
	long last = fake_number("FAKE_NVML", "gpus=", 2);
	long up = fake_number("FAKE_NVML", "active=", 18);

	if (link >= fake_number("FAKE_NVML", "links=", 18))
		return link == 0 ? 3 : 2;
	if (index_of(device) == 0)
		up = fake_number("FAKE_NVML", "first=", up);
	*active = (fake_word("FAKE_NVML", "far=") || (uintptr_t)device == (uintptr_t)last) &&
		  link < up;
	return (int)fake_number("FAKE_NVML", "state=", 0);
}

FAKE_EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned int link,
						    unsigned int *type)
{
	(void)device;
	(void)link;
	*type = far_is("switch") ? 2 : far_is("gpu") ? 0 : 255;
	return 0;
}

FAKE_EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned int link,
						    struct pci *out)
{
	(void)link;
	memset(out, 0xff, sizeof(*out));
	if (far_is("gpu"))
		put_address(index_of(device) ^ 1, out);
	return 0;
}

FAKE_EXPORT int nvmlDeviceGetP2PStatus(void *a, void *b, unsigned int what, unsigned int *status)
{
	bool apart = far_is("gpu") && (index_of(a) ^ 1) != index_of(b);

	if (what != 2 || a == b)
		return 2;
	*status = (unsigned int)fake_number("FAKE_NVML", "p2p=", apart ? 5 : 0);
	return (int)fake_number("FAKE_NVML", "p2pfails=", 0);
}
