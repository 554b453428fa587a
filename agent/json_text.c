/* SPDX-License-Identifier: MIT */
#include "agent/json_text.h"

#include <errno.h>
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

/* A control character takes six as text. */
static bool is_text(const struct np_buf *bytes)
{
	size_t len = 0;

	for (size_t i = 0; i < bytes->len; i++) {
		unsigned char c = (unsigned char)bytes->data[i];

		len += c == '\n' || c == '\t' || c == '"' || c == '\\' ? 2 : c < 0x20 ? 6 : 1;
	}
	return len <= 2 * bytes->len;
}

json_t *np_json_bytes(const struct np_buf *bytes)
{
	static const char digits[] = "0123456789abcdef";
	np_auto_buf struct np_buf hex = { 0 };
	json_t *text =
		is_text(bytes) ? json_stringn(bytes->data ? bytes->data : "", bytes->len) : NULL;

	if (text)
		return json_pack("{s:o}", "text", text);
	for (size_t i = 0; bytes->data && i < bytes->len; i++) {
		unsigned char c = (unsigned char)bytes->data[i];
		const char pair[2] = { digits[c >> 4], digits[c & 15] };

		np_buf_add(&hex, pair, sizeof(pair));
	}
	return hex.failed ? NULL : json_pack("{s:s}", "hex", hex.data);
}

int np_json_take_bytes(const json_t *object, struct np_buf *out)
{
	json_t *text = json_object_get(object, "text"), *hex = json_object_get(object, "hex");
	const char *digits = json_string_value(hex);

	if (json_is_string(text)) {
		np_buf_add(out, json_string_value(text), json_string_length(text));
		return out->failed ? -ENOMEM : 0;
	}
	if (!digits || strlen(digits) % 2)
		return -EINVAL;
	for (; *digits; digits += 2) {
		char pair[3] = { digits[0], digits[1], '\0' };
		uint64_t value;
		char byte;

		if (np_parse_u64(pair, 16, 255, &value) < 0)
			return -EINVAL;
		byte = (char)value;
		np_buf_add(out, &byte, 1);
	}
	return out->failed ? -ENOMEM : 0;
}
