/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_GPU_MEM_H
#define NP_SELFTEST_GPU_MEM_H

#include "selftest/gpu_set.h"
#include "selftest/ucp_engine.h"

/* Memory of one GPU for the UCX rungs. The GPU's context must be current whenever it is
 * used. */
struct np_gpu_mem {
	struct np_ucp_mem ops;
	const struct np_cuda *cuda;
	np_cu_device device;
};

/* @mem must stay where it is; there is nothing to free. */
void np_gpu_mem_init(struct np_gpu_mem *mem, const struct np_gpu_set *set,
		     const struct np_gpu_dev *gpu);

#endif
