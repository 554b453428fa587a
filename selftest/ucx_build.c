/* SPDX-License-Identifier: MIT */
#include "selftest/ucx_build.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

/* through dlsym: the address of a function may be a stub of this program */
static const char *library_of(const char *function, const char *fallback)
{
	void *symbol = dlsym(RTLD_DEFAULT, function);
	Dl_info info;

	if (symbol && dladdr(symbol, &info) != 0 && info.dli_fname)
		return info.dli_fname;
	return fallback;
}

const char *np_ucx_library(void)
{
	return library_of("ucp_worker_create", "libucp");
}

bool np_ucx_of_one_piece(void)
{
	_cleanup_free_ char *ucp = realpath(np_ucx_library(), NULL);
	_cleanup_free_ char *uct = realpath(library_of("uct_iface_open", ""), NULL);
	const char *end = ucp ? strrchr(ucp, '/') : NULL;

	return uct && end && strncmp(ucp, uct, (size_t)(end + 1 - ucp)) == 0 &&
	       strrchr(uct, '/') - uct == end - ucp;
}

static bool has_component(const char *name)
{
	uct_component_h *components = NULL;
	unsigned int n = 0;
	bool found = false;

	if (uct_query_components(&components, &n) != UCS_OK)
		return false;
	for (unsigned int i = 0; i < n && !found; i++) {
		/* only fields that the mask names are written, so that a newer
		 * library with a longer structure does no harm */
		uct_component_attr_t attr = { .field_mask = UCT_COMPONENT_ATTR_FIELD_NAME };

		found = uct_component_query(components[i], &attr) == UCS_OK &&
			np_streq(attr.name, name);
	}
	uct_release_component_list(components);
	return found;
}

int np_ucx_component_check(const char *component, const char *rung, const char *hint,
			   struct np_err *err)
{
	if (has_component(component))
		return 0;
	np_err_set(err, -ENOENT, "ucx.transport_missing",
		   "UCX %s (%s) has no %s: its component %s is not built in and cannot be loaded",
		   ucp_get_version_string(), np_ucx_library(), rung, component);
	np_err_hint(err, "%s", hint);
	return -ENOENT;
}
