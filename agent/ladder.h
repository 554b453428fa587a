/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_LADDER_H
#define NP_AGENT_LADDER_H

#include "agent/facts.h"
#include "agent/select.h"
#include "netlink/rdma.h"

/* Which rungs are to be tried on this node, on what, in which order. Pure. */

/* Every rung, bottom first; ends with NULL. */
extern const char *const np_rung_names[];

struct np_ladder_step {
	const char *rung;
	char device[80];		/* "mlx5_0:1", "ib0", "0000:17:00.0"; "" = the whole node */
	char peer[80];			/* the port at the other end; "" = the same */
	char gpu[16];			/* PCI address of the GPU beside an HCA port; "" = none */
	char address[INET6_ADDRSTRLEN]; /* of the netdev */
	bool is_netdev;
	bool each_gpu; /* one of a row that differs in the GPU alone */
	bool as_root;  /* management datagrams are root's */

	/* set when it is not to be run at all */
	char code[48], message[200], hint[160];
};

struct np_ladder {
	struct np_ladder_step *v;
	size_t n;
};

/* @rungs: names, empty = all. @users: who has queue pairs on the HCAs; with @force that
 * does not matter. Returns 0 or -ENOMEM. np_ladder_done frees. */
int np_ladder_make(const struct np_config *cfg, const struct np_facts *facts,
		   const struct np_selection *sel, const struct np_strv *rungs,
		   const struct np_rdma_users *users, bool force, struct np_ladder *out,
		   struct np_err *err) np_must_check;
void np_ladder_done(struct np_ladder *ladder);
#define np_auto_ladder np_auto(np_ladder_done)

/* The device of its entry: "mlx5_0:1", of a pair "mlx5_0:1-mlx5_1:1". Returns @out. */
const char *np_ladder_label(const struct np_ladder_step *step, char out[168]);

/* May @step carry data over the rung below it? What failed (device NULL: none did) is
 * named by rung and device: "verbs" for "rc" on the same port, "cuda" for all that
 * needs that GPU. True when @rung, which failed on @device, is below @step. */
bool np_ladder_is_below(const char *rung, const char *device, const struct np_ladder_step *step);

#endif
