/* SPDX-License-Identifier: MIT */
#ifndef NP_MODULES_GPU_SERVICES_H
#define NP_MODULES_GPU_SERVICES_H

#include <stdbool.h>

/* The daemons that NVLink needs beyond the driver, by /proc and cgroups: nothing is
 * executed. */

/* Unknown: not found, but this process does not see all of the machine (a container). */
enum np_service_state { NP_SERVICE_UNKNOWN, NP_SERVICE_DOWN, NP_SERVICE_RUNNING };

struct np_gpu_services {
	bool nvswitch;			     /* this node has NVSwitches to manage */
	enum np_service_state fabricmanager; /* looked for where nvswitch */
	bool imex_channels;		     /* /dev/nvidia-caps-imex-channels has a channel */
	bool imex_domain;		     /* /etc/nvidia-imex/nodes_config.cfg names nodes */
	enum np_service_state imex;	     /* looked for where either of them */
};

/* @nvswitch is for the caller to know (np_gpus.n_nvswitches, management HCAs). Never
 * fails. Without any of the three it costs two failing opens; where a daemon runs
 * outside its systemd unit, one read a process. */
void np_gpu_services_observe(bool nvswitch, struct np_gpu_services *out);

#endif
