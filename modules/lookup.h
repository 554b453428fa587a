/* SPDX-License-Identifier: MIT */
#ifndef NP_MODULES_LOOKUP_H
#define NP_MODULES_LOOKUP_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* What is on disk about a module: whether it could be loaded, and what says no.
 * Opens libkmod, which costs milliseconds; np_kmod_observe (module.h) does not. */

enum np_kmod_origin {
	NP_KMOD_ORIGIN_NONE,	/* no file for this kernel */
	NP_KMOD_ORIGIN_KERNEL,	/* came with the kernel */
	NP_KMOD_ORIGIN_DKMS,	/* built on this machine */
	NP_KMOD_ORIGIN_UPDATES, /* vendor stack: these three win over the kernel's own */
	NP_KMOD_ORIGIN_EXTRA,
	NP_KMOD_ORIGIN_WEAK_UPDATES, /* built for another kernel of the same ABI */
	NP_KMOD_ORIGIN_OTHER,
};

struct np_kmod_lookup {
	char name[64];	 /* the module; where the name asked for is an alias, what it stands for */
	char kernel[65]; /* release it was looked up for */
	bool tree_missing; /* there is no /lib/modules/KERNEL at all */
	bool builtin;	   /* in modules.builtin: nothing to load */
	bool available;	   /* a file for this kernel, known to depmod */
	bool not_indexed;  /* a file for this kernel, which depmod has not seen */
	char *path;	   /* of the file; NULL = none */
	enum np_kmod_origin origin;
	char vendor[96]; /* the vendor stack's folder: "updates/dkms",
			  * "extra/mlnx-ofa_kernel"; "" = the kernel's own */

	/* what the file says; "" = nothing */
	char version[64];
	char license[64];
	char description[128];
	char vermagic[128];
	char signer[64];
	struct np_strv params;	 /* names */
	struct np_strv softdeps; /* names, before and after */

	bool blacklisted;      /* by modprobe.d or the kernel command line */
	char *install_command; /* "install NAME COMMAND" of modprobe.d; NULL = none. Never run */
	char said_by[160];     /* file of the blacklist or install line; "" = not found */

	struct np_strv other_kernels; /* releases that have it, where this one does not */
	char dkms[96];		      /* "gdrdrv/2.4": DKMS has its sources; "" = no */
	bool headers;		      /* the kernel's headers are there (for DKMS) */
};

/* Looks @name up for the running kernel. Returns 0, also when there is no such
 * module (then neither available nor builtin); -EINVAL for what is no module name
 * ("module.name"); -ENOENT without libkmod ("module.no_libkmod"); -ENOMEM. @out is
 * untouched on failure; np_kmod_lookup_done frees its contents. */
int np_kmod_look_up(const char *name, struct np_kmod_lookup *out, struct np_err *err) np_must_check;
void np_kmod_lookup_done(struct np_kmod_lookup *lookup);
#define np_auto_kmod_lookup np_auto(np_kmod_lookup_done)

/* "kernel", "dkms", "updates", "extra", "weak-updates", "other", "none" */
const char *np_kmod_origin_str(enum np_kmod_origin o);

/* Whether a load may be tried: 0, or -ENOENT "module.missing" (names the kernels that
 * have it; the hint names the DKMS step where DKMS has its sources), -EPERM
 * "module.blacklisted" (unless @ignore_blacklist), -EPERM "module.install_command". */
int np_kmod_loadable(const struct np_kmod_lookup *lookup, bool ignore_blacklist,
		     struct np_err *err) np_must_check;

#endif
