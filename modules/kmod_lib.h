/* SPDX-License-Identifier: MIT */
#ifndef NP_MODULES_KMOD_LIB_H
#define NP_MODULES_KMOD_LIB_H

#include <libkmod.h>

#include "base/cleanup.h"
#include "base/err.h"

/*
 * libkmod, opened at run time: it pulls in libcrypto and is the slowest library to
 * start, and most runs load nothing. Types come from <libkmod.h>, so the compiler
 * checks each call; nothing is linked. The soname libkmod.so.2 and these functions
 * have been stable since kmod 5 (2012), get_dirname since 22 (2015).
 */
#define NP_KMOD_FUNCTIONS(X) \
	X(new) \
	X(unref) \
	X(set_log_fn) \
	X(get_dirname) \
	X(list_next) \
	X(config_get_blacklists) \
	X(config_iter_get_key) \
	X(config_iter_next) \
	X(config_iter_free_iter) \
	X(module_new_from_name) \
	X(module_new_from_lookup) \
	X(module_ref) \
	X(module_unref) \
	X(module_unref_list) \
	X(module_get_module) \
	X(module_get_name) \
	X(module_get_path) \
	X(module_get_options) \
	X(module_get_install_commands) \
	X(module_get_dependencies) \
	X(module_get_softdeps) \
	X(module_get_initstate) \
	X(module_get_info) \
	X(module_info_get_key) \
	X(module_info_get_value) \
	X(module_info_free_list) \
	X(module_insert_module)

struct np_kmod_lib {
#define NP_KMOD_MEMBER(f) __typeof__(kmod_##f) *f; /* NOLINT(bugprone-macro-parentheses) */
	NP_KMOD_FUNCTIONS(NP_KMOD_MEMBER)
#undef NP_KMOD_MEMBER
};

/* The library, opened on the first call and never closed. NULL with @err (-ENOENT,
 * "module.no_libkmod") where it is absent or lacks a function. */
const struct np_kmod_lib *np_kmod_lib_open(struct np_err *err) np_must_check;

#define np_kmod_foreach(lib, entry, list) \
	for ((entry) = (list); (entry); (entry) = (lib)->list_next((list), (entry)))

/* Where kernels, their configuration and module sources are looked for. All zeroes:
 * this machine and its running kernel. Tests name a tree of their own. */
struct np_kmod_place {
	const char *root;    /* stands for "/"; NULL = "/" */
	const char *release; /* kernel release; NULL = the running one */
};

/* A context of @lib for @place; the library says nothing on stderr. NULL with @err
 * when out of memory. lib->unref frees. */
struct kmod_ctx *np_kmod_ctx_new(const struct np_kmod_lib *lib, const struct np_kmod_place *place,
				 struct np_err *err) np_must_check;

/* modprobe.d of the configuration names @name on a blacklist; '-' and '_' are the same. */
bool np_kmod_blacklisted(const struct np_kmod_lib *lib, const struct kmod_ctx *ctx,
			 const char *name);

#endif
