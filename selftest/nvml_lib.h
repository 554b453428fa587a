/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_NVML_LIB_H
#define NP_SELFTEST_NVML_LIB_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "selftest/nvml_api.h"

/* NVML, opened at run time. */
struct np_nvml {
	void *handle;	/* NULL = not open */
	char path[256]; /* of the library, also when it did not start; "" = none */
	char version[NP_NVML_VERSION_SIZE]; /* "" = unknown */
/* NOLINTBEGIN(bugprone-macro-parentheses): a type has no parentheses around it */
#define NP_NVML_DECLARE(member, symbol, parameters) np_nvml_result(*member) parameters;
	NP_NVML_FUNCTIONS(NP_NVML_DECLARE)
	NP_NVML_OPTIONAL(NP_NVML_DECLARE)
#undef NP_NVML_DECLARE
	/* NOLINTEND(bugprone-macro-parentheses) */
	const char *(*error_string)(np_nvml_result); /* or NULL */
};

/* Opens libnvidia-ml.so.1 and starts it, which opens the GPUs: what it would tell is
 * unknown else. np_nvml_close ends it. Returns 0, 1 when there is none, or a negative errno,
 * with
 *   nvml.no_library  none in the library path, or it cannot be loaded
 *   nvml.failed      it does not start */
int np_nvml_open(struct np_nvml *nvml, struct np_err *err) np_must_check;
void np_nvml_close(struct np_nvml *nvml);
#define np_auto_nvml np_auto(np_nvml_close)

/* Processes with a compute context on the GPU at @pci ("0000:17:00.0"): their number, or -1
 * when it cannot be told. @pid is one of them (0 = not seen from this PID namespace). */
int np_nvml_users(const struct np_nvml *nvml, const char *pci, unsigned int *pid);

/* Sets @err to nvml.failed, with what NVML says of @result. Returns -EIO. */
int np_nvml_failed(const struct np_nvml *nvml, const char *doing, np_nvml_result result,
		   struct np_err *err);

#endif
