/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_UNDO_ROOM_H
#define NP_AGENT_UNDO_ROOM_H

#include "agent/action.h"

/*
 * The undo keeps files of homes whole, and what is in them is their owners' choice. Together
 * they must not grow into a journal or record that cannot be read back (NP_STATE_MAX).
 */

/* Bytes of what is kept for the files of homes, over all runs since before the first: as JSON at
 * most twice that in each of the record's two lists, half of NP_STATE_MAX. */
#define NP_UNDO_HOMES_MAX (32 << 20)
/* A file of a few lines is never left out. */
#define NP_UNDO_HOME_SMALL 4096

/* @base is what is kept already, @actions from @from on are the next to be run. Where they are
 * too much, the largest of them are made failed actions with a reason and moved to the front.
 * Returns from where on they are to be run. Pure. */
size_t np_undo_make_room(const struct np_actions *base, struct np_actions *actions,
			 size_t from) np_must_check;

#endif
