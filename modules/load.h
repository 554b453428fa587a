/* SPDX-License-Identifier: MIT */
#ifndef NP_MODULES_LOAD_H
#define NP_MODULES_LOAD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

/* Loading one module, with what it needs. Nothing here ever unloads or restarts anything. */

struct np_kmod_load_spec {
	const char *name;
	const char *options;   /* "a=1 b=2", after those of modprobe.d; NULL = none */
	int timeout_ms;	       /* > 0 */
	bool ignore_blacklist; /* else a blacklisted module is refused */
};

struct np_kmod_load_result {
	bool loaded_now;	    /* false: it was there already, or the load failed */
	struct np_strv also_loaded; /* dependencies that came with it, in order */
	char module[64];	    /* what failed: @name or a dependency; "" = nothing did */
	int load_errno;		    /* what the kernel said to it (positive); 0 = nothing */
	char log_line[256];	    /* the kernel's own word on it; "" = none readable */
	pid_t abandoned;	    /* the child that was left in the kernel; 0 = none */
};

/*
 * Loads a module with its dependencies and soft dependencies. Already loaded or built
 * in: 0, and nothing is done. The work is done by a forked child with an empty
 * environment, no descriptor but /dev/null and a pipe, in a session of its own,
 * deaf to signals. At the deadline a child that is inside the kernel is abandoned, never killed
 * (half an init can be worse than a slow one): it stops after that module, holds
 * nothing of the caller's, and is reaped by init after the caller's end; a caller that
 * lives on may waitpid() for @abandoned. Commands of "install" lines are never run.
 * A signal to the caller does not cut the wait short.
 *
 * @result is filled on failure too (what was loaded before it stays loaded);
 * np_kmod_load_result_done frees. Returns 0 or a negative errno with one of
 *   module.name, module.no_libkmod, module.missing, module.blacklisted,
 *   module.install_command (see lookup.h)
 *   module.option           options that cannot be, or a value that the module refuses
 *   module.unsupported      the kernel is built without loadable modules
 *   module.modules_disabled /proc/sys/kernel/modules_disabled is 1
 *   privilege.module        CAP_SYS_MODULE is lacking
 *   module.key_rejected     signature refused, or kernel lockdown
 *   module.vermagic         built for another kernel
 *   module.format           not a module, or damaged
 *   module.unknown_symbol   a symbol is lacking, or has another version
 *   module.init_failed      the module's own init said no; errno in @result
 *   module.timeout          -ETIMEDOUT; see @result->abandoned
 */
int np_kmod_load(const struct np_kmod_load_spec *spec, struct np_kmod_load_result *result,
		 struct np_err *err) np_must_check;
/*
 * What a load of @name would bring along: hard and soft dependencies of all levels that are
 * not loaded now and that nothing forbids, in the order of loading, without @name itself.
 * Loads nothing. Returns 0, -ENOMEM, -EINVAL ("module.name"), -ENOENT ("module.no_libkmod");
 * @out is untouched on failure, np_strv_done frees.
 */
int np_kmod_brings(const char *name, bool ignore_blacklist, struct np_strv *out,
		   struct np_err *err) np_must_check;
void np_kmod_load_result_done(struct np_kmod_load_result *result);
#define np_auto_kmod_load_result np_auto(np_kmod_load_result_done)

#endif
