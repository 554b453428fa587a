/* SPDX-License-Identifier: MIT */
/* Commands of sh that set variables, or decide whether others do. */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "agent/shell_word.h"

/* ---- conditions ---- */

enum np_sh_tri np_sh_exists(const struct np_sh *sh, const struct np_sh_word *word)
{
	const struct np_scan_files *files = sh->spec->files;
	int r = word->opaque || np_sh_text_of(word)[0] != '/' ?
			-1 :
			files->exists(files->arg, np_sh_text_of(word));

	return r < 0 ? NP_SH_UNKNOWN : r ? NP_SH_YES : NP_SH_NO;
}

enum np_sh_tri np_sh_not_empty(const struct np_sh_word *word)
{
	if (word->not_empty)
		return NP_SH_YES;
	return word->opaque ? NP_SH_UNKNOWN : word->text.len ? NP_SH_YES : NP_SH_NO;
}

enum np_sh_tri np_sh_compare(const struct np_sh_word *a, const struct np_sh_word *b, bool pattern)
{
	bool same;

	/* "$X" != "" of something that is not empty, whatever it is */
	if (a->opaque && a->not_empty && !b->opaque && b->text.len == 0)
		return NP_SH_NO;
	if (a->opaque || b->opaque)
		return NP_SH_UNKNOWN;
	if (pattern && b->glob)
		same = fnmatch(np_sh_text_of(b), np_sh_text_of(a), 0) == 0;
	else
		same = strcmp(np_sh_text_of(a), np_sh_text_of(b)) == 0;
	return same ? NP_SH_YES : NP_SH_NO;
}

static enum np_sh_tri test_two(struct np_sh_text *t, const struct np_sh_word *w)
{
	const char *op = np_sh_text_of(&w[0]);
	struct np_sh_look look;

	if (np_streq(op, "-n"))
		return np_sh_not_empty(&w[1]);
	if (np_streq(op, "-z"))
		return np_sh_not(np_sh_not_empty(&w[1]));
	if (strlen(op) == 2 && op[0] == '-' && strchr("efdrxsLh", op[1]))
		return np_sh_exists(t->sh, &w[1]);
	if (np_streq(op, "-v") && !w[1].opaque) {
		np_sh_look(t->sh, np_sh_text_of(&w[1]), &look);
		return look.set;
	}
	return NP_SH_UNKNOWN;
}

static enum np_sh_tri test_three(const struct np_sh_word *w, bool pattern)
{
	const char *op = np_sh_text_of(&w[1]);
	bool equal = np_streq(op, "=") || np_streq(op, "==");
	enum np_sh_tri same;

	if (!equal && !np_streq(op, "!="))
		return NP_SH_UNKNOWN;
	same = np_sh_compare(&w[0], &w[2], pattern);
	return equal ? same : np_sh_not(same);
}

static enum np_sh_tri test(struct np_sh_text *t, const struct np_sh_word *w, size_t n, bool pattern)
{
	if (n > 1 && np_streq(np_sh_text_of(&w[0]), "!") && !w[0].quoted)
		return np_sh_not(test(t, w + 1, n - 1, pattern));
	if (n == 0)
		return NP_SH_NO;
	if (n == 1)
		return np_sh_not_empty(&w[0]);
	if (n == 2)
		return test_two(t, w);
	return n == 3 ? test_three(w, pattern) : NP_SH_UNKNOWN;
}

/* ---- files ---- */

void np_sh_note(struct np_sh_text *t, int line, const char *what)
{
	const struct np_scan_files *files = t->sh->spec->files;

	if (files->note)
		files->note(files->arg, t->file, line, what);
}

static enum np_sh_tri source(struct np_sh_text *t, enum np_sh_mode mode,
			     const struct np_sh_words *w, size_t at)
{
	const struct np_sh_word *path = at + 1 < w->n ? &w->v[at + 1] : NULL;
	int r;

	if (!path || mode == NP_SH_SKIP || mode == NP_SH_SILENT)
		return NP_SH_UNKNOWN;
	if (path->opaque || np_sh_text_of(path)[0] != '/') {
		np_sh_note(t, path->line, "sources a file that cannot be told from here");
		return NP_SH_UNKNOWN;
	}
	r = np_sh_scan_file(t->sh, np_sh_text_of(path), mode);
	if (r < 0 && r != -ENOENT)
		np_sh_note(t, path->line, "sources a file that cannot be read");
	return r < 0 ? NP_SH_NO : NP_SH_UNKNOWN;
}

/* ---- simple commands ---- */

static void assign_word(struct np_sh_text *t, enum np_sh_mode mode, struct np_sh_word *word)
{
	_cleanup_free_ char *name = strndup(np_sh_text_of(word), word->name_len);

	if (!name) {
		t->sh->out->failed = true;
		return;
	}
	/* NAME+=, NAME[0]= are no assignments to us */
	np_sh_assign(t, mode, word->line, name, np_sh_text_of(word) + word->name_len + 1,
		     word->opaque);
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
static void declare(struct np_sh_text *t, enum np_sh_mode mode, struct np_sh_words *w, size_t at)
{
	bool exports = np_streq(np_sh_text_of(&w->v[at]), "export");

	for (size_t i = at + 1; i < w->n; i++) {
		struct np_sh_word *word = &w->v[i];
		_cleanup_free_ char *name = NULL;

		if (np_sh_text_of(word)[0] == '-') {
			exports |= strchr(np_sh_text_of(word), 'x') != NULL;
			if (np_streq(np_sh_text_of(word), "-n"))
				return;
			continue;
		}
		name = strndup(np_sh_text_of(word),
			       word->name_len ? word->name_len : word->text.len);
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

static void unset(struct np_sh_text *t, enum np_sh_mode mode, const struct np_sh_words *w,
		  size_t at)
{
	for (size_t i = at + 1; i < w->n; i++) {
		if (np_streq(np_sh_text_of(&w->v[i]), "-f"))
			return;
		if (np_sh_text_of(&w->v[i])[0] != '-' && !w->v[i].opaque)
			np_sh_assign(t, mode, w->v[i].line, np_sh_text_of(&w->v[i]), NULL, false);
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
		if (!word->quoted && np_streq(np_sh_text_of(word), *names))
			return true;
	return false;
}

static enum np_sh_tri builtin(struct np_sh_text *t, enum np_sh_mode mode, struct np_sh_words *w,
			      size_t at)
{
	static const char *const declares[] = { "export", "declare", "typeset", "readonly", NULL };
	static const char *const sources[] = { ".", "source", NULL };
	static const char *const leaves[] = { "exit", "logout", "exec", NULL };
	static const char *const trues[] = { ":", "true", NULL };
	static const char *const unknown[] = { "eval", "module", "ml", NULL };
	const struct np_sh_word *cmd = &w->v[at];
	const char *name = np_sh_text_of(cmd);

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
		np_sh_note(t, cmd->line, "runs a command that may set anything");
	else if (np_streq(name, "set") && w->n > at + 1 && mode == NP_SH_RUN &&
		 np_streq(np_sh_text_of(&w->v[at + 1]), "-a"))
		t->sh->all_export = true;
	else if (np_streq(name, "set") && w->n > at + 1 &&
		 np_streq(np_sh_text_of(&w->v[at + 1]), "+a"))
		t->sh->all_export = false;
	else if (np_streq(name, "test"))
		return test(t, w->v + at + 1, w->n - at - 1, false);
	else if ((np_streq(name, "[") || np_streq(name, "[[")) && w->n > at + 1)
		return test(t, w->v + at + 1, w->n - at - 2, np_streq(name, "[["));
	return np_streq(name, "false") ? NP_SH_NO : NP_SH_UNKNOWN;
}

enum np_sh_tri np_sh_run(struct np_sh_text *t, enum np_sh_mode mode, struct np_sh_words *w)
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
	if (is_word(&w->v[at], prefixes) && at + 1 < w->n && np_sh_text_of(&w->v[at + 1])[0] != '-')
		at++;
	return builtin(t, mode, w, at);
}
