/* SPDX-License-Identifier: MIT */
/* Words of sh: quotes and expansions. */
#include "agent/shell_word.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#define NEST_MAX  32
#define DEPTH_MAX 10

int np_sh_peek(const struct np_sh_text *t, size_t ahead)
{
	return t->pos + ahead < t->len ? (unsigned char)t->text[t->pos + ahead] : -1;
}

void np_sh_take(struct np_sh_text *t)
{
	if (t->pos >= t->len)
		return;
	if (t->text[t->pos] == '\n')
		t->line++;
	t->pos++;
}

void np_sh_skip_blanks(struct np_sh_text *t)
{
	for (;;) {
		int c = np_sh_peek(t, 0);

		if (c == ' ' || c == '\t' || c == '\r') {
			np_sh_take(t);
		} else if (c == '\\' && np_sh_peek(t, 1) == '\n') {
			np_sh_take(t);
			np_sh_take(t);
		} else if (c == '#') {
			while (np_sh_peek(t, 0) >= 0 && np_sh_peek(t, 0) != '\n')
				np_sh_take(t);
		} else {
			return;
		}
	}
}

void np_sh_word_done(struct np_sh_word *word)
{
	np_buf_done(&word->text);
	memset(word, 0, sizeof(*word));
}

enum np_sh_mode np_sh_under(enum np_sh_mode outer, enum np_sh_tri condition)
{
	if (outer == NP_SH_SILENT || outer == NP_SH_SKIP)
		return outer;
	if (condition == NP_SH_NO)
		return NP_SH_SKIP;
	return condition == NP_SH_UNKNOWN ? NP_SH_MAYBE : outer;
}

/* ---- variables ---- */

static bool look_builtin(const struct np_sh *sh, const char *name, struct np_sh_look *out)
{
	bool bash = np_starts_with(name, "BASH"), zsh = np_streq(name, "ZSH_VERSION");

	if (np_streq(name, "HOME"))
		out->value = sh->spec->home;
	else if (np_streq(name, "USER") || np_streq(name, "LOGNAME"))
		out->value = sh->spec->user;
	else if (!np_streq(name, "BASH_VERSION") && !np_streq(name, "BASH") && !zsh)
		return false;
	if (bash || zsh)
		out->set = out->not_empty =
			sh->spec->shell == (bash ? NP_SHELL_BASH : NP_SHELL_ZSH) ? NP_SH_YES :
										   NP_SH_NO;
	else
		out->set = out->not_empty = NP_SH_YES;
	return true;
}

void np_sh_look(const struct np_sh *sh, const char *name, struct np_sh_look *out)
{
	*out = (struct np_sh_look){ NP_SH_UNKNOWN, NP_SH_UNKNOWN, NULL };
	for (size_t i = sh->out->n; i > 0; i--) {
		const struct np_setting *s = &sh->out->v[i - 1];

		if (s->state == NP_SETTING_SKIPPED || strcmp(s->name, name) != 0)
			continue;
		if (s->state == NP_SETTING_MAYBE)
			return;
		out->set = s->value ? NP_SH_YES : NP_SH_NO;
		out->not_empty = !s->value || !*s->value ? NP_SH_NO :
				 s->opaque		 ? NP_SH_UNKNOWN :
							   NP_SH_YES;
		out->value = s->opaque ? NULL : s->value;
		return;
	}
	if (look_builtin(sh, name, out))
		return;
	/* a login starts without them; anything else may come from sshd, PAM or a terminal */
	if (np_setting_matters(name) || np_setting_finds_libraries(name))
		out->set = out->not_empty = NP_SH_NO;
}

static bool is_exported(const struct np_sh *sh, const char *name)
{
	const struct np_setting *s = np_settings_find(sh->out, name, NULL);

	return sh->all_export || np_strv_has(&sh->exported, name) || (s && !s->is_local);
}

void np_sh_assign(struct np_sh_text *t, enum np_sh_mode mode, int line, const char *name,
		  const char *value, bool opaque)
{
	static const enum np_setting_state states[] = { [NP_SH_RUN] = NP_SETTING_TAKEN,
							[NP_SH_MAYBE] = NP_SETTING_MAYBE,
							[NP_SH_SKIP] = NP_SETTING_SKIPPED };
	bool exported = is_exported(t->sh, name);
	struct np_setting *s;

	if (mode == NP_SH_SILENT)
		return;
	s = np_settings_add(t->sh->out, name, value, t->file, line, states[mode]);
	if (!s)
		return;
	s->opaque = opaque && value;
	s->is_local = !exported;
}

/* ---- expansions ---- */

static void add_raw(struct np_sh_text *t, size_t from, struct np_sh_word *word)
{
	np_buf_add(&word->text, t->text + from, t->pos - from);
}

/* Past the bracket that closes the one at the current place, quotes heeded. */
static void skip_balanced(struct np_sh_text *t, int open, int close)
{
	int depth = 0, quote = 0, c;

	while ((c = np_sh_peek(t, 0)) >= 0) {
		np_sh_take(t);
		if (c == '\\' && quote != '\'') {
			np_sh_take(t);
		} else if (quote) {
			if (c == quote)
				quote = 0;
		} else if (c == '\'' || c == '"') {
			quote = c;
		} else if (c == open) {
			depth++;
		} else if (c == close && --depth == 0) {
			return;
		}
	}
}

static void read_parts(struct np_sh_text *t, enum np_sh_mode mode, int end, int nest,
		       struct np_sh_word *word);

/* The value itself. */
static void add_value(struct np_sh_text *t, size_t from, const struct np_sh_look *look,
		      struct np_sh_word *word)
{
	word->not_empty |= look->not_empty == NP_SH_YES;
	if (look->set == NP_SH_NO)
		return;
	if (look->value) {
		np_buf_str(&word->text, look->value);
		return;
	}
	word->opaque = true;
	add_raw(t, from, word);
}

/* ${NAME-word} and its kin; the current place is behind the name. */
static void expand_operator(struct np_sh_text *t, enum np_sh_mode mode, size_t from, int nest,
			    const char *name, const struct np_sh_look *look,
			    struct np_sh_word *word)
{
	bool colon = np_sh_peek(t, 0) == ':';
	int op = np_sh_peek(t, colon), line = t->line;
	enum np_sh_tri there = colon ? look->not_empty : look->set;
	enum np_sh_tri lacks = there == NP_SH_YES ? NP_SH_NO :
			       there == NP_SH_NO  ? NP_SH_YES :
						    NP_SH_UNKNOWN;
	struct np_sh_word sub = { 0 };

	for (int i = 0; i < 1 + colon; i++)
		np_sh_take(t);
	read_parts(t, np_sh_under(mode, op == '+' ? there : lacks), '}', nest + 1, &sub);
	np_buf_str(&sub.text, "");
	np_sh_take(t); /* } */
	if (op == '=')
		np_sh_assign(t, np_sh_under(mode, lacks), line, name, sub.text.data, sub.opaque);
	if (op == '+' && there == NP_SH_NO) {
		/* nothing */
	} else if ((op == '+' ? there : lacks) == NP_SH_YES) {
		word->opaque |= sub.opaque;
		word->not_empty |= sub.not_empty;
		np_buf_add(&word->text, sub.text.data, sub.text.len);
	} else if (op != '+' && lacks == NP_SH_NO) {
		add_value(t, from, look, word);
	} else {
		word->opaque = true;
		word->not_empty |= colon && op != '+' && sub.not_empty;
		add_raw(t, from, word);
	}
	np_sh_word_done(&sub);
}

static void expand_braces(struct np_sh_text *t, enum np_sh_mode mode, size_t from, int nest,
			  struct np_sh_word *word)
{
	char name[64];
	size_t n = 0, at = t->pos;
	struct np_sh_look look;
	int c;

	np_sh_take(t); /* { */
	while ((c = np_sh_peek(t, 0)) >= 0 && (isalnum(c) || c == '_')) {
		if (n < sizeof(name) - 1)
			name[n++] = (char)c;
		np_sh_take(t);
	}
	name[n] = '\0';
	np_sh_look(t->sh, name, &look);
	if (n > 0 && !isdigit((unsigned char)name[0]) && c == '}') {
		np_sh_take(t);
		add_value(t, from, &look, word);
		return;
	}
	if (n > 0 && !isdigit((unsigned char)name[0]) && c > 0 && nest < NEST_MAX &&
	    (strchr("-=+", c) ||
	     (c == ':' && np_sh_peek(t, 1) > 0 && strchr("-=+", np_sh_peek(t, 1))))) {
		expand_operator(t, mode, from, nest, name, &look, word);
		return;
	}
	/* ${#NAME}, ${NAME%word}, ...: not worked out */
	while (t->pos > at) {
		t->pos--;
		if (t->text[t->pos] == '\n')
			t->line--;
	}
	skip_balanced(t, '{', '}');
	word->opaque = true;
	add_raw(t, from, word);
}

static void expand_dollar(struct np_sh_text *t, enum np_sh_mode mode, bool in_quotes, int nest,
			  struct np_sh_word *word)
{
	size_t from = t->pos, n = 0;
	struct np_sh_look look;
	char name[64];
	int c;

	np_sh_take(t); /* $ */
	c = np_sh_peek(t, 0);
	if (c == '{') {
		expand_braces(t, mode, from, nest, word);
	} else if (c == '(') {
		skip_balanced(t, '(', ')');
		word->opaque = true;
		add_raw(t, from, word);
	} else if (c == '\'' && !in_quotes) {
		/* $'...': taken as it stands, escapes and all */
		skip_balanced(t, '\'', '\'');
		word->opaque = true;
		add_raw(t, from, word);
	} else if (c > 0 && (isalpha(c) || c == '_')) {
		while ((c = np_sh_peek(t, 0)) >= 0 && (isalnum(c) || c == '_')) {
			if (n < sizeof(name) - 1)
				name[n++] = (char)c;
			np_sh_take(t);
		}
		name[n] = '\0';
		np_sh_look(t->sh, name, &look);
		add_value(t, from, &look, word);
	} else if (c > 0 && (isdigit(c) || strchr("?$-#@*!", c))) {
		np_sh_take(t);
		word->opaque = true;
		add_raw(t, from, word);
	} else {
		np_buf_str(&word->text, "$");
		word->not_empty = true;
	}
}

static void add_char(struct np_sh_word *word, int c)
{
	char one = (char)c;

	np_buf_add(&word->text, &one, 1);
	word->not_empty = true;
}

static void read_backquoted(struct np_sh_text *t, struct np_sh_word *word)
{
	size_t from = t->pos;
	int c;

	np_sh_take(t);
	while ((c = np_sh_peek(t, 0)) >= 0 && c != '`') {
		np_sh_take(t);
		if (c == '\\')
			np_sh_take(t);
	}
	np_sh_take(t);
	word->opaque = true;
	add_raw(t, from, word);
}

static void read_double_quoted(struct np_sh_text *t, enum np_sh_mode mode, int nest,
			       struct np_sh_word *word)
{
	int c;

	np_sh_take(t);
	while ((c = np_sh_peek(t, 0)) >= 0 && c != '"') {
		if (c == '$') {
			expand_dollar(t, mode, true, nest, word);
		} else if (c == '`') {
			read_backquoted(t, word);
		} else if (c == '\\' && np_sh_peek(t, 1) >= 0 &&
			   strchr("$`\"\\\n", np_sh_peek(t, 1))) {
			np_sh_take(t);
			if (np_sh_peek(t, 0) != '\n')
				add_char(word, np_sh_peek(t, 0));
			np_sh_take(t);
		} else {
			add_char(word, c);
			np_sh_take(t);
		}
	}
	np_sh_take(t);
	word->quoted = true;
}

static void read_single_quoted(struct np_sh_text *t, struct np_sh_word *word)
{
	int c;

	np_sh_take(t);
	while ((c = np_sh_peek(t, 0)) >= 0 && c != '\'') {
		add_char(word, c);
		np_sh_take(t);
	}
	np_sh_take(t);
	word->quoted = true;
}

/* A part that starts with a character of its own meaning. False: it has none. */
static bool read_special(struct np_sh_text *t, enum np_sh_mode mode, int nest,
			 struct np_sh_word *word)
{
	switch (np_sh_peek(t, 0)) {
	case '\'':
		read_single_quoted(t, word);
		return true;
	case '"':
		read_double_quoted(t, mode, nest, word);
		return true;
	case '`':
		read_backquoted(t, word);
		return true;
	case '$':
		expand_dollar(t, mode, false, nest, word);
		return true;
	case '\\':
		np_sh_take(t);
		if (np_sh_peek(t, 0) >= 0 && np_sh_peek(t, 0) != '\n')
			add_char(word, np_sh_peek(t, 0));
		np_sh_take(t);
		word->quoted = true;
		return true;
	default:
		return false;
	}
}

/* Up to @end, which is left where it is. */
static void read_parts(struct np_sh_text *t, enum np_sh_mode mode, int end, int nest,
		       struct np_sh_word *word)
{
	int c;

	while ((c = np_sh_peek(t, 0)) >= 0 && c != end) {
		if (read_special(t, mode, nest, word))
			continue;
		add_char(word, c);
		np_sh_take(t);
	}
}

/* ~ and ~/ at the start of a word, or of the value of an assignment. */
static bool read_tilde(struct np_sh_text *t, struct np_sh_word *word)
{
	int after = np_sh_peek(t, 1);
	bool starts =
		word->text.len == 0 || (word->name_len && word->text.len == word->name_len + 1);

	if (np_sh_peek(t, 0) != '~' || !starts || word->quoted ||
	    (after >= 0 && !strchr("/ \t\n;&|)", after)))
		return false;
	np_sh_take(t);
	np_buf_str(&word->text, t->sh->spec->home);
	word->not_empty = true;
	return true;
}

static bool is_name_so_far(const struct np_sh_word *word)
{
	if (word->quoted || word->opaque || word->text.len == 0 ||
	    isdigit((unsigned char)word->text.data[0]))
		return false;
	for (size_t i = 0; i < word->text.len; i++)
		if (!isalnum((unsigned char)word->text.data[i]) && word->text.data[i] != '_')
			return false;
	return true;
}

bool np_sh_read_word(struct np_sh_text *t, enum np_sh_mode mode, bool raw, struct np_sh_word *word)
{
	size_t from = t->pos;
	int c;

	memset(word, 0, sizeof(*word));
	word->line = t->line;
	while ((c = np_sh_peek(t, 0)) >= 0) {
		if (strchr(" \t\r\n", c) || (!raw && strchr(";&|()<>", c)))
			break;
		if (read_special(t, mode, 0, word) || read_tilde(t, word))
			continue;
		if (c == '=' && !word->name_len && is_name_so_far(word))
			word->name_len = word->text.len;
		word->glob |= c == '*' || c == '?' || c == '[';
		add_char(word, c);
		np_sh_take(t);
	}
	np_buf_str(&word->text, "");
	t->sh->out->failed |= word->text.failed;
	if (t->pos > from && !word->text.failed)
		return true;
	np_sh_word_done(word);
	return false;
}

int np_sh_scan_by(struct np_sh *sh, const char *path, enum np_sh_mode mode,
		  void (*scan)(struct np_sh_text *t, enum np_sh_mode mode))
{
	np_auto_buf struct np_buf text = { 0 };
	struct np_sh_text t = { .sh = sh, .file = path, .line = 1 };
	int r;

	if (sh->depth >= DEPTH_MAX)
		return -ELOOP;
	r = sh->spec->files->read(sh->spec->files->arg, path, &text);
	if (r < 0)
		return r;
	t.text = text.data;
	t.len = text.data ? strnlen(text.data, text.len) : 0;
	sh->depth++;
	scan(&t, mode);
	sh->depth--;
	np_strv_done(&t.heredocs);
	return 0;
}
