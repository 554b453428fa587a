/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_SELFTEST_RUN_H
#define NP_AGENT_SELFTEST_RUN_H

#include <jansson.h>

#include "agent/facts.h"
#include "agent/select.h"

/* How the rungs are run. */
struct np_rung_options {
	const struct np_strv *rungs; /* names; empty = all */
	const char *run_as;	     /* user; NULL = nobody */
	bool as_root;
	bool full;
	bool force;		   /* also where somebody's job uses the HCA */
	int timeout_ms;		   /* of each rung */
	const struct np_strv *env; /* NAME=VALUE, may be NULL */
	const char *library_path;  /* of another UCX (ucx_prefix.h), or NULL */
};

/*
 * Runs the rungs of nodeprep-selftest (ladder.h), one child each; what stands on a
 * broken rung is skipped. Each entry goes to @entries (an array of the schema's
 * "selftest"); a child that crashes, hangs or prints no document is a failed rung.
 * Returns 0, or a negative errno with message when no rung could be run at all.
 */
int np_selftest_run(const struct np_config *cfg, const struct np_facts *facts,
		    const struct np_selection *sel, const struct np_rung_options *options,
		    json_t *entries, struct np_err *err) np_must_check;

#endif
