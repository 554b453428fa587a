/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_OPTIONS_H
#define NP_SELFTEST_OPTIONS_H

#include <stdbool.h>

#include "selftest/rung.h"

enum np_options_action {
	NP_OPTIONS_RUN,
	NP_OPTIONS_LIBRARIES,
	NP_OPTIONS_UCX_AT,
	NP_OPTIONS_LIST,
	NP_OPTIONS_VERSION,
	NP_OPTIONS_HELP
};

struct np_options {
	enum np_options_action action;
	const struct np_rung *rung;	     /* with NP_OPTIONS_RUN */
	struct np_rung_options rung_options; /* deadline not set */
	const char *ucx_at;		     /* with NP_OPTIONS_UCX_AT: a folder */
	bool verbose;
	bool lines;	  /* a document an entry */
	bool brief, nvml; /* with NP_OPTIONS_LIBRARIES */
	const char **env; /* NAME=VALUE of --env, into argv */
	size_t n_env;
};

extern const char np_options_help[];

/* Options before or after the rung, "--name value" or "--name=value". Returns 0
 * or -EINVAL with message (code "usage") and the nearest name; np_options_done
 * frees. The texts are those of @argv. */
int np_options_parse(int argc, char **argv, struct np_options *out,
		     struct np_err *err) np_must_check;
void np_options_done(struct np_options *options);
#define np_auto_options np_auto(np_options_done)

#endif
