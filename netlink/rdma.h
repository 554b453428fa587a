/* SPDX-License-Identifier: MIT */
#ifndef NP_NETLINK_RDMA_H
#define NP_NETLINK_RDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/process.h"

/* Who uses the HCAs: the kernel's resource tracking over RDMA netlink (Linux 4.17 and
 * newer; the attributes of <rdma/rdma_netlink.h>). Queue pairs of the kernel's own
 * users (ipoib, mad, nfs) are not counted. */

struct np_rdma_user {
	char ca[64];
	uint32_t pid;		    /* as this process' PID namespace has it */
	char command[NP_COMM_SIZE]; /* its name in /proc, "" = unknown */
	unsigned int queue_pairs;
};

struct np_rdma_users {
	struct np_rdma_user *v; /* by CA, then by process */
	size_t n;
	bool known; /* false: the kernel has no resource tracking, no RDMA, or keeps it from us */
};

/* Processes with user queue pairs on any HCA; @but_pid is left out (0 = nobody is).
 * Returns 0, also where it is not known; or a negative errno with message
 * ("netlink.query", -ENOMEM). np_rdma_users_done frees. */
int np_rdma_users_observe(uint32_t but_pid, struct np_rdma_users *out,
			  struct np_err *err) np_must_check;
void np_rdma_users_done(struct np_rdma_users *list);
#define np_auto_rdma_users np_auto(np_rdma_users_done)

#endif
