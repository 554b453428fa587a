/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_THREADS_H
#define NP_SELFTEST_THREADS_H

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

/* Does the @number-th part of @arg's work. Returns 0 or a negative errno with message. */
typedef int np_part(void *arg, size_t number, struct np_err *err);

/* All @n parts side by side, a thread each (none where there is but one; where no more can
 * be had, here). Returns when all have ended: 0, or the error of the first in their order. */
int np_threads_each(size_t n, np_part *part, void *arg, struct np_err *err) np_must_check;

#endif
