/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "base/log.h"
#include "selftest/gdr_lib.h"
#include "selftest/gpu_set.h"
#include "selftest/measure.h"
#include "selftest/pattern.h"

/*
 * gdrcopy's library on each GPU: memory pinned and mapped, written through the mapping
 * and read back by the driver, and the other way round; every byte compared.
 */

#define GPU_PAGE 65536u /* gdrcopy pins whole ones */

#define BYTES	(16u << 20) /* that one size moves each way */
#define MIN_N	3u
#define MAX_N	100u
#define WARM_UP 2u

struct mapping {
	const struct np_cuda *cuda;
	np_cu_device device;
	const struct np_gdr_lib *lib;
	int64_t deadline_ms;
	np_gdr gdr;
	size_t size;
	np_cu_ptr memory;
	np_gdr_handle handle;
	bool pinned;
	struct np_gdr_info info;
	void *mapped;
	char *at; /* of @memory in the mapping */
	char *tx, *rx;
	uint64_t base, sequence;
	double to_MBps, from_MBps; /* of the last size */
};

static int cuda_failed(const struct mapping *m, np_cu_result result, const char *doing,
		       struct np_err *err)
{
	return result == NP_CU_SUCCESS ? 0 : np_cuda_error(m->cuda, m->device, result, doing, err);
}

static int gdr_failed(const struct mapping *m, int result, const char *function, struct np_err *err)
{
	char size[32];

	if (result == 0)
		return 0;
	np_err_set(err, -EIO, "gdrapi.failed", "%s of %s of GPU memory failed: %s", function,
		   np_size_str(m->size, size), strerror(result > 0 ? result : -result));
	np_err_hint(err, "%s",
		    result == ENOMEM || result == -ENOMEM ?
			    "the BAR1 space of the GPU is used up: see nvidia-smi -q -d MEMORY" :
			    "read the kernel log for gdrdrv, and see that gdrdrv was built for the "
			    "GPU driver that is loaded");
	return -EIO;
}

static int open_mapping(struct mapping *m, struct np_err *err)
{
	int ret, on = 1;

	m->tx = malloc(m->size);
	m->rx = malloc(m->size);
	if (!m->tx || !m->rx)
		return np_err_nomem(err);
	ret = cuda_failed(m, m->cuda->mem_alloc(&m->memory, m->size), "allocating memory", err);
	if (ret == 0) /* copies of the driver are done when they return */
		ret = cuda_failed(m,
				  m->cuda->pointer_set(&on, NP_CU_POINTER_SYNC_MEMOPS, m->memory),
				  "setting an attribute", err);
	if (ret == 0)
		ret = gdr_failed(
			m, m->lib->pin(m->gdr, (unsigned long)m->memory, m->size, 0, 0, &m->handle),
			"gdr_pin_buffer", err);
	m->pinned = ret == 0 && m->memory;
	if (ret == 0)
		ret = gdr_failed(m, m->lib->map(m->gdr, m->handle, &m->mapped, m->size), "gdr_map",
				 err);
	if (ret < 0) {
		m->mapped = NULL;
		return ret;
	}
	ret = gdr_failed(m, m->lib->info(m->gdr, m->handle, &m->info), "gdr_get_info", err);
	if (ret == 0)
		m->at = (char *)m->mapped + (m->memory - m->info.va);
	return ret;
}

static void close_mapping(struct mapping *m)
{
	if (m->mapped)
		m->lib->unmap(m->gdr, m->handle, m->mapped, m->size);
	if (m->pinned)
		m->lib->unpin(m->gdr, m->handle);
	if (m->memory)
		m->cuda->mem_free(m->memory);
	free(m->tx);
	free(m->rx);
}

static uint64_t prepare(struct mapping *m, uint64_t size)
{
	uint64_t seed = np_pattern_seed(m->base, ++m->sequence);

	np_pattern_fill(m->tx, size, seed);
	np_pattern_poison(m->rx, size, seed);
	return seed;
}

/* Through the mapping to the GPU; read back by the driver. */
static int to_gpu(struct mapping *m, uint64_t size, double *us, struct np_err *err)
{
	uint64_t seed = prepare(m, size);
	double start = np_now_us();
	int ret = m->lib->copy_to(m->handle, m->at, m->tx, size);

	*us = np_now_us() - start;
	ret = gdr_failed(m, ret, "gdr_copy_to_mapping", err);
	if (ret == 0)
		ret = cuda_failed(m, m->cuda->copy_out(m->rx, m->memory, size),
				  "copying from the GPU", err);
	return ret < 0 ? ret : np_message_verify(m->rx, size, seed, m->sequence, err);
}

/* Written by the driver; read through the mapping. */
static int from_gpu(struct mapping *m, uint64_t size, double *us, struct np_err *err)
{
	uint64_t seed = prepare(m, size);
	int ret =
		cuda_failed(m, m->cuda->copy_in(m->memory, m->tx, size), "copying to the GPU", err);
	double start;

	if (ret == 0)
		ret = cuda_failed(m, m->cuda->synchronize(), "copying to the GPU", err);
	if (ret < 0)
		return ret;
	start = np_now_us();
	ret = m->lib->copy_from(m->handle, m->rx, m->at, size);
	*us = np_now_us() - start;
	ret = gdr_failed(m, ret, "gdr_copy_from_mapping", err);
	return ret < 0 ? ret : np_message_verify(m->rx, size, seed, m->sequence, err);
}

static int prove_size(struct mapping *m, uint64_t size, struct np_rung_size *measured,
		      struct np_err *err)
{
	double to[MAX_N], from[MAX_N], unused, to_us, from_us;
	size_t n = BYTES / size;
	int ret = 0;

	n = n < MIN_N ? MIN_N : n > MAX_N ? MAX_N : n;
	for (size_t i = 0; i < WARM_UP + n && ret == 0; i++) {
		ret = to_gpu(m, size, i < WARM_UP ? &unused : &to[i - WARM_UP], err);
		if (ret == 0)
			ret = from_gpu(m, size, i < WARM_UP ? &unused : &from[i - WARM_UP], err);
		if (ret == 0 && np_now_ms() >= m->deadline_ms)
			ret = np_too_late("copying through a mapping of GPU memory", err);
	}
	if (ret < 0)
		return ret;
	to_us = np_median(to, n);
	from_us = np_median(from, n);
	m->to_MBps = (double)size / to_us;
	m->from_MBps = (double)size / from_us;
	measured->size_bytes = size;
	measured->latency_us = (to_us + from_us) / 2;
	measured->bandwidth_MBps = m->to_MBps < m->from_MBps ? m->to_MBps : m->from_MBps;
	return 0;
}

static const char *mapping_str(const struct np_gdr_info *info)
{
	static const char *const types[] = { "", "write-combined", "cached", "device" };

	if (info->mapping_type > 0 && info->mapping_type < (int)NP_ARRAY_SIZE(types))
		return types[info->mapping_type];
	return info->wc_mapping ? "write-combined" : "uncombined";
}

/* "gdrdrv 2.5", "the dma-buf backend" */
static void backend_str(const struct mapping *m, char *out, size_t size)
{
	int major = 0, minor = 0, dma_buf = 0;

	if (m->lib->standin)
		np_strcpy(out, size, "no driver of gdrcopy's");
	else if (m->lib->attribute &&
		 m->lib->attribute(m->gdr, NP_GDR_ATTR_DMA_BUF_MMAP, &dma_buf) == 0 && dma_buf)
		np_strcpy(out, size, "the dma-buf backend");
	else if (m->lib->driver_version(m->gdr, &major, &minor) == 0)
		snprintf(out, size, "gdrdrv %d.%d", major, minor);
	else
		np_strcpy(out, size, "a driver that tells no version");
}

static void say_ok(const struct mapping *m, const struct np_gpu_dev *gpu,
		   struct np_rung_result *result)
{
	char text[600], backend[48], first[32], last[32];
	struct np_err why;

	backend_str(m, backend, sizeof(backend));
	snprintf(text, sizeof(text),
		 "GPU%zu, %s: %s to %s verified both ways through a %s mapping; libgdrapi %d.%d "
		 "(%s) over %s; %.2f GB/s to the GPU, %.2f GB/s from it",
		 gpu->number, gpu->name, np_size_str(result->sizes[0].size_bytes, first),
		 np_size_str(result->sizes[result->n_sizes - 1].size_bytes, last),
		 mapping_str(&m->info), m->lib->major, m->lib->minor, m->lib->path, backend,
		 m->to_MBps / 1000, m->from_MBps / 1000);
	if (!m->lib->standin) {
		np_rung_ok(result, "%s", text);
		return;
	}
	np_gdr_standin_warning(m->lib->standin, text, &why);
	np_rung_warn(result, &why);
}

static int prove_mapping(struct mapping *m, bool full, struct np_rung_result *result,
			 struct np_err *err)
{
	size_t n;
	const uint64_t *sizes = np_sizes(full, &n);
	int ret;

	m->size = (sizes[n - 1] + GPU_PAGE - 1) / GPU_PAGE * GPU_PAGE;
	ret = open_mapping(m, err);
	if (ret == 0)
		snprintf(result->transport, sizeof(result->transport), "gdrapi%s",
			 m->lib->standin ? " (stand-in)" : "");
	for (size_t i = 0; i < n && ret == 0; i++) {
		ret = prove_size(m, sizes[i], &result->sizes[i], err);
		if (ret == 0)
			result->n_sizes++;
	}
	if (ret == -EBADMSG)
		np_err_hint(err, "reload gdrdrv built for the GPU driver that is loaded; take this "
				 "GPU out of service and test it (dcgmi diag -r 3)");
	return ret;
}

static int prove(const struct np_gpu_set *set, const struct np_gpu_dev *gpu,
		 const struct np_rung_options *options, struct np_rung_result *result,
		 struct np_err *err)
{
	struct np_gdr_lib lib;
	struct mapping m = {
		.cuda = &set->cuda,
		.device = gpu->device,
		.lib = &lib,
		.deadline_ms = options->deadline_ms,
		.base = np_seed_base(),
	};
	struct np_gdrdrv driver;
	int ret = np_gdr_lib_open(&lib, err);

	if (ret != 0)
		return ret;
	np_gdrdrv_observe(&driver);
	m.gdr = lib.open();
	if (!m.gdr)
		return np_gdr_cause(&driver, &lib, set->cuda.version, err);
	ret = lib.standin ? 0 : np_gdr_versions(&driver, &lib, err);
	if (ret == 0)
		ret = prove_mapping(&m, options->full, result, err);
	if (ret == 0)
		say_ok(&m, gpu, result);
	close_mapping(&m);
	lib.close(m.gdr);
	return ret;
}

int np_rung_gdrapi(const struct np_rung_options *options, struct np_rung_report *report,
		   struct np_err *err)
{
	struct np_gdr_lib lib;
	struct np_err why;
	int ret = np_gdr_lib_open(&lib, &why);

	if (ret != 0)
		ret = np_gpu_rung_refuse("gdrapi", options, ret > 0, &why, report, err);
	if (ret != 0)
		return ret < 0 ? ret : 0;
	return np_gpu_rung("gdrapi", options, prove, report, err);
}
