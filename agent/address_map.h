/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_ADDRESS_MAP_H
#define NP_AGENT_ADDRESS_MAP_H

#include "base/inet.h"

/* The file of map:FILE: lines "HOSTNAME ADDR/LEN", '#' starts a comment. Pure. */

/*
 * Looks up @node_name, all of it or up to its first dot, in @text; letters of either
 * case are the same. Every line is checked, so that a file that was cut or mixed up is
 * not half believed. @path is for messages.
 * Returns 0 with the address and its line, or a negative errno with message:
 * -EBADMSG "address.map_syntax" (file:line), -EBADMSG "address.map_duplicate" (the host
 * stands there twice, or its address stands there for another host too; both lines),
 * -ENOENT "address.map_no_entry" (the names that were looked for).
 */
int np_address_map_find(const char *path, const char *text, size_t len, const char *node_name,
			struct np_inet *out, int *line, struct np_err *err) np_must_check;

#endif
