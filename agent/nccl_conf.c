/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "agent/nccl_conf.h"
#include "agent/nccl_line.h"

bool np_nccl_line_next(const char *text, size_t len, size_t *pos, struct np_nccl_line *line)
{
	const char *end, *equals;

	if (*pos >= len)
		return false;

	memset(line, 0, sizeof(*line));
	line->text = text + *pos;
	end = memchr(line->text, '\n', len - *pos);
	line->newline = end != NULL;
	line->len = end ? (size_t)(end - line->text) : len - *pos;
	*pos += line->len + (line->newline ? 1 : 0);

	line->shown_len = strnlen(line->text, line->len);
	if (line->shown_len == 0 || line->text[0] == '#')
		return true;
	equals = memchr(line->text, '=', line->shown_len);
	if (!equals)
		return true;
	line->key = line->text;
	line->key_len = (size_t)(equals - line->text);
	line->value = equals + 1;
	line->value_len = line->shown_len - line->key_len - 1;
	/* setenv() refuses an empty name, and NCCL does not look at its result. */
	line->read = line->key_len > 0;
	return true;
}

bool np_nccl_line_is(const struct np_nccl_line *line, const char *key)
{
	return line->read && line->key_len == strlen(key) &&
	       memcmp(line->key, key, line->key_len) == 0;
}

static bool value_is(const struct np_nccl_line *line, const char *value)
{
	return line->value_len == strlen(value) && memcmp(line->value, value, line->value_len) == 0;
}

static bool key_ok(const char *key)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
	size_t len = strlen(key);

	return len > 0 && len < 256 && strchr(letters, key[0]) && strspn(key, all) == len;
}

/* A value that every NCCL reads back as it was written. */
static bool value_ok(const char *value)
{
	size_t len = strlen(value);

	if (len > NP_NCCL_FIELD_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f)
			return false;
	return true;
}

static int check_keys(const struct np_nccl_key *keys, size_t n_keys, struct np_err *err)
{
	char shown[80];

	for (size_t i = 0; i < n_keys; i++) {
		if (!key_ok(keys[i].key))
			return np_err_set(err, -EINVAL, "nccl.value_invalid",
					  "\"%s\" cannot be the name of a variable in nccl.conf",
					  np_printable(keys[i].key, shown, sizeof(shown)));
		if (keys[i].value && !value_ok(keys[i].value)) {
			np_err_set(err, -EINVAL, "nccl.value_invalid",
				   "the value for %s cannot be written to nccl.conf: \"%s\"",
				   keys[i].key, np_printable(keys[i].value, shown, sizeof(shown)));
			np_err_hint(err, "use at most %d bytes and no control characters",
				    NP_NCCL_FIELD_MAX);
			return -EINVAL;
		}
	}
	return 0;
}

/* setenv() without overwriting: the first line that NCCL reads as a key wins. */
static bool find_first(const char *text, size_t len, const char *key, struct np_nccl_line *line)
{
	size_t pos = 0;

	while (np_nccl_line_next(text, len, &pos, line))
		if (np_nccl_line_is(line, key))
			return true;
	return false;
}

static void edit_one(const char *old, size_t old_len, const struct np_nccl_key *key,
		     struct np_buf *out)
{
	struct np_nccl_line line;
	size_t pos = 0;
	bool written = false;

	if (find_first(old, old_len, key->key, &line) && key->value &&
	    value_is(&line, key->value)) {
		np_buf_add(out, old, old_len);
		return;
	}
	while (np_nccl_line_next(old, old_len, &pos, &line)) {
		if (!np_nccl_line_is(&line, key->key)) {
			np_buf_add(out, line.text, line.len + (line.newline ? 1 : 0));
		} else if (key->value && !written) {
			np_buf_printf(out, "%s=%s", key->key, key->value);
			if (line.newline)
				np_buf_str(out, "\n");
			written = true;
		}
	}
	if (key->value && !written) {
		if (out->len > 0 && out->data[out->len - 1] != '\n')
			np_buf_str(out, "\n");
		np_buf_printf(out, "%s=%s\n", key->key, key->value);
	}
}

int np_nccl_conf_edit(const char *old, size_t old_len, const struct np_nccl_key *keys,
		      size_t n_keys, struct np_buf *out, struct np_err *err)
{
	np_auto_buf struct np_buf text = { 0 };
	int r = check_keys(keys, n_keys, err);

	if (r < 0)
		return r;
	np_buf_add(&text, old_len ? old : "", old_len);
	for (size_t i = 0; i < n_keys && !text.failed; i++) {
		struct np_buf next = { 0 };

		np_buf_add(&next, "", 0);
		edit_one(text.data ? text.data : "", text.len, &keys[i], &next);
		np_buf_done(&text);
		text = next;
	}
	if (text.failed)
		return np_err_nomem(err);
	np_buf_done(out);
	*out = text;
	memset(&text, 0, sizeof(text));
	return 0;
}

char *np_nccl_conf_get(const char *text, size_t len, const char *key)
{
	struct np_nccl_line line;
	size_t value_len;

	if (len == 0 || !find_first(text, len, key, &line))
		return NULL;
	value_len = line.value_len < NP_NCCL_FIELD_MAX ? line.value_len : NP_NCCL_FIELD_MAX;
	return strndup(line.value, value_len);
}
