/* SPDX-License-Identifier: MIT */
/* Commands of csh that set variables, or end what is read. */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "agent/csh_word.h"

bool np_csh_is_live(enum np_sh_mode mode)
{
	return mode == NP_SH_RUN || mode == NP_SH_MAYBE;
}

void np_csh_leave(struct np_sh_text *t, enum np_sh_mode mode, bool all)
{
	if (mode == NP_SH_RUN) {
		t->returned = true;
		t->sh->exited |= all;
	} else if (mode == NP_SH_MAYBE) {
		t->unsure = true;
		t->sh->unsure |= all;
	}
}

static void set_env(struct np_sh_text *t, enum np_sh_mode mode, int line, const char *name,
		    const char *value, bool opaque)
{
	static const enum np_setting_state states[] = { [NP_SH_RUN] = NP_SETTING_TAKEN,
							[NP_SH_MAYBE] = NP_SETTING_MAYBE,
							[NP_SH_SKIP] = NP_SETTING_SKIPPED };
	struct np_setting *s;

	if (mode == NP_SH_SILENT)
		return;
	s = np_settings_add(t->sh->out, name, value, t->file, line, states[mode]);
	if (s)
		s->opaque = opaque && value;
}

static void setenv_command(struct np_sh_text *t, enum np_sh_mode mode, const struct np_sh_words *w,
			   size_t at)
{
	const struct np_sh_word *name = at + 1 < w->n ? &w->v[at + 1] : NULL,
				*value = at + 2 < w->n ? &w->v[at + 2] : NULL;

	if (!name)
		return;
	if (w->n > at + 3) {
		/* an error */
		np_csh_leave(t, mode, true);
		return;
	}
	if (!name->opaque)
		set_env(t, mode, name->line, np_sh_text_of(name), value ? np_sh_text_of(value) : "",
			value && (value->opaque || (value->glob && !value->quoted)));
}

static void unsetenv_command(struct np_sh_text *t, enum np_sh_mode mode,
			     const struct np_sh_words *w, size_t at)
{
	struct np_settings *out = t->sh->out;

	for (size_t i = at + 1; i < w->n; i++) {
		size_t n = out->n;

		if (w->v[i].opaque)
			continue;
		if (!w->v[i].glob) {
			set_env(t, mode, w->v[i].line, np_sh_text_of(&w->v[i]), NULL, false);
			continue;
		}
		/* a search for each that is there */
		t->sh->steps += (int)n;
		for (size_t k = 0; k < n; k++)
			if (np_settings_find(out, out->v[k].name, NULL) == &out->v[k] &&
			    fnmatch(np_sh_text_of(&w->v[i]), out->v[k].name, 0) == 0)
				set_env(t, mode, w->v[i].line, out->v[k].name, NULL, false);
	}
}

static void unset_command(struct np_sh_text *t, enum np_sh_mode mode, const struct np_sh_words *w,
			  size_t at)
{
	struct np_settings *vars = &t->sh->vars;

	for (size_t i = at + 1; i < w->n; i++) {
		size_t n = vars->n;

		for (size_t k = 0; k < n && !w->v[i].opaque; k++)
			if (vars->v[k].value &&
			    fnmatch(np_sh_text_of(&w->v[i]), vars->v[k].name, 0) == 0)
				np_csh_set(t, mode, w->v[i].line, vars->v[k].name, NULL, false);
	}
}

/* One word behind `set`, with what belongs to it; returns where the next one is. */
static size_t set_one(struct np_sh_text *t, enum np_sh_mode mode, const struct np_sh_words *w,
		      size_t at)
{
	const struct np_sh_word *word = &w->v[at], *value = word;
	const char *text = np_sh_text_of(word), *from;
	size_t len = strcspn(text, "=[");
	_cleanup_free_ char *name = strndup(text, len);
	bool opaque = word->opaque || text[len] == '[';

	if (!name) {
		t->sh->out->failed = true;
		return w->n;
	}
	from = text[len] == '=' ? text + len + 1 : "";
	at++;
	if (!text[len] && at < w->n && np_csh_is(&w->v[at], "=")) {
		value = ++at < w->n ? &w->v[at] : word;
		from = value == word ? "" : np_sh_text_of(value);
		at += value != word;
	} else if (text[len] == '=' && !*from && at < w->n && np_csh_is(&w->v[at], "(")) {
		value = &w->v[at++];
	}
	if (np_csh_is(value, "(")) {
		/* a list of words is not worked out */
		opaque = true;
		while (at < w->n && !np_csh_is(&w->v[at], ")"))
			at++;
		at++;
	}
	opaque |= value->opaque || (value->glob && !value->quoted);
	if (*name && !(value == word && text[len] == '['))
		np_csh_set(t, mode, word->line, name, from, opaque);
	return at;
}

static void set_command(struct np_sh_text *t, enum np_sh_mode mode, const struct np_sh_words *w,
			size_t at)
{
	for (at++; at < w->n;)
		at = np_sh_text_of(&w->v[at])[0] == '-' ? at + 1 : set_one(t, mode, w, at);
}

static void source_command(struct np_sh_text *t, enum np_sh_mode mode, const struct np_sh_words *w,
			   size_t at)
{
	const struct np_sh_word *path = at + 1 < w->n ? &w->v[at + 1] : NULL;
	int r;

	/* source -h reads a file into the history */
	if (!path || !np_csh_is_live(mode) || np_csh_is(path, "-h"))
		return;
	if (path->opaque || (path->glob && !path->quoted) || np_sh_text_of(path)[0] != '/') {
		np_sh_note(t, path->line, "sources a file that cannot be told from here");
		return;
	}
	r = np_csh_scan_file(t->sh, np_sh_text_of(path), mode);
	if (r == -ENOENT)
		np_csh_leave(t, mode, true);
	else if (r < 0)
		np_sh_note(t, path->line, "sources a file that cannot be read");
}

bool np_csh_is_one_of(const struct np_sh_word *word, const char *const *names)
{
	for (; *names; names++)
		if (np_csh_is(word, *names))
			return true;
	return false;
}

void np_csh_run(struct np_sh_text *t, enum np_sh_mode mode, const struct np_sh_words *w, size_t at)
{
	static const char *const jumps[] = { "goto", "break", "continue", "onintr", NULL };
	static const char *const unknown[] = { "eval", "module", "ml", NULL };
	const struct np_sh_word *cmd = &w->v[at];

	for (size_t i = at; i < w->n && np_csh_is_live(mode); i++) {
		if (!w->v[i].faulty)
			continue;
		np_sh_note(t, cmd->line, "a variable that is not set ends the start files here");
		np_csh_leave(t, mode, true);
		return;
	}
	if (np_csh_is(cmd, "setenv"))
		setenv_command(t, mode, w, at);
	else if (np_csh_is(cmd, "unsetenv"))
		unsetenv_command(t, mode, w, at);
	else if (np_csh_is(cmd, "set"))
		set_command(t, mode, w, at);
	else if (np_csh_is(cmd, "unset"))
		unset_command(t, mode, w, at);
	else if (np_csh_is(cmd, "@") && at + 1 < w->n)
		np_csh_set(t, mode, cmd->line, np_sh_text_of(&w->v[at + 1]), "", true);
	else if (np_csh_is(cmd, "source"))
		source_command(t, mode, w, at);
	else if (np_csh_is(cmd, "exit"))
		np_csh_leave(t, mode, false);
	else if (np_csh_is(cmd, "logout") || np_csh_is(cmd, "exec"))
		np_csh_leave(t, mode, true);
	else if (np_csh_is_one_of(cmd, jumps) && np_csh_is_live(mode))
		t->unsure = true;
	else if (np_csh_is_one_of(cmd, unknown) && np_csh_is_live(mode))
		np_sh_note(t, cmd->line, "runs a command that may set anything");
}
