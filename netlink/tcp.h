/* SPDX-License-Identifier: MIT */
#ifndef NP_NETLINK_TCP_H
#define NP_NETLINK_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/inet.h"

/* Established TCP connections of this network namespace, by the kernel's socket
 * monitoring (sock_diag(7)). */

struct np_tcp {
	struct np_inet local, remote; /* as hosts; of an IPv6 socket that talks IPv4: IPv4 */
	uint16_t local_port, remote_port;
	int ifindex;	/* that the socket is bound to, as link-local ones are; 0 = none */
	uint64_t inode; /* of its socket, as /proc/PID/fd has it; 0 = no process has it open */
};

struct np_tcp_list {
	struct np_tcp *v;
	size_t n;
	bool known; /* false: the kernel does not tell */
};

/* Those that @wanted (NULL: all) is true for. Returns 0, also where it is not known; or a
 * negative errno with message ("netlink.query", -ENOMEM). np_tcp_list_done frees. */
int np_tcp_observe(bool (*wanted)(const struct np_tcp *tcp, void *arg), void *arg,
		   struct np_tcp_list *out, struct np_err *err) np_must_check;
void np_tcp_list_done(struct np_tcp_list *list);
#define np_auto_tcp_list np_auto(np_tcp_list_done)

#endif
