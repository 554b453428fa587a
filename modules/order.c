/* SPDX-License-Identifier: MIT */
/* What a module needs, in the order in which it is loaded: as modprobe's, soft dependencies
 * around each module. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "modules/kmod_lib.h"
#include "modules/load.h"
#include "modules/private.h"

static bool has_step(const struct np_kmod_lib *lib, const struct np_kmod_steps *steps,
		     const struct kmod_module *mod)
{
	for (size_t i = 0; i < steps->n; i++)
		if (np_streq(lib->module_get_name(steps->v[i].mod), lib->module_get_name(mod)))
			return true;
	return false;
}

static int add_step(const struct np_kmod_lib *lib, struct np_kmod_steps *steps,
		    struct kmod_module *mod)
{
	struct np_kmod_step *v = reallocarray(steps->v, steps->n + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	steps->v = v;
	v[steps->n++] = (struct np_kmod_step){ .mod = lib->module_ref(mod) };
	return 0;
}

static int add_with_softdeps(const struct np_kmod_lib *lib, struct np_kmod_steps *steps,
			     struct kmod_module *mod, int depth);

static int add_list(const struct np_kmod_lib *lib, struct np_kmod_steps *steps,
		    const struct kmod_list *list, int depth)
{
	const struct kmod_list *entry;
	int r = 0;

	np_kmod_foreach(lib, entry, list)
	{
		struct kmod_module *mod = lib->module_get_module(entry);

		if (r == 0)
			r = add_with_softdeps(lib, steps, mod, depth);
		lib->module_unref(mod);
	}
	return r;
}

/* Soft dependencies may name each other: @depth ends what has no end. */
static int add_with_softdeps(const struct np_kmod_lib *lib, struct np_kmod_steps *steps,
			     struct kmod_module *mod, int depth)
{
	struct kmod_list *before = NULL, *after = NULL, *needs;
	int r;

	if (depth > 16 || has_step(lib, steps, mod))
		return 0;
	if (lib->module_get_softdeps(mod, &before, &after) < 0)
		before = after = NULL;
	r = add_list(lib, steps, before, depth + 1);
	needs = lib->module_get_dependencies(mod); /* in order of loading */
	if (r == 0)
		r = add_list(lib, steps, needs, depth + 1);
	if (r == 0 && !has_step(lib, steps, mod))
		r = add_step(lib, steps, mod);
	if (r == 0)
		r = add_list(lib, steps, after, depth + 1);
	lib->module_unref_list(needs);
	lib->module_unref_list(before);
	lib->module_unref_list(after);
	return r;
}

/* Required: the module itself, and its hard dependencies of all levels. */
static void mark_required(const struct np_kmod_lib *lib, struct np_kmod_steps *steps,
			  const struct kmod_module *mod)
{
	struct kmod_list *needs = lib->module_get_dependencies(mod);

	for (size_t i = 0; i < steps->n; i++) {
		const char *name = lib->module_get_name(steps->v[i].mod);
		const struct kmod_list *entry;

		steps->v[i].required = np_streq(name, lib->module_get_name(mod));
		np_kmod_foreach(lib, entry, needs)
		{
			struct kmod_module *dep = lib->module_get_module(entry);

			steps->v[i].required |= np_streq(lib->module_get_name(dep), name);
			lib->module_unref(dep);
		}
	}
	lib->module_unref_list(needs);
}

int np_kmod_order(const struct np_kmod_lib *lib, struct kmod_ctx *ctx, const char *name,
		  struct np_kmod_steps *out)
{
	struct np_kmod_steps steps = { 0 };
	struct kmod_module *mod = NULL;
	int r = lib->module_new_from_name(ctx, name, &mod) < 0 ? -ENOMEM : 0;

	if (r == 0)
		r = add_with_softdeps(lib, &steps, mod, 0);
	if (r < 0) {
		np_kmod_steps_done(lib, &steps);
	} else {
		mark_required(lib, &steps, mod);
		*out = steps;
	}
	lib->module_unref(mod);
	return r;
}

void np_kmod_steps_done(const struct np_kmod_lib *lib, struct np_kmod_steps *steps)
{
	for (size_t i = 0; i < steps->n; i++)
		lib->module_unref(steps->v[i].mod);
	free(steps->v);
	memset(steps, 0, sizeof(*steps));
}

enum np_kmod_stage np_kmod_forbidden(const struct np_kmod_lib *lib, const struct kmod_ctx *ctx,
				     struct kmod_module *mod, bool ignore_blacklist)
{
	const char *path = lib->module_get_path(mod);

	if (!path || access(path, F_OK) < 0) /* removed since depmod ran */
		return NP_KMOD_STAGE_MISSING;
	if (lib->module_get_install_commands(mod))
		return NP_KMOD_STAGE_COMMAND;
	if (!ignore_blacklist && np_kmod_blacklisted(lib, ctx, lib->module_get_name(mod)))
		return NP_KMOD_STAGE_BLACKLIST;
	return NP_KMOD_STAGE_NONE;
}

int np_kmod_brings_at(const struct np_kmod_place *place, const char *name, bool ignore_blacklist,
		      struct np_strv *out, struct np_err *err)
{
	const struct np_kmod_lib *lib = np_kmod_lib_open(err);
	np_auto_strv struct np_strv names = { 0 };
	struct np_kmod_steps steps = { 0 };
	struct kmod_ctx *ctx;
	char plain[64];
	int r;

	if (!lib)
		return -ENOENT;
	if (!np_kmod_normal_name(name, plain, sizeof(plain)))
		return np_err_set(err, -EINVAL, "module.name", "not the name of a module");
	ctx = np_kmod_ctx_new(lib, place, err);
	if (!ctx)
		return -ENOMEM;
	r = np_kmod_order(lib, ctx, plain, &steps);
	for (size_t i = 0; i < steps.n && r == 0; i++) {
		struct kmod_module *mod = steps.v[i].mod;
		const char *step = lib->module_get_name(mod);

		if (!np_streq(step, plain) && lib->module_get_initstate(mod) == -ENOENT &&
		    np_kmod_forbidden(lib, ctx, mod, ignore_blacklist) == NP_KMOD_STAGE_NONE)
			r = np_strv_add(&names, step);
	}
	np_kmod_steps_done(lib, &steps);
	lib->unref(ctx);
	if (r < 0)
		return np_err_nomem(err);
	*out = names;
	memset(&names, 0, sizeof(names));
	return 0;
}

int np_kmod_brings(const char *name, bool ignore_blacklist, struct np_strv *out, struct np_err *err)
{
	const struct np_kmod_place here = { 0 };

	return np_kmod_brings_at(&here, name, ignore_blacklist, out, err);
}
