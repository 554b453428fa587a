/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_RECORD_H
#define NP_AGENT_RECORD_H

#include "agent/now.h"

/* Lists of actions as what they come to. All of it is pure. */

/* Are both about the same thing: a file, a setting of a netdev, an address on it, a module,
 * gdrdrv's node? */
bool np_action_same_object(const struct np_action *a, const struct np_action *b);
/* Is everything after it as it was before? Addresses: never. */
bool np_action_is_void(const struct np_action *a);

/* The same address with the same broadcast address, scope, peer and metric: what a revert
 * has to bring back; not its flags and lifetimes. */
bool np_addr_same_entry(const struct np_netdev_addr *a, const struct np_netdev_addr *b);

/* A file that others write to as well, and of which nodeprep owns keys only: nccl.conf and
 * .nccl.conf. */
bool np_file_is_shared(const char *path);

/*
 * Takes our keys of a shared file back: @old is what it was, @ours what we made of it, @now
 * what it is. Keys that we changed get their old value or go, every other byte of @now
 * stays. A key that somebody gave another value since is left; *left counts those.
 * @out is replaced. Returns 0 or a negative errno with message.
 */
int np_take_back_keys(const struct np_buf *old, const struct np_buf *ours, const struct np_buf *now,
		      struct np_buf *out, size_t *left, struct np_err *err) np_must_check;

/*
 * Adds what the done actions of a run come to, to the net change @base (which stays net: one
 * entry for each thing, none where all is as it was). Where somebody changed a thing between
 * the runs, that becomes what it was before; in a shared file nothing but our keys is
 * forgotten of it. The addresses that the first run changes on a netdev are kept step by
 * step, since the order in which they come back matters to the kernel.
 * Returns 0 or a negative errno with message; then @base must not be used.
 */
int np_record_merge(struct np_actions *base, const struct np_actions *run,
		    struct np_err *err) np_must_check;

/*
 * What is left of @actions, of which nobody knows how many were done (a run that was killed),
 * or since undone by somebody: for each thing the last state in its chain that it is in now
 * counts, and what stands as before is left out. What is in none of them has been changed by
 * somebody and counts as done. @out is replaced. Returns 0 or -ENOMEM.
 */
int np_actions_net(const struct np_actions *actions, const struct np_now *now,
		   struct np_actions *out) np_must_check;

#endif
