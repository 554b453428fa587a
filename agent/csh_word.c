/* SPDX-License-Identifier: MIT */
/* Words and expressions of csh: tcsh(1), Lexical structure, Substitutions, Expressions. */
#include "agent/csh_word.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

#define NEST_MAX 32

bool np_csh_is(const struct np_sh_word *word, const char *text)
{
	return !word->quoted && !word->opaque && np_streq(np_sh_text_of(word), text);
}

/* ---- variables ---- */

void np_csh_set(struct np_sh_text *t, enum np_sh_mode mode, int line, const char *name,
		const char *value, bool opaque)
{
	struct np_settings *vars = &t->sh->vars;
	struct np_setting *s;

	if (mode != NP_SH_RUN && mode != NP_SH_MAYBE)
		return;
	s = np_settings_add(vars, name, value, t->file, line,
			    mode == NP_SH_RUN ? NP_SETTING_TAKEN : NP_SETTING_MAYBE);
	t->sh->out->failed |= vars->failed;
	if (!s)
		return;
	s->opaque = opaque && value;
	/* one of each name, what it was before is nothing to anybody: a loop sets it often */
	for (size_t i = 0; i + 1 < vars->n; i++) {
		struct np_setting old = vars->v[i];

		if (strcmp(old.name, s->name) != 0)
			continue;
		vars->v[i] = *s;
		*s = old;
		vars->n--;
		free(old.name);
		free(old.value);
		free(old.file);
		return;
	}
}

/* What the shell itself sets. */
static bool look_builtin(const struct np_sh *sh, const char *name, struct np_sh_look *out)
{
	bool tcsh = sh->spec->shell == NP_SHELL_TCSH;

	if (np_streq(name, "home"))
		out->value = sh->spec->home;
	else if (np_streq(name, "user"))
		out->value = sh->spec->user;
	else if (!np_streq(name, "tcsh") && !np_streq(name, "loginsh") && !np_streq(name, "status"))
		return false;
	/* csh has neither tcsh nor loginsh */
	out->set = out->not_empty =
		out->value || tcsh || np_streq(name, "status") ? NP_SH_YES : NP_SH_NO;
	return true;
}

void np_csh_look(const struct np_sh *sh, const char *name, struct np_sh_look *out)
{
	*out = (struct np_sh_look){ NP_SH_UNKNOWN, NP_SH_UNKNOWN, NULL };
	for (size_t i = 0; i < sh->vars.n; i++) {
		const struct np_setting *s = &sh->vars.v[i];

		if (strcmp(s->name, name) != 0)
			continue;
		if (s->state == NP_SETTING_MAYBE)
			return;
		if (!s->value)
			break;
		out->set = NP_SH_YES;
		out->not_empty = s->opaque ? NP_SH_UNKNOWN : *s->value ? NP_SH_YES : NP_SH_NO;
		out->value = s->opaque ? NULL : s->value;
		return;
	}
	if (!look_builtin(sh, name, out))
		np_sh_look(sh, name, out);
}

/* ---- expansions ---- */

static void add_char(struct np_sh_word *word, int c)
{
	char one = (char)c;

	np_buf_add(&word->text, &one, 1);
	word->not_empty = true;
}

static void add_opaque(struct np_sh_text *t, size_t from, struct np_sh_word *word)
{
	word->opaque = true;
	np_buf_add(&word->text, t->text + from, t->pos - from);
}

/* $?name: 1 or 0 */
static void add_is_set(struct np_sh_text *t, size_t from, const struct np_sh_look *look,
		       struct np_sh_word *word)
{
	if (look->set == NP_SH_UNKNOWN)
		add_opaque(t, from, word);
	else
		add_char(word, look->set == NP_SH_YES ? '1' : '0');
	word->not_empty = true;
}

static void add_value(struct np_sh_text *t, size_t from, const struct np_sh_look *look,
		      struct np_sh_word *word)
{
	word->faulty |= look->set == NP_SH_NO;
	word->not_empty |= look->not_empty == NP_SH_YES;
	if (look->value)
		np_buf_str(&word->text, look->value);
	else
		add_opaque(t, from, word);
}

static void take_name(struct np_sh_text *t, char *name, size_t size)
{
	size_t n = 0;
	int c;

	while ((c = np_sh_peek(t, 0)) >= 0 && (isalnum(c) || c == '_')) {
		if (n < size - 1)
			name[n++] = (char)c;
		np_sh_take(t);
	}
	name[n] = '\0';
}

/* [2], [$i] and :h are not worked out. */
static bool take_modifiers(struct np_sh_text *t)
{
	bool any = false;
	int c;

	if (np_sh_peek(t, 0) == '[') {
		any = true;
		while ((c = np_sh_peek(t, 0)) >= 0 && c != ']' && c != '\n')
			np_sh_take(t);
		if (c == ']')
			np_sh_take(t);
	}
	while (np_sh_peek(t, 0) == ':' && np_sh_peek(t, 1) > 0 && isalpha(np_sh_peek(t, 1))) {
		any = true;
		np_sh_take(t);
		np_sh_take(t);
	}
	return any;
}

static void expand_dollar(struct np_sh_text *t, struct np_sh_word *word)
{
	size_t from = t->pos;
	struct np_sh_look look;
	bool brace, modified;
	char name[64];
	int op;

	np_sh_take(t); /* $ */
	brace = np_sh_peek(t, 0) == '{';
	if (brace)
		np_sh_take(t);
	op = np_sh_peek(t, 0);
	if (op == '?' || op == '#' || op == '%')
		np_sh_take(t);
	else
		op = 0;
	take_name(t, name, sizeof(name));
	if (!name[0]) {
		/* $*, $$, $<, $? and the like; a lone $ stands for itself */
		if (np_sh_peek(t, 0) > 0 && strchr("*$<!", np_sh_peek(t, 0)))
			np_sh_take(t);
		else if (!op && !brace) {
			add_char(word, '$');
			return;
		}
		add_opaque(t, from, word);
		return;
	}
	modified = take_modifiers(t);
	if (brace && np_sh_peek(t, 0) == '}')
		np_sh_take(t);
	np_csh_look(t->sh, name, &look);
	if (isdigit((unsigned char)name[0]) || modified || (op && op != '?'))
		add_opaque(t, from, word);
	else if (op)
		add_is_set(t, from, &look, word);
	else
		add_value(t, from, &look, word);
}

/* `ls FOLDER` and `ls FOLDER/<star>`, with which Debian's /etc/csh.login finds its scripts. */
static bool read_ls(struct np_sh_text *t, const char *command, struct np_sh_word *word)
{
	const struct np_scan_files *files = t->sh->spec->files;
	np_auto_strv struct np_strv parts = { 0 }, names = { 0 };
	size_t seen = 0;

	if (np_strv_split(&parts, command, " \t") < 0 || parts.n != 2 ||
	    (!np_streq(parts.v[0], "ls") && !np_streq(parts.v[0], "/bin/ls") &&
	     !np_streq(parts.v[0], "/usr/bin/ls")) ||
	    parts.v[1][0] != '/')
		return false;
	np_buf_str(&word->text, "");
	if (strpbrk(parts.v[1], "$`'\"\\{;|&<>()"))
		return false;
	if (strpbrk(parts.v[1], "*?[")) {
		word->glob = true;
		np_buf_str(&word->text, parts.v[1]);
		return true;
	}
	if (files->list(files->arg, parts.v[1], &names) < 0)
		return false;
	for (size_t i = 0; i < names.n; i++)
		seen += names.v[i][0] != '.';
	word->opaque = word->not_empty = seen > 0;
	return true;
}

static void read_backquoted(struct np_sh_text *t, struct np_sh_word *word)
{
	_cleanup_free_ char *command = NULL;
	size_t from = t->pos;
	int c;

	np_sh_take(t);
	while ((c = np_sh_peek(t, 0)) >= 0 && c != '`' && c != '\n') {
		if (c == '$' && !command) {
			char name[64];
			struct np_sh_look look;
			size_t at = t->pos + 1;

			/* one variable at the end, as in `ls $dir` */
			np_sh_take(t);
			take_name(t, name, sizeof(name));
			np_csh_look(t->sh, name, &look);
			if (look.value && t->pos > at)
				command = np_asprintf("%.*s%s", (int)(at - 1 - (from + 1)),
						      t->text + from + 1, look.value);
			continue;
		}
		if (command) {
			char *more = np_asprintf("%s%c", command, c);

			free(command);
			command = more;
		}
		np_sh_take(t);
	}
	if (!command)
		command = strndup(t->text + from + 1, t->pos - from - 1);
	np_sh_take(t);
	if (!command || word->text.len || !read_ls(t, command, word))
		add_opaque(t, from, word);
}

static void read_quoted(struct np_sh_text *t, int quote, struct np_sh_word *word)
{
	int c;

	np_sh_take(t);
	word->quoted = true;
	while ((c = np_sh_peek(t, 0)) >= 0 && c != quote && c != '\n') {
		if (c == '$' && quote == '"') {
			expand_dollar(t, word);
		} else if (c == '`' && quote == '"') {
			read_backquoted(t, word);
		} else if (c == '\\' && (np_sh_peek(t, 1) == '\n' || np_sh_peek(t, 1) == '!')) {
			np_sh_take(t);
			add_char(word, np_sh_peek(t, 0));
			np_sh_take(t);
		} else {
			add_char(word, c);
			np_sh_take(t);
		}
	}
	/* unmatched: an error */
	if (c == quote)
		np_sh_take(t);
	else
		word->faulty = true;
}

/* ~ and ~/ at the start of a word, or of what `set` sets. */
static bool read_tilde(struct np_sh_text *t, struct np_sh_word *word)
{
	int after = np_sh_peek(t, 1);
	size_t n = word->text.len;
	/* =~ is an operator */
	bool starts = n == 0 || (n > 1 && word->text.data[n - 1] == '=' &&
				 isalnum((unsigned char)word->text.data[n - 2]));

	if (np_sh_peek(t, 0) != '~' || !starts || (after >= 0 && !strchr("/ \t\n;&|)", after)))
		return false;
	np_sh_take(t);
	np_buf_str(&word->text, t->sh->spec->home);
	word->not_empty = true;
	return true;
}

/* An operator; doubled ones are one word. */
static bool read_operator(struct np_sh_text *t, struct np_sh_word *word)
{
	int c = np_sh_peek(t, 0);

	if (c < 0 || !strchr("&|<>();", c))
		return false;
	add_char(word, c);
	np_sh_take(t);
	if (np_sh_peek(t, 0) == c && strchr("&|<>", c)) {
		add_char(word, c);
		np_sh_take(t);
	}
	return true;
}

/* One character, or a part that starts with one of its own meaning. */
static void read_part(struct np_sh_text *t, struct np_sh_word *word)
{
	int c = np_sh_peek(t, 0);

	if (c == '\'' || c == '"') {
		read_quoted(t, c, word);
	} else if (c == '`') {
		read_backquoted(t, word);
	} else if (c == '$') {
		expand_dollar(t, word);
	} else if (c == '\\') {
		np_sh_take(t);
		if (np_sh_peek(t, 0) >= 0)
			add_char(word, np_sh_peek(t, 0));
		np_sh_take(t);
		word->quoted = true;
	} else if (!read_tilde(t, word)) {
		word->glob |= strchr("*?[{", c) != NULL;
		add_char(word, c);
		np_sh_take(t);
	}
}

bool np_csh_read_word(struct np_sh_text *t, struct np_sh_word *word)
{
	size_t from;
	int c;

	memset(word, 0, sizeof(*word));
	np_sh_skip_blanks(t);
	from = t->pos;
	word->line = t->line;
	if (np_sh_peek(t, 0) < 0 || np_sh_peek(t, 0) == '\n')
		return false;
	if (!read_operator(t, word))
		while ((c = np_sh_peek(t, 0)) >= 0 && !strchr(" \t\r\n&|<>();", c) &&
		       !(c == '\\' && np_sh_peek(t, 1) == '\n'))
			read_part(t, word);
	np_buf_str(&word->text, "");
	t->sh->out->failed |= word->text.failed;
	if (t->pos > from && !word->text.failed)
		return true;
	np_buf_done(&word->text);
	memset(word, 0, sizeof(*word));
	return false;
}

/* ---- expressions ---- */

struct expr {
	const struct np_sh *sh;
	const struct np_sh_words *w;
	size_t at, to;
	int nest;
};

static const struct np_sh_word *here(const struct expr *e)
{
	return e->at < e->to ? &e->w->v[e->at] : NULL;
}

static bool take(struct expr *e, const char *text)
{
	if (!here(e) || !np_csh_is(here(e), text))
		return false;
	e->at++;
	return true;
}

static enum np_sh_tri either(struct expr *e);

/* A number: 0 and nothing are false. */
static enum np_sh_tri truth(const struct np_sh_word *word)
{
	const char *text = np_sh_text_of(word);

	if (word->opaque || strspn(text, "0123456789") != strlen(text))
		return NP_SH_UNKNOWN;
	return strspn(text, "0") == strlen(text) ? NP_SH_NO : NP_SH_YES;
}

static enum np_sh_tri compared(struct expr *e, const struct np_sh_word *left)
{
	static const struct {
		const char *text;
		bool pattern, negated;
	} ops[] = { { "==", false, false },
		    { "!=", false, true },
		    { "=~", true, false },
		    { "!~", true, true } };

	for (size_t i = 0; i < NP_ARRAY_SIZE(ops); i++) {
		enum np_sh_tri same;

		if (!take(e, ops[i].text))
			continue;
		if (!here(e))
			return NP_SH_UNKNOWN;
		same = np_sh_compare(left, here(e), ops[i].pattern);
		e->at++;
		return ops[i].negated ? np_sh_not(same) : same;
	}
	return truth(left);
}

static enum np_sh_tri primary(struct expr *e)
{
	const struct np_sh_word *word = here(e);
	enum np_sh_tri r;

	if (!word || e->nest++ > NEST_MAX)
		return NP_SH_UNKNOWN;
	if (take(e, "!"))
		return np_sh_not(primary(e));
	if (take(e, "(")) {
		r = either(e);
		take(e, ")");
		return r;
	}
	e->at++;
	if (!word->quoted && !word->opaque && strlen(np_sh_text_of(word)) == 2 &&
	    np_sh_text_of(word)[0] == '-' && here(e)) {
		r = strchr("erfdxsl", np_sh_text_of(word)[1]) ? np_sh_exists(e->sh, here(e)) :
								NP_SH_UNKNOWN;
		e->at++;
		return r;
	}
	if (np_csh_is(word, "{")) {
		while (here(e) && !take(e, "}"))
			e->at++;
		return NP_SH_UNKNOWN;
	}
	return compared(e, word);
}

static enum np_sh_tri both(struct expr *e)
{
	enum np_sh_tri r = primary(e);

	while (take(e, "&&"))
		r = np_sh_and(r, primary(e));
	return r;
}

static enum np_sh_tri either(struct expr *e)
{
	enum np_sh_tri r = both(e);

	while (take(e, "||"))
		r = np_sh_not(np_sh_and(np_sh_not(r), np_sh_not(both(e))));
	return r;
}

enum np_sh_tri np_csh_expression(const struct np_sh *sh, const struct np_sh_words *w, size_t from,
				 size_t to, bool *faulty)
{
	struct expr e = { .sh = sh, .w = w, .at = from, .to = to };
	enum np_sh_tri r;

	/* all of it is expanded before any of it is looked at */
	for (size_t i = from; i < to; i++)
		*faulty |= w->v[i].faulty;
	r = either(&e);
	return e.at < e.to ? NP_SH_UNKNOWN : r;
}
