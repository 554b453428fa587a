/* SPDX-License-Identifier: MIT */
#ifndef NP_NETLINK_RDMA_H
#define NP_NETLINK_RDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/inet.h"
#include "base/process.h"

/* Who uses the HCAs: the kernel's resource tracking over RDMA netlink (Linux 4.17 and
 * newer; the attributes of <rdma/rdma_netlink.h>). */

/* Bit N of a mask of ports is port N. */
#define NP_RDMA_NO_PORT_YET 1u /* bit 0: the queue pair is not bound to a port so far */

struct np_rdma_user {
	char ca[64];
	uint32_t pid;		    /* as this process' PID namespace has it */
	char command[NP_COMM_SIZE]; /* its name in /proc, "" = unknown */
	unsigned int queue_pairs;
	uint64_t ports;
};

/* A module of the kernel: what its queue pairs, or its connections of the RDMA connection
 * manager, are made by. The kernel shows these in the initial PID namespace alone. */
struct np_rdma_kernel_user {
	char ca[64];
	char module[32]; /* "ib_srp", "rpcrdma", "ko2iblnd" */
	uint64_t ports;
	unsigned int count;	  /* queue pairs, or connections of one address */
	bool by_cm;		  /* connections: queue pairs of their own are not told apart */
	struct np_inet src, peer; /* of the connection (the last one); family 0 = unknown */
};

struct np_rdma_users {
	struct np_rdma_user *v; /* by CA, then by process */
	size_t n;
	struct np_rdma_kernel_user *kernel;
	size_t n_kernel;
	bool known; /* false: the kernel has no resource tracking, no RDMA, or keeps it from us */
};

/* Processes with user queue pairs on any HCA; @but_pid is left out (0 = nobody is). What
 * the kernel's stack makes for itself (ib_core, ib_ipoib, the HCA's driver) is not listed.
 * Returns 0, also where it is not known; or a negative errno with message
 * ("netlink.query", -ENOMEM). np_rdma_users_done frees. */
int np_rdma_users_observe(uint32_t but_pid, struct np_rdma_users *out,
			  struct np_err *err) np_must_check;
void np_rdma_users_done(struct np_rdma_users *list);
#define np_auto_rdma_users np_auto(np_rdma_users_done)

#endif
