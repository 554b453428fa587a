/* SPDX-License-Identifier: MIT */
#include "agent/libraries.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/helper.h"

#define BRIEF_TIMEOUT_MS 15000

/* @list NULL in the end: see @why. Returns -EINTR, -ENOMEM or 0. */
static int run(const char *const *names, int timeout_ms, json_t **list, struct np_err *why)
{
	np_auto_child_result struct np_child_result result = { 0 };
	np_auto_helper struct np_helper helper = { .program_fd = -1 };
	char timeout[16];
	bool nvlink = names == np_library_names_nvlink;
	bool brief = nvlink || names == np_library_names_brief;
	const char *const argv[] = { NP_HELPER_PROGRAM,
				     "--libraries",
				     "--timeout-ms",
				     timeout,
				     brief ? "--brief" : NULL,
				     nvlink ? "--nvml" : NULL,
				     NULL };
	int r = np_helper_open(NULL, false, &helper, why);

	/* its own deadline comes first, so that it can still say what hung */
	snprintf(timeout, sizeof(timeout), "%d",
		 timeout_ms > 12000 ? timeout_ms - 5000 : timeout_ms / 2);
	if (r == 0)
		r = np_helper_run(&helper,
				  &(const struct np_helper_job){ .name = "looking at the libraries",
								 .argv = argv,
								 .quiet = brief,
								 .timeout_ms = timeout_ms },
				  &result, why);
	if (r < 0)
		return r == -EINTR || r == -ENOMEM ? r : 0;
	if (!result.timed_out && !result.term_signal)
		*list = np_libraries_take(result.out.data ? result.out.data : "", result.out.len,
					  names);
	if (!*list)
		np_helper_failure(&result, NP_HELPER_PROGRAM " --libraries", timeout_ms, why);
	return 0;
}

int np_libraries_ask(bool nvlink, struct np_libraries *out, struct np_err *err)
{
	struct np_libraries found = { .asked = true };
	json_t *list = NULL;
	int r = run(nvlink ? np_library_names_nvlink : np_library_names_brief, BRIEF_TIMEOUT_MS,
		    &list, &found.err);

	if (r < 0) {
		*err = found.err;
		return r;
	}
	if (list)
		np_libraries_learn(list, &found);
	json_decref(list);
	*out = found;
	return 0;
}

int np_libraries_show(const char *const *names, int timeout_ms, json_t **list, struct np_err *err)
{
	struct np_err why = { 0 };
	json_t *found = NULL;
	int r = run(names, timeout_ms, &found, &why);

	if (r < 0) {
		*err = why;
		return r;
	}
	if (!found)
		found = np_libraries_unknown(names, &why);
	if (!found)
		return np_err_nomem(err);
	*list = found;
	return 0;
}
