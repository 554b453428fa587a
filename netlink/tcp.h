/* SPDX-License-Identifier: MIT */
#ifndef NP_NETLINK_TCP_H
#define NP_NETLINK_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/inet.h"

/* Established TCP connections of this network namespace, by the kernel's socket
 * monitoring (sock_diag(7)), or by /proc/net/tcp where it has none. */

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

/* The text of /proc/net/tcp or tcp6, which is cut up: those are added to @out. Returns 0 or
 * -ENOMEM. Pure. np_tcp_read_proc reads both; 0 or a negative errno, no message. */
int np_tcp_parse(char *text, bool (*wanted)(const struct np_tcp *tcp, void *arg), void *arg,
		 struct np_tcp_list *out) np_must_check;
int np_tcp_read_proc(bool (*wanted)(const struct np_tcp *tcp, void *arg), void *arg,
		     struct np_tcp_list *out) np_must_check;

/* Makes an IPv4-mapped IPv6 address an IPv4 one, and sets the length of a host. */
void np_tcp_unmap(struct np_inet *addr);

void np_tcp_list_done(struct np_tcp_list *list);
#define np_auto_tcp_list np_auto(np_tcp_list_done)

#endif
