/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "selftest/gdr_lib.h"
#include "selftest/gpu_mem.h"
#include "selftest/ucx_build.h"
#include "selftest/uct_copy.h"

/*
 * UCX's gdr_copy, which copies small messages to and from the GPU, beside cuda_copy,
 * which UCX cannot do without; then the same without gdr_copy, to compare. UCX says what
 * its endpoint for GPU memory is made of: of the two it takes the one of lower latency.
 * Then the transport itself, by UCT, where the version allows that.
 */

static const char *const carriers[] = { "posix", "sysv", "cma", "xpmem", "knem", "self", NULL };
static const char *const both[] = { "gdr_copy", "cuda_copy", NULL };
static const char *const cuda_only[] = { "cuda_copy", NULL };

/* gdr_copy is for small messages. */
static const uint64_t quick_sizes[] = { 8, 64, 512, 4096 };
static const uint64_t full_sizes[] = { 1, 4, 16, 64, 256, 1024, 4096, 8192 };

static const struct np_ucx_need need = {
	.what = "gdr_copy",
	.component = "gdr_copy",
	.module = "libuct_cuda_gdrcopy.so",
	.hint = "install a UCX built with CUDA and gdrcopy (Conda: ucx and gdrcopy; HPC-X)",
	.no_device = "see what nodeprep selftest gdrapi says of gdrcopy",
};

/* No device is gdrcopy's to explain. */
static int explain(const struct np_gpu_set *set, struct np_err *err)
{
	struct np_gdrdrv driver;
	struct np_gdr_lib lib;
	struct np_err why;
	np_gdr gdr;

	if (!np_streq(err->code, "ucx.device_unusable") || np_gdr_lib_open(&lib, &why) != 0)
		return err->num;
	np_gdrdrv_observe(&driver);
	gdr = lib.open();
	if (gdr) {
		lib.close(gdr);
		return err->num;
	}
	np_gdr_cause(&driver, &lib, set->cuda.version, &why);
	*err = why;
	np_err_context(err, "UCX's gdr_copy finds no device");
	return err->num;
}

/* A stand-in counts: what UCX says that it uses is what it used. */
static int check_standin(unsigned long copies, struct np_err *err)
{
	if (!np_gdr_standin(NULL) || copies > 0)
		return 0;
	np_err_set(err, -EPROTO, "selftest.gdr_copy.other_transport",
		   "UCX names gdr_copy, but the stand-in of libgdrapi copied nothing");
	np_err_hint(err, "see which transports and devices this UCX has: ucx_info -d");
	return -EPROTO;
}

/* "; by UCT 8 B to 4 KiB put and got", or why that was not tried. */
static int prove_uct(const struct np_ucp_spec *spec, char *said, size_t size, struct np_err *err)
{
	const struct np_uct_copy uct = {
		.code = "selftest.gdr_copy.uct",
		.component = "gdr_copy",
		.transport = "gdr_copy",
		.mem = spec->mem,
		.sizes = spec->sizes,
		.n_sizes = spec->n_sizes,
	};
	struct np_uct_copied copied;
	char first[32], last[32];
	int ret = np_uct_copy_prove(&uct, &copied, err);

	if (ret > 0)
		snprintf(said, size, "; by UCT not tried: %.170s", err->message);
	else if (ret == 0)
		snprintf(said, size, "; by UCT %s to %s put and got, %s in %.2f us and %.2f us",
			 np_size_str(copied.smallest, first), np_size_str(copied.largest, last),
			 first, copied.put_us, copied.get_us);
	return ret < 0 ? ret : 0;
}

struct proven {
	double with_us, without_us; /* of the smallest message */
	unsigned long copies;	    /* that a stand-in counted */
	char uct[200];
};

static void judge(const struct np_gpu_dev *gpu, const struct proven *proven,
		  struct np_rung_result *result)
{
	const char *standin = np_gdr_standin(NULL);
	char first[32], last[32], text[600];
	struct np_err why;

	np_size_str(result->sizes[0].size_bytes, first);
	np_size_str(result->sizes[result->n_sizes - 1].size_bytes, last);
	snprintf(text, sizeof(text),
		 "GPU%zu, %s: %s to %s in GPU memory verified both ways over UCX gdr_copy; %s in "
		 "%.2f us with it, %.2f us without%s",
		 gpu->number, gpu->name, first, last, first, proven->with_us, proven->without_us,
		 proven->uct);
	if (standin) {
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "; UCX had it copy %lu times", proven->copies);
		np_gdr_standin_warning(standin, text, &why);
	} else if (proven->with_us >= proven->without_us) {
		np_err_set(&why, -EPROTO, "selftest.gdr_copy.no_gain",
			   "%s: gdr_copy makes small messages no faster", text);
		np_err_hint(&why, "see the rung gdrapi: its latency is that of the mapping; look "
				  "for another mapping than write-combined, and for a busy GPU");
	} else {
		np_rung_ok(result, "%s", text);
		return;
	}
	np_rung_warn(result, &why);
}

static int prove(const struct np_gpu_set *set, const struct np_gpu_dev *gpu,
		 const struct np_rung_options *options, struct np_rung_result *result,
		 struct np_err *err)
{
	struct np_rung_result off = { 0 };
	struct proven proven = { 0 };
	unsigned long before, after;
	struct np_gpu_mem mem;
	struct np_ucp_spec spec = {
		.rung = "gdr_copy",
		.tls = "gdr_copy,cuda_copy,sm",
		.carriers = carriers,
		.memory_carriers = both,
		.mem = &mem.ops,
		.no_peer_errors = true,
		.full = options->full,
		.sizes = options->full ? full_sizes : quick_sizes,
		.n_sizes = options->full ? NP_ARRAY_SIZE(full_sizes) : NP_ARRAY_SIZE(quick_sizes),
		.deadline_ms = options->deadline_ms,
	};
	int ret = np_ucx_component_check(&need, err);

	if (ret < 0)
		return explain(set, err);
	np_gpu_mem_init(&mem, set, gpu);
	np_gdr_standin(&before);
	ret = np_ucp_prove(&spec, result, err);
	np_gdr_standin(&after);
	if (ret == 0)
		ret = check_standin(after - before, err);
	if (ret < 0)
		return ret;
	spec.tls = "cuda_copy,sm";
	spec.memory_carriers = cuda_only;
	ret = np_ucp_prove(&spec, &off, err);
	if (ret == 0)
		ret = prove_uct(&spec, proven.uct, sizeof(proven.uct), err);
	if (ret < 0)
		return ret;
	proven.with_us = result->sizes[0].latency_us;
	proven.without_us = off.sizes[0].latency_us;
	proven.copies = after - before;
	judge(gpu, &proven, result);
	return 0;
}

int np_rung_gdr_copy(const struct np_rung_options *options, struct np_rung_report *report,
		     struct np_err *err)
{
	int ret = np_gpu_rung_built_without("gdr_copy", options, &need, report, err);

	if (ret != 0)
		return ret < 0 ? ret : 0;
	return np_gpu_rung("gdr_copy", options, prove, report, err);
}
