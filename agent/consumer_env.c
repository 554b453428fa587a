/* SPDX-License-Identifier: MIT */
#include "agent/consumer_env.h"

#include <ctype.h>
#include <string.h>

struct np_setting *np_settings_add(struct np_settings *list, const char *name, const char *value,
				   const char *file, int line, enum np_setting_state state)
{
	struct np_setting *v;

	if (list->n >= NP_SETTINGS_MAX) {
		list->failed = true;
		return NULL;
	}
	v = reallocarray(list->v, list->n + 1, sizeof(*v));
	if (!v) {
		list->failed = true;
		return NULL;
	}
	list->v = v;
	v += list->n;
	*v = (struct np_setting){ .name = strdup(name),
				  .value = value ? strdup(value) : NULL,
				  .file = strdup(file),
				  .line = line,
				  .state = state };
	list->n++;
	if (!v->name || !v->file || (value && !v->value)) {
		list->n--;
		free(v->name);
		free(v->value);
		free(v->file);
		list->failed = true;
		return NULL;
	}
	return v;
}

void np_settings_done(struct np_settings *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->n; i++) {
		free(list->v[i].name);
		free(list->v[i].value);
		free(list->v[i].file);
	}
	free(list->v);
	memset(list, 0, sizeof(*list));
}

const struct np_setting *np_settings_find(const struct np_settings *list, const char *name,
					  const struct np_setting **unset)
{
	if (unset)
		*unset = NULL;
	for (size_t i = list->n; i > 0; i--) {
		const struct np_setting *s = &list->v[i - 1];

		if (s->state != NP_SETTING_TAKEN || strcmp(s->name, name) != 0)
			continue;
		if (s->value)
			return s;
		if (unset)
			*unset = s;
		return NULL;
	}
	return NULL;
}

const char *np_settings_value(const struct np_settings *list, const char *name)
{
	const struct np_setting *s = np_settings_find(list, name, NULL);

	return s && !s->opaque && !s->is_local ? s->value : NULL;
}

bool np_setting_matters(const char *name)
{
	return np_starts_with(name, "UCX_") || np_starts_with(name, "NCCL_") ||
	       np_starts_with(name, "DASK_");
}

const char *const np_library_variables[] = {
	"LD_LIBRARY_PATH", "NCCL_HOME",	   "NCCL_ROOT",	    "UCX_HOME",	 "UCX_PATH",
	"UCX_DIR",	   "HPCX_UCX_DIR", "HPCX_NCCL_DIR", "CUDA_HOME", "CUDA_PATH",
	"GDRCOPY_HOME",	   "CONDA_PREFIX", "VIRTUAL_ENV",   NULL
};

bool np_setting_finds_libraries(const char *name)
{
	for (size_t i = 0; np_library_variables[i]; i++)
		if (strcmp(np_library_variables[i], name) == 0)
			return true;
	return false;
}

/* ---- lines of text ---- */

/* Takes the line at *pos without its newline; a NUL byte ends it. False at the end. */
static bool next_line(const char *text, size_t len, size_t *pos, struct np_buf *line)
{
	const char *start = text + *pos, *end;
	size_t n;

	if (*pos >= len)
		return false;
	end = memchr(start, '\n', len - *pos);
	n = end ? (size_t)(end - start) : len - *pos;
	*pos += n + (end ? 1 : 0);
	line->len = 0;
	np_buf_add(line, start, strnlen(start, n));
	np_buf_str(line, "");
	return !line->failed;
}

static bool is_name(const char *s, size_t len)
{
	if (len == 0 || isdigit((unsigned char)s[0]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '_')
			return false;
	return true;
}

/* ---- pam_env ---- */

void np_settings_pam_env(struct np_settings *list, const char *file, const char *text, size_t len)
{
	np_auto_buf struct np_buf line = { 0 };
	size_t pos = 0;

	for (int n = 1; next_line(text, len, &pos, &line); n++) {
		char *s = line.data + strspn(line.data, " \n\t"), *equals;
		size_t end;

		if (*s == '#')
			continue;
		s[strcspn(s, "#")] = '\0';
		s = np_strip(s);
		if (strncmp(s, "export ", 7) == 0 || strncmp(s, "export\t", 7) == 0)
			s += 7 + strspn(s + 7, " \t");
		equals = strchr(s, '=');
		if (!equals)
			continue;
		/* a name with an odd character is skipped, as is the line */
		if (!is_name(s, (size_t)(equals - s)))
			continue;
		*equals++ = '\0';
		/* pam_env looks at each end by itself */
		if (*equals == '"' || *equals == '\'') {
			equals++;
			end = strlen(equals);
			if (end > 0 && (equals[end - 1] == '"' || equals[end - 1] == '\''))
				equals[end - 1] = '\0';
		}
		/* "NAME=" takes it away */
		np_settings_add(list, s, *equals ? equals : NULL, file, n, NP_SETTING_TAKEN);
	}
	list->failed |= line.failed;
}

/* ---- EnvironmentFile= ---- */

struct env_file {
	const char *text;
	size_t len, pos;
	int line;
	struct np_buf value;
};

static int peek(const struct env_file *f)
{
	return f->pos < f->len ? (unsigned char)f->text[f->pos] : -1;
}

static int take(struct env_file *f)
{
	int c = peek(f);

	if (c >= 0)
		f->pos++;
	if (c == '\n')
		f->line++;
	return c;
}

static void put(struct env_file *f, int c)
{
	char one = (char)c;

	if (c)
		np_buf_add(&f->value, &one, 1);
}

static void take_quoted(struct env_file *f, int quote)
{
	int c;

	while ((c = take(f)) >= 0 && c != quote) {
		if (c != '\\' || quote == '\'') {
			put(f, c);
			continue;
		}
		c = take(f);
		if (c == '\n' || c < 0)
			continue;
		if (!strchr("\"\\`$", c))
			put(f, '\\');
		put(f, c);
	}
}

/* Up to the end of its line; blanks at the end that are not quoted are cut. */
static void take_value(struct env_file *f)
{
	size_t keep = 0;
	int c;

	while (peek(f) == ' ' || peek(f) == '\t')
		take(f);
	while ((c = take(f)) >= 0 && c != '\n') {
		if (c == '"' || c == '\'') {
			take_quoted(f, c);
			keep = f->value.len;
		} else if (c == '\\') {
			c = take(f);
			if (c >= 0 && c != '\n')
				put(f, c);
			keep = f->value.len;
		} else {
			put(f, c);
			if (c != ' ' && c != '\t' && c != '\r')
				keep = f->value.len;
		}
	}
	if (f->value.data && keep < f->value.len) {
		f->value.len = keep;
		f->value.data[keep] = '\0';
	}
}

/* systemd takes a comment that ends in a backslash together with the next line. */
static void skip_line(struct env_file *f)
{
	int c, before = 0;

	while ((c = take(f)) >= 0 && (c != '\n' || before == '\\'))
		before = c;
}

void np_settings_env_file(struct np_settings *list, const char *file, const char *text, size_t len)
{
	struct env_file f = { .text = text, .len = len, .line = 1 };

	while (peek(&f) >= 0) {
		np_auto_buf struct np_buf name = { 0 };
		int line, c;

		while (peek(&f) == ' ' || peek(&f) == '\t' || peek(&f) == '\n' || peek(&f) == '\r')
			take(&f);
		if (peek(&f) == '#' || peek(&f) == ';') {
			skip_line(&f);
			continue;
		}
		line = f.line;
		while ((c = peek(&f)) >= 0 && c != '=' && c != '\n') {
			char one = (char)take(&f);

			np_buf_add(&name, &one, 1);
		}
		if (c != '=')
			continue;
		take(&f);
		f.value.len = 0;
		np_buf_str(&f.value, "");
		take_value(&f);
		np_buf_str(&name, "");
		if (name.failed || f.value.failed) {
			list->failed = true;
			break;
		}
		if (is_name(name.data, strlen(name.data)))
			np_settings_add(list, name.data, f.value.data, file, line,
					NP_SETTING_TAKEN);
	}
	np_buf_done(&f.value);
}

/* ---- environ ---- */

void np_settings_environ(struct np_settings *list, const char *file, const char *data, size_t len)
{
	size_t pos = 0;

	while (pos < len) {
		size_t n = strnlen(data + pos, len - pos);
		_cleanup_free_ char *one = strndup(data + pos, n);
		char *equals = one ? strchr(one, '=') : NULL;

		list->failed |= !one;
		pos += n + 1;
		if (!equals || equals == one)
			continue;
		*equals = '\0';
		if (!np_settings_find(list, one, NULL))
			np_settings_add(list, one, equals + 1, file, 0, NP_SETTING_TAKEN);
	}
}
