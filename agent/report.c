/* SPDX-License-Identifier: MIT */
#include "agent/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/json_text.h"

static int add_action(json_t *list, const struct np_action *a)
{
	char from[160], to[160];

	return json_array_append_new(list,
				     json_pack("{s:s, s:o, s:o, s:o, s:s}", "id", np_action_id(a),
					       "target", np_json_text(np_action_target(a)), "from",
					       np_json_text(np_action_from(a, from, sizeof(from))),
					       "to", np_json_text(np_action_to(a, to, sizeof(to))),
					       "status", np_action_status_str(a->status)));
}

static int add_check(json_t *list, const struct np_check *c)
{
	return json_array_append_new(list, json_pack("{s:s, s:o, s:s, s:s, s:o, s:o}", "id", c->id,
						     "target", np_json_text(c->target), "status",
						     np_check_status_str(c->status), "code",
						     c->code, "message", np_json_text(c->message),
						     "hint", np_json_text(c->hint)));
}

json_t *np_report_json(const struct np_result *r)
{
	json_t *actions = json_array(), *checks = json_array(), *doc;
	int bad = 0;

	for (size_t i = 0; i < r->actions.n; i++)
		bad |= add_action(actions, &r->actions.v[i]);
	for (size_t i = 0; i < r->checks.n; i++)
		bad |= add_check(checks, &r->checks.v[i]);
	doc = json_pack("{s:i, s:s, s:s, s:b, s:b, s:o, s:o, s:o}", "schema", 1, "verb", r->verb,
			"version", NP_VERSION, "changed", r->changed, "ready", np_result_ready(r),
			"actions", actions, "checks", checks, "selftest",
			r->selftest ? json_incref(r->selftest) : json_array());
	if (doc && r->show)
		bad |= json_object_set(doc, "show", r->show);
	if (doc && r->error.num)
		bad |= json_object_set_new(doc, "error",
					   json_pack("{s:s, s:o, s:o}", "code",
						     r->error.code[0] ? r->error.code : "internal",
						     "message", np_json_text(r->error.message),
						     "hint", np_json_text(r->error.hint)));
	if (!doc || bad) {
		json_decref(doc);
		return NULL;
	}
	return doc;
}

static int print_json(const struct np_result *r)
{
	json_t *doc = np_report_json(r);
	int bad;

	if (!doc)
		return -ENOMEM;
	/* not raw: U+009B starts a command to a terminal, others turn the order of a line */
	bad = json_dumpf(doc, stdout,
			 JSON_INDENT(2) | JSON_REAL_PRECISION(12) | JSON_ENSURE_ASCII);
	json_decref(doc);
	return bad < 0 || putchar('\n') == EOF ? -EIO : 0;
}

static bool want_color(void)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no_color && *no_color) && term && !np_streq(term, "dumb");
}

int np_report(const struct np_result *r, enum np_format format)
{
	np_auto_buf struct np_buf out = { 0 };
	int rc = 0;

	if (format == NP_FORMAT_JSON) {
		rc = print_json(r);
	} else {
		if (format == NP_FORMAT_PROMETHEUS)
			np_report_prometheus(r, &out);
		else
			np_report_text(r, want_color(), &out);
		if (out.failed)
			return -ENOMEM;
		if (out.len && fwrite(out.data, 1, out.len, stdout) != out.len)
			rc = -EIO;
	}
	if (fflush(stdout) != 0)
		rc = -EIO;
	return rc;
}
