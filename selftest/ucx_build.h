/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_UCX_BUILD_H
#define NP_SELFTEST_UCX_BUILD_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* Path of the libucp that this process uses; "libucp" when unknown. */
const char *np_ucx_library(void);

/* libucp, libuct and libucs come from one directory. Only libucp tells its version: of two
 * directories the others may be of another one. */
bool np_ucx_of_one_piece(void);

/* The dynamic linker passes over a file that it cannot read or that is of another
 * architecture, and takes the next one of that name. Path of a library of UCX in this
 * process that is not from @folder (an absolute path) or below; NULL: all are. The text is
 * the dynamic linker's. */
const char *np_ucx_not_from(const char *folder);

#define NP_UCX_PATH_MAX 320

/* The file of @module, "libuct_ib.so" (the number of its interface may follow), in the
 * folder where UCX looks for it: "ucx" beside libucs, or UCX_MODULE_DIR. False: there is
 * none in @folder. */
bool np_ucx_find_module(const char *module, char folder[NP_UCX_PATH_MAX],
			char path[NP_UCX_PATH_MAX]);

/* What a rung needs of the UCX library. */
struct np_ucx_need {
	const char *what;      /* "rc transport" */
	const char *component; /* of UCT: "ib", "tcp", "cuda_cpy", "cuda_ipc", "gdr_copy" */
	const char *module;    /* file that it is in, "libuct_cuda.so" */
	const char *hint;      /* which UCX to install */
	const char *no_device; /* what to do when it finds no device; NULL = that is not asked */
};

/* UCX was built with it, could load it, and it finds something to work on. Returns 0,
 * or -ENOENT with the path and version of the library and
 *   ucx.built_without      no such component, and no module file
 *   ucx.transport_missing  the module file is there and cannot be loaded
 *   ucx.device_unusable    loaded, and it finds no device */
int np_ucx_component_check(const struct np_ucx_need *need, struct np_err *err) np_must_check;

#endif
