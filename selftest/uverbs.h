/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_UVERBS_H
#define NP_SELFTEST_UVERBS_H

#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

/* The user-space verbs device of @ca: "/dev/infiniband/uverbs0", from sysfs.
 * Returns 0, or -ENOENT when the kernel offers none (no message). */
int np_uverbs_find(const char *ca, char *path, size_t size) np_must_check;

/* The rungs below UCX for @ca: the device exists, its node exists, it can be
 * opened. Returns 0 or a negative errno with
 *   selftest.RUNG.no_uverbs    none for this CA, or no node in /dev
 *   selftest.RUNG.uverbs_open  the node cannot be opened (permission, no driver) */
int np_uverbs_check(const char *rung, const char *ca, struct np_err *err) np_must_check;

#endif
