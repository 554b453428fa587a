/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "agent/nccl_conf.h"
#include "agent/nccl_line.h"

/* A hostile file can hold a broken line every two bytes. */
#define ISSUES_MAX 100

static const char NAME_CHARS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
static const char BOM[] = "\xef\xbb\xbf";

/* A line read with success, to find names that are set twice. */
struct seen {
	const char *key, *value;
	size_t key_len, value_len;
	int line;
};

struct lint {
	struct np_nccl_issues *out;
	int line;
	bool failed;
	struct seen *seen;
	size_t n_seen, size_seen;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\v' || c == '\f';
}

static bool starts(const char *s, size_t len, const char *prefix)
{
	return len >= strlen(prefix) && memcmp(s, prefix, strlen(prefix)) == 0;
}

static void __attribute__((format(printf, 4, 5)))
add(struct lint *lint, const char *code, const char *hint, const char *fmt, ...)
{
	struct np_nccl_issues *list = lint->out;
	struct np_nccl_issue *issue, *grown;
	va_list args;

	if (lint->failed || list->n >= ISSUES_MAX)
		return;
	if (list->n % 8 == 0) {
		grown = realloc(list->v, (list->n + 8) * sizeof(*grown));
		if (!grown) {
			lint->failed = true;
			return;
		}
		list->v = grown;
	}
	issue = &list->v[list->n++];
	memset(issue, 0, sizeof(*issue));
	issue->line = lint->line;
	np_strcpy(issue->code, sizeof(issue->code), code);
	np_strcpy(issue->hint, sizeof(issue->hint), hint);
	va_start(args, fmt);
	vsnprintf(issue->message, sizeof(issue->message), fmt, args);
	va_end(args);
}

/* At most 40 characters of a part of the line, fit to be shown. */
static const char *show(const char *s, size_t len, char out[48])
{
	char cut[41];
	size_t n = len < sizeof(cut) - 1 ? len : sizeof(cut) - 1;

	memcpy(cut, s, n);
	cut[n] = '\0';
	return np_printable(cut, out, 48);
}

static void lint_key(struct lint *lint, const char *key, size_t len)
{
	static const char *const words[] = { "export ", "export\t", "setenv ", "set ", "declare " };
	char shown[48];

	if (lint->line == 1 && starts(key, len, BOM)) {
		add(lint, "nccl.line_byte_order_mark",
		    "save the file as UTF-8 without a byte order mark",
		    "a byte order mark stands before the name: NCCL takes it as part of the name");
		key += strlen(BOM);
		len -= strlen(BOM);
	}
	if (len > 0 && is_blank(key[0])) {
		while (len > 0 && is_blank(key[0]))
			key++, len--;
		add(lint, "nccl.line_leading_blank", "remove the blanks before the name",
		    "a blank stands before %s: NCCL takes it as part of the name",
		    show(key, len, shown));
	}
	for (size_t i = 0; i < NP_ARRAY_SIZE(words); i++) {
		if (!starts(key, len, words[i]))
			continue;
		add(lint, "nccl.line_export", "write NAME=VALUE alone",
		    "this is not a shell script: NCCL takes \"%s\" as part of the name",
		    show(words[i], strlen(words[i]) - 1, shown));
		key += strlen(words[i]);
		len -= strlen(words[i]);
		while (len > 0 && is_blank(key[0]))
			key++, len--;
		break;
	}
	if (len > 0 && is_blank(key[len - 1])) {
		while (len > 0 && is_blank(key[len - 1]))
			len--;
		add(lint, "nccl.line_blank_before_equals", "remove the blanks before the '='",
		    "a blank stands between %s and '=': NCCL takes it as part of the name",
		    show(key, len, shown));
	}
	if (len == 0) {
		add(lint, "nccl.line_bad_name",
		    "write NAME=VALUE, or put a '#' in the first column",
		    "no name stands before the '=': NCCL sets nothing");
	} else if (len > NP_NCCL_FIELD_MAX) {
		add(lint, "nccl.line_too_long", "shorten the name",
		    "the name has %zu bytes: NCCL cuts it after %d", len, NP_NCCL_FIELD_MAX);
	} else {
		size_t good = 0;

		while (good < len && strchr(NAME_CHARS, key[good]))
			good++;
		if (good < len || (key[0] >= '0' && key[0] <= '9'))
			add(lint, "nccl.line_bad_name",
			    "write NAME=VALUE, or put a '#' in the first column",
			    "\"%s\" is not a name that any program asks for",
			    show(key, len, shown));
	}
}

static void lint_value(struct lint *lint, const char *value, size_t len)
{
	size_t comment = 0;

	if (len > NP_NCCL_FIELD_MAX)
		add(lint, "nccl.line_too_long", "shorten the value",
		    "the value has %zu bytes: NCCL cuts it after %d", len, NP_NCCL_FIELD_MAX);
	for (size_t i = 1; i < len && !comment; i++)
		if (value[i] == '#' && is_blank(value[i - 1]))
			comment = i;
	if (comment) {
		add(lint, "nccl.line_trailing_comment", "put the comment on a line of its own",
		    "a comment follows the value: NCCL takes it as part of the value");
		len = comment;
		while (len > 0 && is_blank(value[len - 1]))
			len--;
	} else if (len > 0 && is_blank(value[len - 1])) {
		while (len > 0 && is_blank(value[len - 1]))
			len--;
		add(lint, "nccl.line_trailing_blank", "remove the blanks at the end of the line",
		    "a blank stands behind the value: NCCL takes it as part of the value");
	}
	if (len > 0 && is_blank(value[0])) {
		while (len > 0 && is_blank(value[0]))
			value++, len--;
		add(lint, "nccl.line_blank_after_equals", "remove the blanks behind the '='",
		    "a blank stands behind the '=': NCCL takes it as part of the value");
	}
	if (len > 0 && (value[0] == '"' || value[0] == '\'' || value[len - 1] == '"' ||
			value[len - 1] == '\''))
		add(lint, "nccl.line_quotes", "remove the quotes",
		    "the value is quoted: NCCL takes the quotes as part of the value");
}

static void remember(struct lint *lint, const struct np_nccl_line *line)
{
	struct seen *grown;

	if (lint->n_seen == lint->size_seen) {
		size_t size = lint->size_seen ? lint->size_seen * 2 : 16;

		grown = realloc(lint->seen, size * sizeof(*grown));
		if (!grown) {
			lint->failed = true;
			return;
		}
		lint->seen = grown;
		lint->size_seen = size;
	}
	lint->seen[lint->n_seen++] =
		(struct seen){ line->key, line->value, line->key_len, line->value_len, lint->line };
}

static void lint_line(struct lint *lint, const struct np_nccl_line *line)
{
	size_t len = line->shown_len, blanks = 0;

	if (line->shown_len < line->len)
		add(lint, "nccl.line_nul_byte", "remove the NUL bytes",
		    "a NUL byte stands in column %zu: NCCL reads no further", line->shown_len + 1);
	if (len > 0 && line->text[len - 1] == '\r')
		len--;
	while (blanks < len && is_blank(line->text[blanks]))
		blanks++;
	if (blanks == len || line->text[0] == '#')
		return;
	if (line->text[blanks] == '#') {
		if (line->key)
			add(lint, "nccl.line_indented_comment", "put the '#' in the first column",
			    "only a '#' in the first column starts a comment: NCCL sets a "
			    "variable from this line");
		return;
	}
	if (!line->key) {
		add(lint, "nccl.line_no_equals",
		    "write NAME=VALUE, or put a '#' in the first column",
		    "there is no '=': NCCL skips the line");
		return;
	}
	if (len < line->shown_len)
		add(lint, "nccl.line_carriage_return",
		    "convert the file to Unix line ends (dos2unix)",
		    "the line ends in a carriage return: NCCL before 2.30 takes it as part of "
		    "the value");
	if (line->len >= NP_NCCL_LINE_MAX)
		add(lint, "nccl.line_too_long", "shorten the line",
		    "the line has %zu bytes: NCCL 2.30 and newer read the part behind byte %d as "
		    "another line",
		    line->len, NP_NCCL_LINE_MAX);
	lint_key(lint, line->key, line->key_len);
	/* The carriage return, if any, is behind the '=': a name ends there. */
	lint_value(lint, line->value, line->value_len - (line->shown_len - len));
	if (line->read)
		remember(lint, line);
}

static int cmp_seen(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;
	size_t len = x->key_len < y->key_len ? x->key_len : y->key_len;
	int c = memcmp(x->key, y->key, len);

	if (c == 0)
		c = (x->key_len > y->key_len) - (x->key_len < y->key_len);
	return c ? c : x->line - y->line;
}

static int cmp_issue(const void *a, const void *b)
{
	const struct np_nccl_issue *x = a, *y = b;

	return x->line != y->line ? x->line - y->line : strcmp(x->code, y->code);
}

/* setenv() without overwriting: of two lines with one name the first one counts. */
static void lint_repeated(struct lint *lint)
{
	const struct seen *first = NULL;
	char shown[48];

	if (lint->n_seen)
		qsort(lint->seen, lint->n_seen, sizeof(*lint->seen), cmp_seen);
	for (size_t i = 0; i < lint->n_seen; i++) {
		const struct seen *s = &lint->seen[i];

		if (!first || first->key_len != s->key_len ||
		    memcmp(first->key, s->key, s->key_len) != 0) {
			first = s;
			continue;
		}
		if (first->value_len == s->value_len &&
		    memcmp(first->value, s->value, s->value_len) == 0)
			continue;
		lint->line = s->line;
		add(lint, "nccl.line_repeated", "keep one line for each name",
		    "%s is already set in line %d: NCCL takes the first line",
		    show(s->key, s->key_len, shown), first->line);
	}
}

int np_nccl_conf_lint(const char *text, size_t len, struct np_nccl_issues *out)
{
	struct np_nccl_issues found = { 0 };
	struct lint lint = { .out = &found };
	struct np_nccl_line line;
	size_t pos = 0;

	while (len > 0 && np_nccl_line_next(text, len, &pos, &line)) {
		lint.line++;
		lint_line(&lint, &line);
	}
	lint_repeated(&lint);
	free(lint.seen);
	if (lint.failed) {
		np_nccl_issues_done(&found);
		return -ENOMEM;
	}
	if (found.n)
		qsort(found.v, found.n, sizeof(*found.v), cmp_issue);
	np_nccl_issues_done(out);
	*out = found;
	return 0;
}

void np_nccl_issues_done(struct np_nccl_issues *list)
{
	if (!list)
		return;
	free(list->v);
	list->v = NULL;
	list->n = 0;
}
