/* SPDX-License-Identifier: MIT */
#ifndef NP_MODULES_USE_H
#define NP_MODULES_USE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "modules/module.h"

/* Who uses a module, and taking one away that nobody uses. */

struct np_kmod_use {
	char name[64];
	enum np_kmod_state state;
	int refcnt; /* of programs, file systems and holders; -1 = unknown */
	bool holders_known;
	struct np_strv holders; /* modules that use it; each is one of refcnt */
	bool has_devices;	/* a driver of it is bound to one, or that cannot be told */
};

/* Never fails: what cannot be read is unknown, which counts as used. np_kmod_use_done frees. */
void np_kmod_use_observe(const char *name, struct np_kmod_use *out);
void np_kmod_use_done(struct np_kmod_use *use);
#define np_auto_kmod_use np_auto(np_kmod_use_done)

/* Why it must not be taken away, in a few words in @why, which is returned; NULL: it may.
 * @going (NULL = none): modules that go before it, and with them their use of it. Only modules
 * whose use count tells of every user may go: those behind a device file, and those that serve
 * other modules alone (configfs: a mounted one counts). ib_ipoib is none, since its netdevs may
 * be in another network namespace, nor is a driver, or what GPU memory hangs on. Pure. */
#define NP_KMOD_WHY_SIZE 128
const char *np_kmod_kept(const struct np_kmod_use *use, const struct np_strv *going,
			 char why[NP_KMOD_WHY_SIZE]);

/* delete_module(2) with O_NONBLOCK and without O_TRUNC: the kernel itself refuses where
 * somebody uses it after all. Nothing that it depends on goes along. Returns 0 (also when it
 * is not there) or a negative errno with message, code "module.unload". */
int np_kmod_unload(const char *name, struct np_err *err) np_must_check;

#endif
