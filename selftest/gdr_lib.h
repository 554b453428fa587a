/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_GDR_LIB_H
#define NP_SELFTEST_GDR_LIB_H

#include "base/err.h"
#include "base/str.h"
#include "modules/gdrdrv.h"
#include "selftest/gdr_api.h"

/* Opens libgdrapi.so.2 and asks for its version. Returns 0, 1 for a skip, or a
 * negative errno, with code gdrapi.no_library (skip: there is none in the library path;
 * fail: it cannot be loaded, or lacks what is called). */
int np_gdr_lib_open(struct np_gdr_lib *lib, struct np_err *err) np_must_check;

/* What a stand-in of the tests that this process has loaded says of itself; NULL when
 * libgdrapi is gdrcopy's own, or is not loaded. @copies may be NULL: how often it was
 * asked to copy, 0 where it does not count. */
const char *np_gdr_standin(unsigned long *copies);

/* A warning in place of an ok: @err gets code gdrapi.standin and @proven as message. */
void np_gdr_standin_warning(const char *standin, const char *proven, struct np_err *err);

/*
 * Why gdr_open gave nothing, or why nothing may be expected of it, from what the kernel
 * side answers, the library's version and CUDA's. Pure. Returns a negative errno with
 *   gdrcopy.node_missing, gdrcopy.node_wrong, gdrcopy.open_failed,
 *   gdrcopy.handshake_failed   the first rung of gdrdrv that fails
 *   gdrcopy.too_old            driver below 2.0, or the library below what the driver takes
 *   gdrapi.no_backend          no gdrdrv, and the dma-buf backend cannot be either
 *   gdrapi.failed              none of these
 */
int np_gdr_cause(const struct np_gdrdrv *driver, const struct np_gdr_lib *lib, int cuda_version,
		 struct np_err *err);

/* gdrcopy.too_old alone: 0 when the versions suit each other, or gdrdrv does not tell. */
int np_gdr_versions(const struct np_gdrdrv *driver, const struct np_gdr_lib *lib,
		    struct np_err *err);

#endif
