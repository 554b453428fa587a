/* SPDX-License-Identifier: MIT */
/* What a consumer gets, a row a variable. Pure. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/consumer.h"
#include "agent/consumer_harm.h"
#include "agent/consumer_nccl.h"
#include "agent/consumer_ucx.h"
#include "agent/show_help.h"

/* One consumer's view: every setting that it sees, the strongest last. */
struct view {
	const struct np_consumer *c;
	const struct np_facts *facts;
	const char *label, *prefix;
	const char *always[3]; /* rows also for these, where nothing sets them */
	struct np_settings list;
	json_t *rows;
};

/* ---- the settings of a view ---- */

static bool is_lost(const struct np_settings *env, const char *name)
{
	const struct np_setting *s = np_settings_find(env, name, NULL);

	return !s || s->is_local;
}

static void append_env(struct view *v)
{
	const struct np_settings *env = &v->c->env;

	for (size_t i = 0; i < env->n; i++) {
		const struct np_setting *s = &env->v[i];
		enum np_setting_state state = s->state;
		struct np_setting *copy;

		if (!np_starts_with(s->name, v->prefix) || !s->value)
			continue;
		/* what was taken away again leaves the value of a file in force */
		if (state == NP_SETTING_TAKEN && is_lost(env, s->name))
			state = NP_SETTING_SKIPPED;
		copy = np_settings_add(&v->list, s->name, s->value, s->file, s->line, state);
		if (copy)
			copy->opaque = s->opaque;
	}
}

static void append_texts(struct view *v, enum np_consumer_role role, struct np_checks *notes)
{
	bool conda = np_streq(v->label, "ucx-conda");

	for (size_t i = 0; i < v->c->n_texts; i++) {
		const struct np_consumer_text *t = &v->c->texts[i];
		const char *data = t->text.data ? t->text.data : "";

		if (t->role != role || (conda ? t->not_conda : t->not_system))
			continue;
		if (role == NP_TEXT_UCX)
			np_ucx_conf_settings(&v->list, t->path, data, t->text.len, notes);
		else
			np_nccl_conf_settings(&v->list, t->path, data, t->text.len);
	}
}

static const struct np_consumer_text *text_of(const struct view *v, const struct np_setting *s,
					      enum np_consumer_role role)
{
	for (size_t i = 0; s && i < v->c->n_texts; i++)
		if (v->c->texts[i].role == role && np_streq(v->c->texts[i].path, s->file))
			return &v->c->texts[i];
	return NULL;
}

/* ---- findings ---- */

static const char *where(const struct np_setting *s, char out[128])
{
	if (s->line)
		snprintf(out, 128, "%.110s:%d", s->file, s->line);
	else
		np_strcpy(out, 128, s->file);
	return out;
}

static void judge_maybe(const struct view *v, const char *name, const struct np_setting *winner,
			struct np_checks *out)
{
	char at[128];

	for (size_t i = winner ? (size_t)(winner - v->list.v) + 1 : 0; i < v->list.n; i++) {
		const struct np_setting *s = &v->list.v[i];

		if (s->state != NP_SETTING_MAYBE || strcmp(s->name, name) != 0 ||
		    (winner && np_streq(winner->value, s->value)))
			continue;
		np_checks_add(
			out, "file", where(s, at), NP_CHECK_UNKNOWN, "consumer.maybe", NULL,
			"%s sets it to %.120s under a condition that cannot be told from here", at,
			s->value);
	}
}

static void judge_not_exported(const struct view *v, const char *name, struct np_checks *out)
{
	const struct np_setting *s = np_settings_find(&v->c->env, name, NULL);
	char at[128];

	if (s && s->is_local)
		np_checks_add(out, "file", where(s, at), NP_CHECK_WARN, "consumer.not_exported",
			      "write export in front of it",
			      "%s sets it and does not export it: programs do not get it", at);
}

static const struct np_setting *set_in(const struct view *v, const char *name,
				       enum np_consumer_role role)
{
	for (size_t i = 0; i < v->list.n; i++)
		if (v->list.v[i].state == NP_SETTING_TAKEN &&
		    strcmp(v->list.v[i].name, name) == 0 && text_of(v, &v->list.v[i], role))
			return &v->list.v[i];
	return NULL;
}

static void judge_nccl_file(const struct view *v, const struct np_setting *s, struct np_checks *out)
{
	const struct np_consumer_text *own = text_of(v, s, NP_TEXT_NCCL_USER);
	const struct np_setting *etc = set_in(v, s->name, NP_TEXT_NCCL_ETC);
	char at[128], at_etc[128];

	if (!own)
		return;
	where(s, at);
	if (etc && !np_streq(etc->value, s->value))
		np_checks_add(out, "file", at, NP_CHECK_WARN, "nccl.shadowed",
			      "take the line out of the user's file, or make both alike",
			      "%s wins over %s, which has %.100s", at, where(etc, at_etc),
			      etc->value);
	if (own->network_fs)
		np_checks_add(
			out, "file", at, NP_CHECK_WARN, "nccl.shared_home",
			"prefer /etc/nccl.conf ([nccl] scope = system) where the nodes' interfaces differ",
			"the home is on a network file system: every node that mounts it reads this file");
}

static void judge_dask(const struct view *v, const struct np_setting *s, struct np_checks *out)
{
	static const char *const names[] = { "UCX_TLS",
					     "UCX_NET_DEVICES",
					     "UCX_SOCKADDR_TLS_PRIORITY",
					     "UCX_MAX_RNDV_RAILS",
					     "UCX_MEMTYPE_REG_WHOLE_ALLOC_TYPES",
					     NULL };
	const char *const hint =
		"set it in one place: take the variable away where Dask starts, or the keys out of Dask's file";
	bool ours = false;

	for (size_t i = 0; names[i]; i++)
		ours |= np_streq(names[i], s->name);
	if (!ours || text_of(v, s, NP_TEXT_UCX))
		return;
	for (size_t i = 0; i < v->c->n_texts; i++) {
		const struct np_consumer_text *t = &v->c->texts[i];
		int line = t->role == NP_TEXT_DASK ?
				   np_dask_ucx_line(t->text.data ? t->text.data : "", t->text.len) :
				   0;

		if (line == 0)
			continue;
		np_checks_add(out, "file", t->path, NP_CHECK_WARN, "ucx.env_overrides_dask", hint,
			      "the environment wins over what %.100s:%d tells Dask about UCX",
			      t->path, line);
		return;
	}
	for (size_t i = 0; i < v->c->env.n; i++) {
		const struct np_setting *e = &v->c->env.v[i];

		if (!np_starts_with(e->name, "DASK_DISTRIBUTED_UCXX__") &&
		    !np_starts_with(e->name, "DASK_DISTRIBUTED__COMM__UCX__"))
			continue;
		np_checks_add(out, "file", e->name, NP_CHECK_WARN, "ucx.env_overrides_dask", hint,
			      "the environment wins over what %.100s tells Dask about UCX",
			      e->name);
		return;
	}
}

/* What the value does on this node. A process in another network sees other devices. */
static int judge_devices(const struct view *v, const char *name, const struct np_setting *s,
			 struct np_strv *matches, bool *matched, struct np_checks *out)
{
	const char *value = s ? s->value : NULL;
	char at[128] = "node";
	int r = 0;

	*matched = !v->c->other_netns && !(s && s->opaque);
	if (!*matched)
		return 0;
	if (s)
		where(s, at);
	if (np_streq(name, "NCCL_SOCKET_IFNAME"))
		r = np_nccl_judge_ifname(value, at, v->facts, matches, out);
	else if (np_streq(name, "NCCL_IB_HCA"))
		r = np_nccl_judge_hca(value, at, v->facts, matches, out);
	else if (np_streq(name, "UCX_NET_DEVICES"))
		r = np_ucx_judge_net_devices(value, at, v->facts, matches, out);
	else
		*matched = false;
	if (np_streq(name, "UCX_TLS")) {
		const struct np_setting *devices =
			np_settings_find(&v->list, "UCX_NET_DEVICES", NULL);

		if (!devices || !devices->opaque)
			np_ucx_judge_tls(value, devices ? devices->value : NULL, at, v->facts, out);
	}
	return r;
}

/* ---- rows ---- */

static json_t *source_json(const struct np_setting *s)
{
	return json_pack("{s:o, s:o}", "file", np_json_text(s->file), "line",
			 s->line ? json_integer(s->line) : json_null());
}

static json_t *overrides_json(const struct view *v, const char *name,
			      const struct np_setting *winner)
{
	static const char *const words[] = { "overridden", "maybe", "skipped" };
	json_t *list = json_array();

	for (size_t i = 0; i < v->list.n; i++) {
		const struct np_setting *s = &v->list.v[i];

		if (s == winner || strcmp(s->name, name) != 0)
			continue;
		json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:s}", "value",
						      np_json_text(s->value), "file",
						      np_json_text(s->file), "line",
						      s->line ? json_integer(s->line) : json_null(),
						      "state", words[s->state]));
	}
	return list;
}

static json_t *findings_json(const struct np_checks *checks)
{
	json_t *list = json_array();

	for (size_t i = 0; i < checks->n; i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:s}", "status",
						      np_check_status_str(checks->v[i].status),
						      "code", checks->v[i].code, "message",
						      np_json_text(checks->v[i].message), "hint",
						      checks->v[i].hint));
	return list;
}

/* Steals @source, @overrides and @findings. */
static int add_row(json_t *rows, const struct np_consumer *c, const char *label, const char *key,
		   const char *value, json_t *source, json_t *overrides, json_t *findings)
{
	json_t *row = json_pack("{s:o, s:o, s:o, s:s, s:o, s:o, s:o}", "section",
				np_json_text(c->name), "key", np_json_text(key), "value",
				value ? np_json_text(value) : json_null(), "consumer", label,
				"source", source ? source : json_null(), "overrides",
				overrides ? overrides : json_array(), "findings",
				findings ? findings : json_array());

	return json_array_append_new(rows, row) < 0 ? -ENOMEM : 0;
}

static int add_variable(struct view *v, const char *name)
{
	const struct np_setting *winner = np_settings_find(&v->list, name, NULL);
	np_auto(np_checks_done) struct np_checks checks = { 0 };
	np_auto_strv struct np_strv matches = { 0 };
	bool matched = false;
	char at[128];
	json_t *row;
	int r = judge_devices(v, name, winner, &matches, &matched, &checks);

	if (r < 0)
		return r;
	judge_maybe(v, name, winner, &checks);
	judge_not_exported(v, name, &checks);
	if (winner && np_streq(v->label, "nccl"))
		judge_nccl_file(v, winner, &checks);
	if (winner && np_starts_with(v->label, "ucx"))
		judge_dask(v, winner, &checks);
	if (winner && !winner->opaque)
		np_consumer_judge_harm(name, winner->value, where(winner, at), v->facts, &checks);
	if (checks.failed)
		return -ENOMEM;
	r = add_row(v->rows, v->c, v->label, name, winner ? winner->value : NULL,
		    winner ? source_json(winner) : NULL, overrides_json(v, name, winner),
		    findings_json(&checks));
	row = json_array_get(v->rows, json_array_size(v->rows) - 1);
	if (r == 0 && winner && winner->opaque)
		json_object_set_new(row, "as_written", json_true());
	if (r == 0 && matched)
		json_object_set_new(row, "matches", np_json_strv(&matches));
	return r;
}

static int add_view(struct view *v)
{
	np_auto_strv struct np_strv names = { 0 };
	int r = v->list.failed ? -ENOMEM : 0;

	for (size_t i = 0; v->always[i] && r == 0; i++)
		r = np_strv_add(&names, v->always[i]);
	for (size_t i = 0; i < v->list.n && r == 0; i++)
		if (np_starts_with(v->list.v[i].name, v->prefix) &&
		    !np_strv_has(&names, v->list.v[i].name))
			r = np_strv_add(&names, v->list.v[i].name);
	np_strv_sort_natural(&names);
	for (size_t i = 0; i < names.n && r == 0; i++)
		r = add_variable(v, names.v[i]);
	np_settings_done(&v->list);
	return r;
}

static int add_ucx(const struct np_consumer *c, const struct np_facts *facts, const char *label,
		   struct np_checks *notes, json_t *rows)
{
	struct view v = { .c = c,
			  .facts = facts,
			  .label = label,
			  .prefix = "UCX_",
			  .always = { "UCX_NET_DEVICES", "UCX_TLS" },
			  .rows = rows };

	append_texts(&v, NP_TEXT_UCX, notes);
	append_env(&v);
	return add_view(&v);
}

static int add_views(const struct np_consumer *c, const struct np_facts *facts,
		     struct np_checks *notes, json_t *rows)
{
	struct view nccl = { .c = c,
			     .facts = facts,
			     .label = "nccl",
			     .prefix = "NCCL_",
			     .always = { "NCCL_IB_HCA", "NCCL_SOCKET_IFNAME" },
			     .rows = rows };
	struct view dask = {
		.c = c, .facts = facts, .label = "dask", .prefix = "DASK_", .rows = rows
	};
	struct np_checks again = { 0 };
	int r;

	append_texts(&nccl, NP_TEXT_NCCL_ETC, notes);
	append_texts(&nccl, NP_TEXT_NCCL_USER, notes);
	append_env(&nccl);
	r = add_view(&nccl);
	if (r == 0)
		r = add_ucx(c, facts, "ucx", notes, rows);
	if (r == 0)
		r = add_ucx(c, facts, "ucx-conda", &again, rows);
	np_checks_done(&again);
	if (r < 0)
		return r;
	append_env(&dask);
	return add_view(&dask);
}

/* ---- libraries, limits, notes ---- */

static int add_libraries(const struct np_consumer *c, json_t *rows)
{
	int r = 0;

	for (size_t i = 0; i < c->n_libraries && r == 0; i++) {
		const struct np_consumer_library *lib = &c->libraries[i];

		r = add_row(rows, c, "library", lib->name, lib->path, NULL, NULL, NULL);
		if (r == 0)
			json_object_set_new(json_array_get(rows, json_array_size(rows) - 1),
					    "version", np_json_text_or_null(lib->version));
	}
	return r;
}

static int add_memlock(const struct np_consumer *c, const struct np_facts *facts, json_t *rows)
{
	np_auto(np_checks_done) struct np_checks checks = { 0 };
	uint64_t bytes = c->memlock.limit.soft;
	char soft[NP_MEMLOCK_STRLEN], hard[NP_MEMLOCK_STRLEN], value[2 * NP_MEMLOCK_STRLEN + 64];

	if (!c->memlock.known)
		return 0;
	snprintf(value, sizeof(value), "soft %s, hard %s",
		 np_memlock_str(c->memlock.limit.soft, soft),
		 np_memlock_str(c->memlock.limit.hard, hard));
	if (!c->memlock.text[0] || np_consumer_unit_memlock(c->memlock.text, &bytes))
		np_consumer_judge_memlock(bytes, "memlock", facts, &checks);
	if (checks.failed)
		return -ENOMEM;
	return add_row(rows, c, "limits", "memlock", c->memlock.text[0] ? c->memlock.text : value,
		       json_pack("{s:o, s:o}", "file", np_json_text(c->memlock.source), "line",
				 c->memlock.line ? json_integer(c->memlock.line) : json_null()),
		       NULL, findings_json(&checks));
}

static int add_notes(const struct np_consumer *c, const struct np_checks *notes, json_t *rows)
{
	int r = notes->failed ? -ENOMEM : 0;

	for (size_t i = 0; i < notes->n && r == 0; i++) {
		struct np_checks one = { .v = &notes->v[i], .n = 1 };

		r = add_row(rows, c, "note", notes->v[i].target, NULL, NULL, NULL,
			    findings_json(&one));
	}
	return r;
}

int np_consumer_rows(const struct np_consumer *c, const struct np_facts *facts, json_t *rows)
{
	np_auto(np_checks_done) struct np_checks notes = { 0 };
	int r = add_views(c, facts, &notes, rows);

	if (r == 0)
		r = add_libraries(c, rows);
	if (r == 0)
		r = add_memlock(c, facts, rows);
	if (r == 0)
		r = add_notes(c, &c->notes, rows);
	return r == 0 ? add_notes(c, &notes, rows) : r;
}
