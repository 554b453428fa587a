/* SPDX-License-Identifier: MIT */
/*
 * STAND-IN of libgdrapi.so.2 for machines without gdrdrv: it has gdrcopy's interface and
 * copies through CUDA's driver. UCX's gdr_copy transport comes up over it on a real GPU,
 * so that what the self-test does with that transport can be tried; gdrcopy itself is
 * not proven by it. Whoever loads it can tell by the symbol np_gdrapi_standin.
 *
 * A mapping is address space that cannot be touched: only the copy functions know what
 * it stands for. NP_STANDIN, blank-separated words, makes it misbehave:
 *   version=N  of the library, 206 = 2.6      driver=N  of the driver, 205 = 2.5
 *   open       gdr_open fails                 pin=N, map=N  that errno
 *   corrupt=N  the N-th copy has a wrong bit
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include "fake.h"

FAKE_EXPORT const char np_gdrapi_standin[] = "it copies through the CUDA driver";
/* Calls of the copy functions so far: UCX used its gdr_copy, or it did not. */
FAKE_EXPORT unsigned long np_gdrapi_standin_copies;

#define GPU_PAGE 65536ul
#define KNOBS	 "NP_STANDIN"

typedef struct gdr {
	void *cuda;
} * gdr_t;

/* One pinned buffer; a handle is its address. */
struct pinned {
	struct gdr *gdr;
	unsigned long start, len; /* whole GPU pages */
	char *mapping;
};

typedef struct {
	unsigned long h;
} gdr_mh_t;

struct info {
	uint64_t va, mapped_size;
	uint32_t page_size;
	uint64_t tm_cycles;
	uint32_t cycles_per_ms;
	unsigned int mapped : 1;
	unsigned int wc_mapping : 1;
	int mapping_type;
};

static int (*copy_in)(uint64_t to, const void *from, size_t len);
static int (*copy_out)(void *to, uint64_t from, size_t len);
static int (*context_get)(void **context);
static int (*context_set)(void *context);
static int (*pointer_get)(void *value, int attribute, uint64_t mem);

FAKE_EXPORT gdr_t gdr_open(void)
{
	gdr_t gdr = calloc(1, sizeof(*gdr));

	if (!gdr)
		return NULL;
	gdr->cuda = dlopen("libcuda.so.1", RTLD_NOW);
	if (gdr->cuda && !fake_word(KNOBS, "open")) {
		copy_in = (int (*)(uint64_t, const void *, size_t))dlsym(gdr->cuda,
									 "cuMemcpyHtoD_v2");
		copy_out = (int (*)(void *, uint64_t, size_t))dlsym(gdr->cuda, "cuMemcpyDtoH_v2");
		context_get = (int (*)(void **))dlsym(gdr->cuda, "cuCtxGetCurrent");
		context_set = (int (*)(void *))dlsym(gdr->cuda, "cuCtxSetCurrent");
		pointer_get =
			(int (*)(void *, int, uint64_t))dlsym(gdr->cuda, "cuPointerGetAttribute");
		if (copy_in && copy_out && context_get && context_set && pointer_get)
			return gdr;
	}
	if (gdr->cuda)
		dlclose(gdr->cuda);
	free(gdr);
	return NULL;
}

FAKE_EXPORT int gdr_close(gdr_t gdr)
{
	dlclose(gdr->cuda);
	free(gdr);
	return 0;
}

FAKE_EXPORT int gdr_pin_buffer(gdr_t gdr, unsigned long address, size_t size, uint64_t token,
			       uint32_t space, gdr_mh_t *handle)
{
	struct pinned *pinned;
	long error = fake_number(KNOBS, "pin=", 0);

	(void)token;
	(void)space;
	if (error || size == 0)
		return error ? (int)error : EINVAL;
	pinned = calloc(1, sizeof(*pinned));
	if (!pinned)
		return ENOMEM;
	pinned->gdr = gdr;
	pinned->start = address & ~(GPU_PAGE - 1);
	pinned->len = (address + size - pinned->start + GPU_PAGE - 1) & ~(GPU_PAGE - 1);
	handle->h = (unsigned long)(uintptr_t)pinned;
	return 0;
}

FAKE_EXPORT int gdr_pin_buffer_v2(gdr_t gdr, unsigned long address, size_t size, uint32_t flags,
				  gdr_mh_t *handle)
{
	return flags ? EINVAL : gdr_pin_buffer(gdr, address, size, 0, 0, handle);
}

static struct pinned *of(gdr_mh_t handle)
{
	return (struct pinned *)(uintptr_t)handle.h;
}

FAKE_EXPORT int gdr_unpin_buffer(gdr_t gdr, gdr_mh_t handle)
{
	(void)gdr;
	free(of(handle));
	return 0;
}

FAKE_EXPORT int gdr_get_callback_flag(gdr_t gdr, gdr_mh_t handle, int *flag)
{
	(void)gdr;
	(void)handle;
	*flag = 0;
	return 0;
}

FAKE_EXPORT int gdr_get_info_v2(gdr_t gdr, gdr_mh_t handle, struct info *info)
{
	const struct pinned *pinned = of(handle);

	(void)gdr;
	memset(info, 0, sizeof(*info));
	info->va = pinned->start;
	info->mapped_size = pinned->len;
	info->page_size = GPU_PAGE;
	info->mapped = pinned->mapping != NULL;
	info->wc_mapping = 1;
	info->mapping_type = 1;
	return 0;
}

FAKE_EXPORT int gdr_map(gdr_t gdr, gdr_mh_t handle, void **mapping, size_t size)
{
	struct pinned *pinned = of(handle);
	long error = fake_number(KNOBS, "map=", 0);
	void *space;

	(void)gdr;
	if (error || size > pinned->len)
		return error ? (int)error : EINVAL;
	space = mmap(NULL, pinned->len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		     0);
	if (space == MAP_FAILED)
		return errno;
	pinned->mapping = space;
	*mapping = space;
	return 0;
}

FAKE_EXPORT int gdr_map_v2(gdr_t gdr, gdr_mh_t handle, void **mapping, size_t size, int flags)
{
	return flags ? EINVAL : gdr_map(gdr, handle, mapping, size);
}

FAKE_EXPORT int gdr_unmap(gdr_t gdr, gdr_mh_t handle, void *mapping, size_t size)
{
	struct pinned *pinned = of(handle);

	(void)gdr;
	(void)size;
	if (mapping != pinned->mapping)
		return EINVAL;
	munmap(pinned->mapping, pinned->len);
	pinned->mapping = NULL;
	return 0;
}

/* Where @mapping lies on the GPU; 0 = outside. */
static uint64_t on_gpu(const struct pinned *pinned, const void *mapping, size_t size)
{
	const char *at = mapping;

	if (!pinned->mapping || at < pinned->mapping || at + size > pinned->mapping + pinned->len)
		return 0;
	return pinned->start + (uint64_t)(at - pinned->mapping);
}

/* A thread without a context borrows that of the memory. */
static int with_context(uint64_t mem, void **borrowed)
{
	void *context = NULL;

	*borrowed = NULL;
	if (context_get(&context) == 0 && context)
		return 0;
	if (pointer_get(borrowed, 1 /* CU_POINTER_ATTRIBUTE_CONTEXT */, mem) != 0)
		return EINVAL;
	return context_set(*borrowed) == 0 ? 0 : EIO;
}

static void corrupt(char *bytes, size_t size)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static long copies;

	__atomic_add_fetch(&np_gdrapi_standin_copies, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&lock);
	if (++copies == fake_number(KNOBS, "corrupt=", 0))
		bytes[size - 1] ^= 1;
	pthread_mutex_unlock(&lock);
}

FAKE_EXPORT int gdr_copy_to_mapping(gdr_mh_t handle, void *mapping, const void *host, size_t size)
{
	uint64_t mem = on_gpu(of(handle), mapping, size);
	void *borrowed = NULL;
	int ret;

	if (!mem)
		return EFAULT;
	ret = with_context(mem, &borrowed);
	if (ret == 0)
		ret = copy_in(mem, host, size) == 0 ? 0 : EIO;
	if (borrowed)
		context_set(NULL);
	__atomic_add_fetch(&np_gdrapi_standin_copies, 1, __ATOMIC_RELAXED);
	return ret;
}

FAKE_EXPORT int gdr_copy_from_mapping(gdr_mh_t handle, void *host, const void *mapping, size_t size)
{
	uint64_t mem = on_gpu(of(handle), mapping, size);
	void *borrowed = NULL;
	int ret;

	if (!mem)
		return EFAULT;
	ret = with_context(mem, &borrowed);
	if (ret == 0)
		ret = copy_out(host, mem, size) == 0 ? 0 : EIO;
	if (borrowed)
		context_set(NULL);
	corrupt(host, size);
	return ret;
}

FAKE_EXPORT void gdr_runtime_get_version(int *major, int *minor)
{
	long version = fake_number(KNOBS, "version=", 206);

	*major = (int)(version / 100);
	*minor = (int)(version % 100);
}

FAKE_EXPORT int gdr_driver_get_version(gdr_t gdr, int *major, int *minor)
{
	long version = fake_number(KNOBS, "driver=", 205);

	(void)gdr;
	*major = (int)(version / 100);
	*minor = (int)(version % 100);
	return 0;
}

FAKE_EXPORT int gdr_get_attribute(gdr_t gdr, int attribute, int *value)
{
	(void)gdr;
	*value = 0;
	return attribute >= 1 && attribute <= 3 ? 0 : EINVAL;
}

FAKE_EXPORT int gdr_get_mapping_type_string(int type, const char **text)
{
	*text = type == 1 ? "WC" : "NONE";
	return 0;
}
