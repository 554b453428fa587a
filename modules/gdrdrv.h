/* SPDX-License-Identifier: MIT */
#ifndef NP_MODULES_GDRDRV_H
#define NP_MODULES_GDRDRV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/file.h"
#include "modules/gpu.h"

struct np_kmod_lookup;

#define NP_GDRDRV_NODE "/dev/gdrdrv" /* where libgdrapi looks for it */

/* The first rungs of gdrcopy's kernel side: registered major -> node -> open ->
 * handshake. It stops at the first that fails and keeps its errno; an errno of
 * -1 is a rung that was not reached. */
struct np_gdrdrv {
	int major; /* from /proc/devices; -1 = not registered */
	bool node_exists;
	bool node_matches;	      /* character device with that major */
	int open_errno;		      /* 0 = opened; ENOENT = no node; -1 = not reached */
	int handshake_errno;	      /* 0 = answered; -1 = not reached */
	uint32_t driver_version;      /* (major << 16) | minor */
	uint32_t min_library_version; /* same form */
	bool usable;		      /* the handshake was answered and is new enough (2.0) */
	struct np_file_attr node;     /* mode and owner; valid when @node_matches */
	/* of the loaded driver, which tells since 2.4 */
	enum np_gpu_flavour built_for;
	int persistent_mapping; /* 1 = on, 0 = off, -1 = not told */
};

/* Never fails, never blocks; a hostile file at /dev/gdrdrv is neither followed nor trusted. */
void np_gdrdrv_observe(struct np_gdrdrv *out);

/*
 * Without gdrdrv libgdrapi can map GPU memory through a dma-buf: release 2.6 of gdrcopy
 * brought that, and it needs a CUDA driver 13.3 or newer (gdrcopy's README and NEWS).
 * @library is (major << 16) | minor, @cuda what cuDriverGetVersion gives (13030 = 13.3);
 * 0 = unknown, which is never enough. Pure.
 */
#define NP_GDR_DMABUF_LIBRARY (2u << 16 | 6)
#define NP_GDR_DMABUF_CUDA    13030

bool np_gdr_dmabuf_backend(uint32_t library, int cuda);

/* What the gdrdrv module on disk was built for, by its description (2.4 and newer). */
enum np_gpu_flavour np_gdrdrv_built_for(const struct np_kmod_lookup *lookup);

/* Mode and owner that the node shall have unless configured: those of /dev/nvidiactl,
 * else 0666 of root, as gdrcopy's own insmod.sh makes it. Never fails. */
void np_gdrdrv_default_attr(struct np_file_attr *out);

/* What np_gdrdrv_make_node did. */
enum np_gdrdrv_made {
	NP_GDRDRV_UNCHANGED,
	NP_GDRDRV_CREATED,
	NP_GDRDRV_REPLACED, /* something else was there: it is gone */
	NP_GDRDRV_ADJUSTED, /* the right node; only mode or owner were changed */
};

/*
 * Makes /dev/gdrdrv the character device @node_major:0 with @attr. It is made under a
 * name of its own with mode 0 and gets owner and mode through its descriptor, then it
 * is moved into place in one step: at no moment does the name lead to anything half
 * made, and what somebody else puts there in between is not overwritten. A wrong node,
 * regular file, FIFO, socket or symlink of root is replaced (a symlink is not followed);
 * a right node of another owner as well. Returns 0 or a negative errno with
 *   gdrdrv.node_unsafe  /dev is not root's alone, or what is there is a directory, a
 *                       mount point or not root's: nothing is touched
 *   gdrdrv.node_busy    it changed while we looked, several times (-EAGAIN)
 *   privilege.mknod     CAP_MKNOD is lacking (a container)
 *   gdrdrv.node_failed  anything else
 * @made may be NULL; it is untouched on failure.
 */
int np_gdrdrv_make_node(int node_major, const struct np_file_attr *attr, enum np_gdrdrv_made *made,
			struct np_err *err) np_must_check;

/* For undoing a CREATED: removes /dev/gdrdrv if it is the character device
 * @node_major:0. Returns 0, also when there is none or another; or a negative errno
 * ("gdrdrv.node_failed"). */
int np_gdrdrv_remove_node(int node_major, struct np_err *err) np_must_check;

/* Removes what a run that was killed while it made the node left beside it. Returns 0, or the
 * negative errno of what could not be removed. */
int np_gdrdrv_sweep(void);

#endif
