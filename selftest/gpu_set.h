/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_GPU_SET_H
#define NP_SELFTEST_GPU_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "selftest/cuda_lib.h"
#include "selftest/rung.h"
#include "selftest/ucx_build.h"

/* A GPU, as the PCI bus and CUDA's driver see it. */
struct np_gpu_dev {
	char pci[16];	 /* "0000:17:00.0", as sysfs names it */
	char name[96];	 /* of CUDA: "NVIDIA H200" */
	size_t number;	 /* in the order of PCI addresses */
	char driver[32]; /* kernel driver bound to it; "" = none or unknown */
	int numa_node;	 /* -1 = none or unknown */
	bool given_away; /* to a virtual machine */
	bool usable;	 /* CUDA shows it: @ordinal and @device are good */
	int ordinal;	 /* among those that CUDA shows */
	np_cu_device device;
};

struct np_gpu_set {
	struct np_cuda cuda;
	struct np_gpu_dev *v; /* by PCI address */
	size_t n;
	bool *wanted; /* by --device; all without it */
};

/* "0000:17:00.0", "17:00.0" (domain 0), in either case, or "GPU0" (number in the order
 * of PCI addresses). Sets @pci, or @number with @pci empty. Returns 0 or -EINVAL with
 * message ("usage"). */
int np_gpu_name_parse(const char *text, char pci[16], size_t *number, struct np_err *err);

/* One of --device. */
struct np_gpu_name {
	char text[80]; /* as it was given */
	char pci[16];
	size_t number; /* with pci empty */
};

/* It names the GPU at @pci, which is the @number-th. */
bool np_gpu_name_is(const struct np_gpu_name *name, const char *pci, size_t number);

struct np_gpu_names {
	struct np_gpu_name *v;
	size_t n;
};

/* "GPU0,0000:18:00.0". Returns 0, -EINVAL ("usage") or -ENOMEM; np_gpu_names_done frees. */
int np_gpu_names_parse(const char *text, struct np_gpu_names *out,
		       struct np_err *err) np_must_check;
void np_gpu_names_done(struct np_gpu_names *names);
#define np_auto_gpu_names np_auto(np_gpu_names_done)

/* The lower-case, four-digit form of @text, a PCI address with domain. */
void np_gpu_pci_canonical(const char *text, char pci[16]);

/*
 * What all GPU rungs begin with: opens CUDA, lists the GPUs, marks the wanted ones.
 * Adds an entry for each that cannot be used and says why, and one entry when there is
 * none at all. Returns 1 when at least one wanted GPU is usable, 0 when the verdict is
 * in @report already, or a negative errno with message (no memory, "usage").
 *   selftest.no_gpu   skip: no GPU here; fail: none by the name that was asked for
 *   cuda.no_driver    fail: a GPU is there, the driver does not work
 *   selftest.busy     skip: other processes have a compute context on it (by NVML);
 *                     not for cuda and gdrapi, nor with options->force
 *   cuda.gpu_missing  fail: on the PCI bus, but CUDA does not show it; skip when it
 *                     was given to a virtual machine
 */
int np_gpu_set_open(const char *rung, const struct np_rung_options *options, struct np_gpu_set *set,
		    struct np_rung_report *report, struct np_err *err) np_must_check;
void np_gpu_set_done(struct np_gpu_set *set);
#define np_auto_gpu_set np_auto(np_gpu_set_done)

/* Proves one GPU, whose primary context is current. Fills sizes and transport of
 * @result and its verdict when ok. Returns 0, 1 for a skip, or a negative errno, both
 * with message. */
typedef int np_gpu_prove(const struct np_gpu_set *set, const struct np_gpu_dev *gpu,
			 const struct np_rung_options *options, struct np_rung_result *result,
			 struct np_err *err);

/* The whole of a rung that has one entry a GPU. */
int np_gpu_rung(const char *rung, const struct np_rung_options *options, np_gpu_prove *prove,
		struct np_rung_report *report, struct np_err *err) np_must_check;

/*
 * Before CUDA is started, which takes most of a second: an entry with the verdict @why for
 * each wanted GPU on the PCI bus. Returns 1 when that was the whole rung, 0 when the PCI bus
 * shows no GPU or there is no libcuda (np_gpu_set_open says more), or a negative errno with
 * message.
 */
int np_gpu_rung_refuse(const char *rung, const struct np_rung_options *options, bool skip,
		       const struct np_err *why, struct np_rung_report *report,
		       struct np_err *err) np_must_check;
/* The same where UCX is built without what the rung needs; 0 where it is not. */
int np_gpu_rung_built_without(const char *rung, const struct np_rung_options *options,
			      const struct np_ucx_need *need, struct np_rung_report *report,
			      struct np_err *err) np_must_check;

/* Makes the primary context (which UCX and NCCL share) current; errors: np_cuda_error. */
int np_gpu_retain(const struct np_gpu_set *set, const struct np_gpu_dev *gpu,
		  struct np_err *err) np_must_check;
void np_gpu_release(const struct np_gpu_set *set, const struct np_gpu_dev *gpu);

#endif
