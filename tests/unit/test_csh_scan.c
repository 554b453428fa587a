/* SPDX-License-Identifier: MIT */
/* Start files of csh: what is set, what is not, and what cannot be told. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "scan_world.h"

static void login(struct world *w, enum np_shell shell, struct np_settings *out)
{
	struct np_scan_files files = { world_read, world_exists, world_list, world_note, w };
	struct np_scan_spec spec = { shell, "alice", "/home/alice", &files };

	np_csh_scan_login(&spec, out);
}

/* Of one ~/.cshrc: what UCX_TLS is, in which line, and how many maybes and skips it has. */
static const struct {
	const char *text, *value; /* NULL: not set */
	int line, maybes, skips;
	bool opaque, is_local;
} table[] = {
	{ "setenv UCX_TLS rc", "rc", 1, 0, 0, false, false },
	{ "\n setenv UCX_TLS 'rc,tcp'; echo", "rc,tcp", 2, 0, 0, false, false },
	{ "set UCX_TLS=rc\n", "rc", 1, 0, 0, false, true },
	{ "setenv UCX_TLS a\nset UCX_TLS=b\n", "a", 1, 0, 0, false, false },
	{ "# setenv UCX_TLS rc\necho setenv UCX_TLS rc", NULL, 0, 0, 0, false, false },
	{ "setenv UCX_TLS \\\n rc # x", "rc", 1, 0, 0, false, false },
	{ "setenv UCX_TLS a\nsetenv UCX_TLS ${UCX_TLS},b", "a,b", 2, 0, 0, false, false },
	{ "setenv UCX_TLS `cat /x`", "`cat /x`", 1, 0, 0, true, false },
	{ "setenv UCX_TLS $UNHEARD", "$UNHEARD", 1, 0, 0, true, false },
	{ "setenv UCX_TLS a*", "a*", 1, 0, 0, true, false },
	{ "setenv UCX_TLS $home:h", "$home:h", 1, 0, 0, true, false },
	{ "setenv UCX_TLS ~/x", "/home/alice/x", 1, 0, 0, false, false },
	{ "setenv UCX_TLS a\nunsetenv UCX_*", NULL, 0, 0, 0, false, false },
	{ "setenv UCX_TLS", "", 1, 0, 0, false, false },
	/* nodeprep's own */
	{ "if ( ! $?UCX_TLS ) setenv UCX_TLS 'rc'", "rc", 1, 0, 0, false, false },
	{ "setenv UCX_TLS ''\nif ( ! $?UCX_TLS ) setenv UCX_TLS 'rc'", "", 1, 0, 1, false, false },
	/* conditions that can be told */
	{ "if ($?UCX_TLS == 0) then\nsetenv UCX_TLS a\nelse\nsetenv UCX_TLS b\nendif", "a", 2, 0, 1,
	  false, false },
	{ "if ( \"$user\" =~ al* && ! -e /none ) setenv UCX_TLS a", "a", 1, 0, 0, false, false },
	{ "if ( $user == bob || 0 ) then\nsetenv UCX_TLS a\nelse if ( 1 ) then\nsetenv UCX_TLS b\n"
	  "else\nsetenv UCX_TLS c\nendif",
	  "b", 4, 0, 2, false, false },
	{ "if (0) then\nif (1) then\nsetenv UCX_TLS a\nelse\nendif\nsetenv UCX_TLS b\nendif", NULL,
	  0, 0, 2, false, false },
	{ "if ($?tcsh) setenv UCX_TLS a", NULL, 0, 0, 1, false, false },
	/* and that cannot */
	{ "setenv UCX_TLS a\nif ($?prompt) setenv UCX_TLS b", "a", 1, 1, 0, false, false },
	{ "if ( { grep -q x /y } ) setenv UCX_TLS a", NULL, 0, 1, 0, false, false },
	{ "grep -q x /y && setenv UCX_TLS a", NULL, 0, 1, 0, false, false },
	{ "while (1)\nsetenv UCX_TLS a\nend", NULL, 0, 1, 0, false, false },
	{ "goto out\nsetenv UCX_TLS a\nout:", NULL, 0, 1, 0, false, false },
	{ "switch ($x)\ncase a:\nsetenv UCX_TLS a\nbreaksw\ndefault:\nsetenv UCX_TLS b\nendsw",
	  NULL, 0, 2, 0, false, false },
	/* what is no part of this shell, or not read */
	{ "( setenv UCX_TLS a )", NULL, 0, 0, 0, false, false },
	{ "setenv UCX_TLS a | cat", NULL, 0, 0, 0, false, false },
	{ "cat <<EOF\nsetenv UCX_TLS a\nEOF\nsetenv UCX_TLS b", "b", 4, 0, 0, false, false },
	{ "exit\nsetenv UCX_TLS a", NULL, 0, 0, 0, false, false },
	{ "setenv UCX_X $UCX_NONE\nsetenv UCX_TLS a", NULL, 0, 0, 0, false, false },
	{ "if ($?prompt) exit\nsetenv UCX_TLS a", NULL, 0, 1, 0, false, false },
	/* loops, and files that are sourced */
	{ "foreach i ( a b )\nsetenv UCX_TLS $i\nend", "b", 2, 0, 0, false, false },
	{ "foreach i (`ls /etc/login.d/*`)\nsource $i;\nend;\n", "second", 2, 0, 0, false, false },
	{ "if (`ls /etc/none` != \"\") setenv UCX_TLS a", NULL, 0, 0, 1, false, false },
	{ "set d=/etc/login.d\nif (`/bin/ls $d` != \"\") setenv UCX_TLS a", "a", 2, 0, 0, false,
	  false },
	{ "foreach i (`ls -t /etc/login.d`)\nsetenv UCX_TLS $i\nend", NULL, 0, 1, 0, false, false },
	{ "foreach i (/etc/login.d/*.none)\nsetenv UCX_TLS $i\nend", NULL, 0, 0, 0, false, false },
	{ "source ~/.rc", "home", 1, 0, 0, false, false },
	{ "source /etc/loop", "x", 2, 0, 0, false, false },
	/* faulty ones end */
	{ "if ( then else ) } ;; endif end\nsetenv UCX_TLS a", NULL, -1, -1, -1, false, false },
	{ "setenv UCX_TLS 'a", NULL, 0, 0, 0, false, false },
	{ "${${${ $?{ `ls $", NULL, 0, 0, 0, false, false },
	{ "foreach", NULL, 0, 0, 0, false, false },
	{ "set =\nset ( a )\n@\n@ x\nif\nif (\nelse if\n", NULL, 0, 0, 0, false, false },
};

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(table); i++) {
		const char *const files[][2] = {
			{ "/home/alice/.cshrc", table[i].text },
			{ "/home/alice/.rc", "setenv UCX_TLS home" },
			{ "/etc/loop", "source /etc/loop\nsetenv UCX_TLS x" },
			{ "/etc/login.d/10", "setenv UCX_TLS first" },
			{ "/etc/login.d/20", "setenv UCX_NO 1\nsetenv UCX_TLS second" },
			{ NULL, NULL },
		};
		struct world w = { .files = files };
		np_auto_settings struct np_settings out = { 0 };
		const struct np_setting *s;
		int maybes = 0, skips = 0;

		login(&w, NP_SHELL_CSH, &out);
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

/* ~/.tcshrc is for tcsh alone, and then ~/.cshrc is not read. */
static void test_order(void **state)
{
	const char *const files[][2] = {
		{ "/etc/csh.cshrc", "setenv UCX_TLS a" },
		{ "/etc/csh.login", "setenv UCX_TLS ${UCX_TLS}b\nif ($?tcsh) setenv UCX_B t" },
		{ "/home/alice/.tcshrc", "setenv UCX_TLS ${UCX_TLS}t" },
		{ "/home/alice/.cshrc", "setenv UCX_TLS ${UCX_TLS}c" },
		{ "/home/alice/.login", "setenv UCX_TLS ${UCX_TLS}l" },
		{ NULL, NULL },
	};
	struct world w = { .files = files };
	np_auto_settings struct np_settings csh = { 0 }, tcsh = { 0 };

	(void)state;
	login(&w, NP_SHELL_CSH, &csh);
	assert_string_equal(np_settings_value(&csh, "UCX_TLS"), "abcl");
	assert_null(np_settings_value(&csh, "UCX_B"));
	login(&w, NP_SHELL_TCSH, &tcsh);
	assert_string_equal(np_settings_value(&tcsh, "UCX_TLS"), "abtl");
	assert_string_equal(np_settings_value(&tcsh, "UCX_B"), "t");
	assert_int_equal(w.notes, 0);
}

/* Nothing goes on for ever, or eats all memory. */
static void test_hostile(void **state)
{
	static const char nested[] =
		"foreach a (1 2 3 4 5 6 7 8 9)\nforeach b (1 2 3 4 5 6 7 8 9)\n"
		"foreach c (1 2 3 4 5 6 7 8 9)\nforeach d (1 2 3 4 5 6 7 8 9)\n"
		"foreach e (1 2 3 4 5 6 7 8 9)\nsetenv UCX_TLS $a$b$c$d$e\n"
		"end\nend\nend\nend\nend\n";
	np_auto_buf struct np_buf deep = { 0 }, brackets = { 0 };

	(void)state;
	for (int i = 0; i < 20000; i++) {
		np_buf_str(&deep, "if ( 1 ) then\nforeach x ( 1 )\n");
		np_buf_str(&brackets, "if ( ! ( ");
	}
	const char *const texts[] = { nested, deep.data, brackets.data };

	for (size_t i = 0; i < NP_ARRAY_SIZE(texts); i++) {
		const char *const files[][2] = { { "/etc/csh.cshrc", texts[i] }, { NULL, NULL } };
		struct world w = { .files = files };
		np_auto_settings struct np_settings out = { 0 };

		login(&w, NP_SHELL_TCSH, &out);
		assert_true(out.failed || i > 1);
		assert_true(out.n <= NP_SETTINGS_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
