/* SPDX-License-Identifier: MIT */
/*
 * Runs while nodeprep is built, and is not installed: reads the frame of a shell's completion
 * on stdin and prints it with its line "@TABLE SHELL@" replaced by the verbs and options of
 * the command line, in the words of that shell. So no list of them is kept by hand.
 */
#include <stdio.h>
#include <string.h>

#include "agent/cli.h"
#include "agent/ladder.h"
#include "agent/show.h"

/* ---- what the three have in common ---- */

/* What may follow @verb; NULL: nothing, or a file. */
static const char *const *words_of(const struct np_verb *verb)
{
	return verb->bit == NP_VERB_SELFTEST ? np_rung_names :
	       verb->bit == NP_VERB_SHOW     ? np_show_nouns :
					       NULL;
}

static bool takes_files(const struct np_verb *verb)
{
	return strstr(verb->arguments, "FILE");
}

/* Before the verb is known any option may stand. */
static bool has_option(const struct np_verb *verb, const struct np_option *opt)
{
	return !verb || (opt->verbs & (int)verb->bit);
}

static const char *value_word(const struct np_option *opt)
{
	static const char *const words[] = {
		[NP_VALUE_FREE] = "free",     [NP_VALUE_FILE] = "file",
		[NP_VALUE_FOLDER] = "folder", [NP_VALUE_NETDEV] = "netdev",
		[NP_VALUE_USER] = "user",     [NP_VALUE_NETDEV_ADDRESS] = "netdev_address",
		[NP_VALUE_UNIT] = "unit",     [NP_VALUE_PID] = "pid",
	};

	return words[opt->value];
}

static void print_words(const char *const *words)
{
	for (; words && *words; words++)
		printf("%s%s", *words, words[1] ? " " : "");
}

/* @text with a backslash before each character of @special. */
static void print_escaped(const char *text, const char *special)
{
	for (; *text; text++)
		printf("%s%c", strchr(special, *text) ? "\\" : "", *text);
}

/* Inside '...' of sh and zsh. */
static void print_quoted(const char *text, const char *special)
{
	for (; *text; text++)
		if (*text == '\'')
			fputs("'\\''", stdout);
		else
			printf("%s%c", strchr(special, *text) ? "\\" : "", *text);
}

/* ---- bash ---- */

static void bash_options(const struct np_verb *verb)
{
	for (const struct np_option *opt = np_options; opt->name; opt++)
		if (has_option(verb, opt))
			printf("%s--%s", opt == np_options ? "" : " ", opt->name);
}

static void print_bash(void)
{
	puts("# sets words and options: what may follow a verb, or stand where there is none yet\n"
	     "_nodeprep_table() {\n\tcase $1 in");
	fputs("\t'')\n\t\twords='", stdout);
	for (const struct np_verb *v = np_verbs; v->name; v++)
		printf("%s%s", v == np_verbs ? "" : " ", v->name);
	fputs("'\n\t\toptions='", stdout);
	bash_options(NULL);
	puts("'\n\t\t;;");
	for (const struct np_verb *v = np_verbs; v->name; v++) {
		printf("\t%s)\n\t\twords='", v->name);
		if (takes_files(v))
			fputs("FILE", stdout);
		print_words(words_of(v));
		fputs("'\n\t\toptions='", stdout);
		bash_options(v);
		puts("'\n\t\t;;");
	}
	puts("\tesac\n}\n");
	puts("# sets value: what the value of an option is; empty where it takes none\n"
	     "_nodeprep_value() {\n\tcase $1 in");
	for (const struct np_option *opt = np_options; opt->name; opt++)
		if (opt->argument)
			printf("\t--%s) value='%s' ;;\n", opt->name, value_word(opt));
	puts("\t*) value= ;;\n\tesac\n}");
}

/* ---- zsh: specifications of _arguments ---- */

static void zsh_option(const struct np_option *opt)
{
	printf("\t\t'%s--%s%s[", strstr(opt->help, "may repeat") ? "*" : "", opt->name,
	       opt->argument ? "=" : "");
	print_quoted(opt->help, "[]\\");
	putchar(']');
	if (opt->argument) {
		putchar(':');
		print_quoted(opt->argument, ":\\");
		printf(":_nodeprep_%s", value_word(opt));
	}
	puts("'");
}

static void zsh_case(const struct np_verb *verb)
{
	printf("\t%s)\n\t\tspecs=(\n", verb ? verb->name : "''");
	for (const struct np_option *opt = np_options; opt->name; opt++)
		if (has_option(verb, opt))
			zsh_option(opt);
	puts("\t\t)");
	if (verb && takes_files(verb))
		puts("\t\tspecs+=('*:file:_files')");
	if (verb && words_of(verb)) {
		fputs("\t\tspecs+=('*:argument:(", stdout);
		print_words(words_of(verb));
		puts(")')");
	}
	puts("\t\t;;");
}

static void print_zsh(void)
{
	puts("_nodeprep_verbs() {\n\tlocal -a verbs=(");
	for (const struct np_verb *v = np_verbs; v->name; v++) {
		printf("\t\t'%s:", v->name);
		print_quoted(v->summary, ":\\");
		puts("'");
	}
	puts("\t)\n\t_describe -t verbs verb verbs\n}\n");
	fputs("# is the value of this option the next word?\n"
	      "_nodeprep_takes_value() {\n\t[[ $1 == --(",
	      stdout);
	const char *bar = "";

	for (const struct np_option *opt = np_options; opt->name; opt++)
		if (opt->argument) {
			printf("%s%s", bar, opt->name);
			bar = "|";
		}
	puts(") ]]\n}\n");
	puts("# sets specs: what may follow a verb, or stand where there is none yet\n"
	     "_nodeprep_table() {\n\tcase $1 in");
	zsh_case(NULL);
	for (const struct np_verb *v = np_verbs; v->name; v++)
		zsh_case(v);
	puts("\tesac\n}");
}

/* ---- fish ---- */

static void fish_quoted(const char *text)
{
	putchar('\'');
	print_escaped(text, "'\\");
	putchar('\'');
}

static void fish_option(const struct np_option *opt)
{
	fputs("complete -c nodeprep -n '__nodeprep_at \"\"", stdout);
	for (const struct np_verb *v = np_verbs; v->name; v++)
		if (has_option(v, opt))
			printf(" %s", v->name);
	printf("' -l %s -d ", opt->name);
	fish_quoted(opt->help);
	if (opt->argument && opt->value == NP_VALUE_FILE)
		fputs(" -r -F", stdout);
	else if (opt->argument && opt->value == NP_VALUE_FREE)
		fputs(" -x", stdout);
	else if (opt->argument)
		printf(" -x -a '(__nodeprep_%s)'", value_word(opt));
	putchar('\n');
}

static void print_fish(void)
{
	fputs("function __nodeprep_takes_value\n    contains -- $argv[1]", stdout);
	for (const struct np_option *opt = np_options; opt->name; opt++)
		if (opt->argument)
			printf(" --%s", opt->name);
	puts("\nend\n\ncomplete -c nodeprep -f");
	for (const struct np_verb *v = np_verbs; v->name; v++) {
		printf("complete -c nodeprep -n '__nodeprep_at \"\"' -a %s -d ", v->name);
		fish_quoted(v->summary);
		putchar('\n');
		if (!words_of(v) && !takes_files(v))
			continue;
		printf("complete -c nodeprep -n '__nodeprep_at %s' ", v->name);
		if (words_of(v)) {
			fputs("-a '", stdout);
			print_words(words_of(v));
			puts("'");
		} else {
			puts("-F");
		}
	}
	for (const struct np_option *opt = np_options; opt->name; opt++)
		fish_option(opt);
}

int main(void)
{
	static const struct {
		const char *line;
		void (*print)(void);
	} tables[] = {
		{ "@TABLE bash@\n", print_bash },
		{ "@TABLE zsh@\n", print_zsh },
		{ "@TABLE fish@\n", print_fish },
	};
	char line[512];
	int done = 0;

	while (fgets(line, sizeof(line), stdin)) {
		size_t i = 0;

		while (i < NP_ARRAY_SIZE(tables) && strcmp(line, tables[i].line) != 0)
			i++;
		if (i == NP_ARRAY_SIZE(tables)) {
			fputs(line, stdout);
			continue;
		}
		tables[i].print();
		done++;
	}
	if (done != 1)
		fputs("generate: the frame has no line @TABLE bash@, zsh or fish, or several\n",
		      stderr);
	return done != 1 || ferror(stdin) || fflush(stdout) != 0;
}
