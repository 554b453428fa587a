/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ibmad/ca.h"
#include "modules/gpu.h"
#include "selftest/gpu_set.h"
#include "selftest/measure.h"
#include "selftest/verbs_move.h"
#include "selftest/wanted.h"

/*
 * GPUDirect RDMA: the HCA reads and writes the memory of a GPU, from one queue pair to
 * another on the same port. The memory can be registered in two ways, of which one is
 * enough: as a dma-buf of the GPU's driver, or by its address, which the module
 * nvidia_peermem knows. Both are tried.
 */

struct region {
	const struct np_gpu_set *set;
	const struct np_gpu_dev *gpu;
	bool dma_buf;
};

static const char *way_str(bool dma_buf)
{
	return dma_buf ? "dma-buf" : "nvidia_peermem";
}

static int cuda_failed(const struct region *r, np_cu_result result, const char *doing,
		       struct np_err *err)
{
	return result == NP_CU_SUCCESS ?
		       0 :
		       np_cuda_error(&r->set->cuda, r->gpu->device, result, doing, err);
}

static int cannot(const struct region *r, const char *what, int num, struct np_err *err)
{
	num = num > 0 ? num : EIO;
	np_err_set(err, -num, "selftest.gdr_rdma.register",
		   "memory of GPU %s cannot be registered by %s: %s: %s", r->gpu->pci,
		   way_str(r->dma_buf), what, strerror(num));
	np_err_hint(err, "%s",
		    r->dma_buf ? "use the open GPU kernel modules, kernel 5.12 and CUDA 11.7 or "
				 "newer" :
				 "load it: modprobe nvidia_peermem");
	return -num;
}

typedef struct ibv_mr *reg_dmabuf_fn(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova,
				     int fd, int access);

/* libibverbs has the function since rdma-core 34. */
static int register_dma_buf(const struct region *r, struct ibv_pd *pd, np_cu_ptr memory, size_t len,
			    int rights, struct ibv_mr **mr, struct np_err *err)
{
	reg_dmabuf_fn *reg = (reg_dmabuf_fn *)dlsym(RTLD_DEFAULT, "ibv_reg_dmabuf_mr");
	const struct np_cuda *cuda = &r->set->cuda;
	int fd = -1, supported = 0;
	np_cu_result result;
	char what[128], name[64];

	if (!reg)
		return cannot(r, "this libibverbs has no ibv_reg_dmabuf_mr", EOPNOTSUPP, err);
	if (!cuda->range_handle)
		return cannot(r, "CUDA's driver is older than 11.7", EOPNOTSUPP, err);
	if (cuda->device_attribute(&supported, NP_CU_ATTR_DMA_BUF, r->gpu->device) !=
		    NP_CU_SUCCESS ||
	    !supported)
		return cannot(r, "the GPU's driver exports no dma-buf (DMA_BUF_SUPPORTED is 0)",
			      EOPNOTSUPP, err);
	result = cuda->range_handle(&fd, memory, len, NP_CU_RANGE_DMA_BUF_FD, 0);
	if (result != NP_CU_SUCCESS) {
		snprintf(what, sizeof(what), "cuMemGetHandleForAddressRange: %s",
			 np_cuda_error_name(cuda, result, name));
		return cannot(r, what, EIO, err);
	}
	errno = 0;
	*mr = reg(pd, 0, len, memory, fd, rights);
	if (!*mr)
		cannot(r, "ibv_reg_dmabuf_mr", errno, err);
	close(fd); /* the region holds the buffer */
	return *mr ? 0 : err->num;
}

static int register_address(const struct region *r, struct ibv_pd *pd, np_cu_ptr memory, size_t len,
			    int rights, struct ibv_mr **mr, struct np_err *err)
{
	bool loaded = access("/sys/module/nvidia_peermem", F_OK) == 0;

	errno = 0;
	*mr = ibv_reg_mr(pd, (void *)(uintptr_t)memory, len, rights);
	if (*mr)
		return 0;
	return cannot(r, loaded ? "ibv_reg_mr" : "the module is not loaded, and ibv_reg_mr", errno,
		      err);
}

static int gpu_make(void *ctx, struct ibv_pd *pd, size_t len, int rights, char **memory,
		    struct ibv_mr **mr, struct np_err *err)
{
	const struct region *r = ctx;
	const struct np_cuda *cuda = &r->set->cuda;
	np_cu_ptr at = 0;
	int on = 1;
	int ret = cuda_failed(r, cuda->mem_alloc(&at, len), "allocating memory", err);

	if (ret == 0) /* what the HCA reads must be there when a copy has returned */
		ret = cuda_failed(r, cuda->pointer_set(&on, NP_CU_POINTER_SYNC_MEMOPS, at),
				  "setting an attribute", err);
	if (ret == 0)
		ret = r->dma_buf ? register_dma_buf(r, pd, at, len, rights, mr, err) :
				   register_address(r, pd, at, len, rights, mr, err);
	if (ret == 0)
		*memory = (char *)(uintptr_t)at;
	else if (at)
		cuda->mem_free(at);
	return ret;
}

static void gpu_release(void *ctx, char *memory)
{
	const struct region *r = ctx;

	r->set->cuda.mem_free((np_cu_ptr)(uintptr_t)memory);
}

static int gpu_write(void *ctx, char *to, const char *host, size_t len, struct np_err *err)
{
	const struct region *r = ctx;

	return cuda_failed(r, r->set->cuda.copy_in((np_cu_ptr)(uintptr_t)to, host, len),
			   "copying to the GPU", err);
}

static int gpu_read(void *ctx, char *host, const char *from, size_t len, struct np_err *err)
{
	const struct region *r = ctx;

	return cuda_failed(r, r->set->cuda.copy_out(host, (np_cu_ptr)(uintptr_t)from, len),
			   "copying from the GPU", err);
}

/* ---- one way to register, on one port ---- */

static int prove_way(const struct region *region, const struct np_rung_options *options,
		     const char *ca, int num, struct np_rung_result *result, struct np_err *err)
{
	const struct np_verbs_mem mem = {
		.make = gpu_make,
		.release = gpu_release,
		.write = gpu_write,
		.read = gpu_read,
		.ctx = (void *)(uintptr_t)region,
	};
	size_t n;
	const uint64_t *sizes = np_sizes(options->full, &n);
	const struct np_verbs_spec spec = {
		.ca = { ca, ca },
		.num = { num, num },
		.gid_index = options->gid_index,
		.mem = &mem,
		.largest = sizes[n - 1],
		.deadline_ms = options->deadline_ms,
	};
	struct np_verbs_link link;
	int ret = np_verbs_link_open(&spec, &link, err);

	result->n_sizes = 0;
	for (size_t i = 0; i < n && ret == 0; i++) {
		struct np_rung_size measured = { .size_bytes = sizes[i] };

		ret = np_verbs_prove_size(&link, options->full, &measured, err);
		if (ret == 0)
			result->sizes[result->n_sizes++] = measured;
	}
	np_verbs_link_close(&link);
	return ret;
}

/* What each way came to. */
struct outcome {
	int ret;
	struct np_err why;
	struct np_rung_result result;
};

static void say_ok(const struct outcome *ways, const struct np_gpu_dev *gpu, const char *port,
		   struct np_rung_result *result)
{
	const struct outcome *good = ways[0].ret == 0 ? &ways[0] : &ways[1];
	const struct outcome *bad = ways[0].ret < 0 ? &ways[0] : ways[1].ret < 0 ? &ways[1] : NULL;
	char first[32], last[32];

	memcpy(result->sizes, good->result.sizes, sizeof(result->sizes));
	result->n_sizes = good->result.n_sizes;
	snprintf(result->transport, sizeof(result->transport), "verbs rc %s, GPU memory by %s",
		 port, way_str(good == &ways[0]));
	np_rung_ok(
		result,
		"%s to %s in the memory of GPU%zu (%s) verified both ways through %s, registered "
		"by %s%s%s",
		np_size_str(result->sizes[0].size_bytes, first),
		np_size_str(result->sizes[result->n_sizes - 1].size_bytes, last), gpu->number,
		gpu->pci, port, bad ? way_str(good == &ways[0]) : "dma-buf and by nvidia_peermem",
		bad ? "; " : "", bad ? bad->why.message : "");
}

static void judge(struct outcome *ways, const struct np_gpu_dev *gpu, const char *port,
		  struct np_rung_result *result)
{
	struct np_err why;

	for (int i = 0; i < 2; i++) { /* wrong bytes are worse than none */
		if (ways[i].ret != -EBADMSG)
			continue;
		np_err_context(&ways[i].why, "memory of GPU %s registered by %s", gpu->pci,
			       way_str(i == 0));
		np_rung_fail(result, &ways[i].why);
		return;
	}
	if (ways[0].ret == 0 || ways[1].ret == 0) {
		say_ok(ways, gpu, port, result);
		return;
	}
	if (!np_streq(ways[0].why.code, "selftest.gdr_rdma.register")) {
		np_rung_fail(result, &ways[0].why); /* it is not about the GPU */
		return;
	}
	np_err_set(&why, ways[0].ret, "selftest.gdr_rdma.no_way", "%s; %s", ways[0].why.message,
		   ways[1].why.message);
	np_err_hint(&why,
		    "use the open GPU kernel modules with kernel 5.12 and CUDA 11.7 or newer, "
		    "or load nvidia_peermem");
	np_rung_fail(result, &why);
}

/* ---- ports and GPUs ---- */

/* One process runs one rung: what run_port needs beside its arguments. */
static struct np_gpu_set *gpus;

static const struct np_gpu_dev *nearest(const struct np_gpu_set *set, int numa_node)
{
	const struct np_gpu_dev *found = NULL;

	for (size_t i = 0; i < set->n; i++) {
		const struct np_gpu_dev *gpu = &set->v[i];

		if (!set->wanted[i] || !gpu->usable)
			continue;
		if (!found || (found->numa_node != numa_node && gpu->numa_node == numa_node))
			found = gpu;
	}
	return found;
}

static void run_port(const struct np_rung_options *options, const struct np_ca *ca,
		     const struct np_port *port, struct np_rung_result *result)
{
	const struct np_gpu_dev *gpu = nearest(gpus, ca->numa_node);
	struct outcome ways[2];
	struct np_err why;

	if (!np_port_is_active("gdr_rdma", ca->name, port, &why)) {
		np_rung_skip(result, &why);
		return;
	}
	if (np_gpu_retain(gpus, gpu, &why) < 0) {
		np_rung_fail(result, &why);
		return;
	}
	memset(ways, 0, sizeof(ways));
	for (int i = 0; i < 2; i++) {
		const struct region region = { .set = gpus, .gpu = gpu, .dma_buf = i == 0 };

		ways[i].ret = prove_way(&region, options, ca->name, port->num, &ways[i].result,
					&ways[i].why);
	}
	judge(ways, gpu, result->device, result);
	np_gpu_release(gpus, gpu);
}

int np_rung_gdr_rdma(const struct np_rung_options *options, struct np_rung_report *report,
		     struct np_err *err)
{
	const struct np_rung_options for_gpus = { .device = options->gpu };
	np_auto_gpu_set struct np_gpu_set set = { 0 };
	char name[64];
	int num, ret = 0;

	if (options->device)
		ret = np_port_name_parse(options->device, name, &num, err);
	if (ret == 0)
		ret = np_gpu_set_open("gdr_rdma", &for_gpus, &set, report, err);
	if (ret <= 0)
		return ret;
	np_rung_report_done(report); /* of GPUs that it does not use */
	gpus = &set;
	ret = np_run_wanted("gdr_rdma", options, run_port, report, err);
	gpus = NULL;
	return ret;
}
