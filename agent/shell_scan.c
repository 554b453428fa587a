/* SPDX-License-Identifier: MIT */
/* Commands of sh: lists, conditions and loops, as far as they decide on variables. */
#include "agent/shell_scan.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "agent/shell_word.h"

#define STEPS_MAX   10000
#define NESTING_MAX 64

void np_sh_words_free(struct np_sh_words **words)
{
	for (size_t i = 0; *words && i < (*words)->n; i++)
		np_sh_word_done(&(*words)->v[i]);
	free(*words);
}

static enum np_sh_tri list(struct np_sh_text *t, enum np_sh_mode mode, const char *ends,
			   int nesting);

static void whole_file(struct np_sh_text *t, enum np_sh_mode mode)
{
	list(t, mode, NULL, 0);
}

int np_sh_scan_file(struct np_sh *sh, const char *path, enum np_sh_mode mode)
{
	return np_sh_scan_by(sh, path, mode, whole_file);
}

/* ---- redirections ---- */

static void skip_redirection(struct np_sh_text *t)
{
	struct np_sh_word target;
	bool here = np_sh_peek(t, 0) == '<' && np_sh_peek(t, 1) == '<' && np_sh_peek(t, 2) != '<';

	while (np_sh_peek(t, 0) > 0 && strchr("<>&|-", np_sh_peek(t, 0)))
		np_sh_take(t);
	np_sh_skip_blanks(t);
	if (np_sh_read_word(t, NP_SH_SILENT, false, &target) && here &&
	    np_strv_add(&t->heredocs, np_sh_text_of(&target)) < 0)
		t->sh->out->failed = true;
	np_sh_word_done(&target);
}

/* A newline; the documents that the line has announced come behind it. */
static void take_newline(struct np_sh_text *t)
{
	np_sh_take(t);
	for (size_t i = 0; i < t->heredocs.n; i++) {
		const char *end = t->heredocs.v[i];
		bool last = false;

		while (!last && np_sh_peek(t, 0) >= 0) {
			size_t from, n;

			while (np_sh_peek(t, 0) == '\t')
				np_sh_take(t);
			from = t->pos;
			while (np_sh_peek(t, 0) >= 0 && np_sh_peek(t, 0) != '\n')
				np_sh_take(t);
			n = t->pos - from;
			last = n == strlen(end) && memcmp(t->text + from, end, n) == 0;
			np_sh_take(t);
		}
	}
	np_strv_done(&t->heredocs);
}

static void skip_space(struct np_sh_text *t)
{
	for (;;) {
		np_sh_skip_blanks(t);
		if (np_sh_peek(t, 0) == '\n')
			take_newline(t);
		else if (np_sh_peek(t, 0) == ';' && np_sh_peek(t, 1) != ';')
			np_sh_take(t);
		else
			return;
	}
}

/* ---- compound commands ---- */

/* One of @names stands here as a word of its own; it is taken. */
static bool take_keyword(struct np_sh_text *t, const char *name)
{
	size_t n = strlen(name);
	int after = np_sh_peek(t, n);

	if (t->len - t->pos < n || strncmp(t->text + t->pos, name, n) != 0 ||
	    (after >= 0 && !strchr(" \t\r\n;&|()<>", after)))
		return false;
	t->pos += n;
	return true;
}

static enum np_sh_tri if_command(struct np_sh_text *t, enum np_sh_mode mode, int nesting)
{
	/* @left: no branch was taken up to here */
	enum np_sh_mode left = mode;
	bool has_else = false;

	do {
		enum np_sh_tri met;

		if (has_else)
			break;
		met = list(t, left, "then", nesting);
		if (!take_keyword(t, "then"))
			return NP_SH_UNKNOWN;
		list(t, np_sh_under(left, met), "elif else fi", nesting);
		left = np_sh_under(left, np_sh_not(met));
		if (take_keyword(t, "else")) {
			list(t, left, "fi", nesting);
			has_else = true;
		}
	} while (take_keyword(t, "elif"));
	take_keyword(t, "fi");
	return NP_SH_UNKNOWN;
}

int np_sh_matches(const struct np_sh *sh, const struct np_sh_word *word, struct np_strv *items)
{
	const struct np_scan_files *files = sh->spec->files;
	const char *slash = strrchr(np_sh_text_of(word), '/');
	np_auto_strv struct np_strv names = { 0 };
	_cleanup_free_ char *dir = NULL;
	size_t before = items->n;

	if (word->opaque)
		return -EINVAL;
	if (!word->glob)
		return np_strv_add(items, np_sh_text_of(word));
	dir = slash && slash > np_sh_text_of(word) ?
		      strndup(np_sh_text_of(word), (size_t)(slash - np_sh_text_of(word))) :
		      NULL;
	if (!dir || strpbrk(dir, "*?[") || files->list(files->arg, dir, &names) < 0)
		return -EINVAL;
	/* the order of the C locale; others differ on capitals and punctuation */
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *path = NULL;

		if (fnmatch(slash + 1, names.v[i], FNM_PERIOD) != 0)
			continue;
		path = np_asprintf("%s/%s", dir, names.v[i]);
		if (!path || np_strv_add(items, path) < 0)
			return -ENOMEM;
	}
	return items->n > before ? 0 : np_strv_add(items, np_sh_text_of(word));
}

static void for_body(struct np_sh_text *t, enum np_sh_mode mode, int nesting, const char *name,
		     int line, const struct np_strv *items)
{
	struct np_sh_text start = *t;

	for (size_t i = 0; i < items->n && t->sh->steps < STEPS_MAX && !t->returned; i++) {
		t->pos = start.pos;
		t->line = start.line;
		np_sh_assign(t, mode, line, name, items->v[i], false);
		list(t, mode, "done", nesting);
	}
	t->sh->out->failed |= t->sh->steps >= STEPS_MAX;
	if (items->n == 0 || t->returned)
		list(t, NP_SH_SILENT, "done", nesting);
	take_keyword(t, "done");
}

static void for_command(struct np_sh_text *t, enum np_sh_mode mode, int nesting)
{
	np_auto_strv struct np_strv items = { 0 };
	struct np_sh_word name = { 0 }, word;
	int line = t->line;
	bool told = true;

	np_sh_skip_blanks(t);
	told = np_sh_read_word(t, NP_SH_SILENT, false, &name);
	skip_space(t);
	if (take_keyword(t, "in")) {
		np_sh_skip_blanks(t);
		while (np_sh_read_word(t, NP_SH_SILENT, false, &word)) {
			told &= np_sh_matches(t->sh, &word, &items) == 0;
			np_sh_word_done(&word);
			np_sh_skip_blanks(t);
		}
	}
	while (np_sh_peek(t, 0) >= 0 && np_sh_peek(t, 0) != '\n' && np_sh_peek(t, 0) != ';')
		np_sh_take(t);
	skip_space(t);
	if (!take_keyword(t, "do"))
		told = false;
	if (told) {
		for_body(t, mode, nesting, np_sh_text_of(&name), line, &items);
	} else {
		size_t before = t->sh->out->n;

		list(t, np_sh_under(mode, NP_SH_UNKNOWN), "done", nesting);
		take_keyword(t, "done");
		if (t->sh->out->n == before && mode != NP_SH_SKIP && mode != NP_SH_SILENT)
			np_sh_note(t, line, "loops over what cannot be told from here");
	}
	np_sh_word_done(&name);
}

static void case_command(struct np_sh_text *t, enum np_sh_mode mode, int nesting)
{
	struct np_sh_word word;

	np_sh_skip_blanks(t);
	np_sh_read_word(t, NP_SH_SILENT, false, &word);
	np_sh_word_done(&word);
	skip_space(t);
	take_keyword(t, "in");
	for (;;) {
		skip_space(t);
		if (take_keyword(t, "esac") || np_sh_peek(t, 0) < 0)
			return;
		/* the pattern */
		while (np_sh_peek(t, 0) >= 0 && np_sh_peek(t, 0) != ')')
			np_sh_take(t);
		np_sh_take(t);
		list(t, np_sh_under(mode, NP_SH_UNKNOWN), "esac", nesting);
		while (np_sh_peek(t, 0) == ';' || np_sh_peek(t, 0) == '&')
			np_sh_take(t);
	}
}

/* A command that is more than words. False: it is none. */
static bool compound(struct np_sh_text *t, enum np_sh_mode mode, int nesting,
		     enum np_sh_tri *status)
{
	*status = NP_SH_UNKNOWN;
	if (np_sh_peek(t, 0) == '(') {
		np_sh_take(t);
		list(t, NP_SH_SILENT, ")", nesting);
		np_sh_take(t);
	} else if (take_keyword(t, "{")) {
		*status = list(t, mode, "}", nesting);
		take_keyword(t, "}");
	} else if (take_keyword(t, "if")) {
		*status = if_command(t, mode, nesting);
	} else if (take_keyword(t, "for") || take_keyword(t, "select")) {
		for_command(t, mode, nesting);
	} else if (take_keyword(t, "while") || take_keyword(t, "until")) {
		list(t, np_sh_under(mode, NP_SH_UNKNOWN), "do", nesting);
		take_keyword(t, "do");
		list(t, np_sh_under(mode, NP_SH_UNKNOWN), "done", nesting);
		take_keyword(t, "done");
	} else if (take_keyword(t, "case")) {
		case_command(t, mode, nesting);
	} else {
		return false;
	}
	return true;
}

/* name ( ) or function name: its body is not run here. */
static bool function(struct np_sh_text *t, const struct np_sh_words *w, int nesting)
{
	bool word = np_streq(np_sh_text_of(&w->v[0]), "function") && w->n >= 2;
	enum np_sh_tri status;

	if (w->n != 1 && !word)
		return false;
	np_sh_skip_blanks(t);
	if (np_sh_peek(t, 0) == '(') {
		np_sh_take(t);
		np_sh_skip_blanks(t);
		if (np_sh_peek(t, 0) != ')')
			return true;
		np_sh_take(t);
	} else if (!word) {
		return false;
	}
	skip_space(t);
	compound(t, NP_SH_SILENT, nesting, &status);
	return true;
}

static enum np_sh_tri simple(struct np_sh_text *t, enum np_sh_mode mode, int nesting)
{
	np_auto(np_sh_words_free) struct np_sh_words *w = calloc(1, sizeof(*w));
	bool brackets = false;

	if (!w) {
		t->sh->out->failed = true;
		t->pos = t->len;
		return NP_SH_UNKNOWN;
	}
	for (;;) {
		struct np_sh_word spare = { 0 },
				  *word = w->n < NP_SH_WORDS_MAX ? &w->v[w->n] : &spare;
		int c;

		np_sh_skip_blanks(t);
		c = np_sh_peek(t, 0);
		if (!brackets && (c == '<' || c == '>' || (c == '&' && np_sh_peek(t, 1) == '>'))) {
			skip_redirection(t);
			continue;
		}
		if (!np_sh_read_word(t, mode, brackets, word))
			break;
		/* 2>file */
		if (!word->quoted && word->text.len == 1 && strchr("012", *np_sh_text_of(word)) &&
		    (np_sh_peek(t, 0) == '>' || np_sh_peek(t, 0) == '<')) {
			np_sh_word_done(word);
			continue;
		}
		if (w->n == 0 && np_streq(np_sh_text_of(word), "[["))
			brackets = true;
		else if (brackets && np_streq(np_sh_text_of(word), "]]"))
			brackets = false;
		if (word == &spare)
			np_sh_word_done(word);
		else
			w->n++;
	}
	if (w->n == 0) {
		/* an operator where none belongs: go on behind it */
		if (np_sh_peek(t, 0) >= 0)
			np_sh_take(t);
		return NP_SH_UNKNOWN;
	}
	if (function(t, w, nesting))
		return NP_SH_YES;
	return np_sh_run(t, mode, w);
}

/* ---- lists ---- */

static enum np_sh_tri pipeline(struct np_sh_text *t, enum np_sh_mode mode, int nesting)
{
	enum np_sh_tri status;
	bool negated;

	np_sh_skip_blanks(t);
	negated = take_keyword(t, "!");
	np_sh_skip_blanks(t);
	if (compound(t, mode, nesting, &status)) {
		for (;;) {
			np_sh_skip_blanks(t);
			if (np_sh_peek(t, 0) != '<' && np_sh_peek(t, 0) != '>')
				break;
			skip_redirection(t);
		}
	} else {
		status = simple(t, mode, nesting);
	}
	np_sh_skip_blanks(t);
	while (np_sh_peek(t, 0) == '|' && np_sh_peek(t, 1) != '|') {
		np_sh_take(t);
		skip_space(t);
		if (nesting < NESTING_MAX)
			pipeline(t, NP_SH_SILENT, nesting + 1);
		status = NP_SH_UNKNOWN;
		np_sh_skip_blanks(t);
	}
	return negated ? np_sh_not(status) : status;
}

static enum np_sh_tri and_or(struct np_sh_text *t, enum np_sh_mode mode, int nesting)
{
	enum np_sh_tri status = pipeline(t, mode, nesting);

	for (;;) {
		enum np_sh_tri right, go;
		int c;

		np_sh_skip_blanks(t);
		c = np_sh_peek(t, 0);
		if ((c != '&' && c != '|') || np_sh_peek(t, 1) != c)
			break;
		np_sh_take(t);
		np_sh_take(t);
		skip_space(t);
		go = c == '&' ? status : np_sh_not(status);
		right = pipeline(t, np_sh_under(mode, go), nesting);
		/* only where the left side does not decide it does the right one */
		if (go == NP_SH_YES || right == (c == '&' ? NP_SH_NO : NP_SH_YES))
			status = go == NP_SH_NO ? status : right;
		else if (go == NP_SH_UNKNOWN)
			status = NP_SH_UNKNOWN;
	}
	if (np_sh_peek(t, 0) == '&')
		np_sh_take(t);
	return status;
}

static bool at_end(struct np_sh_text *t, const char *ends)
{
	size_t at = t->pos;

	if (np_sh_peek(t, 0) < 0 || (np_sh_peek(t, 0) == ';' && np_sh_peek(t, 1) == ';'))
		return true;
	while (ends && *ends) {
		size_t n = strcspn(ends, " ");
		char word[16];

		np_strcpy(word, n + 1 < sizeof(word) ? n + 1 : sizeof(word), ends);
		if (np_streq(word, ")") ? np_sh_peek(t, 0) == ')' : take_keyword(t, word)) {
			t->pos = at;
			return true;
		}
		ends += n + strspn(ends + n, " ");
	}
	return false;
}

/* Commands up to one of the words @ends, which stays; the status of the last one. */
static enum np_sh_tri list(struct np_sh_text *t, enum np_sh_mode mode, const char *ends,
			   int nesting)
{
	enum np_sh_tri status = NP_SH_UNKNOWN;

	for (;;) {
		enum np_sh_mode now = mode;

		skip_space(t);
		if (at_end(t, ends) && !(np_sh_peek(t, 0) == ';' && !ends))
			return status;
		if (nesting >= NESTING_MAX || t->sh->steps++ >= STEPS_MAX) {
			t->sh->out->failed = true;
			t->pos = t->len;
			return NP_SH_UNKNOWN;
		}
		if (t->returned || t->sh->exited)
			now = NP_SH_SILENT;
		else if (t->unsure || t->sh->unsure)
			now = np_sh_under(mode, NP_SH_UNKNOWN);
		status = and_or(t, now, nesting + 1);
	}
}

int np_shell_scan(const struct np_scan_spec *spec, const char *path, bool certain,
		  struct np_settings *settings)
{
	struct np_sh sh = { .spec = spec, .out = settings };
	int r = np_sh_scan_file(&sh, path, certain ? NP_SH_RUN : NP_SH_MAYBE);

	np_strv_done(&sh.exported);
	return r;
}
