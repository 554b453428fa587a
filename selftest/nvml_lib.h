/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_NVML_LIB_H
#define NP_SELFTEST_NVML_LIB_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "selftest/nvml_api.h"

/* What NVML says of NVLink, which is not in sysfs. */
struct np_nvml {
	void *handle;	  /* NULL: it was not loaded */
	char path[256];	  /* of the library */
	char version[80]; /* "" = unknown */
	bool nvlink_known;
	bool nvlink; /* a link of a GPU is active */
};

/* Opens libnvidia-ml.so.1, asks it once and shuts it down again: this opens the GPUs.
 * Returns 0 (with nvlink_known false where a GPU gave no answer, or there is none), 1 when
 * the library is not there, or a negative errno, with
 *   nvml.no_library  none in the library path, or it cannot be loaded
 *   nvml.failed      it does not start, or cannot count the GPUs */
int np_nvml_ask(struct np_nvml *out, struct np_err *err) np_must_check;

#endif
