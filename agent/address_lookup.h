/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_ADDRESS_LOOKUP_H
#define NP_AGENT_ADDRESS_LOOKUP_H

#include "base/inet.h"

/*
 * The one address that the name service gives @name (getaddrinfo: /etc/hosts, DNS, what
 * nsswitch.conf says), with @prefix_len: IPv4 up to 32, IPv6 above. It is asked in a
 * child that has 5 seconds. Returns 0, or a negative errno with message:
 * -ENOENT "address.hosts_not_found", -ENOTUNIQ "address.hosts_ambiguous" (all are named),
 * -ETIMEDOUT "address.hosts_timeout", -EHOSTUNREACH "address.hosts_failed" (it cannot
 * tell), -EINTR, -ENOMEM.
 */
int np_address_lookup_name(const char *name, uint8_t prefix_len, struct np_inet *out,
			   struct np_err *err) np_must_check;

/*
 * The line of @node_name in the map file @path (address_map.h). The file must be a
 * regular one of root that nobody else can write, of at most 16 MiB.
 * Returns as np_address_map_find, or a negative errno with "address.map_unreadable" or
 * "address.map_refused".
 */
int np_address_lookup_map(const char *path, const char *node_name, struct np_inet *out, int *line,
			  struct np_err *err) np_must_check;

#endif
