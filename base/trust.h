/* SPDX-License-Identifier: MIT */
#ifndef NP_BASE_TRUST_H
#define NP_BASE_TRUST_H

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

/*
 * Can nobody but root change what absolute @path names? The file and every folder on the
 * way to it, symlinks and their folders too, must belong to root and be writable by nobody
 * else; a folder above may be sticky, as /tmp, since what is root's in there stays root's.
 * Where the end of @path is missing, the last folder that is there must not be sticky
 * either: somebody else could put the rest there.
 *
 * Returns 0, -EPERM with the path at fault in @which, or another negative errno of what
 * cannot be looked at (-EINVAL for a relative path).
 */
int np_path_trusted(const char *path, char *which, size_t size) np_must_check;

#endif
