/* SPDX-License-Identifier: MIT */
#ifndef NP_MODULES_USE_H
#define NP_MODULES_USE_H

#include <stdbool.h>

#include "base/err.h"
#include "modules/module.h"

/* Who uses a module, and taking one away that nobody uses. */

struct np_kmod_use {
	char name[64];
	enum np_kmod_state state;
	int refcnt;	  /* -1 = unknown */
	int n_holders;	  /* modules that use it; -1 = unknown */
	bool has_devices; /* a driver of it is bound to one, or that cannot be told */
};

/* Never fails: what cannot be read is unknown, which counts as used. */
void np_kmod_use_observe(const char *name, struct np_kmod_use *out);

/* Why it must not be taken away, in a few words; NULL: it may. Only modules whose use count
 * tells of every user may go: those behind a device file. ib_ipoib is none, since its netdevs
 * may be in another network namespace, nor is a driver, or what GPU memory hangs on. Pure. */
const char *np_kmod_kept(const struct np_kmod_use *use);

/* delete_module(2) with O_NONBLOCK and without O_TRUNC: the kernel itself refuses where
 * somebody uses it after all. Nothing that it depends on goes along. Returns 0 (also when it
 * is not there) or a negative errno with message, code "module.unload". */
int np_kmod_unload(const char *name, struct np_err *err) np_must_check;

#endif
