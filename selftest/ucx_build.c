/* SPDX-License-Identifier: MIT */
#include "selftest/ucx_build.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>
#include <uct/api/uct.h>
#include <unistd.h>

static const char *library_of(const char *function, const char *otherwise)
{
	/* through dlsym: the address of a function may be a stub of this program */
	void *symbol = dlsym(RTLD_DEFAULT, function);
	Dl_info info;

	if (symbol && dladdr(symbol, &info) != 0 && info.dli_fname)
		return info.dli_fname;
	return otherwise;
}

const char *np_ucx_library(void)
{
	return library_of("ucp_worker_create", "libucp");
}

static bool is_beside(const char *real, const char *other)
{
	_cleanup_free_ char *path = realpath(other, NULL);
	const char *end = strrchr(real, '/');

	return path && end && strncmp(real, path, (size_t)(end + 1 - real)) == 0 &&
	       strrchr(path, '/') - path == end - real;
}

bool np_ucx_of_one_piece(void)
{
	_cleanup_free_ char *ucp = realpath(np_ucx_library(), NULL);

	return ucp && is_beside(ucp, library_of("uct_iface_open", "")) &&
	       is_beside(ucp, library_of("ucs_status_string", ""));
}

struct stray {
	const char *folder, *path;
};

static int find_stray(struct dl_phdr_info *object, size_t size, void *arg)
{
	static const char *const names[] = { "libucp.so.", "libuct.so.", "libucs.so.",
					     "libucm.so." };
	struct stray *stray = arg;
	const char *name = strrchr(object->dlpi_name, '/');
	_cleanup_free_ char *folder = NULL, *real = NULL;
	size_t len = strlen(stray->folder);
	bool is_ucx = false;

	(void)size;
	for (size_t i = 0; name && i < NP_ARRAY_SIZE(names); i++)
		is_ucx |= np_starts_with(name + 1, names[i]);
	if (!is_ucx)
		return 0;
	folder = np_asprintf("%.*s", (int)(name - object->dlpi_name), object->dlpi_name);
	real = folder ? realpath(folder, NULL) : NULL;
	if (real && strncmp(real, stray->folder, len) == 0 &&
	    (real[len] == '/' || real[len] == '\0'))
		return 0;
	stray->path = object->dlpi_name;
	return 1;
}

const char *np_ucx_not_from(const char *folder)
{
	struct stray stray = { .folder = folder };

	dl_iterate_phdr(find_stray, &stray);
	return stray.path;
}

static bool has_component(const char *name, unsigned int *devices)
{
	uct_component_h *components = NULL;
	unsigned int n = 0;
	bool found = false;

	if (uct_query_components(&components, &n) != UCS_OK)
		return false;
	for (unsigned int i = 0; i < n && !found; i++) {
		/* only fields that the mask names are written, so that a newer
		 * library with a longer structure does no harm */
		uct_component_attr_t attr = {
			.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME |
				      UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT,
		};

		found = uct_component_query(components[i], &attr) == UCS_OK &&
			np_streq(attr.name, name);
		*devices = found ? attr.md_resource_count : 0;
	}
	uct_release_component_list(components);
	return found;
}

bool np_ucx_find_module(const char *module, char folder[NP_UCX_PATH_MAX],
			char path[NP_UCX_PATH_MAX])
{
	const char *named = getenv("UCX_MODULE_DIR");
	const char *library = library_of("ucs_status_string", "");
	const char *slash = strrchr(library, '/');
	static const char *const suffixes[] = { "", ".0" };

	if (named)
		np_strcpy(folder, NP_UCX_PATH_MAX, named);
	else
		snprintf(folder, NP_UCX_PATH_MAX, "%.*s/ucx", slash ? (int)(slash - library) : 1,
			 slash ? library : ".");
	for (size_t i = 0; i < NP_ARRAY_SIZE(suffixes); i++) {
		if (snprintf(path, NP_UCX_PATH_MAX, "%s/%s%s", folder, module, suffixes[i]) <
			    NP_UCX_PATH_MAX &&
		    access(path, F_OK) == 0)
			return true;
	}
	return false;
}

static void missing(const struct np_ucx_need *need, struct np_err *err)
{
	char folder[NP_UCX_PATH_MAX], path[NP_UCX_PATH_MAX], why[320];
	void *handle;

	if (!np_ucx_find_module(need->module, folder, path)) {
		np_err_set(err, -ENOENT, "ucx.built_without",
			   "UCX %s (%s) is built without %s: no component %s, and no %s in %s",
			   ucp_get_version_string(), np_ucx_library(), need->what, need->component,
			   need->module, folder);
		np_err_hint(err, "%s", need->hint);
		return;
	}
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	np_printable(handle ? "it loads, but registers no such component" : dlerror(), why,
		     sizeof(why));
	np_err_set(err, -ENOENT, "ucx.transport_missing",
		   "UCX %s (%s) has %s in %s and cannot load it: %s", ucp_get_version_string(),
		   np_ucx_library(), need->what, path, why);
	np_err_hint(err, "install the library that is missing, or name its directory to the "
			 "dynamic linker");
}

int np_ucx_component_check(const struct np_ucx_need *need, struct np_err *err)
{
	unsigned int devices = 0;

	if (!has_component(need->component, &devices)) {
		missing(need, err);
		return -ENOENT;
	}
	if (devices > 0 || !need->no_device)
		return 0;
	np_err_set(err, -ENOENT, "ucx.device_unusable",
		   "UCX %s (%s) has %s, but its component %s finds no device that it can use",
		   ucp_get_version_string(), np_ucx_library(), need->what, need->component);
	np_err_hint(err, "%s", need->no_device);
	return -ENOENT;
}
