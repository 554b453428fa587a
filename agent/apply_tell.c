/* SPDX-License-Identifier: MIT */
#include "agent/apply_tell.h"

#include <string.h>

/* Why a module did not load, or its node was not made, is better told by the attempt. */
static void tell_module_failures(struct np_result *result)
{
	for (size_t i = 0; i < result->actions.n; i++) {
		const struct np_action *a = &result->actions.v[i];

		const char *name = a->kind == NP_ACTION_GDRDRV_NODE ? "gdrdrv" : a->module;

		if ((a->kind != NP_ACTION_MODULE && a->kind != NP_ACTION_GDRDRV_NODE) ||
		    a->status != NP_STATUS_FAILED)
			continue;
		for (size_t k = 0; k < result->checks.n; k++) {
			struct np_check *c = &result->checks.v[k];

			if (!np_streq(c->id, "module") || !np_streq(c->target, name) ||
			    c->status == NP_CHECK_OK)
				continue;
			np_strcpy(c->code, sizeof(c->code), a->failure_code);
			np_strcpy(c->hint, sizeof(c->hint), a->failure_hint);
			np_strcpy(c->message, sizeof(c->message), a->failure ? a->failure : "");
		}
	}
}

/* Files that could not be written, though nothing spoke against it before. */
static void add_file_failures(struct np_result *result)
{
	for (size_t i = 0; i < result->actions.n; i++) {
		const struct np_action *a = &result->actions.v[i];
		bool told = false;

		if (a->kind != NP_ACTION_FILE || a->status != NP_STATUS_FAILED)
			continue;
		for (size_t k = 0; k < result->checks.n; k++)
			told |= np_streq(result->checks.v[k].target, a->path) &&
				result->checks.v[k].status == NP_CHECK_FAIL;
		if (!told)
			np_checks_add(&result->checks, "file", a->path, NP_CHECK_FAIL,
				      a->user ? "file.home_refused" : "file.refused",
				      "put that right and run it again", "%s",
				      a->failure ? a->failure : "could not be written");
	}
}

void np_tell_failures(struct np_result *result)
{
	tell_module_failures(result);
	add_file_failures(result);
}
