/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_LIBRARIES_H
#define NP_SELFTEST_LIBRARIES_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

/*
 * The libraries that the data paths stand on, as this process finds them: UCX, CUDA's
 * driver, NCCL, libgdrapi, libibverbs, NVML. Entries of the schema's show.libraries.
 * @brief: what starts no driver and opens no device, of UCX, CUDA and libgdrapi alone:
 * paths, versions, and which transports UCX is built with. @nvml: NVML too, which does open
 * the GPUs.
 * Returns a new reference, or NULL when out of memory.
 */
json_t *np_libraries(bool brief, bool nvml);

/* The same list when nothing could be asked: each library unknown, for @why. */
json_t *np_libraries_unknown(bool brief, bool nvml, const struct np_err *why);

#endif
