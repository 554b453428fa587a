/* SPDX-License-Identifier: MIT */
/* `show config` of a user, a unit or a process for people. */
#include <stdio.h>
#include <string.h>

#include "agent/consumer.h"

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static void add_place(struct np_buf *out, const json_t *source)
{
	const char *file = text_of(source, "file");
	json_int_t line = json_integer_value(json_object_get(source, "line"));

	if (file)
		np_buf_str(out, file);
	if (line)
		np_buf_printf(out, ":%lld", (long long)line);
}

static void add_details(const json_t *row, struct np_buf *out)
{
	const json_t *matches = json_object_get(row, "matches"), *one;
	size_t i;

	if (matches) {
		np_buf_str(out, "\tuses ");
		json_array_foreach (matches, i, one)
			np_buf_printf(out, "%s%s", i ? "," : "", json_string_value(one));
		np_buf_str(out, json_array_size(matches) ? "\n" : "nothing\n");
	}
	json_array_foreach (json_object_get(row, "overrides"), i, one) {
		np_buf_printf(out, "\t%s: %s, ", text_of(one, "state"), text_of(one, "value"));
		add_place(out, one);
		np_buf_str(out, "\n");
	}
	json_array_foreach (json_object_get(row, "findings"), i, one) {
		const char *hint = text_of(one, "hint");

		np_buf_printf(out, "\t%s: %s%s%s [%s]\n", text_of(one, "status"),
			      text_of(one, "message"), hint && *hint ? "; " : "", hint ? hint : "",
			      text_of(one, "code"));
	}
}

/* The widths of name and value; a long one only shifts its own row. */
static void measure(const json_t *rows, int *key, int *value)
{
	const json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		const char *k = text_of(row, "key"), *v = text_of(row, "value");

		if (!text_of(row, "consumer") || !k)
			continue;
		if ((int)strlen(k) > *key && strlen(k) <= 32)
			*key = (int)strlen(k);
		if (v && (int)strlen(v) > *value && strlen(v) <= 48)
			*value = (int)strlen(v);
	}
}

void np_consumer_rows_text(const json_t *rows, struct np_buf *out)
{
	int key = 8, width = 7;
	const char *section = "";
	const json_t *row;
	size_t i;

	measure(rows, &key, &width);
	json_array_foreach (rows, i, row) {
		const char *value = text_of(row, "value"), *label = text_of(row, "consumer"),
			   *version = text_of(row, "version");

		if (!label)
			continue;
		if (strcmp(section, text_of(row, "section")) != 0) {
			section = text_of(row, "section");
			np_buf_printf(out, "%s\n%-9s  %-*s  %-*s  %s\n", section, "for", key,
				      "name", width, "value", "from");
		}
		np_buf_printf(out, "%-9s  %-*s  %-*s  ", label, key, text_of(row, "key"), width,
			      value ? value : "-");
		add_place(out, json_object_get(row, "source"));
		if (version)
			np_buf_printf(out, "version %s", version);
		while (out->len && out->data[out->len - 1] == ' ')
			out->data[--out->len] = '\0';
		np_buf_str(out, "\n");
		add_details(row, out);
	}
}
