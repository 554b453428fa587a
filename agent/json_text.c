/* SPDX-License-Identifier: MIT */
#include "agent/json_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"

#define LINE_MAX_BYTES 700

json_t *np_json_text(const char *s)
{
	json_t *value = json_string(s);
	char shown[1024];

	return value ? value : json_string(np_printable(s, shown, sizeof(shown)));
}

json_t *np_json_text_or_null(const char *s)
{
	return s && *s ? np_json_text(s) : json_null();
}

json_t *np_json_strv(const struct np_strv *list)
{
	json_t *array = json_array();

	for (size_t i = 0; i < list->n; i++)
		json_array_append_new(array, np_json_text(list->v[i]));
	return array;
}

static json_t *printable_text(const char *s)
{
	size_t size = 4 * strlen(s) + 1;
	_cleanup_free_ char *shown = malloc(size);

	return shown ? json_string(np_printable(s, shown, size)) : NULL;
}

json_t *np_json_printable(const json_t *value)
{
	json_t *copy, *one;
	const char *key;
	size_t i;
	bool bad = false;

	if (json_is_string(value))
		return printable_text(json_string_value(value));
	if (json_is_array(value)) {
		copy = json_array();
		json_array_foreach (value, i, one)
			bad |= json_array_append_new(copy, np_json_printable(one)) < 0;
	} else if (json_is_object(value)) {
		copy = json_object();
		json_object_foreach ((json_t *)value, key, one)
			bad |= json_object_set_new(copy, key, np_json_printable(one)) < 0;
	} else {
		return json_copy((json_t *)value);
	}
	if (bad) {
		json_decref(copy);
		return NULL;
	}
	return copy;
}

/* jansson has seen to it that it is UTF-8 */
bool np_json_is_line(const json_t *value)
{
	const char *s = json_string_value(value);

	if (!s || !*s || strlen(s) > LINE_MAX_BYTES)
		return false;
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

bool np_json_is_code(const char *s)
{
	size_t len = strlen(s);

	return len < sizeof(((struct np_err *)0)->code) && *s >= 'a' && *s <= 'z' &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_.") == len && s[len - 1] != '.' &&
	       !strstr(s, "..");
}
