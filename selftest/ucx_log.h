/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_UCX_LOG_H
#define NP_SELFTEST_UCX_LOG_H

#include <stdbool.h>

/*
 * UCX tells why in its log alone, its status codes say little; and it writes the
 * log to stdout, which is the report's.
 */

/* Sends UCX's log to stderr and keeps its errors from here on; forgets old ones. */
void np_ucx_log_start(void);

/* The first error since then, one line; "" = none. Good until the next start. */
const char *np_ucx_log_first(void);

/* Since then the kernel refused to pin memory for want of memlock. Cheap. */
bool np_ucx_log_memlock(void);

#endif
