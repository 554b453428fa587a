/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_MEMLOCK_H
#define NP_SELFTEST_MEMLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* RLIMIT_MEMLOCK in bytes; false when it is unlimited or unknown. */
bool np_memlock_limit(uint64_t *bytes);

/* Bytes that this process has pinned for devices (VmPin); 0 where unknown. */
uint64_t np_memlock_pinned(void);

/* -ENOMEM with code selftest.RUNG.memlock: @doing ("registering 32 MiB") ran into the
 * limit of @limit bytes. */
int np_memlock_error(const char *rung, const char *doing, uint64_t limit, struct np_err *err);

#endif
