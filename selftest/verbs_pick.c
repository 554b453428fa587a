/* SPDX-License-Identifier: MIT */
#include "selftest/verbs_pick.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* IBA 10.9.1: the top bit is full membership, the default partition is 0x7fff. */
#define PKEY_FULL    0x8000
#define PKEY_DEFAULT 0xffff

int np_gid_rank(const struct np_verbs_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (gid->type == NP_GID_IB)
		return 0;
	if (gid->type == NP_GID_ROCE_V1)
		return 1;
	if (memcmp(gid->raw, mapped, sizeof(mapped)) == 0)
		return 4;
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80 ? 2 : 3;
}

int np_mtu_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128 << mtu : 0;
}

static const struct np_verbs_gid *by_index(const struct np_verbs_port *port, int index)
{
	for (size_t i = 0; i < port->n_gids; i++)
		if (port->gids[i].index == index)
			return &port->gids[i];
	return NULL;
}

/* The first one of that rank. */
static const struct np_verbs_gid *by_rank(const struct np_verbs_port *port, int rank)
{
	for (size_t i = 0; i < port->n_gids; i++)
		if (np_gid_rank(&port->gids[i]) == rank)
			return &port->gids[i];
	return NULL;
}

static int named_gid(const struct np_verbs_port *const port[2], int gid_index,
		     struct np_verbs_path *path, struct np_err *err)
{
	for (int i = 0; i < 2; i++) {
		const struct np_verbs_gid *gid = by_index(port[i], gid_index);

		if (!gid) {
			np_err_set(err, -EINVAL, "selftest.verbs.gid_index",
				   "port %s has no GID of index %d: %s", port[i]->name, gid_index,
				   gid_index < port[i]->gid_table ? "the entry is empty" :
								    "its table ends before");
			np_err_hint(err, "see ibv_devinfo -v for its GIDs, or leave the choice "
					 "to the self-test");
			return -EINVAL;
		}
		path->gid[i] = *gid;
	}
	return 0;
}

static int choose_gid(const struct np_verbs_port *const port[2], struct np_verbs_path *path,
		      struct np_err *err)
{
	int best = port[0]->ethernet ? 4 : 0, worst = port[0]->ethernet ? 1 : 0;

	for (int rank = best; rank >= worst; rank--) {
		const struct np_verbs_gid *gid[2] = { by_rank(port[0], rank),
						      by_rank(port[1], rank) };

		if (gid[0] && gid[1]) {
			path->gid[0] = *gid[0];
			path->gid[1] = *gid[1];
			return 0;
		}
	}
	if (port[0] == port[1] || port[0]->n_gids == 0 || port[1]->n_gids == 0)
		np_err_set(err, -EADDRNOTAVAIL, "selftest.verbs.no_gid", "port %s has no GID",
			   port[0]->n_gids ? port[1]->name : port[0]->name);
	else
		np_err_set(err, -EADDRNOTAVAIL, "selftest.verbs.no_gid",
			   "ports %s and %s have no kind of GID in common", port[0]->name,
			   port[1]->name);
	np_err_hint(err, "%s",
		    port[0]->ethernet ? "bring its netdev up and give it an address" :
					"reload the HCA's driver, and read the kernel log");
	return -EADDRNOTAVAIL;
}

static int find_pkey(const struct np_verbs_port *port, uint16_t pkey)
{
	for (size_t i = 0; i < port->n_pkeys; i++)
		if (port->pkeys[i] == pkey)
			return (int)i;
	return -1;
}

static bool take_pkey(const struct np_verbs_port *const port[2], uint16_t pkey,
		      struct np_verbs_path *path)
{
	int first = find_pkey(port[0], pkey), second = find_pkey(port[1], pkey);

	if (!(pkey & PKEY_FULL) || first < 0 || second < 0)
		return false;
	path->pkey = pkey;
	path->pkey_index[0] = (uint16_t)first;
	path->pkey_index[1] = (uint16_t)second;
	return true;
}

static int choose_pkey(const struct np_verbs_port *const port[2], struct np_verbs_path *path,
		       struct np_err *err)
{
	if (take_pkey(port, PKEY_DEFAULT, path))
		return 0;
	for (size_t i = 0; i < port[0]->n_pkeys; i++)
		if (take_pkey(port, port[0]->pkeys[i], path))
			return 0;
	np_err_set(err, -EACCES, "selftest.verbs.no_pkey",
		   "%s%s%s %s full member of no partition%s: limited members do not reach each "
		   "other",
		   port[0]->name, port[0] == port[1] ? "" : " and ",
		   port[0] == port[1] ? "" : port[1]->name, port[0] == port[1] ? "is" : "are",
		   port[0] == port[1] ? "" : " together");
	np_err_hint(err, "make the ports full members in the subnet manager's partitions "
			 "(partitions.conf)");
	return -EACCES;
}

int np_verbs_choose(const struct np_verbs_port *const port[2], int gid_index,
		    struct np_verbs_path *out, struct np_err *err)
{
	struct np_verbs_path path = { 0 };
	int ret = 0;

	if (port[0]->ethernet != port[1]->ethernet) {
		np_err_set(err, -EPROTOTYPE, "selftest.verbs.unlike",
			   "ports %s and %s cannot be joined: one is InfiniBand, one is Ethernet",
			   port[0]->name, port[1]->name);
		np_err_hint(err, "name a peer of the same kind");
		return -EPROTOTYPE;
	}
	path.mtu = port[0]->mtu < port[1]->mtu ? port[0]->mtu : port[1]->mtu;
	for (int i = 0; i < 2; i++)
		path.grh |= port[i]->ethernet || port[i]->grh_required || port[i]->lid == 0;
	path.grh |= gid_index >= 0;
	if (gid_index >= 0)
		ret = named_gid(port, gid_index, &path, err);
	else if (path.grh)
		ret = choose_gid(port, &path, err);
	if (ret == 0)
		ret = choose_pkey(port, &path, err);
	if (ret == 0)
		*out = path;
	return ret;
}

void np_verbs_path_str(const struct np_verbs_port *port, const struct np_verbs_path *path, int end,
		       char *out, size_t size)
{
	static const char *const types[] = { "InfiniBand", "RoCE v1", "RoCE v2" };
	char gid[INET6_ADDRSTRLEN] = "", where[INET6_ADDRSTRLEN + 48];

	if (path->grh) {
		inet_ntop(AF_INET6, path->gid[end].raw, gid, sizeof(gid));
		snprintf(where, sizeof(where), "GID %d (%s) %s", path->gid[end].index,
			 types[path->gid[end].type], gid);
	} else {
		snprintf(where, sizeof(where), "lid 0x%x", port->lid);
	}
	snprintf(out, size, "%s, MTU %d, pkey 0x%04x", where, np_mtu_bytes(path->mtu), path->pkey);
}
