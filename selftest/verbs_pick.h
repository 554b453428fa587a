/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_VERBS_PICK_H
#define NP_SELFTEST_VERBS_PICK_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

/* How two queue pairs on two ports (or twice the same) are to be joined; pure. */

enum np_gid_type { NP_GID_IB, NP_GID_ROCE_V1, NP_GID_ROCE_V2 };

struct np_verbs_gid {
	int index;
	enum np_gid_type type;
	uint8_t raw[16];
};

/* What the choice depends on. */
struct np_verbs_port {
	char name[80]; /* "mlx5_0:1" */
	bool ethernet;
	bool grh_required; /* IBV_QPF_GRH_REQUIRED */
	uint16_t lid;
	enum ibv_mtu mtu;	   /* active */
	uint32_t max_message;	   /* bytes */
	struct np_verbs_gid *gids; /* those that are not zero, ascending */
	size_t n_gids;
	int gid_table; /* entries of the table */
	uint16_t *pkeys;
	size_t n_pkeys;
};

struct np_verbs_path {
	bool grh;
	enum ibv_mtu mtu;
	struct np_verbs_gid gid[2]; /* with grh */
	uint16_t pkey_index[2];
	uint16_t pkey;
};

/* 1 RoCE v1, 2 RoCE v2 of a link-local address, 3 of another IPv6 address, 4 of an
 * IPv4 address: the more, the more likely is the fabric to carry it. 0 for InfiniBand. */
int np_gid_rank(const struct np_verbs_gid *gid);

/* 256 to 4096 bytes, 0 for none of them. */
int np_mtu_bytes(enum ibv_mtu mtu);

/* The path between port[0] and port[1]. InfiniBand goes by lid, with a GRH where a
 * port demands it, has no lid, or @gid_index is not -1; RoCE by the best kind of GID
 * that both have. The partition is one of which both are full members, the default
 * one first. Returns 0 or a negative errno with
 *   selftest.verbs.gid_index  there is no GID of that index (-EINVAL)
 *   selftest.verbs.no_gid     no kind of GID that both have (-EADDRNOTAVAIL)
 *   selftest.verbs.no_pkey    no partition of which both are full members (-EACCES)
 *   selftest.verbs.unlike     InfiniBand and RoCE (-EPROTOTYPE) */
int np_verbs_choose(const struct np_verbs_port *const port[2], int gid_index,
		    struct np_verbs_path *out, struct np_err *err) np_must_check;

/* "lid 0x2, MTU 4096, pkey 0xffff" or "GID 3 (RoCE v2) ::ffff:10.0.0.50, ...". */
void np_verbs_path_str(const struct np_verbs_port *port, const struct np_verbs_path *path, int end,
		       char *out, size_t size);

#endif
