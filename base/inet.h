/* SPDX-License-Identifier: MIT */
#ifndef NP_BASE_INET_H
#define NP_BASE_INET_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

/* An interface address with its prefix length. Bytes are in wire order. */
struct np_inet {
	int family; /* AF_INET or AF_INET6; 0 = none */
	uint8_t bytes[16];
	uint8_t prefix_len;
};

#define NP_INET_STRLEN (INET6_ADDRSTRLEN + 4) /* "addr/128" */

/* "ADDR/LEN", strictly: a length must be there, and the address must be one that
 * a netdev can own: not unspecified, loopback, multicast, reserved, nor the
 * network or broadcast address of its prefix (/31, /32, /127, /128 have none).
 * Returns 0 or -EINVAL with one line that says what is wrong (code
 * "usage.address"). @out is untouched on failure. */
int np_inet_parse(const char *s, struct np_inet *out, struct np_err *err) np_must_check;

/* The same syntax, but any address that a kernel may hold (for reading back what
 * was written down). Returns 0 or -EINVAL, no message. */
int np_inet_parse_any(const char *s, struct np_inet *out) np_must_check;

/* An address without a length, any that a kernel may hold: it gets that of a host. Returns 0
 * or -EINVAL, no message. */
int np_inet_parse_host(const char *s, struct np_inet *out) np_must_check;

/* "10.0.0.50/24"; returns @out. */
const char *np_inet_str(const struct np_inet *a, char out[NP_INET_STRLEN]);
/* "10.0.0.50" */
const char *np_inet_addr_str(const struct np_inet *a, char out[NP_INET_STRLEN]);

bool np_inet_same_addr(const struct np_inet *a, const struct np_inet *b); /* length ignored */
bool np_inet_equal(const struct np_inet *a, const struct np_inet *b);
/* Same family, same prefix length and same network part: one kernel "subnet". */
bool np_inet_same_subnet(const struct np_inet *a, const struct np_inet *b);
/* One network contains the other (equal ones too). */
bool np_inet_overlap(const struct np_inet *a, const struct np_inet *b);
/* @addr (its length ignored) lies in the network of @net. */
bool np_inet_contains(const struct np_inet *net, const struct np_inet *addr);
/* IPv4 broadcast of the prefix, all ones in the host part; false for /31, /32 and IPv6. */
bool np_inet_broadcast(const struct np_inet *a, uint8_t out[4]);

#endif
