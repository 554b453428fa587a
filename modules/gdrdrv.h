/* SPDX-License-Identifier: MIT */
#ifndef NP_MODULES_GDRDRV_H
#define NP_MODULES_GDRDRV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* The first rungs of gdrcopy's kernel side: registered major -> node -> open ->
 * handshake. It stops at the first that fails and keeps its errno; an errno of
 * -1 is a rung that was not reached. */
struct np_gdrdrv {
	int major;		/* from /proc/devices; -1 = not registered */
	bool node_exists;
	bool node_matches;	/* character device with that major */
	int open_errno;		/* 0 = opened; ENOENT = no node; -1 = not reached */
	int handshake_errno;	/* 0 = answered; -1 = not reached */
	uint32_t driver_version;      /* (major << 16) | minor */
	uint32_t min_library_version; /* same form */
	bool usable;		/* the handshake was answered and is new enough (2.0) */
};

/* Never fails, never blocks; a hostile file at /dev/gdrdrv is neither followed nor trusted. */
void np_gdrdrv_observe(struct np_gdrdrv *out);

#endif
