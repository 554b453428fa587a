/* SPDX-License-Identifier: MIT */
#include "selftest/ucx_verdict.h"

#include <stdio.h>
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
