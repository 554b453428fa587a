/* SPDX-License-Identifier: MIT */
#include "selftest/ucx_verdict.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct np_ucx_wanted np_ucx_wanted[] = {
	{ "rc", "ib", "libuct_ib.so", { "rc_verbs", "rc_mlx5", NULL } },
	{ "cuda_copy", "cuda_cpy", "libuct_cuda.so", { "cuda_copy", NULL } },
	{ "cuda_ipc", "cuda_ipc", "libuct_cuda.so", { "cuda_ipc", NULL } },
	{ "gdr_copy", "gdr_copy", "libuct_cuda_gdrcopy.so", { "gdr_copy", NULL } },
	{ "tcp", "tcp", NULL, { "tcp", NULL } },
	{ NULL, NULL, NULL, { NULL } },
};

const char *np_ucx_status_str(enum np_ucx_status status)
{
	switch (status) {
	case NP_UCX_USABLE:
		return "usable";
	case NP_UCX_NOT_TRIED:
		return "not tried";
	case NP_UCX_NOT_USABLE:
		return "device not usable";
	default:
		return "built without";
	}
}

static bool is_wanted(const struct np_ucx_wanted *wanted, const char *transport)
{
	for (const char *const *name = wanted->transports; *name; name++)
		if (np_streq(*name, transport))
			return true;
	return false;
}

/* A device that works, else the last that does not. */
static const struct np_ucx_transport *find(const struct np_ucx_view *view,
					   const struct np_ucx_wanted *wanted)
{
	const struct np_ucx_transport *found = NULL;

	for (size_t i = 0; i < view->n_transports; i++) {
		if (!is_wanted(wanted, view->transports[i].name))
			continue;
		found = &view->transports[i];
		if (!found->failure[0])
			break;
	}
	return found;
}

/* A memory domain that could not be opened has no transports; it knows why. */
static const char *md_failure(const struct np_ucx_view *view, const struct np_ucx_wanted *wanted)
{
	for (size_t i = 0; i < view->n_mds; i++)
		if (view->mds[i].failure[0] && np_streq(view->mds[i].component, wanted->component))
			return view->mds[i].failure;
	return NULL;
}

void np_ucx_judge(const struct np_ucx_view *view, const struct np_ucx_wanted *wanted,
		  const struct np_ucx_evidence *evidence, bool brief, struct np_ucx_verdict *out)
{
	const struct np_ucx_transport *found = find(view, wanted);
	bool built = found || !wanted->module || np_strv_has(&view->components, wanted->component);
	const char *md;

	memset(out, 0, sizeof(*out));
	if (found && !found->failure[0]) {
		out->status = NP_UCX_USABLE;
		return;
	}
	out->status = NP_UCX_NOT_USABLE;
	if (!built && !evidence->module_path) {
		out->status = NP_UCX_BUILT_WITHOUT;
		snprintf(out->reason, sizeof(out->reason),
			 "UCX %s (%s) has no component %s and no module %s", view->version,
			 view->path, wanted->component, wanted->module);
	} else if (!built && evidence->module_error) {
		snprintf(out->reason, sizeof(out->reason), "%s cannot be loaded: %s",
			 evidence->module_path, evidence->module_error);
	} else if (brief) {
		out->status = NP_UCX_NOT_TRIED;
		snprintf(out->reason, sizeof(out->reason), "built in; no device was opened");
	} else if (found) {
		snprintf(out->reason, sizeof(out->reason), "%s cannot be opened: %s", found->device,
			 found->failure);
	} else if (evidence->device_error) {
		np_strcpy(out->reason, sizeof(out->reason), evidence->device_error);
	} else {
		md = md_failure(view, wanted);
		snprintf(out->reason, sizeof(out->reason), "UCX finds no device for it%s%s",
			 md ? ": " : "", md ? md : "");
	}
}

/* libuct_ib.so and libuct_ib.so.0, not libuct_ib.so.debug */
static bool is_module(const char *file, const char *module)
{
	size_t len = strlen(module);

	return strncmp(file, module, len) == 0 &&
	       (file[len] == '\0' ||
		(file[len] == '.' && file[len + 1] >= '0' && file[len + 1] <= '9'));
}

char *np_ucx_module_path(const char *library, const char *module)
{
	_cleanup_free_ char *real = realpath(library, NULL), *folder = NULL;
	_cleanup_closedir_ DIR *dir = NULL;
	const struct dirent *entry;

	if (!real)
		return NULL;
	*strrchr(real, '/') = '\0';
	folder = np_asprintf("%s/ucx", real);
	dir = folder ? opendir(folder) : NULL;
	while (dir && (entry = readdir(dir)))
		if (is_module(entry->d_name, module))
			return np_asprintf("%s/%s", folder, entry->d_name);
	return NULL;
}
