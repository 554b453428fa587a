/* SPDX-License-Identifier: MIT */
/* Commands of csh, as far as they decide on variables. They go by lines, and a condition or
 * a loop is one that starts a line. */
#include <errno.h>
#include <string.h>

#include "agent/csh_word.h"

#define STEPS_MAX   10000
#define NESTING_MAX 64

/* ---- lines ---- */

/* Past the lines of << up to the word that ends them. */
static void skip_document(struct np_sh_text *t, const char *end)
{
	while (np_sh_peek(t, 0) >= 0 && np_sh_peek(t, 0) != '\n')
		np_sh_take(t);
	np_sh_take(t);
	while (np_sh_peek(t, 0) >= 0) {
		size_t from = t->pos, n;

		while (np_sh_peek(t, 0) >= 0 && np_sh_peek(t, 0) != '\n')
			np_sh_take(t);
		n = t->pos - from;
		np_sh_take(t);
		if (n == strlen(end) && memcmp(t->text + from, end, n) == 0)
			return;
	}
}

/* The word behind < or >. */
static void skip_redirection(struct np_sh_text *t, bool document)
{
	struct np_sh_word target;

	while (np_sh_peek(t, 0) == '&' || np_sh_peek(t, 0) == '!')
		np_sh_take(t);
	if (!np_csh_read_word(t, &target))
		return;
	if (document)
		skip_document(t, np_sh_text_of(&target));
	np_sh_word_done(&target);
}

/* One command, up to the end of the line or an operator outside of brackets, which is in
 * @end ("" at the end of the line). */
static void read_command(struct np_sh_text *t, struct np_sh_words *w, char end[3])
{
	struct np_sh_word word;
	int depth = 0;

	end[0] = '\0';
	while (np_csh_read_word(t, &word)) {
		bool bare = !word.quoted && !word.opaque, kept = false;
		const char *text = np_sh_text_of(&word);

		depth += bare && np_streq(text, "(") ? 1 : bare && np_streq(text, ")") ? -1 : 0;
		if (bare && depth <= 0 && (*text == '<' || *text == '>')) {
			bool document = np_streq(text, "<<");

			skip_redirection(t, document);
			if (document) {
				np_sh_word_done(&word);
				return;
			}
		} else if (bare && depth <= 0 && strlen(text) <= 2 && strchr("&|;", *text) &&
			   *text) {
			np_strcpy(end, 3, text);
			np_sh_word_done(&word);
			return;
		} else if (w->n < NP_SH_WORDS_MAX) {
			w->v[w->n++] = word;
			kept = true;
		}
		if (!kept)
			np_sh_word_done(&word);
	}
	if (np_sh_peek(t, 0) >= 0)
		np_sh_take(t);
}

static void words_clear(struct np_sh_words *w)
{
	for (size_t i = 0; i < w->n; i++)
		np_sh_word_done(&w->v[i]);
	w->n = 0;
}

/* Behind the bracket that closes the one at @at. */
static size_t behind_bracket(const struct np_sh_words *w, size_t at)
{
	int depth = 0;

	for (; at < w->n; at++) {
		depth += np_csh_is(&w->v[at], "(") ? 1 : np_csh_is(&w->v[at], ")") ? -1 : 0;
		if (depth == 0)
			return at + 1;
	}
	return at;
}

static void block(struct np_sh_text *t, enum np_sh_mode mode, const char *const *ends, int nesting,
		  struct np_sh_words *last);

/* The condition in brackets behind word @at; *rest is what comes behind them. */
static enum np_sh_tri condition(struct np_sh_text *t, enum np_sh_mode mode,
				const struct np_sh_words *w, size_t at, size_t *rest)
{
	bool faulty = false;
	enum np_sh_tri met;

	*rest = behind_bracket(w, at + 1);
	if (*rest <= at + 2)
		return NP_SH_UNKNOWN;
	met = np_csh_expression(t->sh, w, at + 2, *rest - 1, &faulty);
	if (faulty && np_csh_is_live(mode)) {
		np_sh_note(t, w->v[at].line,
			   "a variable that is not set ends the start files here");
		np_csh_leave(t, mode, true);
		return NP_SH_NO;
	}
	return met;
}

/* if ( ) then ... else if ( ) then ... else ... endif; @w is its first line. */
static void if_block(struct np_sh_text *t, enum np_sh_mode mode, enum np_sh_tri met, int nesting)
{
	static const char *const ends[] = { "else", "endif", NULL };
	np_auto(np_sh_words_free) struct np_sh_words *last = calloc(1, sizeof(*last));
	enum np_sh_mode left = mode;

	if (!last) {
		t->sh->out->failed = true;
		t->pos = t->len;
		return;
	}
	for (;;) {
		size_t rest = 0;

		block(t, np_sh_under(left, met), ends, nesting, last);
		if (last->n == 0 || !np_csh_is(&last->v[0], "else"))
			return;
		left = np_sh_under(left, np_sh_not(met));
		met = last->n > 2 && np_csh_is(&last->v[1], "if") ?
			      condition(t, left, last, 1, &rest) :
			      NP_SH_YES;
	}
}

static void if_command(struct np_sh_text *t, enum np_sh_mode mode, const struct np_sh_words *w,
		       int nesting)
{
	size_t rest = 0;
	enum np_sh_tri met = condition(t, mode, w, 0, &rest);

	if (t->returned && np_csh_is_live(mode))
		mode = NP_SH_SILENT;
	if (rest + 1 == w->n && np_csh_is(&w->v[rest], "then"))
		if_block(t, mode, met, nesting);
	else if (rest < w->n)
		np_csh_run(t, np_sh_under(mode, met), w, rest);
}

static void foreach_command(struct np_sh_text *t, enum np_sh_mode mode, const struct np_sh_words *w,
			    int nesting)
{
	static const char *const ends[] = { "end", NULL };
	np_auto_strv struct np_strv items = { 0 };
	struct np_sh_text start = *t;
	size_t before = t->sh->out->n, end = w->n > 2 ? behind_bracket(w, 2) : 0;
	bool told = end > 3;
	struct np_sh_look look;

	for (size_t i = 3; i + 1 < end; i++) {
		size_t n = items.n;

		told &= np_sh_matches(t->sh, &w->v[i], &items) == 0;
		/* no match is none, or an error; with nonomatch it is what it is in sh */
		np_csh_look(t->sh, "nonomatch", &look);
		if (w->v[i].glob && items.n == n + 1 && look.set != NP_SH_YES &&
		    np_streq(items.v[n], np_sh_text_of(&w->v[i]))) {
			free(items.v[n]);
			items.v[n] = NULL;
			items.n = n;
		}
	}
	if (!told) {
		block(t, np_sh_under(mode, NP_SH_UNKNOWN), ends, nesting, NULL);
		if (t->sh->out->n == before && np_csh_is_live(mode))
			np_sh_note(t, w->v[0].line, "loops over what cannot be told from here");
		return;
	}
	for (size_t i = 0; i < items.n && t->sh->steps < STEPS_MAX && !t->returned; i++) {
		t->pos = start.pos;
		t->line = start.line;
		np_csh_set(t, mode, w->v[0].line, np_sh_text_of(&w->v[1]), items.v[i], false);
		block(t, mode, ends, nesting, NULL);
	}
	t->sh->out->failed |= t->sh->steps >= STEPS_MAX;
	if (items.n == 0)
		block(t, NP_SH_SILENT, ends, nesting, NULL);
}

/* One command and, where it starts a block, all of that. */
static void command(struct np_sh_text *t, enum np_sh_mode mode, struct np_sh_words *w,
		    const char *end, int nesting)
{
	static const char *const whiles[] = { "end", NULL }, *const switches[] = { "endsw", NULL };
	bool piped = np_streq(end, "|") || np_streq(end, "&");

	if (np_csh_is(&w->v[0], "if"))
		if_command(t, piped ? NP_SH_SILENT : mode, w, nesting);
	else if (np_csh_is(&w->v[0], "foreach") && w->n > 1)
		foreach_command(t, mode, w, nesting);
	else if (np_csh_is(&w->v[0], "while"))
		block(t, np_sh_under(mode, NP_SH_UNKNOWN), whiles, nesting, NULL);
	else if (np_csh_is(&w->v[0], "switch"))
		block(t, np_sh_under(mode, NP_SH_UNKNOWN), switches, nesting, NULL);
	else if (!np_csh_is(&w->v[0], "(") && !piped)
		np_csh_run(t, mode, w, 0);
}

/* Commands up to a line that starts with one of @ends, which goes to @last. */
static void block(struct np_sh_text *t, enum np_sh_mode mode, const char *const *ends, int nesting,
		  struct np_sh_words *last)
{
	np_auto(np_sh_words_free) struct np_sh_words *w = calloc(1, sizeof(*w));
	enum np_sh_mode now = mode;
	char before[3] = "";

	if (!w || nesting >= NESTING_MAX) {
		t->sh->out->failed = true;
		t->pos = t->len;
	}
	if (last)
		words_clear(last);
	while (w && np_sh_peek(t, 0) >= 0) {
		char end[3];
		bool more = *before && strchr("&|", *before);

		/* what was read up to there counts */
		if (t->sh->steps++ >= STEPS_MAX || t->sh->out->failed) {
			t->sh->out->failed = true;
			t->pos = t->len;
			break;
		}
		words_clear(w);
		read_command(t, w, end);
		if (w->n == 0)
			continue;
		if (ends && np_csh_is_one_of(&w->v[0], ends)) {
			for (size_t i = 0; last && i < w->n; i++) {
				last->v[i] = w->v[i];
				memset(&w->v[i], 0, sizeof(w->v[i]));
			}
			if (last)
				last->n = w->n;
			break;
		}
		now = mode;
		if (t->returned || t->sh->exited)
			now = NP_SH_SILENT;
		else if (t->unsure || t->sh->unsure || np_streq(before, "&&") ||
			 np_streq(before, "||"))
			now = np_sh_under(mode, NP_SH_UNKNOWN);
		if (more && np_streq(before, "|"))
			now = NP_SH_SILENT;
		command(t, now, w, end, nesting + 1);
		np_strcpy(before, sizeof(before), end);
	}
}

static void whole_file(struct np_sh_text *t, enum np_sh_mode mode)
{
	block(t, mode, NULL, 0, NULL);
}

int np_csh_scan_file(struct np_sh *sh, const char *path, enum np_sh_mode mode)
{
	return np_sh_scan_by(sh, path, mode, whole_file);
}

/* ---- a login ---- */

static int scan_home(struct np_sh *sh, const char *name)
{
	_cleanup_free_ char *path = np_asprintf("%s/%s", sh->spec->home, name);

	if (!path) {
		sh->out->failed = true;
		return -ENOMEM;
	}
	return sh->exited ? 0 : np_csh_scan_file(sh, path, sh->unsure ? NP_SH_MAYBE : NP_SH_RUN);
}

/* Variables that look as if they were meant for programs. */
static void add_vars(struct np_sh *sh)
{
	for (size_t i = 0; i < sh->vars.n; i++) {
		const struct np_setting *v = &sh->vars.v[i];
		struct np_setting *s;

		if (!np_setting_matters(v->name) || !v->value ||
		    np_settings_find(sh->out, v->name, NULL))
			continue;
		s = np_settings_add(sh->out, v->name, v->value, v->file, v->line, v->state);
		if (s) {
			s->opaque = v->opaque;
			s->is_local = true;
		}
	}
}

void np_csh_scan_login(const struct np_scan_spec *spec, struct np_settings *settings)
{
	static const char *const systems[] = { "/etc/csh.cshrc", "/etc/csh.login" };
	struct np_sh sh = { .spec = spec, .out = settings };

	for (size_t i = 0; i < NP_ARRAY_SIZE(systems) && !sh.exited; i++)
		if (np_csh_scan_file(&sh, systems[i], sh.unsure ? NP_SH_MAYBE : NP_SH_RUN) ==
		    -ENOMEM)
			settings->failed = true;
	if (spec->shell != NP_SHELL_TCSH || scan_home(&sh, ".tcshrc") < 0)
		scan_home(&sh, ".cshrc");
	scan_home(&sh, ".login");
	add_vars(&sh);
	np_settings_done(&sh.vars);
}
