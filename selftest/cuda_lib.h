/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_CUDA_LIB_H
#define NP_SELFTEST_CUDA_LIB_H

#include "base/err.h"
#include "base/str.h"
#include "selftest/cuda_api.h"

/* Opens libcuda.so.1 and asks for its version, which starts no driver. Returns 0, or
 * -ENOENT with code cuda.no_driver: it is missing, or older than what is called here. */
int np_cuda_load(struct np_cuda *cuda, struct np_err *err) np_must_check;

/* Opens libcuda.so.1 and initialises it. Returns 0 or a negative errno with code
 * cuda.no_driver: the library is missing or older than what is called here, or
 * cuInit fails (the message has the driver's own name of the error). -ENODEV: the
 * driver works and has no GPU, or no driver's kernel side is there. It is never
 * unloaded: the driver has threads of its own. */
int np_cuda_open(struct np_cuda *cuda, struct np_err *err) np_must_check;

/* True once CUDA was started: its threads, and libraries above it, then have handlers
 * of exit() that may fail or hang. The verdict is out by then; the process ends by _exit. */
bool np_cuda_started(void);

/* The driver's name of an error, "CUDA_ERROR_OUT_OF_MEMORY"; a number when it has none. */
const char *np_cuda_error_name(const struct np_cuda *cuda, np_cu_result result, char out[64]);

/* Error of a call for one GPU; @doing completes "while ...". Returns -EIO (-ENOMEM
 * for memory, -EBUSY for a mode that forbids it) with
 *   cuda.out_of_memory  the GPU's memory is in use
 *   cuda.compute_mode   no context is allowed: mode prohibited, or exclusive and taken
 *   cuda.ecc            an uncorrectable memory or NVLink error
 *   cuda.not_ready      the fabric manager has not set up NVSwitch
 *   cuda.failed         anything else */
int np_cuda_error(const struct np_cuda *cuda, np_cu_device device, np_cu_result result,
		  const char *doing, struct np_err *err);

/* "13.0". Returns @out. */
const char *np_cuda_version_str(int version, char out[32]);

/* Path of the loaded library that @symbol is in; @fallback when unknown. */
void np_library_path(const void *symbol, const char *fallback, char *out, size_t size);

#endif
