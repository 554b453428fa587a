/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_SELFTEST_ENTRY_H
#define NP_AGENT_SELFTEST_ENTRY_H

#include <jansson.h>

#include "base/child.h"

/* Entries of the schema's "selftest". Pure. */

/* One without figures, for a rung that gave none. New reference, or NULL. */
json_t *np_selftest_entry(const char *rung, const char *device, const char *status,
			  const char *code, const char *message, const char *hint);

/* The child's document, if it is one: exactly one entry, for @rung and @device, with an
 * exit code that says the same. The child is not trusted: members are taken one by one.
 * The entry is added to @to. Returns 0, -EPROTO or -ENOMEM. */
int np_selftest_take(const struct np_child_result *result, const char *rung, const char *device,
		     json_t *to) np_must_check;

/* Too slow? Below @min_MBps (10^6 bytes a second; 0 = none is configured) an ok becomes a
 * failure; with none, below 80 % of @rate_gbps (10^9 bit a second; 0 = unknown) at 8 MiB or
 * more a warning. */
void np_selftest_judge_bandwidth(json_t *entry, double min_MBps, double rate_gbps);

#endif
