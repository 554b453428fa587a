/* SPDX-License-Identifier: MIT */
#include "agent/consumer_unit.h"

#include <string.h>

struct place {
	const char *file;
	int line;
	const struct np_unit_names *names;
};

void np_unit_done(struct np_unit *unit)
{
	np_settings_done(&unit->env);
	np_settings_done(&unit->unset);
	np_strv_done(&unit->pass);
	for (size_t i = 0; i < unit->n_files; i++) {
		free(unit->files[i].path);
		free(unit->files[i].from);
	}
	free(unit->files);
	free(unit->user);
	free(unit->directory);
	free(unit->memlock);
	free(unit->memlock_file);
	memset(unit, 0, sizeof(*unit));
}

static void note(struct np_unit *unit, const struct place *at, const char *what)
{
	if (unit->note)
		unit->note(unit->arg, at->file, at->line, what);
}

/* ---- specifiers ---- */

/* The part of a template's instance, or of the name in front of it. */
static void add_name(struct np_buf *out, const char *unit, char what)
{
	const char *at = strchr(unit, '@'), *dot = strrchr(unit, '.');
	size_t end = dot ? (size_t)(dot - unit) : strlen(unit);

	if (what == 'n')
		np_buf_str(out, unit);
	else if (what == 'N')
		np_buf_add(out, unit, end);
	else if (what == 'p' || what == 'P')
		np_buf_add(out, unit, at ? (size_t)(at - unit) : end);
	else if (at && at + 1 < unit + end)
		np_buf_add(out, at + 1, (size_t)(unit + end - at) - 1);
}

/* Text with its specifiers replaced; an unknown one stays, and is noted. */
static char *specify(struct np_unit *unit, const struct place *at, const char *s)
{
	const struct np_unit_names *names = at->names;
	struct np_buf out = { 0 };
	bool unknown = false;

	np_buf_str(&out, "");
	for (; *s; s++) {
		if (*s != '%' || !s[1]) {
			np_buf_add(&out, s, 1);
			continue;
		}
		s++;
		if (*s == '%') {
			np_buf_str(&out, "%");
		} else if (strchr("nNpPiI", *s)) {
			add_name(&out, names->unit, *s);
		} else if (*s == 'H' && names->host) {
			np_buf_str(&out, names->host);
		} else if (*s == 'h' && names->home) {
			np_buf_str(&out, names->home);
		} else if (*s == 't') {
			np_buf_str(&out, "/run");
		} else if (*s == 'E') {
			np_buf_str(&out, "/etc");
		} else {
			np_buf_add(&out, s - 1, 2);
			unknown = true;
		}
	}
	if (unknown)
		note(unit, at, "has a specifier (%) that is not worked out");
	if (out.failed) {
		np_buf_done(&out);
		unit->failed = true;
	}
	return out.data;
}

/* ---- words: quotes and escapes as systemd splits them ---- */

static int escaped(const char **s)
{
	static const char from[] = "abfnrtvs", to[] = "\a\b\f\n\r\t\v ";
	const char *found = strchr(from, **s);
	int c = (unsigned char)**s;

	if (found && **s)
		c = (unsigned char)to[found - from];
	(*s)++;
	return c;
}

/* The next word of *s into @out. False: none is left. */
static bool next_word(const char **s, struct np_buf *out)
{
	char quote = 0;

	out->len = 0;
	np_buf_str(out, "");
	*s += strspn(*s, " \t");
	if (!**s)
		return false;
	while (**s && (quote || !strchr(" \t", **s))) {
		char c = **s;

		(*s)++;
		if (quote && c == quote) {
			quote = 0;
		} else if (!quote && (c == '"' || c == '\'')) {
			quote = c;
		} else if (c == '\\' && **s) {
			c = (char)escaped(s);
			np_buf_add(out, &c, 1);
		} else {
			np_buf_add(out, &c, 1);
		}
	}
	return !out->failed;
}

/* ---- keys ---- */

static void set_environment(struct np_unit *unit, const struct place *at, const char *value,
			    struct np_settings *list, bool names_alone)
{
	np_auto_buf struct np_buf word = { 0 };

	while (next_word(&value, &word)) {
		_cleanup_free_ char *text = specify(unit, at, word.data);
		char *equals = text ? strchr(text, '=') : NULL;

		if (!text)
			return;
		if (equals)
			*equals = '\0';
		if (*text && (equals || names_alone))
			np_settings_add(list, text, equals ? equals + 1 : NULL, at->file, at->line,
					NP_SETTING_TAKEN);
	}
	unit->failed |= word.failed || list->failed;
}

static void add_file(struct np_unit *unit, const struct place *at, const char *value)
{
	bool may_lack = *value == '-';
	char *path = specify(unit, at, value + may_lack);
	struct np_unit_file *v;

	if (!path)
		return;
	v = reallocarray(unit->files, unit->n_files + 1, sizeof(*v));
	if (!v) {
		free(path);
		unit->failed = true;
		return;
	}
	unit->files = v;
	v += unit->n_files++;
	*v = (struct np_unit_file){ path, may_lack, strdup(at->file), at->line };
	unit->failed |= !v->from;
}

/* The lines of a key that says nothing are forgotten. */
static void forget(struct np_settings *list)
{
	for (size_t i = 0; i < list->n; i++)
		list->v[i].state = NP_SETTING_SKIPPED;
}

static void set_text(struct np_unit *unit, const struct place *at, const char *value, char **out)
{
	free(*out);
	*out = *value ? specify(unit, at, value) : NULL;
}

static void forget_files(struct np_unit *unit)
{
	for (size_t i = 0; i < unit->n_files; i++) {
		free(unit->files[i].path);
		free(unit->files[i].from);
	}
	unit->n_files = 0;
}

static void set_key(struct np_unit *unit, const struct place *at, const char *key,
		    const char *value)
{
	if (np_streq(key, "Environment")) {
		if (*value)
			set_environment(unit, at, value, &unit->env, false);
		else
			forget(&unit->env);
	} else if (np_streq(key, "UnsetEnvironment")) {
		if (*value)
			set_environment(unit, at, value, &unit->unset, true);
		else
			np_settings_done(&unit->unset);
	} else if (np_streq(key, "EnvironmentFile")) {
		if (*value)
			add_file(unit, at, value);
		else
			forget_files(unit);
	} else if (np_streq(key, "PassEnvironment")) {
		if (!*value)
			np_strv_done(&unit->pass);
		else if (np_strv_split(&unit->pass, value, " \t") < 0)
			unit->failed = true;
	} else if (np_streq(key, "User")) {
		set_text(unit, at, value, &unit->user);
	} else if (np_streq(key, "WorkingDirectory")) {
		set_text(unit, at, value + (*value == '-'), &unit->directory);
	} else if (np_streq(key, "LimitMEMLOCK")) {
		set_text(unit, at, value, &unit->memlock);
		free(unit->memlock_file);
		unit->memlock_file = strdup(at->file);
		unit->memlock_line = at->line;
		unit->failed |= !unit->memlock_file;
	} else if (np_streq(key, "PAMName")) {
		note(unit, at, "opens a PAM session, which may set more");
	}
}

/* ---- lines ---- */

static size_t line_length(const char *start, size_t len)
{
	const char *end = memchr(start, '\n', len);

	return end ? (size_t)(end - start) : len;
}

/* A line with those that its last backslash joins; comments in between are dropped.
 * False: the end. */
static bool next_line(const char *text, size_t len, size_t *pos, int *number, int *first,
		      struct np_buf *out)
{
	bool more = true;

	if (*pos >= len)
		return false;
	out->len = 0;
	np_buf_str(out, "");
	*first = *number + 1;
	while (more && *pos < len) {
		const char *start = text + *pos;
		size_t all = line_length(start, len - *pos), n = strnlen(start, all), blanks;
		bool comment;

		*pos += all + 1;
		(*number)++;
		while (n > 0 && start[n - 1] == '\r')
			n--;
		for (blanks = 0; blanks < n && (start[blanks] == ' ' || start[blanks] == '\t');
		     blanks++)
			;
		comment = blanks < n && (start[blanks] == '#' || start[blanks] == ';');
		if (comment && *number > *first)
			continue;
		more = !comment && n > 0 && start[n - 1] == '\\';
		np_buf_add(out, start, n - more);
		if (more)
			np_buf_str(out, " ");
	}
	return !out->failed;
}

static void parse(struct np_unit *unit, const struct np_unit_names *names, const char *wanted,
		  const char *file, const char *text, size_t len)
{
	struct place at = { .file = file, .names = names };
	np_auto_buf struct np_buf line = { 0 };
	bool in_section = false;
	size_t pos = 0;
	int number = 0;

	while (next_line(text, len, &pos, &number, &at.line, &line)) {
		char *s = np_strip(line.data), *equals;

		if (!*s || *s == '#' || *s == ';')
			continue;
		if (*s == '[') {
			in_section = np_streq(s, wanted);
			continue;
		}
		equals = strchr(s, '=');
		if (!in_section || !equals)
			continue;
		*equals = '\0';
		s = np_strip(s);
		equals = np_strip(equals + 1);
		if (np_streq(wanted, "[Service]"))
			set_key(unit, &at, s, equals);
		else if (np_streq(s, "DefaultEnvironment") && *equals)
			set_environment(unit, &at, equals, &unit->env, false);
		else if (np_streq(s, "DefaultEnvironment"))
			forget(&unit->env);
	}
	unit->failed |= line.failed;
}

void np_unit_parse(struct np_unit *unit, const struct np_unit_names *names, const char *file,
		   const char *text, size_t len)
{
	parse(unit, names, "[Service]", file, text, len);
}

void np_unit_parse_defaults(struct np_unit *unit, const char *file, const char *text, size_t len)
{
	static const struct np_unit_names none = { .unit = "" };

	parse(unit, &none, "[Manager]", file, text, len);
}
