/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_NCCL_CONF_H
#define NP_AGENT_NCCL_CONF_H

#include "base/str.h"

/*
 * nccl.conf by NCCL's own reading rules (NCCL src/misc/param.cc, setEnvFile): one
 * KEY=VALUE a line, nothing trimmed, '#' in the first column only (NCCL 2.26), a
 * field is cut at 1023 bytes, of a repeated key the first line counts. Where
 * versions differ this reads like 2.26 to 2.29, the stricter ones: from 2.30 on one
 * trailing carriage return is dropped, and a line is cut into pieces of 4095 bytes.
 * What np_nccl_conf_edit writes is read alike by all. Pure: text in, text out.
 */

/* A key that nodeprep owns. value NULL: the key shall not be there. */
struct np_nccl_key {
	const char *key;
	const char *value;
};

/*
 * Sets @keys in @old and keeps every other byte: the first line that NCCL reads
 * as this key (it is the one that counts) is changed in place, further such lines
 * are dropped, a missing key is appended (after a newline where the last line lacks
 * one). A key whose value is right already is left as it is, repeated lines
 * included. When all is right @out (contents replaced) equals @old byte for byte.
 * Returns 0, -ENOMEM, or -EINVAL (code "nccl.value_invalid") for a name or value
 * that NCCL would not read back: over 1023 bytes, or with control characters.
 */
int np_nccl_conf_edit(const char *old, size_t old_len, const struct np_nccl_key *keys,
		      size_t n_keys, struct np_buf *out, struct np_err *err) np_must_check;

/* The value NCCL would take for @key from this text (the rule for a repeated key
 * included), or NULL. Caller frees. */
char *np_nccl_conf_get(const char *text, size_t len, const char *key);

/* A line that NCCL does not read as its author meant. */
struct np_nccl_issue {
	int line;	   /* 1-based */
	char code[48];	   /* "nccl.line_leading_blank", ... */
	char message[200]; /* why, without file and line */
	char hint[120];
};

struct np_nccl_issues {
	struct np_nccl_issue *v;
	size_t n;
};

/* In the order of lines; at most the first 100 (contents of @out replaced).
 * Returns 0 or -ENOMEM. */
int np_nccl_conf_lint(const char *text, size_t len, struct np_nccl_issues *out) np_must_check;
void np_nccl_issues_done(struct np_nccl_issues *list);

/* NCCL's own matching (src/misc/utils.cc, parseStringList and matchIfList, and
 * their callers): true when NCCL_SOCKET_IFNAME or NCCL_IB_HCA of value @list takes
 * @name. @port is -1 for a netdev, else the port number. NULL or a list without
 * entries takes everything. Entries are prefixes; '=' in front of the list makes
 * all of them exact (NCCL 2.5), '^' excludes, '^=' both. */
bool np_nccl_matches(const char *list, const char *name, int port);

/* True when the plain (prefix) form of @name takes only @name out of @all. */
bool np_nccl_plain_is_exact(const char *name, const struct np_strv *all);

/* NCCL_SOCKET_IFNAME for exactly @names out of @all (every netdev of the node):
 * "ib0" when the plain form is unambiguous, else "=ib0" (C1), so that the line in
 * the file reads NCCL_SOCKET_IFNAME==ib0; several are joined by ','. Checked with
 * np_nccl_matches. NULL with errno ENOMEM, EINVAL (no name, or one with a character
 * that has a meaning in the list) or ERANGE (more than 16). Caller frees. */
char *np_nccl_ifname_value(const struct np_strv *names, const struct np_strv *all);

/* NCCL_IB_HCA for exactly @ports ("mlx5_0:1") out of @all_ports (every port of every
 * RDMA device, Ethernet ones included): NULL in *out when there is nothing to write
 * (they are all there are, or none is wanted), else the plain form when it takes no
 * other, else "=mlx5_1:1" (C2), else, with more than 32 wanted, "^=" and the others.
 * Checked with np_nccl_matches. Caller frees.
 * Returns 0, -ENOMEM, -EINVAL (as above) or -ERANGE (no list says it). */
int np_nccl_hca_value(const struct np_strv *ports, const struct np_strv *all_ports,
		      char **out) np_must_check;

#endif
