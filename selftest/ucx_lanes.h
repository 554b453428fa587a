/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_UCX_LANES_H
#define NP_SELFTEST_UCX_LANES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * What carries an endpoint's messages, as ucp_ep_print_info writes it (UCX up to
 * 1.13 has no other way to ask):
 *   #    lane[0]:  1:rc_verbs/mlx5_0:1.0 md[0]  -> md[0]/ib/sysdev[0] rma_bw#0 am am_bw#0 wireup
 */

struct np_ucx_lane {
	char transport[32]; /* "rc_verbs" */
	char device[64];    /* "mlx5_0:1" */
	bool data;	    /* carries messages; false: only wire-up or keepalive */
};

#define NP_UCX_LANES_MAX 16

struct np_ucx_lanes {
	struct np_ucx_lane v[NP_UCX_LANES_MAX];
	size_t n;
};

/* Lanes of the text of ucp_ep_print_info, in order; connection-manager lanes are
 * left out. Returns 0, or -EINVAL when it holds no lane that can be read (then
 * @out is empty). */
int np_ucx_lanes_parse(const char *text, struct np_ucx_lanes *out);

/* Lanes of UCX's own endpoint for @memory ("CUDA memory", UCX's words) in the text of
 * ucp_worker_print_info: what copies between that memory and the host. All of them
 * count as data. Returns 0, or -EINVAL when there is no such endpoint. */
int np_ucx_lanes_parse_memory(const char *text, const char *memory, struct np_ucx_lanes *out);

/* Adds one lane; dropped when there are too many. */
void np_ucx_lanes_add(struct np_ucx_lanes *lanes, const char *transport, const char *device,
		      bool data);

/* "rc_verbs/mlx5_0:1", each data lane's carrier once, joined by ", ". Returns @out. */
const char *np_ucx_lanes_str(const struct np_ucx_lanes *lanes, char *out, size_t size);

/* True when every data lane is one of the NULL-terminated @transports, on @device
 * unless NULL, and there is one. */
bool np_ucx_lanes_only(const struct np_ucx_lanes *lanes, const char *const *transports,
		       const char *device);

/* True when each of the NULL-terminated @transports is a data lane. */
bool np_ucx_lanes_all(const struct np_ucx_lanes *lanes, const char *const *transports);

#endif
