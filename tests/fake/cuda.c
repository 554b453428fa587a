/* SPDX-License-Identifier: MIT */
/*
 * FAKE libcuda.so.1 (fake.h). FAKE_CUDA:
 *   gpus=N          GPUs, default 1; their PCI addresses are 0000:17:00.0, 0000:18:00.0 ...
 *   version=N       of the driver, default 13000
 *   init=N          what cuInit returns
 *   fail=FUNCTION:N that function returns N (of those that look: see `plays`)
 *   mode=N          compute mode
 *   corrupt=N       the N-th copy from the GPU has a wrong bit
 *   wait=FUNCTION:N it takes N ms
 *   hang=FUNCTION   it never returns
 *   stop=FUNCTION   it never returns, and no signal handler runs: as in a kernel that hangs
 *   crash=FUNCTION  it ends the process by SIGSEGV
 *   on=N            fail, hang, stop and crash with the context of GPU N alone
 *   bus=B,B,...     buses of the GPUs in place of 17, 18 ...
 *   delay=N         milliseconds that cuInit takes
 *   slow=N          milliseconds that a copy of 64 MiB or more to the GPU takes
 * Each cuInit and each context is a line in the file FAKE_LOG (fake.h); so is "together", when a
 * process copies 8 MiB on a stream while another one does, until it has waited for its stream.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/file.h>
#include <stdio.h>
#include <unistd.h>

#include "fake.h"

typedef uint64_t ptr_t;

static __thread long current = -1; /* device of the current context */

static int plays(const char *function)
{
	const char *wait = fake_word("FAKE_CUDA", "wait=");
	const char *hang = fake_word("FAKE_CUDA", "hang=");
	const char *fail = fake_word("FAKE_CUDA", "fail=");
	const char *crash = fake_word("FAKE_CUDA", "crash=");
	const char *stop = fake_word("FAKE_CUDA", "stop=");
	long on = fake_number("FAKE_CUDA", "on=", current);
	size_t len = strlen(function);

	if (wait && strncmp(wait, function, len) == 0 && wait[len] == ':')
		usleep(1000 * (useconds_t)strtol(wait + len + 1, NULL, 10));
	if (on != current)
		return 0;
	if (crash && strncmp(crash, function, len) == 0)
		raise(SIGSEGV);
	if (stop && strncmp(stop, function, len) == 0)
		raise(SIGSTOP);
	while (hang && strncmp(hang, function, len) == 0)
		pause();
	return fail && strncmp(fail, function, len) == 0 && fail[len] == ':' ?
		       (int)strtol(fail + len + 1, NULL, 10) :
		       0;
}

static long gpus(void)
{
	return fake_number("FAKE_CUDA", "gpus=", 1);
}

FAKE_EXPORT int cuInit(unsigned int flags)
{
	(void)flags;
	fake_log("cuInit");
	usleep(1000 * (useconds_t)fake_number("FAKE_CUDA", "delay=", 0));
	return (int)fake_number("FAKE_CUDA", "init=", plays("cuInit"));
}

FAKE_EXPORT int cuDriverGetVersion(int *version)
{
	*version = (int)fake_number("FAKE_CUDA", "version=", 13000);
	return 0;
}

FAKE_EXPORT int cuGetErrorName(int result, const char **name)
{
	switch (result) {
	case 2:
		*name = "CUDA_ERROR_OUT_OF_MEMORY";
		return 0;
	case 46:
		*name = "CUDA_ERROR_DEVICE_UNAVAILABLE";
		return 0;
	case 100:
		*name = "CUDA_ERROR_NO_DEVICE";
		return 0;
	case 214:
		*name = "CUDA_ERROR_ECC_UNCORRECTABLE";
		return 0;
	case 803:
		*name = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH";
		return 0;
	default:
		return 1;
	}
}

FAKE_EXPORT int cuGetErrorString(int result, const char **text)
{
	*text = "played by a fake";
	return result ? 0 : 1;
}

FAKE_EXPORT int cuDeviceGetCount(int *n)
{
	*n = (int)gpus();
	return 0;
}

FAKE_EXPORT int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return ordinal < gpus() ? 0 : 101;
}

FAKE_EXPORT int cuDeviceGetName(char *name, int len, int device)
{
	snprintf(name, (size_t)len, "Fake GPU %d", device);
	return 0;
}

FAKE_EXPORT int cuDeviceGetPCIBusId(char *id, int len, int device)
{
	const char *bus = fake_word("FAKE_CUDA", "bus=");

	for (int i = 0; bus && i < device; i++)
		bus = strchr(bus, ',') ? strchr(bus, ',') + 1 : NULL;
	snprintf(id, (size_t)len, "0000:%02lX:00.0",
		 bus ? strtoul(bus, NULL, 16) : 0x17ul + (unsigned long)device);
	return 0;
}

FAKE_EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	(void)device;
	*value = attribute == 20 ? (int)fake_number("FAKE_CUDA", "mode=", 0) : 1;
	return 0;
}

FAKE_EXPORT int cuDevicePrimaryCtxRetain(void **context, int device)
{
	*context = (void *)(intptr_t)(device + 1);
	fake_log("context");
	return plays("cuDevicePrimaryCtxRetain");
}

FAKE_EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
	(void)device;
	return 0;
}

FAKE_EXPORT int cuCtxSetCurrent(void *context)
{
	current = (long)(intptr_t)context - 1;
	return 0;
}

FAKE_EXPORT int cuCtxGetCurrent(void **context)
{
	*context = (void *)(intptr_t)(current + 1);
	return 0;
}

FAKE_EXPORT int cuCtxGetDevice(int *device)
{
	*device = (int)current;
	return current < 0 ? 201 : 0;
}

FAKE_EXPORT int cuCtxSynchronize(void)
{
	return plays("cuCtxSynchronize");
}

FAKE_EXPORT int cuMemAlloc_v2(ptr_t *mem, size_t len)
{
	void *p = NULL;
	int result = plays("cuMemAlloc_v2");

	if (result == 0 && (current < 0 || posix_memalign(&p, 1 << 16, len) != 0))
		result = 2;
	*mem = (ptr_t)(uintptr_t)p;
	return result;
}

FAKE_EXPORT int cuMemFree_v2(ptr_t mem)
{
	free((void *)(uintptr_t)mem);
	return 0;
}

FAKE_EXPORT int cuMemHostAlloc(void **mem, size_t len, unsigned int flags)
{
	(void)flags;
	*mem = malloc(len);
	return *mem ? 0 : 2;
}

FAKE_EXPORT int cuMemFreeHost(void *mem)
{
	free(mem);
	return 0;
}

FAKE_EXPORT int cuMemcpyHtoD_v2(ptr_t to, const void *from, size_t len)
{
	memcpy((void *)(uintptr_t)to, from, len);
	if (len >= 64u << 20)
		usleep((useconds_t)fake_number("FAKE_CUDA", "slow=", 0) * 1000);
	return plays("cuMemcpyHtoD_v2");
}

FAKE_EXPORT int cuMemcpyDtoH_v2(void *to, ptr_t from, size_t len)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static long copies;

	memcpy(to, (void *)(uintptr_t)from, len);
	pthread_mutex_lock(&lock);
	if (++copies == fake_number("FAKE_CUDA", "corrupt=", 0))
		((char *)to)[len - 1] ^= 1;
	pthread_mutex_unlock(&lock);
	return plays("cuMemcpyDtoH_v2");
}

FAKE_EXPORT int cuMemcpyDtoD_v2(ptr_t to, ptr_t from, size_t len)
{
	memmove((void *)(uintptr_t)to, (void *)(uintptr_t)from, len);
	return plays("cuMemcpyDtoD_v2");
}

static int row = -1;

static void begin_row(size_t len)
{
	if (len != 8u << 20 || row >= 0)
		return;
	row = open("/etc/fake/FAKE_LOG", O_RDONLY | O_CLOEXEC);
	if (row >= 0 && flock(row, LOCK_EX | LOCK_NB) != 0)
		fake_log("together");
}

static void end_row(void)
{
	if (row >= 0)
		close(row);
	row = -1;
}

FAKE_EXPORT int cuMemcpyHtoDAsync_v2(ptr_t to, const void *from, size_t len, void *stream)
{
	(void)stream;
	begin_row(len);
	return cuMemcpyHtoD_v2(to, from, len);
}

FAKE_EXPORT int cuMemcpyDtoHAsync_v2(void *to, ptr_t from, size_t len, void *stream)
{
	(void)stream;
	begin_row(len);
	return cuMemcpyDtoH_v2(to, from, len);
}

FAKE_EXPORT int cuMemsetD8_v2(ptr_t to, unsigned char value, size_t len)
{
	memset((void *)(uintptr_t)to, value, len);
	return 0;
}

FAKE_EXPORT int cuPointerSetAttribute(const void *value, int attribute, ptr_t mem)
{
	(void)value;
	(void)attribute;
	(void)mem;
	return 0;
}

FAKE_EXPORT int cuPointerGetAttribute(void *value, int attribute, ptr_t mem)
{
	(void)mem;
	*(void **)value = (void *)(intptr_t)1;
	return attribute == 1 ? 0 : 1;
}

FAKE_EXPORT int cuStreamCreate(void **stream, unsigned int flags)
{
	(void)flags;
	*stream = malloc(1);
	return *stream ? 0 : 2;
}

FAKE_EXPORT int cuStreamDestroy_v2(void *stream)
{
	free(stream);
	return 0;
}

FAKE_EXPORT int cuStreamSynchronize(void *stream)
{
	(void)stream;
	end_row();
	return plays("cuStreamSynchronize");
}

FAKE_EXPORT int cuStreamQuery(void *stream)
{
	(void)stream;
	return plays("cuStreamQuery");
}
