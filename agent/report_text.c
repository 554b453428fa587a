/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "agent/report.h"
#include "agent/show.h"

/* ---- one line a thing: status, target, what is so; the fix below it ---- */

static const char *color_of(const char *status)
{
	if (strcmp(status, "ok") == 0 || strcmp(status, "done") == 0)
		return "\033[32m";
	if (strcmp(status, "fail") == 0 || strcmp(status, "failed") == 0)
		return "\033[31m";
	if (strcmp(status, "warn") == 0 || strcmp(status, "undone") == 0)
		return "\033[33m";
	return "";
}

static void add_line(struct np_buf *out, bool color, const char *status, const char *target,
		     const char *message)
{
	const char *paint = color ? color_of(status) : "";
	char shown[640];

	np_printable(status, shown, sizeof(shown));
	np_buf_printf(out, "  %s%-7s%s ", paint, shown, *paint ? "\033[0m" : "");
	np_buf_str(out, np_printable(target, shown, sizeof(shown)));
	np_buf_str(out, *message ? "  " : "");
	np_buf_str(out, np_printable(message, shown, sizeof(shown)));
	np_buf_str(out, "\n");
}

static void add_hint(struct np_buf *out, const char *code, const char *hint)
{
	char shown[640], safe_code[64];

	if (*hint)
		np_buf_printf(out, "          fix: %s [%s]\n",
			      np_printable(hint, shown, sizeof(shown)),
			      np_printable(code, safe_code, sizeof(safe_code)));
}

static void add_actions(const struct np_result *r, bool color, struct np_buf *out)
{
	for (size_t i = 0; i < r->actions.n; i++) {
		const struct np_action *a = &r->actions.v[i];
		char from[160], to[160], message[400];

		np_action_from(a, from, sizeof(from));
		np_action_to(a, to, sizeof(to));
		snprintf(message, sizeof(message), "%s%s%s%s%s", np_action_id(a),
			 *from || *to ? ": " : "", from, *from && *to ? " -> " : "", to);
		add_line(out, color, np_action_status_str(a->status), np_action_target(a), message);
	}
}

static void add_checks(const struct np_result *r, bool color, struct np_buf *out)
{
	for (size_t i = 0; i < r->checks.n; i++) {
		const struct np_check *c = &r->checks.v[i];

		add_line(out, color, np_check_status_str(c->status), c->target, c->message);
		if (c->status != NP_CHECK_OK && c->status != NP_CHECK_SKIP)
			add_hint(out, c->code, c->hint);
	}
}

static const char *member(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

static bool is_gpu_skip(const json_t *rung)
{
	return np_streq(member(rung, "code"), "selftest.no_gpu");
}

/* One line for all rungs that want a GPU, where there is none. */
static void add_gpu_skips(const struct np_result *r, bool color, struct np_buf *out)
{
	np_auto_buf struct np_buf names = { 0 };
	const json_t *rung;
	size_t i;

	json_array_foreach (r->selftest, i, rung)
		if (is_gpu_skip(rung))
			np_buf_printf(&names, "%s%s", names.len ? ", " : "", member(rung, "rung"));
	out->failed |= names.failed;
	if (names.data)
		add_line(out, color, "skip", names.data, "no NVIDIA GPU on this node");
}

static void add_rungs(const struct np_result *r, bool color, struct np_buf *out)
{
	const json_t *rung;
	size_t i;

	json_array_foreach (r->selftest, i, rung) {
		char target[160], message[1024];
		double latency = json_number_value(json_object_get(rung, "latency_us"));
		double bandwidth = json_number_value(json_object_get(rung, "bandwidth_MBps"));

		if (is_gpu_skip(rung))
			continue;
		snprintf(target, sizeof(target), "selftest %s%s%s", member(rung, "rung"),
			 *member(rung, "device") ? " " : "", member(rung, "device"));
		if (bandwidth > 0)
			snprintf(message, sizeof(message), "%s (%s: %.2f us, %.0f MB/s)",
				 member(rung, "message"), member(rung, "transport"), latency,
				 bandwidth);
		else
			snprintf(message, sizeof(message), "%s", member(rung, "message"));
		add_line(out, color, member(rung, "status"), target, message);
		if (strcmp(member(rung, "status"), "ok") != 0)
			add_hint(out, member(rung, "code"), member(rung, "hint"));
	}
	add_gpu_skips(r, color, out);
}

static size_t count_actions(const struct np_result *r, enum np_action_status status)
{
	size_t n = 0;

	for (size_t i = 0; i < r->actions.n; i++)
		n += r->actions.v[i].status == status;
	return n;
}

/* Skips do no harm, and prove nothing either. */
static bool nothing_tried(const struct np_result *r)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (r->selftest, i, entry)
		if (!np_streq(json_string_value(json_object_get(entry, "status")), "skip"))
			return false;
	return true;
}

static void add_verdict(const struct np_result *r, struct np_buf *out)
{
	size_t done = count_actions(r, NP_STATUS_DONE),
	       planned = count_actions(r, NP_STATUS_PLANNED);
	bool plan = strcmp(r->verb, "plan") == 0 || (strcmp(r->verb, "apply") == 0 && planned);

	np_buf_printf(out, "nodeprep %s: ", r->verb);
	if (r->error.num) {
		char shown[1024];

		np_buf_printf(out, "%s [%s]\n",
			      np_printable(r->error.message, shown, sizeof(shown)),
			      r->error.code[0] ? r->error.code : "internal");
		if (r->error.hint[0])
			np_buf_printf(out, "  fix: %s\n",
				      np_printable(r->error.hint, shown, sizeof(shown)));
		return;
	}
	if (plan) {
		np_buf_printf(out, planned ? "%zu change%s to make\n" : "nothing to do\n", planned,
			      planned == 1 ? "" : "s");
		return;
	}
	if (strcmp(r->verb, "revert") == 0) {
		if (planned)
			np_buf_printf(out, "%zu change%s to take back\n", planned,
				      planned == 1 ? "" : "s");
		else if (done)
			np_buf_printf(out, "%zu change%s taken back%s\n", done,
				      done == 1 ? "" : "s",
				      np_result_ready(r) ? "" : ", but not all");
		else
			np_buf_str(out,
				   np_result_ready(r) ? "nothing to revert\n" : "not taken back\n");
		return;
	}
	if (strcmp(r->verb, "confirm") == 0) {
		np_buf_str(out, r->checks.n ? "confirmed\n" : "nothing to confirm\n");
		return;
	}
	np_buf_str(out, np_result_ready(r) ? "ready" : "not ready");
	if (strcmp(r->verb, "selftest") == 0 && nothing_tried(r))
		np_buf_str(out, ", and no data path was tried");
	if (strcmp(r->verb, "apply") == 0)
		np_buf_printf(out, done ? ", %zu change%s made" : ", nothing to do", done,
			      done == 1 ? "" : "s");
	else if (planned)
		np_buf_printf(out, ", %zu change%s to make (nodeprep apply)", planned,
			      planned == 1 ? "" : "s");
	np_buf_str(out, "\n");
}

void np_report_text(const struct np_result *r, bool color, struct np_buf *out)
{
	if (r->show) {
		np_show_text(r->show, out);
		return;
	}
	add_actions(r, color, out);
	add_checks(r, color, out);
	add_rungs(r, color, out);
	add_verdict(r, out);
}

/* ---- Prometheus text exposition format 0.0.4 ---- */

/* Names from outside may hold anything; the format wants UTF-8. */
static void add_label(struct np_buf *out, const char *text)
{
	char shown[1024];

	for (const char *s = np_printable(text, shown, sizeof(shown)); *s; s++) {
		if (*s == '"' || *s == '\\')
			np_buf_str(out, "\\");
		np_buf_add(out, s, 1);
	}
}

/* One target can have several findings of one code; a series may stand there once. */
static bool is_repeated(const struct np_checks *checks, size_t i)
{
	const struct np_check *c = &checks->v[i];

	for (size_t k = 0; k < i; k++) {
		const struct np_check *other = &checks->v[k];

		if (other->status == c->status && strcmp(other->id, c->id) == 0 &&
		    strcmp(other->target, c->target) == 0 && strcmp(other->code, c->code) == 0)
			return true;
	}
	return false;
}

void np_report_prometheus(const struct np_result *r, struct np_buf *out)
{
	np_buf_printf(out,
		      "# HELP nodeprep_ready Whether the node is ready.\n"
		      "# TYPE nodeprep_ready gauge\nnodeprep_ready %d\n",
		      np_result_ready(r));
	np_buf_printf(out,
		      "# HELP nodeprep_pending_changes Changes that apply would make.\n"
		      "# TYPE nodeprep_pending_changes gauge\nnodeprep_pending_changes %zu\n",
		      count_actions(r, NP_STATUS_PLANNED));
	np_buf_str(out, "# HELP nodeprep_check 1 for the status that each check has.\n"
			"# TYPE nodeprep_check gauge\n");
	for (size_t i = 0; i < r->checks.n; i++) {
		const struct np_check *c = &r->checks.v[i];

		if (is_repeated(&r->checks, i))
			continue;
		np_buf_printf(out, "nodeprep_check{id=\"%s\",target=\"", c->id);
		add_label(out, c->target);
		np_buf_printf(out, "\",code=\"%s\",status=\"%s\"} 1\n", c->code,
			      np_check_status_str(c->status));
	}
}
