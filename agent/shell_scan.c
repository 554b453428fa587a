/* SPDX-License-Identifier: MIT */
/* Commands of sh: lists, conditions and loops, as far as they decide on variables. */
#include "agent/shell_scan.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "agent/shell_word.h"

#define STEPS_MAX   20000
#define DEPTH_MAX   10
#define NESTING_MAX 64
#define WORDS_MAX   256

struct words {
	struct np_sh_word v[WORDS_MAX];
	size_t n;
};

static void words_free(struct words **words)
{
	for (size_t i = 0; *words && i < (*words)->n; i++)
		np_sh_word_done(&(*words)->v[i]);
	free(*words);
}

static const char *text_of(const struct np_sh_word *word)
{
	return word->text.data ? word->text.data : "";
}

static enum np_sh_tri list(struct np_sh_text *t, enum np_sh_mode mode, const char *ends,
			   int nesting);

static enum np_sh_tri not(enum np_sh_tri a) {
	return a == NP_SH_UNKNOWN ? a :
	       a == NP_SH_YES	  ? NP_SH_NO :
				    NP_SH_YES;
}

/* ---- conditions ---- */

static enum np_sh_tri path_exists(struct np_sh_text *t, const struct np_sh_word *word)
{
	const struct np_scan_files *files = t->sh->spec->files;
	int r = word->opaque || text_of(word)[0] != '/' ? -1 :
							  files->exists(files->arg, text_of(word));

	return r < 0 ? NP_SH_UNKNOWN : r ? NP_SH_YES : NP_SH_NO;
}

static enum np_sh_tri not_empty(const struct np_sh_word *word)
{
	if (word->not_empty)
		return NP_SH_YES;
	return word->opaque ? NP_SH_UNKNOWN : word->text.len ? NP_SH_YES : NP_SH_NO;
}

static enum np_sh_tri test_two(struct np_sh_text *t, const struct np_sh_word *w)
{
	const char *op = text_of(&w[0]);
	struct np_sh_look look;

	if (np_streq(op, "-n"))
		return not_empty(&w[1]);
	if (np_streq(op, "-z"))
		return not(not_empty(&w[1]));
	if (strlen(op) == 2 && op[0] == '-' && strchr("efdrxsLh", op[1]))
		return path_exists(t, &w[1]);
	if (np_streq(op, "-v") && !w[1].opaque) {
		np_sh_look(t->sh, text_of(&w[1]), &look);
		return look.set;
	}
	return NP_SH_UNKNOWN;
}

static enum np_sh_tri test_three(const struct np_sh_word *w, bool pattern)
{
	const char *op = text_of(&w[1]);
	bool equal = np_streq(op, "=") || np_streq(op, "=="), same;

	if (!equal && !np_streq(op, "!="))
		return NP_SH_UNKNOWN;
	/* "$X" != "" of something that is not empty, whatever it is */
	if (w[0].opaque && w[0].not_empty && !w[2].opaque && w[2].text.len == 0)
		return equal ? NP_SH_NO : NP_SH_YES;
	if (w[0].opaque || w[2].opaque)
		return NP_SH_UNKNOWN;
	if (pattern && w[2].glob)
		same = fnmatch(text_of(&w[2]), text_of(&w[0]), 0) == 0;
	else
		same = strcmp(text_of(&w[0]), text_of(&w[2])) == 0;
	return same == equal ? NP_SH_YES : NP_SH_NO;
}

static enum np_sh_tri test(struct np_sh_text *t, const struct np_sh_word *w, size_t n, bool pattern)
{
	if (n > 1 && np_streq(text_of(&w[0]), "!") && !w[0].quoted)
		return not(test(t, w + 1, n - 1, pattern));
	if (n == 0)
		return NP_SH_NO;
	if (n == 1)
		return not_empty(&w[0]);
	if (n == 2)
		return test_two(t, w);
	return n == 3 ? test_three(w, pattern) : NP_SH_UNKNOWN;
}

/* ---- files ---- */

static void note(struct np_sh_text *t, int line, const char *what)
{
	const struct np_scan_files *files = t->sh->spec->files;

	if (files->note)
		files->note(files->arg, t->file, line, what);
}

static int scan_file(struct np_sh *sh, const char *path, enum np_sh_mode mode)
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
	list(&t, mode, NULL, 0);
	sh->depth--;
	np_strv_done(&t.heredocs);
	return 0;
}

static enum np_sh_tri source(struct np_sh_text *t, enum np_sh_mode mode, const struct words *w,
			     size_t at)
{
	const struct np_sh_word *path = at + 1 < w->n ? &w->v[at + 1] : NULL;
	int r;

	if (!path || mode == NP_SH_SKIP || mode == NP_SH_SILENT)
		return NP_SH_UNKNOWN;
	if (path->opaque || text_of(path)[0] != '/') {
		note(t, path->line, "sources a file that cannot be told from here");
		return NP_SH_UNKNOWN;
	}
	r = scan_file(t->sh, text_of(path), mode);
	if (r < 0 && r != -ENOENT)
		note(t, path->line, "sources a file that cannot be read");
	return r < 0 ? NP_SH_NO : NP_SH_UNKNOWN;
}

/* ---- simple commands ---- */

static void assign_word(struct np_sh_text *t, enum np_sh_mode mode, struct np_sh_word *word)
{
	_cleanup_free_ char *name = strndup(text_of(word), word->name_len);

	if (!name) {
		t->sh->out->failed = true;
		return;
	}
	/* NAME+=, NAME[0]= are no assignments to us */
	np_sh_assign(t, mode, word->line, name, text_of(word) + word->name_len + 1, word->opaque);
}

static void export_name(struct np_sh_text *t, enum np_sh_mode mode, const char *name)
{
	struct np_settings *out = t->sh->out;

	if (mode != NP_SH_RUN && mode != NP_SH_MAYBE)
		return;
	for (size_t i = 0; i < out->n; i++)
		if (strcmp(out->v[i].name, name) == 0)
			out->v[i].is_local = false;
	if (!np_strv_has(&t->sh->exported, name) && np_strv_add(&t->sh->exported, name) < 0)
		out->failed = true;
}

/* export, declare, typeset, readonly */
static void declare(struct np_sh_text *t, enum np_sh_mode mode, struct words *w, size_t at)
{
	bool exports = np_streq(text_of(&w->v[at]), "export");

	for (size_t i = at + 1; i < w->n; i++) {
		struct np_sh_word *word = &w->v[i];
		_cleanup_free_ char *name = NULL;

		if (text_of(word)[0] == '-') {
			exports |= strchr(text_of(word), 'x') != NULL;
			if (np_streq(text_of(word), "-n"))
				return;
			continue;
		}
		name = strndup(text_of(word), word->name_len ? word->name_len : word->text.len);
		if (!name) {
			t->sh->out->failed = true;
			return;
		}
		if (word->name_len)
			assign_word(t, mode, word);
		if (exports && !(word->opaque && !word->name_len))
			export_name(t, mode, name);
	}
}

static void unset(struct np_sh_text *t, enum np_sh_mode mode, const struct words *w, size_t at)
{
	for (size_t i = at + 1; i < w->n; i++) {
		if (np_streq(text_of(&w->v[i]), "-f"))
			return;
		if (text_of(&w->v[i])[0] != '-' && !w->v[i].opaque)
			np_sh_assign(t, mode, w->v[i].line, text_of(&w->v[i]), NULL, false);
	}
}

static void leave(struct np_sh_text *t, enum np_sh_mode mode, bool all)
{
	if (mode == NP_SH_RUN) {
		t->returned = true;
		t->sh->exited |= all;
	} else if (mode == NP_SH_MAYBE) {
		t->unsure = true;
		t->sh->unsure |= all;
	}
}

static bool is_word(const struct np_sh_word *word, const char *const *names)
{
	for (; *names; names++)
		if (!word->quoted && np_streq(text_of(word), *names))
			return true;
	return false;
}

static enum np_sh_tri builtin(struct np_sh_text *t, enum np_sh_mode mode, struct words *w,
			      size_t at)
{
	static const char *const declares[] = { "export", "declare", "typeset", "readonly", NULL };
	static const char *const sources[] = { ".", "source", NULL };
	static const char *const leaves[] = { "exit", "logout", "exec", NULL };
	static const char *const trues[] = { ":", "true", NULL };
	static const char *const unknown[] = { "eval", "module", "ml", NULL };
	const struct np_sh_word *cmd = &w->v[at];
	const char *name = text_of(cmd);

	if (is_word(cmd, declares)) {
		declare(t, mode, w, at);
		return NP_SH_YES;
	}
	if (is_word(cmd, sources))
		return source(t, mode, w, at);
	if (is_word(cmd, trues))
		return NP_SH_YES;
	if (np_streq(name, "unset"))
		unset(t, mode, w, at);
	else if (np_streq(name, "return") ||
		 (is_word(cmd, leaves) && !(np_streq(name, "exec") && w->n == at + 1)))
		leave(t, mode, !np_streq(name, "return"));
	else if (is_word(cmd, unknown) && mode != NP_SH_SKIP && mode != NP_SH_SILENT)
		note(t, cmd->line, "runs a command that may set anything");
	else if (np_streq(name, "set") && w->n > at + 1 && mode == NP_SH_RUN &&
		 np_streq(text_of(&w->v[at + 1]), "-a"))
		t->sh->all_export = true;
	else if (np_streq(name, "set") && w->n > at + 1 && np_streq(text_of(&w->v[at + 1]), "+a"))
		t->sh->all_export = false;
	else if (np_streq(name, "test"))
		return test(t, w->v + at + 1, w->n - at - 1, false);
	else if ((np_streq(name, "[") || np_streq(name, "[[")) && w->n > at + 1)
		return test(t, w->v + at + 1, w->n - at - 2, np_streq(name, "[["));
	return np_streq(name, "false") ? NP_SH_NO : NP_SH_UNKNOWN;
}

static enum np_sh_tri run_words(struct np_sh_text *t, enum np_sh_mode mode, struct words *w)
{
	static const char *const prefixes[] = { "builtin", "command", NULL };
	size_t at = 0;

	while (at < w->n && w->v[at].name_len)
		at++;
	if (at == w->n) {
		for (size_t i = 0; i < w->n; i++)
			assign_word(t, mode, &w->v[i]);
		return NP_SH_YES;
	}
	if (is_word(&w->v[at], prefixes) && at + 1 < w->n && text_of(&w->v[at + 1])[0] != '-')
		at++;
	return builtin(t, mode, w, at);
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
	    np_strv_add(&t->heredocs, text_of(&target)) < 0)
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
		left = np_sh_under(left, not(met));
		if (take_keyword(t, "else")) {
			list(t, left, "fi", nesting);
			has_else = true;
		}
	} while (take_keyword(t, "elif"));
	take_keyword(t, "fi");
	return NP_SH_UNKNOWN;
}

static int add_matches(struct np_sh_text *t, const struct np_sh_word *word, struct np_strv *items)
{
	const struct np_scan_files *files = t->sh->spec->files;
	const char *slash = strrchr(text_of(word), '/');
	np_auto_strv struct np_strv names = { 0 };
	_cleanup_free_ char *dir = NULL;
	size_t before = items->n;

	if (word->opaque)
		return -EINVAL;
	if (!word->glob)
		return np_strv_add(items, text_of(word));
	dir = slash && slash > text_of(word) ?
		      strndup(text_of(word), (size_t)(slash - text_of(word))) :
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
	return items->n > before ? 0 : np_strv_add(items, text_of(word));
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
			told &= add_matches(t, &word, &items) == 0;
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
		for_body(t, mode, nesting, text_of(&name), line, &items);
	} else {
		size_t before = t->sh->out->n;

		list(t, np_sh_under(mode, NP_SH_UNKNOWN), "done", nesting);
		take_keyword(t, "done");
		if (t->sh->out->n == before && mode != NP_SH_SKIP && mode != NP_SH_SILENT)
			note(t, line, "loops over what cannot be told from here");
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
static bool function(struct np_sh_text *t, const struct words *w, int nesting)
{
	bool word = np_streq(text_of(&w->v[0]), "function") && w->n >= 2;
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
	np_auto(words_free) struct words *w = calloc(1, sizeof(*w));
	bool brackets = false;

	if (!w) {
		t->sh->out->failed = true;
		t->pos = t->len;
		return NP_SH_UNKNOWN;
	}
	for (;;) {
		struct np_sh_word spare, *word = w->n < WORDS_MAX ? &w->v[w->n] : &spare;
		int c;

		np_sh_skip_blanks(t);
		c = np_sh_peek(t, 0);
		if (!brackets && (c == '<' || c == '>' || (c == '&' && np_sh_peek(t, 1) == '>'))) {
			skip_redirection(t);
			continue;
		}
		if (!np_sh_read_word(t, mode, brackets, word)) {
			np_sh_word_done(word);
			break;
		}
		/* 2>file */
		if (!word->quoted && word->text.len == 1 && strchr("012", *text_of(word)) &&
		    (np_sh_peek(t, 0) == '>' || np_sh_peek(t, 0) == '<')) {
			np_sh_word_done(word);
			continue;
		}
		if (w->n == 0 && np_streq(text_of(word), "[["))
			brackets = true;
		else if (brackets && np_streq(text_of(word), "]]"))
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
	return run_words(t, mode, w);
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
	return negated ? not(status) : status;
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
		go = c == '&' ? status : not(status);
		right = pipeline(t, np_sh_under(mode, go), nesting);
		/* only where the left side does not decide it does the right one */
		if (go == NP_SH_YES)
			status = right;
		else if (go == NP_SH_UNKNOWN && right != (c == '&' ? NP_SH_NO : NP_SH_YES))
			status = NP_SH_UNKNOWN;
		else if (go == NP_SH_UNKNOWN)
			status = right;
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
			t->sh->out->failed |= t->sh->steps >= STEPS_MAX;
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
		  struct np_settings *out)
{
	struct np_sh sh = { .spec = spec, .out = out };
	int r = scan_file(&sh, path, certain ? NP_SH_RUN : NP_SH_MAYBE);

	np_strv_done(&sh.exported);
	return r;
}
