/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_SERVICES_H
#define NP_AGENT_SERVICES_H

#include <stdbool.h>

#include "base/memlock.h"
#include "base/process.h"

/* Running services that start jobs, and the memlock limit that those inherit: Slurm, Dask,
 * Kubernetes and its container runtimes, PBS, HTCondor, Grid Engine. */

struct np_service {
	char name[96]; /* its systemd unit, else the name of the process */
	bool is_unit;
	pid_t pid;
	char comm[NP_COMM_SIZE];
	struct np_memlock memlock;
};

struct np_services {
	struct np_service *v;
	size_t n;
};

enum np_services_scope {
	/* the units of system.slice, by its control groups: one folder is read */
	NP_SERVICES_UNITS,
	/* every process, too: those in other slices and those that no unit started. Some
	 * microseconds for each process of the host */
	NP_SERVICES_ALL,
};

/* One entry a unit or process name, with the lowest limit of its processes. What cannot
 * be seen is not there. Returns 0 or -ENOMEM. */
int np_services_observe(enum np_services_scope scope, struct np_services *out) np_must_check;
void np_services_done(struct np_services *services);

#endif
