/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "selftest/gpu_mem.h"
#include "selftest/ucx_build.h"

/*
 * UCX with messages in GPU memory, where its transport cuda_copy alone moves them
 * between GPU and host; shared memory carries them from worker to worker.
 */

static const char *const carriers[] = { "posix", "sysv", "cma", "xpmem", "knem", "self", NULL };
static const char *const copiers[] = { "cuda_copy", NULL };

static const struct np_ucx_need need = {
	.what = "cuda_copy",
	.component = "cuda_cpy",
	.module = "libuct_cuda.so",
	.hint = "install a UCX built with CUDA (Conda: ucx with a cuda variant; HPC-X; Debian's "
		"has none)",
	.no_device = "see what nodeprep selftest cuda says of CUDA's driver",
};

static int prove(const struct np_gpu_set *set, const struct np_gpu_dev *gpu,
		 const struct np_rung_options *options, struct np_rung_result *result,
		 struct np_err *err)
{
	struct np_gpu_mem mem;
	const struct np_ucp_spec spec = {
		.rung = "cuda_copy",
		.tls = "cuda_copy,sm",
		.carriers = carriers,
		.memory_carriers = copiers,
		.mem = &mem.ops,
		.no_peer_errors = true,
		.full = options->full,
		.deadline_ms = options->deadline_ms,
	};
	char first[32], last[32];
	int ret = np_ucx_component_check(&need, err);

	if (ret < 0)
		return ret;
	np_gpu_mem_init(&mem, set, gpu);
	ret = np_ucp_prove(&spec, result, err);
	if (ret < 0)
		return ret;
	np_rung_ok(result,
		   "GPU%zu, %s: %s to %s in GPU memory verified both ways over UCX %s cuda_copy, "
		   "from GPU to host and from host to GPU",
		   gpu->number, gpu->name, np_size_str(result->sizes[0].size_bytes, first),
		   np_size_str(result->sizes[result->n_sizes - 1].size_bytes, last),
		   ucp_get_version_string());
	return 0;
}

int np_rung_cuda_copy(const struct np_rung_options *options, struct np_rung_report *report,
		      struct np_err *err)
{
	int ret = np_gpu_rung_built_without("cuda_copy", options, &need, report, err);

	if (ret != 0)
		return ret < 0 ? ret : 0;
	return np_gpu_rung("cuda_copy", options, prove, report, err);
}
