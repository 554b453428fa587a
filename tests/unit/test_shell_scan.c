/* SPDX-License-Identifier: MIT */
/* Scripts of login shells: what is set, what is not, and what cannot be told. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "scan_world.h"

static int scan(struct world *w, enum np_shell shell, const char *path, struct np_settings *out)
{
	struct np_scan_files files = { world_read, world_exists, world_list, world_note, w };
	struct np_scan_spec spec = { shell, "alice", "/home/alice", &files };

	return np_shell_scan(&spec, path, true, out);
}

/* Of one script: what UCX_TLS is, in which line, and how many maybes and skips it has. */
static const struct {
	const char *text, *value; /* NULL: not set */
	int line, maybes, skips;
	bool opaque, is_local;
} table[] = {
	{ "export UCX_TLS=rc", "rc", 1, 0, 0, false, false },
	{ "\nUCX_TLS='rc,tcp'; export UCX_TLS", "rc,tcp", 2, 0, 0, false, false },
	{ "export UCX_TLS\nUCX_TLS=rc", "rc", 2, 0, 0, false, false },
	{ "UCX_TLS=rc\n", "rc", 1, 0, 0, false, true },
	{ "declare -x UCX_TLS=rc", "rc", 1, 0, 0, false, false },
	{ "set -a\nUCX_TLS=rc\nset +a", "rc", 2, 0, 0, false, false },
	{ "UCX_TLS=rc ls -l", NULL, 0, 0, 0, false, false },
	{ "# export UCX_TLS=rc\necho export UCX_TLS=rc", NULL, 0, 0, 0, false, false },
	{ "export UCX_TLS=r\\\nc # x", "rc", 1, 0, 0, false, false },
	{ "export UCX_TLS=\"a\"'b'\\c", "abc", 1, 0, 0, false, false },
	{ "export UCX_TLS=rc\nexport UCX_TLS=$UCX_TLS,tcp", "rc,tcp", 2, 0, 0, false, false },
	{ "export UCX_TLS=${UCX_TLS:-rc}", "rc", 1, 0, 0, false, false },
	{ "export UCX_TLS=a\nexport UCX_TLS=\"${UCX_TLS-rc}\"", "a", 2, 0, 0, false, false },
	{ "export UCX_TLS=\nexport UCX_TLS=${UCX_TLS:-rc}", "rc", 2, 0, 0, false, false },
	{ "export UCX_TLS=\nexport UCX_TLS=${UCX_TLS-rc}", "", 2, 0, 0, false, false },
	{ ": ${UCX_TLS:=rc}; export UCX_TLS", "rc", 1, 0, 0, false, false },
	{ "export UCX_TLS=a\n: \"${UCX_TLS:=rc}\"", "a", 1, 0, 1, false, false },
	{ "export UCX_TLS=${UCX_TLS:+$UCX_TLS,}rc", "rc", 1, 0, 0, false, false },
	{ "export UCX_TLS=$(cat /x)", "$(cat /x)", 1, 0, 0, true, false },
	{ "export UCX_TLS=`a b`,rc", "`a b`,rc", 1, 0, 0, true, false },
	{ "export UCX_TLS=$UNHEARD", "$UNHEARD", 1, 0, 0, true, false },
	{ "export UCX_TLS=${UCX_TLS%x}", "${UCX_TLS%x}", 1, 0, 0, true, false },
	{ "export UCX_TLS=~/x", "/home/alice/x", 1, 0, 0, false, false },
	{ "export UCX_TLS=$HOME:${USER}", "/home/alice:alice", 1, 0, 0, false, false },
	{ "export UCX_TLS=rc\nunset UCX_TLS", NULL, 0, 0, 0, false, false },
	/* conditions that can be told */
	{ "if [ -z \"$UCX_TLS\" ]; then export UCX_TLS=rc; fi", "rc", 1, 0, 0, false, false },
	{ "export UCX_TLS=a\nif [ -z \"$UCX_TLS\" ]\nthen\nexport UCX_TLS=b\nfi", "a", 1, 0, 1,
	  false, false },
	{ "export UCX_TLS=a\n[ -n \"${UCX_TLS+x}\" ] || export UCX_TLS=b", "a", 1, 0, 1, false,
	  false },
	{ "[ \"${UCX_TLS+set}\" = set ] && export UCX_TLS=a || export UCX_TLS=b", "b", 1, 0, 1,
	  false, false },
	{ "if false; then export UCX_TLS=a; elif true; then export UCX_TLS=b; else\n"
	  "export UCX_TLS=c; fi",
	  "b", 1, 0, 2, false, false },
	{ "if [[ $USER == al* && 1 ]]; then :; fi; if [[ $USER == al* ]]; then\n"
	  "export UCX_TLS=x; fi",
	  "x", 2, 0, 0, false, false },
	{ "if ! [ \"$USER\" = root ]; then export UCX_TLS=x; fi", "x", 1, 0, 0, false, false },
	{ "test -f /etc/none && export UCX_TLS=x", NULL, 0, 0, 1, false, false },
	{ "test -d /etc/profile.d && export UCX_TLS=x", "x", 1, 0, 0, false, false },
	/* and that cannot */
	{ "export UCX_TLS=a\nif grep -q x /y; then export UCX_TLS=b; fi", "a", 1, 1, 0, false,
	  false },
	{ "case $- in\n*i*) ;;\n*) return;;\nesac\nexport UCX_TLS=a", NULL, 0, 1, 0, false, false },
	{ "case x in a|b) export UCX_TLS=a ;; (c) export UCX_TLS=b;; esac", NULL, 0, 2, 0, false,
	  false },
	{ "while read x; do export UCX_TLS=a; done </y", NULL, 0, 1, 0, false, false },
	/* what is no part of this shell */
	{ "(export UCX_TLS=a)", NULL, 0, 0, 0, false, false },
	{ "f() {\nexport UCX_TLS=a\n}\nexport UCX_TLS=b", "b", 4, 0, 0, false, false },
	{ "function g { export UCX_TLS=a; }\n", NULL, 0, 0, 0, false, false },
	{ "cat <<EOF\nexport UCX_TLS=a\nEOF\nexport UCX_TLS=b", "b", 4, 0, 0, false, false },
	{ "cat <<-'EOF' >/x\n\texport UCX_TLS=a\n\tEOF\n", NULL, 0, 0, 0, false, false },
	{ "echo x | read UCX_TLS; { export UCX_TLS=q; } 2>/dev/null", "q", 1, 0, 0, false, false },
	{ "return 0\nexport UCX_TLS=a", NULL, 0, 0, 0, false, false },
	{ "[ -n \"$UCX_TLS\" ] && return\nexport UCX_TLS=a", "a", 2, 0, 0, false, false },
	/* loops, and files that are sourced */
	{ "for i in a b; do export UCX_TLS=$i; done", "b", 1, 0, 0, false, false },
	{ "for i in /etc/profile.d/*.sh; do [ -r $i ] && . $i; done; unset i", "second", 1, 0, 0,
	  false, false },
	{ "for i in $(ls); do export UCX_TLS=$i; done", NULL, 0, 1, 0, false, false },
	{ "[ -f ~/.rc ] && . ~/.rc\n. /none", "home", 1, 0, 0, false, false },
	{ "[ -n \"$BASH_VERSION\" ] && . \"$HOME/.rc\"", "home", 1, 0, 0, false, false },
	{ "[ -n \"$ZSH_VERSION\" ] && export UCX_TLS=z", NULL, 0, 0, 1, false, false },
	{ ". /etc/loop", "x", 1, 0, 0, false, false },
	/* nodeprep's own */
	{ "if [ \"${UCX_TLS+set}\" != set ]; then\n\tUCX_TLS='rc'\n\texport UCX_TLS\nfi\n", "rc", 2,
	  0, 0, false, false },
	{ "export UCX_TLS=\nif [ \"${UCX_TLS+set}\" != set ]; then\n\tUCX_TLS='rc'\n"
	  "\texport UCX_TLS\nfi\n",
	  "", 1, 0, 1, false, false },
	/* faulty ones end */
	{ "if then else ) } ;; esac done\nexport UCX_TLS=a", NULL, -1, -1, -1, false, false },
	{ "export UCX_TLS='a", "a", 1, 0, 0, false, false },
	{ "${${${", NULL, 0, 0, 0, false, false },
};

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(table); i++) {
		const char *const files[][2] = {
			{ "/s", table[i].text },
			{ "/home/alice/.rc", "export UCX_TLS=home" },
			{ "/etc/loop", ". /etc/loop; export UCX_TLS=x" },
			{ "/etc/profile.d/10.sh", "export UCX_TLS=first" },
			{ "/etc/profile.d/20.sh", "export UCX_TLS=second" },
			{ "/etc/profile.d/30.csh", "export UCX_TLS=third" },
			{ NULL, NULL },
		};
		struct world w = { .files = files };
		np_auto_settings struct np_settings out = { 0 };
		const struct np_setting *s;
		int maybes = 0, skips = 0;

		assert_int_equal(scan(&w, NP_SHELL_BASH, "/s", &out), 0);
		assert_false(out.failed);
		if (table[i].line < 0)
			continue;
		s = np_settings_find(&out, "UCX_TLS", NULL);
		for (size_t k = 0; k < out.n; k++) {
			if (strcmp(out.v[k].name, "UCX_TLS") != 0)
				continue;
			maybes += out.v[k].state == NP_SETTING_MAYBE;
			skips += out.v[k].state == NP_SETTING_SKIPPED;
		}
		if (!s != !table[i].value || (s && strcmp(s->value, table[i].value) != 0) ||
		    (s && (s->line != table[i].line || s->opaque != table[i].opaque ||
			   s->is_local != table[i].is_local)) ||
		    maybes != table[i].maybes || skips != table[i].skips)
			fail_msg("%s\n-> %s, line %d, %d maybes, %d skips", table[i].text,
				 s ? s->value : "not set", s ? s->line : 0, maybes, skips);
	}
}

static void test_file_and_line(void **state)
{
	const char *const files[][2] = {
		{ "/etc/profile",
		  "if [ -d /etc/profile.d ]; then\n"
		  "  for i in /etc/profile.d/*.sh; do\n"
		  "    if [ -r $i ]; then\n      . $i\n    fi\n  done\n  unset i\nfi\n" },
		{ "/etc/profile.d/a.sh", "#\nexport UCX_TLS=a" },
		{ "/etc/profile.d/b.sh", "\n\nexport UCX_TLS=b" },
		{ NULL, NULL },
	};
	struct world w = { .files = files };
	np_auto_settings struct np_settings out = { 0 };
	const struct np_setting *s;

	(void)state;
	assert_int_equal(scan(&w, NP_SHELL_SH, "/etc/profile", &out), 0);
	s = np_settings_find(&out, "UCX_TLS", NULL);
	assert_string_equal(s->file, "/etc/profile.d/b.sh");
	assert_int_equal(s->line, 3);
	assert_null(np_settings_value(&out, "i"));
	assert_int_equal(scan(&w, NP_SHELL_SH, "/none", &out), -ENOENT);
}

/* Nothing goes on for ever, or eats all memory. */
static void test_hostile(void **state)
{
	static const char nested[] =
		"for a in 1 2 3 4 5 6 7 8 9; do for b in 1 2 3 4 5 6 7 8 9; do "
		"for c in 1 2 3 4 5 6 7 8 9; do for d in 1 2 3 4 5 6 7 8 9; do "
		"for e in 1 2 3 4 5 6 7 8 9; do export UCX_TLS=$a$b$c$d$e\n"
		"done\ndone\ndone\ndone\ndone\n";
	np_auto_buf struct np_buf deep = { 0 };

	(void)state;
	for (int i = 0; i < 20000; i++)
		np_buf_str(&deep, "if true; then { ( ${A:-");
	const char *const files[][2] = { { "/nested", nested },
					 { "/deep", deep.data },
					 { NULL, NULL } };
	struct world w = { .files = files };

	for (size_t i = 0; files[i][0]; i++) {
		np_auto_settings struct np_settings out = { 0 };

		assert_int_equal(scan(&w, NP_SHELL_BASH, files[i][0], &out), 0);
		assert_true(out.failed || i > 0);
		assert_true(out.n <= NP_SETTINGS_MAX);
	}
}

static void test_notes(void **state)
{
	static const char *const texts[] = { "eval $x", "module load ucx", ". $X/y",
					     "source rel.sh" };

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(texts); i++) {
		const char *const files[][2] = { { "/s", texts[i] }, { NULL, NULL } };
		struct world w = { .files = files };
		np_auto_settings struct np_settings out = { 0 };

		assert_int_equal(scan(&w, NP_SHELL_BASH, "/s", &out), 0);
		if (w.notes != 1)
			fail_msg("%s: %d notes", texts[i], w.notes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_file_and_line),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_notes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
