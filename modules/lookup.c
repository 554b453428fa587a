/* SPDX-License-Identifier: MIT */
#include "modules/lookup.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "modules/kmod_lib.h"
#include "modules/private.h"

const char *np_kmod_origin_str(enum np_kmod_origin o)
{
	switch (o) {
	case NP_KMOD_ORIGIN_KERNEL:
		return "kernel";
	case NP_KMOD_ORIGIN_DKMS:
		return "dkms";
	case NP_KMOD_ORIGIN_UPDATES:
		return "updates";
	case NP_KMOD_ORIGIN_EXTRA:
		return "extra";
	case NP_KMOD_ORIGIN_WEAK_UPDATES:
		return "weak-updates";
	case NP_KMOD_ORIGIN_OTHER:
		return "other";
	case NP_KMOD_ORIGIN_NONE:
		break;
	}
	return "none";
}

/* By the folder below /lib/modules/RELEASE, where depmod's search order puts vendors
 * before the kernel's own; of a vendor's folder, two levels name the stack. */
static void set_origin(const char *tree, const char *path, struct np_kmod_lookup *out)
{
	static const struct {
		const char *folder;
		enum np_kmod_origin origin;
	} known[] = {
		{ "kernel/", NP_KMOD_ORIGIN_KERNEL },
		{ "updates/dkms/", NP_KMOD_ORIGIN_DKMS },
		{ "updates/", NP_KMOD_ORIGIN_UPDATES },
		{ "extra/", NP_KMOD_ORIGIN_EXTRA },
		{ "weak-updates/", NP_KMOD_ORIGIN_WEAK_UPDATES },
	};
	const char *slash;
	size_t len = strlen(tree);

	out->origin = NP_KMOD_ORIGIN_OTHER;
	if (strncmp(path, tree, len) != 0 || path[len] != '/')
		return;
	path += len + 1;
	for (size_t i = 0; i < NP_ARRAY_SIZE(known); i++)
		if (np_starts_with(path, known[i].folder)) {
			out->origin = known[i].origin;
			break;
		}
	if (out->origin == NP_KMOD_ORIGIN_KERNEL || !(slash = strchr(path, '/')))
		return;
	if (strchr(slash + 1, '/') && !np_starts_with(slash, "/drivers/") &&
	    !np_starts_with(slash, "/kernel/"))
		slash = strchr(slash + 1, '/');
	snprintf(out->vendor, sizeof(out->vendor), "%.*s", (int)(slash - path), path);
}

/* ---- what the file says ---- */

static int add_param(struct np_kmod_lookup *out, const char *value)
{
	char name[64];

	/* parm is "NAME:description", parmtype "NAME:type": both, or one alone */
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(value, ":"), value);
	return np_strv_has(&out->params, name) ? 0 : np_strv_add(&out->params, name);
}

static int read_info(const struct np_kmod_lib *lib, const struct kmod_module *mod,
		     struct np_kmod_lookup *out)
{
	const struct {
		const char *key;
		char *text;
		size_t size;
	} texts[] = {
		{ "version", out->version, sizeof(out->version) },
		{ "license", out->license, sizeof(out->license) },
		{ "description", out->description, sizeof(out->description) },
		{ "vermagic", out->vermagic, sizeof(out->vermagic) },
		{ "signer", out->signer, sizeof(out->signer) },
	};
	struct kmod_list *info = NULL;
	const struct kmod_list *entry;
	int r = 0;

	if (lib->module_get_info(mod, &info) < 0)
		return 0; /* not readable, not a module: loading it says so */
	np_kmod_foreach(lib, entry, info)
	{
		const char *key = lib->module_info_get_key(entry);
		const char *value = lib->module_info_get_value(entry);

		for (size_t i = 0; i < NP_ARRAY_SIZE(texts); i++)
			if (strcmp(key, texts[i].key) == 0)
				np_printable(value, texts[i].text, texts[i].size);
		if (r == 0 && (strcmp(key, "parm") == 0 || strcmp(key, "parmtype") == 0))
			r = add_param(out, value);
	}
	lib->module_info_free_list(info);
	return r;
}

static int add_softdeps(const struct np_kmod_lib *lib, const struct kmod_module *mod,
			struct np_kmod_lookup *out)
{
	struct kmod_list *lists[2] = { NULL, NULL };
	int r = 0;

	if (lib->module_get_softdeps(mod, &lists[0], &lists[1]) < 0)
		return 0;
	for (size_t i = 0; i < 2; i++) {
		const struct kmod_list *entry;

		np_kmod_foreach(lib, entry, lists[i])
		{
			struct kmod_module *dep = lib->module_get_module(entry);

			if (r == 0)
				r = np_strv_add(&out->softdeps, lib->module_get_name(dep));
			lib->module_unref(dep);
		}
		lib->module_unref_list(lists[i]);
	}
	return r;
}

/* ---- one module ---- */

/* What @name stands for: itself where there is such a module, else the first that an
 * alias leads to (Debian calls nvidia nvidia-current). NULL with *@off for "alias NAME
 * off", the old way to forbid one. */
static struct kmod_module *resolve(const struct np_kmod_lib *lib, struct kmod_ctx *ctx,
				   const char *name, bool *off)
{
	struct kmod_module *mod = NULL, *first = NULL;
	struct kmod_list *list = NULL;
	const struct kmod_list *entry;

	if (lib->module_new_from_lookup(ctx, name, &list) >= 0)
		np_kmod_foreach(lib, entry, list)
		{
			struct kmod_module *m = lib->module_get_module(entry);

			if (strcmp(lib->module_get_name(m), name) == 0 && !mod)
				mod = lib->module_ref(m);
			else if (!first)
				first = lib->module_ref(m);
			lib->module_unref(m);
		}
	lib->module_unref_list(list);
	if (!mod && first) {
		mod = lib->module_ref(first);
		if (strcmp(lib->module_get_name(mod), "off") == 0) {
			*off = true;
			lib->module_unref(mod);
			mod = NULL;
		}
	}
	if (first)
		lib->module_unref(first);
	if (!mod && lib->module_new_from_name(ctx, name, &mod) < 0)
		return NULL;
	return mod;
}

/* modprobe.d's word on it, and where that is written. */
static int read_config(const struct np_kmod_lib *lib, const struct kmod_ctx *ctx,
		       const struct kmod_module *mod, const char *root, struct np_kmod_lookup *out)
{
	const char *command = lib->module_get_install_commands(mod);

	if (command) {
		out->install_command = strdup(command);
		if (!out->install_command)
			return -ENOMEM;
		np_kmod_find_config(root, "install", out->name, out->said_by, sizeof(out->said_by));
	}
	if (!out->blacklisted) /* else by "alias NAME off" */
		out->blacklisted = np_kmod_blacklisted(lib, ctx, out->name);
	if (out->blacklisted &&
	    !np_kmod_find_config(root, "blacklist", out->name, out->said_by, sizeof(out->said_by)))
		np_kmod_find_config(root, "alias", out->name, out->said_by, sizeof(out->said_by));
	return 0;
}

/* Nothing for this kernel: who else has it, and who could build it. */
static int read_missing(const char *tree, const char *root, struct np_kmod_lookup *out)
{
	_cleanup_free_ char *modules_dir = strdup(tree);
	char path[PATH_MAX];
	char *slash;

	if (!modules_dir)
		return -ENOMEM;
	out->tree_missing = access(tree, F_OK) < 0;
	out->path = np_kmod_find_file(tree, out->name);
	if (out->path) {
		out->not_indexed = true;
		set_origin(tree, out->path, out);
	}
	slash = strrchr(modules_dir, '/');
	if (slash)
		*slash = '\0';
	np_kmod_find_dkms(root, out->name, out->dkms, sizeof(out->dkms));
	snprintf(path, sizeof(path), "%s/build/Makefile", tree);
	out->headers = access(path, F_OK) == 0;
	return np_kmod_other_kernels(modules_dir, out->kernel, out->name, &out->other_kernels);
}

static int fill(const struct np_kmod_lib *lib, struct kmod_ctx *ctx, const char *root,
		struct np_kmod_lookup *out)
{
	const char *tree = lib->get_dirname(ctx), *path;
	struct kmod_module *mod = resolve(lib, ctx, out->name, &out->blacklisted);
	int r;

	if (!mod)
		return -ENOMEM;
	np_kmod_normal_name(lib->module_get_name(mod), out->name, sizeof(out->name));
	path = lib->module_get_path(mod);
	if (path && access(path, F_OK) < 0) /* removed since depmod ran */
		path = NULL;
	out->builtin = !path && lib->module_get_initstate(mod) == KMOD_MODULE_BUILTIN;
	r = read_config(lib, ctx, mod, root, out);
	if (r == 0 && path) {
		out->available = true;
		set_origin(tree, path, out);
		out->path = strdup(path);
		r = out->path ? read_info(lib, mod, out) : -ENOMEM;
		if (r == 0)
			r = add_softdeps(lib, mod, out);
	} else if (r == 0 && !out->builtin) {
		r = read_missing(tree, root, out);
	}
	lib->module_unref(mod);
	return r;
}

int np_kmod_look_up_at(const struct np_kmod_place *place, const char *name,
		       struct np_kmod_lookup *out, struct np_err *err)
{
	struct np_kmod_lookup new = { 0 };
	const struct np_kmod_lib *lib;
	struct utsname kernel = { 0 };
	struct kmod_ctx *ctx;
	char shown[96];
	int r;

	if (!np_kmod_normal_name(name, new.name, sizeof(new.name)))
		return np_err_set(err, -EINVAL, "module.name", "\"%s\" is no name of a module",
				  np_printable(name, shown, sizeof(shown)));
	lib = np_kmod_lib_open(err);
	if (!lib)
		return -ENOENT;
	ctx = np_kmod_ctx_new(lib, place, err);
	if (!ctx)
		return -ENOMEM;
	uname(&kernel);
	np_strcpy(new.kernel, sizeof(new.kernel), place->release ? place->release : kernel.release);
	r = fill(lib, ctx, place->root ? place->root : "", &new);
	lib->unref(ctx);
	if (r < 0) {
		np_kmod_lookup_done(&new);
		return np_err_nomem(err);
	}
	*out = new;
	return 0;
}

int np_kmod_look_up(const char *name, struct np_kmod_lookup *out, struct np_err *err)
{
	const struct np_kmod_place here = { 0 };

	return np_kmod_look_up_at(&here, name, out, err);
}

void np_kmod_lookup_done(struct np_kmod_lookup *lookup)
{
	if (!lookup)
		return;
	free(lookup->path);
	free(lookup->install_command);
	np_strv_done(&lookup->params);
	np_strv_done(&lookup->softdeps);
	np_strv_done(&lookup->other_kernels);
	memset(lookup, 0, sizeof(*lookup));
}
