/* SPDX-License-Identifier: MIT */
#include "modules/kmod_lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/str.h"
#include "modules/private.h"

#define SONAME "libkmod.so.2"

const struct np_kmod_lib *np_kmod_lib_open(struct np_err *err)
{
	static struct np_kmod_lib lib;
	static bool ready;
	void *handle;

	if (ready)
		return &lib;
	handle = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		np_err_set(err, -ENOENT, "module.no_libkmod", "cannot open " SONAME ": %s",
			   dlerror());
		np_err_hint(err, "install libkmod (Debian: libkmod2, RPM: kmod-libs)");
		return NULL;
	}
#define LOAD(f) \
	*(void **)(&lib.f) = dlsym(handle, "kmod_" #f); \
	if (!lib.f) { \
		dlclose(handle); \
		np_err_set(err, -ENOENT, "module.no_libkmod", SONAME " has no function kmod_%s", \
			   #f); \
		np_err_hint(err, "install libkmod of kmod 22 or newer"); \
		return NULL; \
	}
	NP_KMOD_FUNCTIONS(LOAD)
#undef LOAD
	ready = true;
	return &lib;
}

const char *const np_modprobe_dirs[] = {
	"/etc/modprobe.d",     "/run/modprobe.d", "/usr/local/lib/modprobe.d",
	"/usr/lib/modprobe.d", "/lib/modprobe.d", NULL,
};

struct kmod_ctx *np_kmod_ctx_new(const struct np_kmod_lib *lib, const struct np_kmod_place *place,
				 struct np_err *err)
{
	char paths[8][PATH_MAX], dir[PATH_MAX];
	const char *config[8] = { NULL };
	struct utsname kernel = { 0 };
	bool here = !place->root && !place->release; /* then libkmod knows best */
	struct kmod_ctx *ctx;

	if (!here) {
		uname(&kernel);
		snprintf(dir, sizeof(dir), "%s/lib/modules/%s", place->root ? place->root : "",
			 place->release ? place->release : kernel.release);
		for (size_t i = 0; np_modprobe_dirs[i]; i++) {
			snprintf(paths[i], sizeof(paths[i]), "%s%s", place->root ? place->root : "",
				 np_modprobe_dirs[i]);
			config[i] = paths[i];
		}
	}
	ctx = lib->new (here ? NULL : dir, here ? NULL : config);
	if (!ctx) {
		np_err_set(err, -ENOMEM, "module.no_libkmod", "libkmod cannot start");
		return NULL;
	}
	lib->set_log_fn(ctx, NULL, NULL);
	return ctx;
}

bool np_kmod_blacklisted(const struct np_kmod_lib *lib, const struct kmod_ctx *ctx,
			 const char *name)
{
	struct kmod_config_iter *it = lib->config_get_blacklists(ctx);
	bool found = false;

	while (!found && it && lib->config_iter_next(it))
		found = np_kmod_same_name(lib->config_iter_get_key(it), name);
	if (it)
		lib->config_iter_free_iter(it);
	return found;
}
