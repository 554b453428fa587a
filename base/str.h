/* SPDX-License-Identifier: MIT */
#ifndef NP_BASE_STR_H
#define NP_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

/* ---- numbers: the only place where text becomes one ---- */

/* Whole string, digits of @base (10, 16, or 0 for "0x" or decimal), no sign,
 * no blanks. Returns 0, -EINVAL (not a number) or -ERANGE (above @max).
 * @out is untouched on failure. */
int np_parse_u64(const char *s, int base, uint64_t max, uint64_t *out) np_must_check;

/* "yes/no", "true/false", "on/off", "1/0". Returns 0 or -EINVAL. */
int np_parse_bool(const char *s, bool *out) np_must_check;

/* ---- strings ---- */

/* Copies with truncation, always terminated. Returns true when all of @src fitted. */
bool np_strcpy(char *dst, size_t size, const char *src);

/* strdup(printf). NULL when out of memory. Caller frees. */
char *np_asprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

bool np_streq(const char *a, const char *b); /* NULL equals only NULL */
bool np_starts_with(const char *s, const char *prefix);

/* Cuts leading and trailing blanks (space, tab, CR, LF) in place; returns the start. */
char *np_strip(char *s);

/* Natural order: mlx5_2 before mlx5_10. Like strcmp otherwise. */
int np_natural_cmp(const char *a, const char *b);

/* The entry of the NULL-terminated @names nearest to @word by edit distance, or
 * NULL when none is near enough to be worth suggesting. */
const char *np_nearest(const char *word, const char *const *names);

/* ---- growing byte buffer ---- */

struct np_buf {
	char *data; /* always NUL-terminated once anything was added; may be NULL */
	size_t len; /* without the NUL */
	size_t size;
	bool failed; /* out of memory: later additions are dropped */
};

void np_buf_add(struct np_buf *buf, const void *data, size_t len);
void np_buf_str(struct np_buf *buf, const char *s);
void np_buf_printf(struct np_buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool np_buf_equal(const struct np_buf *a, const struct np_buf *b); /* byte for byte */
void np_buf_done(struct np_buf *buf); /* frees the contents, zeroes it */

#define np_auto_buf np_auto(np_buf_done)

/* ---- growing list of strings ---- */

struct np_strv {
	char **v; /* NULL-terminated once anything was added; may be NULL */
	size_t n;
};

/* Adds a copy. Returns 0 or -ENOMEM. */
int np_strv_add(struct np_strv *list, const char *s) np_must_check;
bool np_strv_has(const struct np_strv *list, const char *s);
/* Splits @s at any of @separators, blanks around parts cut, empty parts dropped.
 * Adds to @list. Returns 0 or -ENOMEM. */
int np_strv_split(struct np_strv *list, const char *s, const char *separators) np_must_check;
void np_strv_sort_natural(struct np_strv *list);
void np_strv_done(struct np_strv *list);

#define np_auto_strv np_auto(np_strv_done)

/* @s with everything outside printable ASCII shown as \xNN, for messages.
 * Written to @out (cut to @size). Returns @out. */
const char *np_printable(const char *s, char *out, size_t size);

/* Makes of @text, in @size bytes, one line: control characters become \xNN, all others stay,
 * what does not fit is cut. Without memory for that nothing is left of it. */
void np_one_line(char *text, size_t size);

#endif
