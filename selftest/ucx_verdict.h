/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_UCX_VERDICT_H
#define NP_SELFTEST_UCX_VERDICT_H

#include "selftest/ucx_view.h"

/* Of the transports that a node of the guides stands on: there, or why not. */

enum np_ucx_status {
	NP_UCX_BUILT_WITHOUT, /* the library has no such code */
	NP_UCX_NOT_USABLE,    /* it has, and there is nothing that it could use */
	NP_UCX_NOT_TRIED,     /* it has; no device was opened */
	NP_UCX_USABLE,
};

const char *np_ucx_status_str(enum np_ucx_status status); /* "built without", ... */

struct np_ucx_wanted {
	const char *name;      /* as in UCX_TLS */
	const char *component; /* of UCT */
	const char *module;    /* beginning of its file's name; NULL = part of libuct itself */
	const char *transports[4];
};

extern const struct np_ucx_wanted np_ucx_wanted[]; /* name NULL ends */

/* What is known of a transport beside the view. */
struct np_ucx_evidence {
	const char *module_path; /* its file; NULL = there is none */
	const char
		*module_error; /* why that cannot be loaded; NULL = it can, or has not been tried */
	const char
		*device_error; /* why there is no device for it; NULL = nothing speaks against it */
};

struct np_ucx_verdict {
	enum np_ucx_status status;
	char reason[420]; /* "" when usable */
};

/* Pure. */
void np_ucx_judge(const struct np_ucx_view *view, const struct np_ucx_wanted *wanted,
		  const struct np_ucx_evidence *evidence, bool brief, struct np_ucx_verdict *out);

#endif
