/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_NCCL_LIB_H
#define NP_SELFTEST_NCCL_LIB_H

#include "base/err.h"
#include "base/str.h"
#include "selftest/nccl_api.h"

/* Opens libnccl.so.2. Returns 0, 1 for a skip, or a negative errno, with
 *   nccl.no_library       skip: there is none in the library path; fail: it cannot be
 *                         loaded, or lacks what is called
 *   nccl.library_too_old  older than 2.4 */
int np_nccl_open(struct np_nccl *nccl, struct np_err *err) np_must_check;

/* What ncclGetVersion gives (2804 before NCCL 2.9, 22803 since) as
 * 10000 * major + 100 * minor + patch. */
int np_nccl_version(int code);

/* Error of a call, with NCCL's own words. Returns -EIO, code nccl.failed. @comm may be
 * NULL; @doing completes "while ...". */
int np_nccl_error(const struct np_nccl *nccl, np_nccl_comm comm, np_nccl_result result,
		  const char *doing, struct np_err *err);

#endif
