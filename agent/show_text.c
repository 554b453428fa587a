/* SPDX-License-Identifier: MIT */
/* `show` for people, in the words of ibstatus and ip. */
#include <stdio.h>
#include <string.h>

#include "agent/consumer.h"
#include "agent/show.h"
#include "agent/show_help.h"

static const char *word(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "unknown";
}

/* A line that is left out when there is nothing to say. */
static void optional(struct np_buf *out, const char *label, const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	if (s)
		np_buf_printf(out, "\t%-15s %s\n", label, s);
}

static void lid(struct np_buf *out, const char *label, const json_t *value)
{
	if (json_is_integer(value))
		np_buf_printf(out, "\t%-15s 0x%llx\n", label,
			      (unsigned long long)json_integer_value(value));
	else
		np_buf_printf(out, "\t%-15s unknown\n", label);
}

static void joined(struct np_buf *out, const json_t *list, const char *separator)
{
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item)
		np_buf_printf(out, "%s%s", i ? separator : "", json_string_value(item));
}

static void text_ports(const json_t *list, struct np_buf *out)
{
	const json_t *p;
	size_t i;

	if (json_array_size(list) == 0)
		np_buf_str(out, "no ports\n");
	json_array_foreach (list, i, p) {
		const json_t *unreadable = json_object_get(p, "unreadable");

		np_buf_printf(out, "%s:%lld\n", word(p, "ca"),
			      (long long)json_integer_value(json_object_get(p, "port")));
		np_buf_printf(out, "\t%-15s %s\n", "state:", word(p, "state"));
		np_buf_printf(out, "\t%-15s %s\n", "phys state:", word(p, "phys_state"));
		np_buf_printf(out, "\t%-15s %s\n", "rate:", word(p, "rate"));
		lid(out, "base lid:", json_object_get(p, "lid"));
		lid(out, "sm lid:", json_object_get(p, "sm_lid"));
		np_buf_printf(out, "\t%-15s %s\n", "default gid:", word(p, "gid"));
		np_buf_printf(out, "\t%-15s %s\n", "link layer:", word(p, "link_layer"));
		optional(out, "CA type:", p, "ca_type");
		optional(out, "firmware:", p, "fw_ver");
		if (json_is_true(json_object_get(p, "management_only")))
			np_buf_str(out, "\tNVSwitch management port\n");
		if (json_array_size(unreadable)) {
			np_buf_printf(out, "\t%-15s ", "unreadable:");
			joined(out, unreadable, "; ");
			np_buf_str(out, "\n");
		}
	}
}

static void text_netdevs(const json_t *list, struct np_buf *out)
{
	const json_t *d, *a;
	size_t i, k;

	json_array_foreach (list, i, d) {
		const json_t *mode = json_object_get(d, "mode"), *ca = json_object_get(d, "ca");

		np_buf_printf(out, "%lld: %s: <",
			      (long long)json_integer_value(json_object_get(d, "ifindex")),
			      word(d, "name"));
		joined(out, json_object_get(d, "flags"), ",");
		np_buf_printf(out, "> mtu %lld %s%s%s%s",
			      (long long)json_integer_value(json_object_get(d, "mtu")),
			      word(d, "type"), json_is_string(mode) ? " mode " : "",
			      json_is_string(mode) ? json_string_value(mode) : "",
			      json_is_string(ca) ? " port " : "");
		if (json_is_string(ca))
			np_buf_printf(out, "%s:%lld", json_string_value(ca),
				      (long long)json_integer_value(json_object_get(d, "port")));
		np_buf_printf(out, " manager %s\n", word(d, "manager"));
		json_array_foreach (json_object_get(d, "addresses"), k, a) {
			const char *brd = json_string_value(json_object_get(a, "broadcast"));

			np_buf_printf(out, "\t%s %s%s%s scope %s%s\n", word(a, "family"),
				      word(a, "address"), brd ? " brd " : "", brd ? brd : "",
				      word(a, "scope"),
				      json_is_true(json_object_get(a, "secondary")) ? " secondary" :
										      "");
		}
	}
}

static void add_list(const json_t *list, struct np_buf *out)
{
	const json_t *value;
	size_t i;

	json_array_foreach (list, i, value)
		np_buf_printf(out, "%s%s", i ? "," : "", json_string_value(value));
}

/* key=value; what is null or empty is left out (false: nothing was added). */
static bool add_pair(const char *gap, const char *key, const json_t *value, struct np_buf *out)
{
	if (json_is_null(value) || json_is_object(value) ||
	    (json_is_array(value) && json_array_size(value) == 0))
		return false;
	np_buf_printf(out, "%s%s=", gap, key);
	if (json_is_string(value))
		np_buf_str(out, json_string_value(value));
	else if (json_is_array(value))
		add_list(value, out);
	else if (json_is_boolean(value))
		np_buf_str(out, json_is_true(value) ? "yes" : "no");
	else
		np_buf_printf(out, "%lld", (long long)json_integer_value(value));
	return true;
}

/* The second line of a row that has an object in it. */
static void text_node(const json_t *node, struct np_buf *out)
{
	const json_t *value;
	const char *key, *gap = "\t";

	json_object_foreach ((json_t *)node, key, value)
		if (add_pair(gap, key, value, out))
			gap = " ";
	if (node)
		np_buf_str(out, "\n");
}

/* Any other noun: a line an entry, key=value. */
static void text_rows(const json_t *list, struct np_buf *out)
{
	const json_t *row, *value;
	const char *key;
	size_t i;

	json_array_foreach (list, i, row) {
		const char *gap = "";

		json_object_foreach ((json_t *)row, key, value) {
			if (add_pair(gap, key, value, out))
				gap = " ";
		}
		np_buf_str(out, "\n");
		text_node(json_object_get(row, "node"), out);
	}
}

/* As comments: the text can be put into a file again. */
static void text_sources(const json_t *list, struct np_buf *out)
{
	const json_t *src;
	size_t i;

	json_array_foreach (list, i, src) {
		np_buf_printf(out, "# %s (%s): ", word(src, "source"), word(src, "where"));
		if (json_is_string(json_object_get(src, "address")))
			np_buf_printf(out, "%s by %s\n", word(src, "address"), word(src, "by"));
		else if (json_is_string(json_object_get(src, "failure")))
			np_buf_printf(out, "no answer: %s\n", word(src, "failure"));
		else
			np_buf_str(out, "not asked, --ip overrides it\n");
	}
}

static void text_config(const json_t *list, struct np_buf *out)
{
	const char *section = "";
	const json_t *row;
	size_t i;

	/* who asks about a user or a process wants to know that alone */
	row = json_array_get(list, json_array_size(list) - 1);
	if (json_object_get(row, "consumer")) {
		np_consumer_rows_text(list, out);
		return;
	}
	json_array_foreach (list, i, row) {
		if (strcmp(section, word(row, "section")) != 0) {
			section = word(row, "section");
			np_buf_printf(out, "[%s]\n", section);
		}
		text_sources(json_object_get(row, "sources"), out);
		np_buf_printf(out, "%s = %s\n", word(row, "key"), word(row, "value"));
	}
}

/* Names from outside must not drive the terminal. */
static void add_plain(struct np_buf *out, const char *text)
{
	for (; *text; text++) {
		char one[2] = { *text, '\0' }, shown[8];

		np_buf_str(out, *text == '\n' || *text == '\t' ?
					one :
					np_printable(one, shown, sizeof(shown)));
	}
}

static void add_nouns(const json_t *show, struct np_buf *out)
{
	bool several = json_object_size(show) > 1;
	const json_t *list;
	const char *noun;
	size_t n = 0;

	json_object_foreach ((json_t *)show, noun, list) {
		if (several)
			np_buf_printf(out, "%s# %s\n", n++ ? "\n" : "", noun);
		if (strcmp(noun, "ports") == 0)
			text_ports(list, out);
		else if (strcmp(noun, "netdevs") == 0)
			text_netdevs(list, out);
		else if (strcmp(noun, "topology") == 0)
			np_show_topology_text(list, out);
		else if (strcmp(noun, "config") == 0)
			text_config(list, out);
		else if (strcmp(noun, "libraries") == 0)
			np_show_text_libraries(list, out);
		else if (strcmp(noun, "census") == 0)
			np_census_rows_text(list, out);
		else
			text_rows(list, out);
	}
}

void np_show_text(const json_t *show, struct np_buf *out)
{
	np_auto_buf struct np_buf text = { 0 };
	/* a newline in a name or a value would be taken for a row of ours */
	json_t *plain = np_json_printable(show);

	if (!plain) {
		out->failed = true;
		return;
	}
	add_nouns(plain, &text);
	json_decref(plain);
	add_plain(out, text.data ? text.data : "");
	out->failed |= text.failed;
}
