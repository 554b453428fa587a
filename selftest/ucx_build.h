/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_UCX_BUILD_H
#define NP_SELFTEST_UCX_BUILD_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* Path of the libucp that this process uses; "libucp" when unknown. */
const char *np_ucx_library(void);

/* libucp and libuct come from one directory. libuct tells no version: of two directories
 * it may be of another one. */
bool np_ucx_of_one_piece(void);

/* UCX was built with, and could load, @component ("ib", "tcp", "cuda_cpy").
 * Returns 0, or -ENOENT with code ucx.transport_missing that names @rung, the
 * library and its version. */
int np_ucx_component_check(const char *component, const char *rung, const char *hint,
			   struct np_err *err) np_must_check;

#endif
