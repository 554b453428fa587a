/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_SHELL_WORD_H
#define NP_AGENT_SHELL_WORD_H

#include "agent/shell_scan.h"

/* What shell_scan.c (commands) and shell_word.c (words) share. */

enum np_sh_tri { NP_SH_NO, NP_SH_YES, NP_SH_UNKNOWN };

/* How a command is looked at. */
enum np_sh_mode {
	NP_SH_RUN,
	NP_SH_MAYBE,
	NP_SH_SKIP,   /* its settings are noted as skipped */
	NP_SH_SILENT, /* a subshell, the body of a function: nothing of it stays */
};

struct np_sh {
	const struct np_scan_spec *spec;
	struct np_settings *out;
	struct np_strv exported;
	bool all_export;	 /* set -a */
	bool exited;		 /* for good */
	bool unsure;		 /* it may have exited: all that follows is a maybe */
	struct np_settings vars; /* of csh: its own variables, which no program gets */
	int steps, depth;
};

/* One file that is being read. */
struct np_sh_text {
	struct np_sh *sh;
	const char *file, *text;
	size_t len, pos;
	int line;
	bool returned, unsure;
	struct np_strv heredocs; /* their last lines, to be skipped at the next newline */
};

struct np_sh_word {
	struct np_buf text; /* expanded; with opaque as it stands in the file */
	bool opaque;
	bool not_empty; /* whatever it is */
	bool quoted;
	bool glob;	 /* a * ? or [ that is not quoted */
	bool faulty;	 /* of csh: a variable in it is not set, which is an error */
	size_t name_len; /* of an assignment: up to the '='; else 0 */
	int line;
};

void np_sh_word_done(struct np_sh_word *word);

/* Blanks, comments and joined lines. */
void np_sh_skip_blanks(struct np_sh_text *t);
/* The byte at @ahead, or -1. */
int np_sh_peek(const struct np_sh_text *t, size_t ahead);
void np_sh_take(struct np_sh_text *t);

/* Reads a word, if one stands there; blanks are not skipped. With @raw operators are part
 * of it (in [[ ]]). False: there is none, and nothing to free. */
bool np_sh_read_word(struct np_sh_text *t, enum np_sh_mode mode, bool raw, struct np_sh_word *word);

/* What is known of a variable. */
struct np_sh_look {
	enum np_sh_tri set, not_empty;
	const char *value; /* NULL: not known, or not set */
};
void np_sh_look(const struct np_sh *sh, const char *name, struct np_sh_look *out);

/* NAME=VALUE; @value NULL: unset. */
void np_sh_assign(struct np_sh_text *t, enum np_sh_mode mode, int line, const char *name,
		  const char *value, bool opaque);

enum np_sh_mode np_sh_under(enum np_sh_mode outer, enum np_sh_tri condition);

#define NP_SH_WORDS_MAX 256

struct np_sh_words {
	struct np_sh_word v[NP_SH_WORDS_MAX];
	size_t n;
};
void np_sh_words_free(struct np_sh_words **words);

static inline const char *np_sh_text_of(const struct np_sh_word *word)
{
	return word->text.data ? word->text.data : "";
}

static inline enum np_sh_tri np_sh_and(enum np_sh_tri a, enum np_sh_tri b)
{
	if (a == NP_SH_NO || b == NP_SH_NO)
		return NP_SH_NO;
	return a == NP_SH_YES && b == NP_SH_YES ? NP_SH_YES : NP_SH_UNKNOWN;
}

static inline enum np_sh_tri np_sh_not(enum np_sh_tri a)
{
	return a == NP_SH_UNKNOWN ? a : a == NP_SH_YES ? NP_SH_NO : NP_SH_YES;
}

/* Something was not followed. */
void np_sh_note(struct np_sh_text *t, int line, const char *what);

/* A simple command; whether it succeeds. */
enum np_sh_tri np_sh_run(struct np_sh_text *t, enum np_sh_mode mode, struct np_sh_words *w);

/* Does text @a equal @b; with @pattern, does it match? */
enum np_sh_tri np_sh_compare(const struct np_sh_word *a, const struct np_sh_word *b, bool pattern);
enum np_sh_tri np_sh_not_empty(const struct np_sh_word *word);
/* Is there a file of that name? */
enum np_sh_tri np_sh_exists(const struct np_sh *sh, const struct np_sh_word *word);

/* The paths that a word stands for, which may be a pattern; added to @items. None match:
 * the pattern itself. -EINVAL: it cannot be told. */
int np_sh_matches(const struct np_sh *sh, const struct np_sh_word *word, struct np_strv *items);

/* Reads file @path and has @scan follow it, files within files to a depth of 10. Returns 0,
 * -ELOOP, or what reading it returned. */
int np_sh_scan_by(struct np_sh *sh, const char *path, enum np_sh_mode mode,
		  void (*scan)(struct np_sh_text *t, enum np_sh_mode mode));
/* Another file, where a command sources one. 0 or a negative errno. */
int np_sh_scan_file(struct np_sh *sh, const char *path, enum np_sh_mode mode);

#endif
