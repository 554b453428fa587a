/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_NVLINK_H
#define NP_AGENT_NVLINK_H

#include <jansson.h>

/*
 * What NVML says of NVLink, out of the list that np_libraries_show gives. Pure. GPUs are
 * named by their PCI addresses, as in sysfs. A list of NULL: nobody was asked.
 */

/* The links of one GPU that are active; -1 = unknown, and @why says why: text that lives as
 * long as the list. */
int np_nvlink_active(const json_t *libraries, const char *gpu, const char **why);

/* Those that connect two GPUs, through NVSwitches too; 0 = none, -1 = unknown. */
int np_nvlink_between(const json_t *libraries, const char *a, const char *b);

#endif
