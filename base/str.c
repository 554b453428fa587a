/* SPDX-License-Identifier: MIT */
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

int np_parse_u64(const char *s, int base, uint64_t max, uint64_t *out)
{
	uint64_t value = 0;

	if (!s)
		return -EINVAL;
	if ((base == 0 || base == 16) && s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
		s += 2;
		base = 16;
	}
	if (base == 0)
		base = 10;
	if (!*s)
		return -EINVAL;
	for (; *s; s++) {
		int digit = digit_value(*s);

		if (digit >= base)
			return -EINVAL;
		if (value > (UINT64_MAX - (uint64_t)digit) / (uint64_t)base)
			return -ERANGE;
		value = value * (uint64_t)base + (uint64_t)digit;
	}
	if (value > max)
		return -ERANGE;
	*out = value;
	return 0;
}

int np_parse_bool(const char *s, bool *out)
{
	static const char *const yes[] = { "yes", "true", "on", "1" };
	static const char *const no[] = { "no", "false", "off", "0" };

	for (size_t i = 0; s && i < NP_ARRAY_SIZE(yes); i++) {
		if (strcasecmp(s, yes[i]) == 0) {
			*out = true;
			return 0;
		}
		if (strcasecmp(s, no[i]) == 0) {
			*out = false;
			return 0;
		}
	}
	return -EINVAL;
}

bool np_strcpy(char *dst, size_t size, const char *src)
{
	size_t len = strlen(src);
	bool fits = len < size;

	if (size == 0)
		return false;
	if (!fits)
		len = size - 1;
	memcpy(dst, src, len);
	dst[len] = '\0';
	return fits;
}

char *np_asprintf(const char *fmt, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	return text;
}

bool np_streq(const char *a, const char *b)
{
	if (!a || !b)
		return a == b;
	return strcmp(a, b) == 0;
}

bool np_starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

char *np_strip(char *s)
{
	size_t len;

	s += strspn(s, " \t\r\n");
	len = strlen(s);
	while (len > 0 && strchr(" \t\r\n", s[len - 1]))
		s[--len] = '\0';
	return s;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t digits(const char *s)
{
	size_t n = 0;

	while (is_digit(s[n]))
		n++;
	return n;
}

/* Loops, not strspn and its like: a host may have a thousand names to sort, whose numbers
 * have three digits. */
int np_natural_cmp(const char *a, const char *b)
{
	const char *start_a = a, *start_b = b;

	while (*a && *b) {
		if (is_digit(*a) && is_digit(*b)) {
			size_t len_a, len_b;

			while (*a == '0')
				a++;
			while (*b == '0')
				b++;
			len_a = digits(a);
			len_b = digits(b);
			if (len_a != len_b)
				return len_a < len_b ? -1 : 1;
			for (; len_a > 0; len_a--, a++, b++)
				if (*a != *b)
					return *a < *b ? -1 : 1;
			continue;
		}
		if (*a != *b)
			break;
		a++;
		b++;
	}
	if (*a != *b)
		return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
	/* equal but for leading zeros */
	return strcmp(start_a, start_b);
}

static unsigned char least(unsigned int a, unsigned int b)
{
	return (unsigned char)(a < b ? a : b);
}

/* Insertions, deletions, replacements and swaps of neighbours, one each. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t len_a = strlen(a), len_b = strlen(b);
	unsigned char d[65][65];

	if (len_a > 64 || len_b > 64)
		return SIZE_MAX;
	for (size_t i = 0; i <= len_a; i++)
		d[i][0] = (unsigned char)i;
	for (size_t j = 0; j <= len_b; j++)
		d[0][j] = (unsigned char)j;
	for (size_t i = 1; i <= len_a; i++) {
		for (size_t j = 1; j <= len_b; j++) {
			unsigned int cost = a[i - 1] != b[j - 1];

			d[i][j] = least(d[i - 1][j - 1] + cost,
					least(d[i - 1][j] + 1U, d[i][j - 1] + 1U));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1U);
		}
	}
	return d[len_a][len_b];
}

const char *np_nearest(const char *word, const char *const *names)
{
	const char *best = NULL, *begun = NULL;
	size_t best_distance = strlen(word) / 2 + 1;

	for (; names && *names; names++) {
		size_t distance = edit_distance(word, *names);

		if (distance < best_distance) {
			best_distance = distance;
			best = *names;
		}
		if (!begun && *word && np_starts_with(*names, word))
			begun = *names;
	}
	return best ? best : begun;
}

static bool buf_reserve(struct np_buf *buf, size_t more)
{
	size_t size = buf->size ? buf->size : 128;
	char *data;

	if (buf->failed)
		return false;
	if (buf->len + more + 1 <= buf->size)
		return true;
	while (size < buf->len + more + 1)
		size *= 2;
	data = realloc(buf->data, size);
	if (!data) {
		buf->failed = true;
		return false;
	}
	buf->data = data;
	buf->size = size;
	return true;
}

void np_buf_add(struct np_buf *buf, const void *data, size_t len)
{
	if (!buf_reserve(buf, len))
		return;
	if (len)
		memcpy(buf->data + buf->len, data, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
}

void np_buf_str(struct np_buf *buf, const char *s)
{
	np_buf_add(buf, s, strlen(s));
}

void np_buf_printf(struct np_buf *buf, const char *fmt, ...)
{
	va_list args, again;
	int len;

	va_start(args, fmt);
	va_copy(again, args);
	len = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (len < 0)
		buf->failed = true;
	else if (buf_reserve(buf, (size_t)len)) {
		vsnprintf(buf->data + buf->len, (size_t)len + 1, fmt, again);
		buf->len += (size_t)len;
	}
	va_end(again);
}

bool np_buf_equal(const struct np_buf *a, const struct np_buf *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

void np_buf_done(struct np_buf *buf)
{
	if (!buf)
		return;
	free(buf->data);
	memset(buf, 0, sizeof(*buf));
}

int np_strv_add(struct np_strv *list, const char *s)
{
	char **v = reallocarray(list->v, list->n + 2, sizeof(*v));
	char *copy;

	if (!v)
		return -ENOMEM;
	list->v = v;
	copy = strdup(s);
	v[list->n] = copy;
	if (!copy)
		return -ENOMEM;
	v[++list->n] = NULL;
	return 0;
}

bool np_strv_has(const struct np_strv *list, const char *s)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i], s) == 0)
			return true;
	return false;
}

int np_strv_split(struct np_strv *list, const char *s, const char *separators)
{
	_cleanup_free_ char *copy = strdup(s);
	char *rest = copy, *part;

	if (!copy)
		return -ENOMEM;
	while ((part = strsep(&rest, separators))) {
		part = np_strip(part);
		if (*part && np_strv_add(list, part) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int compare_natural(const void *a, const void *b)
{
	return np_natural_cmp(*(char *const *)a, *(char *const *)b);
}

void np_strv_sort_natural(struct np_strv *list)
{
	if (list->n > 1)
		qsort(list->v, list->n, sizeof(*list->v), compare_natural);
}

void np_strv_done(struct np_strv *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->n; i++)
		free(list->v[i]);
	free(list->v);
	memset(list, 0, sizeof(*list));
}

const char *np_printable(const char *s, char *out, size_t size)
{
	size_t len = 0;

	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		bool plain = c >= 0x20 && c < 0x7f;

		if (len + (plain ? 1 : 4) + 1 > size)
			break;
		if (plain)
			out[len++] = (char)c;
		else
			len += (size_t)snprintf(out + len, 5, "\\x%02x", c);
	}
	if (size)
		out[len] = '\0';
	return out;
}

void np_one_line(char *text, size_t size)
{
	_cleanup_free_ char *raw = NULL;
	size_t len = 0;
	char *s;

	for (s = text; (unsigned char)*s >= 0x20 && *s != 0x7f; s++)
		;
	if (!*s)
		return;
	raw = strdup(text);
	for (const char *r = raw; r && *r; r++) {
		bool plain = (unsigned char)*r >= 0x20 && *r != 0x7f;

		if (len + (plain ? 1 : 4) + 1 > size)
			break;
		if (plain)
			text[len++] = *r;
		else
			len += (size_t)snprintf(text + len, 5, "\\x%02x", (unsigned char)*r);
	}
	text[len] = '\0';
}
