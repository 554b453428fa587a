/* SPDX-License-Identifier: MIT */
#ifndef NP_BASE_ROOT_H
#define NP_BASE_ROOT_H

#include "base/cleanup.h"
#include "base/err.h"

/* Makes @dir the root directory of this process, for good: every path, every symlink and
 * ".." then stays inside, and users and groups are those of its /etc/passwd and /etc/group
 * alone: no library of the tree is loaded to look them up. Returns 0, or a negative errno
 * with message: -EPERM with "privilege.root", else "image.root". */
int np_root_enter(const char *dir, struct np_err *err) np_must_check;

#endif
