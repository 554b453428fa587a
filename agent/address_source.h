/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_ADDRESS_SOURCE_H
#define NP_AGENT_ADDRESS_SOURCE_H

#include "base/inet.h"

/* Where an address of [netdev] comes from when it is not written down, so that one
 * file serves a whole fleet. This file is pure; address_resolve.h asks. */

enum np_source_kind {
	NP_SOURCE_HOSTS,  /* hosts:NAME/LEN, by the name service */
	NP_SOURCE_MAP,	  /* map:FILE, host names and addresses */
	NP_SOURCE_OFFSET, /* offset:NETDEV:PREFIX/LEN, the host part of another NIC */
};

/* A line of nodeprep.conf has 198 bytes at most. */
#define NP_SOURCE_LEN 200
/* A host name; RFC 1035 section 2.3.4 has 255 bytes on the wire, 253 as text. */
#define NP_HOST_NAME_LEN 254

struct np_address_source {
	enum np_source_kind kind;
	char text[NP_SOURCE_LEN];    /* as written */
	char where[512];	     /* "file:line" */
	char subject[NP_SOURCE_LEN]; /* the name with its %, the file, or the NIC */
	uint8_t prefix_len;	     /* of hosts; above 32 an IPv6 address is meant */
	struct np_inet prefix;	     /* of offset, without a host part */
	size_t at;		     /* so many plain addresses of the netdev stand before it */

	/* its answer on this node (address_resolve.h) */
	bool resolved;
	struct np_inet inet;
	char by[NP_HOST_NAME_LEN + 64]; /* the name asked for, the line of the map, the NIC */
	char failure[320];		/* why not, when it was tried; "" else */
};

/* Does @text begin like a source? */
bool np_is_address_source(const char *text);

/* Fills @out but for where and at. Returns 0, or -EINVAL with the form to be expected in
 * *@expected (static). */
int np_address_source_parse(const char *text, struct np_address_source *out,
			    const char **expected) np_must_check;

/* Has this node been given a name of its own? "", "(none)" and "localhost" are what it
 * has before. */
bool np_host_name_is_own(const char *node_name);

/* The name to ask for: @subject with %h (the node's name up to its first dot), %H (all of
 * it) and %%. Returns 0, or -EINVAL with message ("address.hosts_name") when that is no
 * host name: letters, digits, '-', '_' and '.', and not a mere number or address. */
int np_address_source_name(const struct np_address_source *src, const char *node_name,
			   char out[NP_HOST_NAME_LEN], struct np_err *err) np_must_check;

/* The network of src->prefix with the host part of @nic, which is what follows nic's own
 * prefix length. Returns 0, or -EINVAL with message ("address.offset_no_fit"). */
int np_address_source_offset(const struct np_address_source *src, const struct np_inet *nic,
			     struct np_inet *out, struct np_err *err) np_must_check;

#endif
