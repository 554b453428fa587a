/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "modules/gpu.h"
#include "selftest/gpu_mem.h"
#include "selftest/measure.h"
#include "selftest/ucp_pair.h"
#include "selftest/ucx_build.h"
#include "selftest/watch.h"

/*
 * UCX's cuda_ipc: GPU memory of one process read by another, each GPU to the next one of
 * this node (on a node with one GPU, that one in both processes). UCX wants cuda_copy
 * beside it, and shared memory for the rest.
 */

static const char *const carriers[] = { "cuda_ipc", "posix", "sysv", "cma", "xpmem", "knem", NULL };

static const struct np_ucx_need need = {
	.what = "cuda_ipc",
	.component = "cuda_ipc",
	.module = "libuct_cuda.so",
	.hint = "install a UCX built with CUDA (Conda: ucx with a cuda variant; HPC-X; Debian's "
		"has none)",
	.no_device = "see what nodeprep selftest cuda says of CUDA's driver",
};

/* As many as a node has GPUs; where the PCI bus does not tell. */
#define PAIRS_MAX 32u

static const struct np_ucp_spec spec_for_all = {
	.rung = "cuda_ipc",
	.tls = "cuda_ipc,cuda_copy,sm",
	.carriers = carriers,
	.must_carry = "cuda_ipc",
	.no_peer_errors = true,
};

static int one_end(struct np_ucp_pair *pair, const struct np_gpu_set *set,
		   const struct np_gpu_dev *gpu, const struct np_ucp_order *order,
		   struct np_rung_result *result, struct np_err *err)
{
	struct np_ucp_spec spec = spec_for_all;
	struct np_gpu_mem mem;

	np_gpu_mem_init(&mem, set, gpu);
	spec.mem = &mem.ops;
	spec.full = order->full;
	spec.deadline_ms = order->deadline_ms;
	return np_ucp_pair_prove(pair, &spec, order->base, result, err);
}

/* The other process; it starts CUDA once, however many orders come. */
static int serve(struct np_ucp_pair *pair, const struct np_ucp_order *order)
{
	static struct np_gpu_set set;
	/* the first process uses it */
	const struct np_rung_options options = { .force = true };
	np_auto_rung_report struct np_rung_report report = { 0 };
	struct np_rung_result unused = { 0 };
	struct np_err why;
	size_t i = 0;

	if (!set.wanted && np_gpu_set_open("cuda_ipc", &options, &set, &report, &why) < 0) {
		np_ucp_pair_refuse(pair, &why);
		return 1;
	}
	while (i < set.n && !(np_streq(set.v[i].pci, order->pci) && set.v[i].usable))
		i++;
	if (i == set.n) {
		np_err_set(&why, -ENODEV, "selftest.no_gpu", "there is no GPU %s", order->pci);
		np_ucp_pair_refuse(pair, &why);
		return 1;
	}
	if (np_gpu_retain(&set, &set.v[i], &why) < 0) {
		np_ucp_pair_refuse(pair, &why);
		return 1;
	}
	if (one_end(pair, &set, &set.v[i], order, &unused, &why) < 0) {
		np_debug("cuda_ipc, the other process: %s", why.message);
		return 1;
	}
	np_gpu_release(&set, &set.v[i]);
	return 0;
}

static const struct np_gpu_dev *next_usable(const struct np_gpu_set *set, size_t from)
{
	for (size_t step = 1; step < set->n; step++)
		if (set->v[(from + step) % set->n].usable)
			return &set->v[(from + step) % set->n];
	return &set->v[from];
}

static int prove(struct np_ucp_pair *pair, const struct np_gpu_set *set,
		 const struct np_gpu_dev *gpu, const struct np_gpu_dev *peer,
		 const struct np_rung_options *options, struct np_rung_result *result,
		 struct np_err *err)
{
	struct np_ucp_order order = {
		.full = options->full,
		.deadline_ms = options->deadline_ms,
		.base = np_seed_base(),
	};
	char first[32], last[32];
	int ret = np_ucx_component_check(&need, err);

	np_strcpy(order.pci, sizeof(order.pci), peer->pci);
	if (ret == 0)
		ret = np_ucp_pair_order(pair, &order, err);
	if (ret == 0)
		ret = one_end(pair, set, gpu, &order, result, err);
	if (ret < 0)
		return ret;
	np_size_str(result->sizes[0].size_bytes, first);
	np_size_str(result->sizes[result->n_sizes - 1].size_bytes, last);
	if (gpu == peer)
		np_rung_ok(result,
			   "GPU%zu, %s: %s to %s verified both ways over UCX cuda_ipc between two "
			   "processes on this GPU: this proves that one process reaches the memory "
			   "of another, no path between GPUs",
			   gpu->number, gpu->name, first, last);
	else
		np_rung_ok(result,
			   "GPU%zu and GPU%zu (%s), %s: %s to %s verified both ways over UCX "
			   "cuda_ipc between two processes",
			   gpu->number, peer->number, peer->pci, gpu->name, first, last);
	return 0;
}

/* After a failure the other process is of no more use, and no process may fork once it
 * has used CUDA: one is kept for each GPU that may fail. They start nothing until asked. */
static int start_pairs(const struct np_rung_options *options, struct np_ucp_pair *pairs, size_t *n,
		       struct np_err *err)
{
	np_auto_gpu_names struct np_gpu_names names = { 0 };
	struct np_gpus gpus = { 0 };
	struct np_err unused;
	size_t wanted = PAIRS_MAX;
	int ret = 0;

	if (options->device) {
		ret = np_gpu_names_parse(options->device, &names, err);
		wanted = names.n;
	} else if (np_gpus_observe(&gpus, &unused) == 0 && gpus.n > 0) {
		wanted = gpus.n;
	}
	np_gpus_done(&gpus);
	for (*n = 0; *n < wanted && *n < PAIRS_MAX && ret == 0;) {
		ret = np_ucp_pair_start(&pairs[*n], serve, err);
		if (ret == 0)
			(*n)++;
	}
	return ret;
}

static int run_all(const struct np_rung_options *options, struct np_ucp_pair *pairs, size_t n,
		   struct np_rung_report *report, struct np_err *err)
{
	np_auto_gpu_set struct np_gpu_set set = { 0 };
	int ret = np_gpu_rung_built_without("cuda_ipc", options, &need, report, err);
	size_t pair = 0;

	if (ret != 0)
		return ret < 0 ? ret : 0;
	ret = np_gpu_set_open("cuda_ipc", options, &set, report, err);
	if (ret <= 0)
		return ret;
	for (size_t i = 0; i < set.n && pair < n; i++) {
		struct np_rung_options mine = *options;
		struct np_rung_result *result;
		struct np_err why;

		if (!set.wanted[i] || !set.v[i].usable)
			continue;
		mine.deadline_ms = np_watch_device(report, set.v[i].pci, mine.deadline_ms);
		result = np_rung_add(report, "cuda_ipc", set.v[i].pci);
		if (!result)
			return np_err_nomem(err);
		ret = np_gpu_retain(&set, &set.v[i], &why);
		if (ret == 0) {
			ret = prove(&pairs[pair], &set, &set.v[i], next_usable(&set, i), &mine,
				    result, &why);
			pair += ret < 0;
		}
		if (ret < 0)
			np_rung_fail(result, &why);
		else
			np_gpu_release(&set, &set.v[i]);
	}
	return 0;
}

int np_rung_cuda_ipc(const struct np_rung_options *options, struct np_rung_report *report,
		     struct np_err *err)
{
	struct np_ucp_pair pairs[PAIRS_MAX];
	size_t n = 0;
	int ret = start_pairs(options, pairs, &n, err);

	if (ret == 0)
		ret = run_all(options, pairs, n, report, err);
	for (size_t i = 0; i < n; i++)
		np_ucp_pair_stop(&pairs[i]);
	return ret;
}
