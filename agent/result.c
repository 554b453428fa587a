/* SPDX-License-Identifier: MIT */
#include "agent/result.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void np_checks_add(struct np_checks *list, const char *id, const char *target,
		   enum np_check_status status, const char *code, const char *hint, const char *fmt,
		   ...)
{
	struct np_check *v = reallocarray(list->v, list->n + 1, sizeof(*v));
	va_list args;

	if (!v) {
		list->failed = true;
		return;
	}
	list->v = v;
	v += list->n++;
	memset(v, 0, sizeof(*v));
	v->id = id;
	v->status = status;
	np_strcpy(v->target, sizeof(v->target), target);
	np_strcpy(v->code, sizeof(v->code), code);
	np_strcpy(v->hint, sizeof(v->hint), hint ? hint : "");
	va_start(args, fmt);
	vsnprintf(v->message, sizeof(v->message), fmt, args);
	va_end(args);
	/* names of files and what stands in them are part of it */
	np_one_line(v->target, sizeof(v->target));
	np_one_line(v->hint, sizeof(v->hint));
	np_one_line(v->message, sizeof(v->message));
}

void np_checks_done(struct np_checks *list)
{
	free(list->v);
	memset(list, 0, sizeof(*list));
}

const char *np_check_status_str(enum np_check_status s)
{
	static const char *const words[] = { "ok", "fail", "warn", "unknown", "skip" };

	return words[s];
}

void np_result_done(struct np_result *r)
{
	if (!r)
		return;
	np_actions_done(&r->actions);
	np_checks_done(&r->checks);
	json_decref(r->selftest);
	json_decref(r->show);
	memset(r, 0, sizeof(*r));
}

bool np_result_ready(const struct np_result *r)
{
	const json_t *rung;
	size_t i;

	if (!r->converged || r->error.num || r->checks.failed)
		return false;
	for (i = 0; i < r->checks.n; i++)
		if (r->checks.v[i].status == NP_CHECK_FAIL)
			return false;
	json_array_foreach (r->selftest, i, rung)
		if (np_streq(json_string_value(json_object_get(rung, "status")), "fail"))
			return false;
	return true;
}
