/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_CSH_WORD_H
#define NP_AGENT_CSH_WORD_H

#include "agent/shell_word.h"

/* What csh_scan.c (lines and blocks), csh_command.c and csh_word.c share; the state and the
 * words are those of shell_word.h. */

/* Reads a word, if one stands there: also a bracket or an operator, which are words of
 * their own. False at the end of the text or of the line. */
bool np_csh_read_word(struct np_sh_text *t, struct np_sh_word *word);

/* Is it this bracket, operator or keyword, not quoted? */
bool np_csh_is(const struct np_sh_word *word, const char *text);
bool np_csh_is_one_of(const struct np_sh_word *word, const char *const *names);

/* The expression in words @from to @to; *faulty: it would end the script. */
enum np_sh_tri np_csh_expression(const struct np_sh *sh, const struct np_sh_words *w, size_t from,
				 size_t to, bool *faulty);

/* A variable of csh; @value NULL: unset. */
void np_csh_set(struct np_sh_text *t, enum np_sh_mode mode, int line, const char *name,
		const char *value, bool opaque);
void np_csh_look(const struct np_sh *sh, const char *name, struct np_sh_look *out);

/* Does what stands there work, or may it? */
bool np_csh_is_live(enum np_sh_mode mode);
/* The rest of the file, with @all of all files, is not read, or may not be: an error ends
 * all that a login reads. */
void np_csh_leave(struct np_sh_text *t, enum np_sh_mode mode, bool all);
/* The simple command in words @at and behind. */
void np_csh_run(struct np_sh_text *t, enum np_sh_mode mode, const struct np_sh_words *w, size_t at);
/* Another file, where a command sources one. 0 or a negative errno. */
int np_csh_scan_file(struct np_sh *sh, const char *path, enum np_sh_mode mode);

#endif
