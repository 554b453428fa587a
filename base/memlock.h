/* SPDX-License-Identifier: MIT */
#ifndef NP_BASE_MEMLOCK_H
#define NP_BASE_MEMLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* RLIMIT_MEMLOCK: how much memory a process may pin, and so register with an HCA. */

#define NP_UNLIMITED UINT64_MAX /* RLIM64_INFINITY of <sys/resource.h> */

struct np_memlock {
	uint64_t soft, hard; /* bytes, or NP_UNLIMITED */
};

#define NP_MEMLOCK_STRLEN 32

/* "unlimited", "64 KiB" (as ulimit -l counts), or bytes where those are no whole KiB.
 * Returns @out. */
const char *np_memlock_str(uint64_t bytes, char out[NP_MEMLOCK_STRLEN]);

/* The line "Max locked memory" of a /proc/PID/limits (Linux fs/proc/base.c). Pure.
 * Returns 0, -ENOENT (no such line) or -EINVAL. */
int np_memlock_parse(const char *text, struct np_memlock *out) np_must_check;

/* That of a running process; @pid 0 is the caller. Returns 0 or a negative errno
 * (-ENOENT when it is gone). */
int np_memlock_of(pid_t pid, struct np_memlock *out) np_must_check;

/* Sets it for the calling process. The hard limit cannot be raised without
 * CAP_SYS_RESOURCE: then the process gets what is possible. @got: what it has now.
 * Returns 0, -EPERM (less than asked for) or another negative errno. */
int np_memlock_set(const struct np_memlock *want, struct np_memlock *got) np_must_check;

#endif
