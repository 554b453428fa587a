/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_SELFTEST_ENTRY_H
#define NP_AGENT_SELFTEST_ENTRY_H

#include <jansson.h>

#include "agent/ladder.h"
#include "base/child.h"
#include "base/pci.h"

/* Entries of the schema's "selftest". Pure. */

/* One without figures, for a rung that gave none. New reference, or NULL. */
json_t *np_selftest_entry(const char *rung, const char *device, const char *status,
			  const char *code, const char *message, const char *hint);

/* The child's documents, one a line, each with exactly one entry, for @rung and the device
 * of one of the @n @steps whose @got is NULL, which it becomes. The child is not trusted:
 * members are taken one by one, and what comes behind a line that is none is not read.
 * Returns 0 when all of @got are there and the child ended with the exit code that says
 * the same, else -EPROTO; when all are there and its end says otherwise, its last entry is
 * taken back. @last: the last one of this child, or NULL. */
int np_selftest_take(const struct np_child_result *result, const char *rung,
		     const struct np_ladder_step *steps, size_t n, json_t **got,
		     const json_t **last) np_must_check;

/* What a rung has to reach where nobody says otherwise. */
struct np_selftest_fair {
	double MBps;	/* 0 = unknown */
	const char *of; /* "80 % of the port's rate" */
	const char *hint;
};

/* That of a port whose rate is @rate_gbps (10^9 bit a second; 0 = unknown). */
struct np_selftest_fair np_selftest_fair_port(double rate_gbps);
/* That of @rung on a GPU whose PCIe link is @pci; MBps 0 for rungs that it does not limit. */
struct np_selftest_fair np_selftest_fair_gpu(const char *rung, const struct np_pci *pci);

/* Too slow? Below @min_MBps (10^6 bytes a second; 0 = none is configured) an ok becomes a
 * failure; with none, below @fair at 8 MiB or more a warning. */
void np_selftest_judge_bandwidth(json_t *entry, double min_MBps,
				 const struct np_selftest_fair *fair);

#endif
