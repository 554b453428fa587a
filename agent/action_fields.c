/* SPDX-License-Identifier: MIT */
#include "agent/action_fields.h"

#include <errno.h>
#include <string.h>

json_t *np_encode_bytes(const struct np_buf *bytes)
{
	np_auto_buf struct np_buf hex = { 0 };
	json_t *text = json_stringn(bytes->data ? bytes->data : "", bytes->len);

	if (text)
		return json_pack("{s:o}", "text", text);
	for (size_t i = 0; bytes->data && i < bytes->len; i++)
		np_buf_printf(&hex, "%02x", (unsigned char)bytes->data[i]);
	return hex.failed ? NULL : json_pack("{s:s}", "hex", hex.data);
}

int np_decode_bytes(const json_t *object, struct np_buf *out)
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

/* A name from outside: a string, or where that is not UTF-8 its bytes in hex. */
json_t *np_encode_text(const char *s)
{
	const struct np_buf bytes = { .data = (char *)s, .len = s ? strlen(s) : 0 };

	if (!s)
		return json_null();
	return json_string(s) ?: np_encode_bytes(&bytes);
}

/* Returns 0, -EINVAL or -ENOMEM; @out stays NULL for null or no member. */
int np_decode_text(const json_t *object, const char *key, char **out)
{
	const json_t *value = json_object_get(object, key);
	struct np_buf bytes = { 0 };
	int r;

	if (!value || json_is_null(value))
		return 0;
	if (json_is_string(value)) {
		if (strlen(json_string_value(value)) != json_string_length(value))
			return -EINVAL;
		*out = strdup(json_string_value(value));
		return *out ? 0 : -ENOMEM;
	}
	np_buf_add(&bytes, "", 0);
	r = np_decode_bytes(value, &bytes);
	if (r == 0 && strlen(bytes.data) != bytes.len)
		r = -EINVAL;
	if (r < 0) {
		np_buf_done(&bytes);
		return r;
	}
	*out = bytes.data;
	return 0;
}

/* The same into a field of fixed size; a value that does not fit is -EINVAL. */
int np_decode_name(const json_t *object, const char *key, char *out, size_t size)
{
	_cleanup_free_ char *text = NULL;
	int r = np_decode_text(object, key, &text);

	if (r < 0)
		return r;
	return text && np_strcpy(out, size, text) ? 0 : -EINVAL;
}

/* A whole number from 0 to @max. */
int np_decode_number(const json_t *object, const char *key, json_int_t max, json_int_t *out)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    json_integer_value(value) > max)
		return -EINVAL;
	*out = json_integer_value(value);
	return 0;
}

int np_decode_u32(const json_t *object, const char *key, uint32_t *out)
{
	json_int_t value;

	if (np_decode_number(object, key, UINT32_MAX, &value) < 0)
		return -EINVAL;
	*out = (uint32_t)value;
	return 0;
}

int np_decode_bool(const json_t *object, const char *key, bool *out)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_boolean(value))
		return -EINVAL;
	*out = json_is_true(value);
	return 0;
}
