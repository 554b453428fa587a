/* SPDX-License-Identifier: MIT */
#include "selftest/gpu_mem.h"

#include <stdio.h>

static int failed(const struct np_gpu_mem *mem, np_cu_result result, const char *doing,
		  struct np_err *err)
{
	return result == NP_CU_SUCCESS ? 0 :
					 np_cuda_error(mem->cuda, mem->device, result, doing, err);
}

static void *gpu_alloc(void *ctx, size_t len, struct np_err *err)
{
	const struct np_gpu_mem *mem = ctx;
	np_cu_ptr memory = 0;
	char size[32], doing[64];
	int on = 1;

	snprintf(doing, sizeof(doing), "allocating %s on the GPU", np_size_str(len, size));
	if (failed(mem, mem->cuda->mem_alloc(&memory, len), doing, err) < 0)
		return NULL;
	/* what others (an HCA, a mapping) read must be there when a copy has returned */
	if (failed(mem, mem->cuda->pointer_set(&on, NP_CU_POINTER_SYNC_MEMOPS, memory),
		   "setting an attribute", err) < 0) {
		mem->cuda->mem_free(memory);
		return NULL;
	}
	return (void *)(uintptr_t)memory;
}

static void gpu_release(void *ctx, void *memory, size_t len)
{
	const struct np_gpu_mem *mem = ctx;

	(void)len;
	mem->cuda->mem_free((np_cu_ptr)(uintptr_t)memory);
}

static int gpu_write(void *ctx, void *memory, const void *host, size_t len, struct np_err *err)
{
	const struct np_gpu_mem *mem = ctx;

	return failed(mem, mem->cuda->copy_in((np_cu_ptr)(uintptr_t)memory, host, len),
		      "copying to the GPU", err);
}

static int gpu_read(void *ctx, void *host, const void *memory, size_t len, struct np_err *err)
{
	const struct np_gpu_mem *mem = ctx;

	return failed(mem, mem->cuda->copy_out(host, (np_cu_ptr)(uintptr_t)memory, len),
		      "copying from the GPU", err);
}

void np_gpu_mem_init(struct np_gpu_mem *mem, const struct np_gpu_set *set,
		     const struct np_gpu_dev *gpu)
{
	mem->cuda = &set->cuda;
	mem->device = gpu->device;
	mem->ops = (struct np_ucp_mem){
		.name = "GPU memory",
		.type = UCS_MEMORY_TYPE_CUDA,
		.alloc = gpu_alloc,
		.release = gpu_release,
		.write = gpu_write,
		.read = gpu_read,
		.ctx = mem,
	};
}
