/* SPDX-License-Identifier: MIT */
#ifndef NP_MODULES_MODULE_H
#define NP_MODULES_MODULE_H

#include <stdbool.h>

#include "base/str.h"

/* Kernel modules by /sys/module (which also knows built-in ones), so that it
 * works where /proc/modules does not exist. */

enum np_kmod_state {
	NP_KMOD_UNKNOWN,
	NP_KMOD_ABSENT,	 /* not in /sys/module */
	NP_KMOD_BUILTIN, /* there, without initstate */
	NP_KMOD_LIVE,
	NP_KMOD_COMING,
	NP_KMOD_GOING,
};

struct np_kmod_lookup; /* lookup.h */

struct np_kmod {
	char name[64];
	enum np_kmod_state state;
	char version[64];	       /* "" = none given */
	int refcnt;		       /* -1 = unknown */
	struct np_kmod_lookup *lookup; /* owned; NULL until np_kmods_look_up */
	bool load_failed;	       /* set by a caller that tried: not to be tried again */
};

struct np_kmods {
	struct np_kmod *v;
	size_t n;
};

/* The state of one module; '-' and '_' in @name are the same, as in kmod.
 * Never fails: what cannot be read is unknown. */
void np_kmod_observe(const char *name, struct np_kmod *out);
const char *np_kmod_state_str(enum np_kmod_state s); /* "live", "builtin", "absent", ... */

/* The modules that nodeprep knows, with what each is for; ends with name NULL.
 * The list is also what a configuration may name. */
struct np_kmod_info {
	const char *name;
	const char *purpose;
};
extern const struct np_kmod_info np_kmod_known[];

/* State of every known module, in list order; with @whole version and use count too.
 * Returns 0 or -ENOMEM. */
int np_kmods_observe(bool whole, struct np_kmods *out, struct np_err *err) np_must_check;
/* Adds what is on disk about module @name (NULL = all of the list) to those that have
 * no lookup yet. Costs milliseconds: not for a run that has nothing to do. Returns 0,
 * or the error of np_kmod_look_up; then what was added before stays. */
int np_kmods_look_up(struct np_kmods *list, const char *name, struct np_err *err) np_must_check;
void np_kmods_done(struct np_kmods *list);
const struct np_kmod *np_kmods_find(const struct np_kmods *list, const char *name);

#endif
