/* SPDX-License-Identifier: MIT */
#ifndef NP_BASE_ROOT_H
#define NP_BASE_ROOT_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"

/* Makes @dir the root directory of this process, for good: every path, every symlink and
 * ".." then stays inside, and users and groups are those of its /etc/passwd and /etc/group
 * alone: no library of the tree is loaded to look them up. Returns 0, or a negative errno
 * with message: -EPERM with "privilege.root", else "image.root" (also where @dir is the root
 * of the system that runs, or its databases are no regular files of a sane size). */
int np_root_enter(const char *dir, struct np_err *err) np_must_check;
/* Did it? Links of a /proc that is mounted in the tree (/proc/1/root) still lead out. */
bool np_root_entered(void);

#endif
