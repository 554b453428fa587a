/* SPDX-License-Identifier: MIT */
/* The census as rows, for JSON and for people. Pure. */
#include <stdio.h>
#include <string.h>

#include "agent/census.h"
#include "agent/json_text.h"

static json_t *tri(enum np_tri t)
{
	return t == NP_TRI_UNKNOWN ? json_null() : json_boolean(t == NP_TRI_YES);
}

static json_t *path_of(const struct np_library_file *f)
{
	_cleanup_free_ char *path = np_asprintf("%s%s%s", f->folder, *f->name ? "/" : "", f->name);

	return path ? np_json_text(path) : NULL;
}

static json_t *features(const struct np_library_file *f)
{
	if (f->kind != NP_LIBRARY_UCP && f->kind != NP_LIBRARY_UCT)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o}", "verbs", tri(f->verbs), "cuda", tri(f->cuda),
			 "gdr_copy", tri(f->gdr_copy), "mt", tri(f->mt));
}

/* Who gets it, and for whom which other one comes first. */
static void add_uses(const struct np_census *c, const struct np_library_file *f, json_t *row)
{
	json_t *used = json_array(), *hidden = json_array();

	for (size_t i = 0; i < c->n_consumers && f->loadable; i++) {
		const struct np_census_consumer *who = &c->consumers[i];
		const struct np_library_file *first = np_census_find(c, who, f->name, 0);

		if (first == f)
			json_array_append_new(used, np_json_text(who->name));
		for (size_t nth = 1; first && first != f; nth++) {
			const struct np_library_file *other = np_census_find(c, who, f->name, nth);

			if (!other)
				break;
			if (other == f)
				json_array_append_new(hidden, json_pack("{s:o, s:o}", "for",
									np_json_text(who->name),
									"by", path_of(first)));
		}
	}
	json_object_set_new(row, "used_by", used);
	json_object_set_new(row, "hidden", hidden);
}

static json_t *row_of(const struct np_census *c, const struct np_library_file *f)
{
	json_t *row = json_object();

	json_object_set_new(row, "kind", json_string(np_library_kind_str(f->kind)));
	json_object_set_new(row, "path", path_of(f));
	json_object_set_new(row, "target", np_json_text_or_null(f->target));
	json_object_set_new(row, "soname", np_json_text_or_null(f->soname));
	json_object_set_new(row, "version", np_json_text_or_null(f->version));
	json_object_set_new(row, "version_by", np_json_text_or_null(f->version_by));
	json_object_set_new(row, "features", features(f));
	json_object_set_new(row, "place", json_string(np_library_place_str(f->place)));
	json_object_set_new(row, "where", np_json_text_or_null(f->where));
	json_object_set_new(row, "user", np_json_text_or_null(f->user));
	json_object_set_new(row, "environment", np_json_text_or_null(f->environment));
	json_object_set_new(row, "loadable", json_boolean(f->loadable));
	json_object_set_new(row, "in_cache", tri(f->cached));
	add_uses(c, f, row);
	json_object_set_new(row, "problem", np_json_text_or_null(f->problem));
	return row;
}

/* What is not shown is told. */
static bool add_cut(const struct np_census *c, json_t *rows)
{
	struct np_library_file more = { .kind = NP_LIBRARY_FOLDER,
					.folder = "/",
					.problem = "there is more than the census looks at" };

	return !c->cut || json_array_append_new(rows, row_of(c, &more)) == 0;
}

json_t *np_census_rows(const struct np_census *c)
{
	json_t *rows = json_array();

	for (size_t i = 0; rows && i < c->n; i++) {
		/* one whose text was lost for want of memory has no path */
		json_t *row = row_of(c, &c->files[i]);

		if (!json_object_get(row, "path") || json_array_append_new(rows, row) < 0) {
			json_decref(rows);
			return NULL;
		}
	}
	if (rows && !add_cut(c, rows)) {
		json_decref(rows);
		return NULL;
	}
	return rows;
}

/* ---- text ---- */

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static void add_features(const json_t *features, struct np_buf *out)
{
	const char *key;
	json_t *value;
	bool any = false;

	json_object_foreach ((json_t *)features, key, value) {
		np_buf_printf(out, "%s%s %s", any ? ", " : "\t", key,
			      json_is_null(value) ? "?" :
			      json_is_true(value) ? "yes" :
						    "no");
		any = true;
	}
	if (any)
		np_buf_str(out, "\n");
}

static void add_row(const json_t *row, struct np_buf *out)
{
	const char *version = text_of(row, "version"), *target = text_of(row, "target"),
		   *where = text_of(row, "where"), *problem = text_of(row, "problem"),
		   *by = text_of(row, "version_by");
	const json_t *in_cache = json_object_get(row, "in_cache"), *one;
	size_t i;

	np_buf_printf(out, "%s%s%s: %s%s%s\n", text_of(row, "kind"), version ? " " : "",
		      version ? version : "", text_of(row, "path"), target ? " -> " : "",
		      target ? target : "");
	if (problem)
		np_buf_printf(out, "\tnot read: %s\n", problem);
	np_buf_printf(out, "\tfound by %s%s%s%s%s%s%s\n", text_of(row, "place"), where ? " (" : "",
		      where ? where : "", where ? ")" : "",
		      json_is_null(in_cache) ? "" :
		      json_is_true(in_cache) ? ", in the loader cache" :
					       ", not in the loader cache",
		      by ? ", version by " : "", by ? by : "");
	add_features(json_object_get(row, "features"), out);
	json_array_foreach (json_object_get(row, "used_by"), i, one)
		np_buf_printf(out, "%s%s", i ? ", " : "\tused by ", json_string_value(one));
	if (json_array_size(json_object_get(row, "used_by")))
		np_buf_str(out, "\n");
	json_array_foreach (json_object_get(row, "hidden"), i, one)
		np_buf_printf(out, "\thidden for %s by %s\n", text_of(one, "for"),
			      text_of(one, "by"));
}

void np_census_rows_text(const json_t *rows, struct np_buf *out)
{
	const json_t *row;
	size_t i;

	if (json_array_size(rows) == 0)
		np_buf_str(out, "no NCCL, UCX or libgdrapi was found\n");
	json_array_foreach (rows, i, row)
		add_row(row, out);
}
