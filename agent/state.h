/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_STATE_H
#define NP_AGENT_STATE_H

#include "base/file.h"

/*
 * The folder that holds the undo: /var/lib/nodeprep, root's alone (0700). Where that is
 * on a read-only file system it is /run/nodeprep/state, until the node boots again; what
 * lies there then counts before what lies in the other one.
 */

#define NP_STATE_DIR	   "/var/lib/nodeprep"
#define NP_STATE_DIR_RUN   "/run/nodeprep/state"
#define NP_STATE_JOURNAL   "journal.json" /* while a run is under way or unconfirmed */
#define NP_STATE_RECORD	   "record.json"  /* what there was before */
#define NP_STATE_LIBRARIES "libraries"	  /* the last census did not pass (census.h) */
#define NP_STATE_MAX	   (256 << 20)

struct np_state {
	int dirfd;   /* to write to; -1 until np_state_open */
	bool in_run; /* it is the one in /run */
};

#define NP_STATE_INIT \
	{ \
		.dirfd = -1 \
	}

/* Makes and opens the folder to write to. Returns 0 or a negative errno with message:
 * "state.unsafe" (a symlink, not root's, or others may write to it), "state.unwritable". */
int np_state_open(struct np_state *st, struct np_err *err) np_must_check;
void np_state_close(struct np_state *st);
#define np_auto_state np_auto(np_state_close)

/* Its path, for people. */
const char *np_state_path(const struct np_state *st);

/* Reads file @name of the folder that counts; needs no np_state_open and makes nothing.
 * Returns 0, -ENOENT (there is none: one failed open for each folder), or another negative
 * errno with message ("state.unsafe", "state.unreadable"). *in_run (or NULL): where it was. */
int np_state_read(const char *name, struct np_buf *out, bool *in_run,
		  struct np_err *err) np_must_check;

/* Replaces a file of the open folder, synced. Returns 0 or a negative errno with message
 * ("state.unwritable"). */
int np_state_write(const struct np_state *st, const char *name, const char *text, size_t len,
		   struct np_err *err) np_must_check;

/* Removes it from both folders, as far as it is there; never fails. */
void np_state_remove(const char *name);

/* Removes what a run that was killed while it wrote such a file left beside it. */
void np_state_sweep(void);

/* Moves a file that must not be used out of the way, as NAME.WHY-N.json; @as gets the path
 * (or "" where it could not be moved: then it is still not used). */
void np_state_set_aside(const char *name, const char *why, char *as, size_t size);

/* Who we are. machine: /etc/machine-id, "" where the node has none (yet). boot: changes with
 * each boot. Both are empty where they cannot be read. */
struct np_state_id {
	char machine[64];
	char boot[64];
};
void np_state_identify(struct np_state_id *id);

#endif
