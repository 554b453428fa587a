/* SPDX-License-Identifier: MIT */
#include "facts_build.h"

#include <unistd.h>

#include "agent/cli.h"

#define MAX_WORDS 16

/* Splits @line at blanks; "''" is an empty word. */
static int parse(const char *line, struct np_cli *cli, struct np_err *err)
{
	static char text[512];
	static char *argv[MAX_WORDS + 2];
	int argc = 1;

	np_strcpy(text, sizeof(text), line);
	argv[0] = (char *)"nodeprep";
	for (char *word = strtok(text, " "); word && argc < MAX_WORDS; word = strtok(NULL, " "))
		argv[argc++] = strcmp(word, "''") == 0 ? (char *)"" : word;
	argv[argc] = NULL;
	np_err_clear(err);
	return np_cli_parse(argc, argv, cli, err);
}

static void takes(const char *line, struct np_cli *cli)
{
	struct np_err err;

	if (parse(line, cli, &err) < 0)
		fail_msg("%s: %s", line, err.message);
}

static void refuses(const char *line, const char *code, const char *part)
{
	struct np_cli cli;
	struct np_err err;

	if (parse(line, &cli, &err) != -EINVAL)
		fail_msg("taken: %s", line);
	assert_string_equal(err.code, code);
	assert_true(err.hint[0]);
	if (!strstr(err.message, part))
		fail_msg("%s: \"%s\" does not say \"%s\"", line, err.message, part);
	np_cli_done(&cli);
}

static void test_options_anywhere(void **state)
{
	static const char *const lines[] = {
		"apply --ip 10.0.0.50/24 --ip=ib1=10.0.1.50/24 --force --json --timeout 5",
		"--ip 10.0.0.50/24 --force --ip ib1=10.0.1.50/24 --timeout=5 --json apply",
		"--json --ip 10.0.0.50/24 apply --timeout 5 --ip ib1=10.0.1.50/24 --force",
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(lines); i++) {
		struct np_cli cli;

		takes(lines[i], &cli);
		assert_string_equal(cli.verb->name, "apply");
		assert_int_equal(cli.ips.n, 2);
		assert_string_equal(cli.ips.v[0], "10.0.0.50/24");
		assert_string_equal(cli.ips.v[1], "ib1=10.0.1.50/24");
		assert_true(cli.force);
		assert_int_equal(cli.format, NP_FORMAT_JSON);
		assert_int_equal(cli.timeout_s, 5);
		np_cli_done(&cli);
	}
}

static void test_every_option(void **state)
{
	struct np_cli cli;

	(void)state;
	takes("apply --ifname ib1 --user alice --user bob --no-selftest --no-probe --dry-run "
	      "--config /x --quiet --verbose",
	      &cli);
	assert_string_equal(cli.ifname, "ib1");
	assert_int_equal(cli.users.n, 2);
	assert_true(cli.no_selftest && cli.no_probe && cli.dry_run && cli.quiet && cli.verbose);
	assert_string_equal(cli.config_path, "/x");
	assert_int_equal(cli.timeout_s, -1);
	assert_int_equal(cli.format, NP_FORMAT_TEXT);
	np_cli_done(&cli);
	takes("selftest tcp rc --run-as alice --as-root --quick --full --env A=1 --env B=", &cli);
	assert_int_equal(cli.args.n, 2);
	assert_string_equal(cli.args.v[1], "rc");
	assert_string_equal(cli.run_as, "alice");
	assert_true(cli.as_root && cli.quick && cli.full);
	assert_int_equal(cli.env.n, 2);
	np_cli_done(&cli);
	takes("check --prometheus -q", &cli);
	assert_int_equal(cli.format, NP_FORMAT_PROMETHEUS);
	assert_true(cli.quiet);
	np_cli_done(&cli);
	takes("show ports -- --json", &cli); /* a word after -- is no option */
	assert_int_equal(cli.args.n, 2);
	assert_int_equal(cli.format, NP_FORMAT_TEXT);
	np_cli_done(&cli);
	/* the value may look like an option, or be empty */
	takes("apply --ifname --json --config=", &cli);
	assert_string_equal(cli.ifname, "--json");
	assert_string_equal(cli.config_path, "");
	np_cli_done(&cli);
}

static void test_help_and_version(void **state)
{
	struct np_cli cli;

	(void)state;
	takes("--help", &cli);
	assert_true(cli.help);
	assert_null(cli.verb);
	np_cli_done(&cli);
	takes("-V", &cli);
	assert_true(cli.version);
	np_cli_done(&cli);
	for (const struct np_verb *v = np_verbs; v->name; v++) {
		np_auto_buf struct np_buf text = { 0 };
		char line[64];

		snprintf(line, sizeof(line), "%s -h", v->name);
		takes(line, &cli);
		np_cli_help(&cli, &text);
		assert_non_null(strstr(text.data, v->summary));
		assert_non_null(strstr(text.data, "--json"));
		assert_non_null(strstr(text.data, "exit codes"));
		assert_int_equal(strstr(text.data, "--force") != NULL,
				 (v->bit & (NP_VERB_APPLY | NP_VERB_PLAN | NP_VERB_CHECK |
					    NP_VERB_SELFTEST | NP_VERB_REVERT)) != 0);
		assert_non_null(v->run);
		np_cli_done(&cli);
	}
	{
		np_auto_buf struct np_buf text = { 0 };

		memset(&cli, 0, sizeof(cli));
		np_cli_help(&cli, &text);
		for (const struct np_verb *v = np_verbs; v->name; v++)
			assert_non_null(strstr(text.data, v->name));
	}
}

static void test_refused(void **state)
{
	(void)state;
	refuses("", "usage.no_verb", "no verb");
	refuses("--json", "usage.no_verb", "no verb");
	refuses("aply", "usage.unknown", "unknown verb \"aply\"; did you mean \"apply\"?");
	refuses("xyzzy", "usage.unknown", "unknown verb \"xyzzy\"");
	refuses("''", "usage.unknown", "unknown verb \"\"");
	refuses("apply --ipp 10.0.0.50/24", "usage.unknown", "did you mean \"--ip\"?");
	refuses("apply --tiemout=5", "usage.unknown", "did you mean \"--timeout\"?");
	refuses("apply --i=1", "usage.unknown", "unknown option");
	refuses("apply -x", "usage.unknown", "unknown option");
	refuses("apply \033[2J", "usage.unknown", "\\x1b[2J");
	refuses("apply --ip", "usage.value", "--ip needs a value");
	refuses("apply --force=yes", "usage.value", "--force takes no value");
	refuses("apply extra", "usage.unknown", "apply takes no argument \"extra\"");
	refuses("--prometheus apply", "usage.unknown", "apply takes no option --prometheus");
	refuses("show --force", "usage.unknown", "show takes no option --force");
	refuses("plan --dry-run", "usage.unknown", "plan takes no option --dry-run");
	refuses("apply --timeout -1", "usage.value", "--timeout");
	refuses("apply --timeout 86401", "usage.value", "--timeout");
	refuses("apply --timeout ''", "usage.value", "--timeout");
	refuses("selftest --env FOO", "usage.value", "NAME=VALUE");
	refuses("selftest --env =x", "usage.value", "NAME=VALUE");
	refuses("selftest --env 1A=x", "usage.value", "NAME=VALUE");
	refuses("selftest --env A-B=x", "usage.value", "NAME=VALUE");
}

/* ---- flags over the file ---- */

static char path[] = "/tmp/test_cli.XXXXXX";

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0)
		return -1;
	dprintf(fd, "[netdev ib0]\naddress = 10.0.0.50/24\n[ports]\nwait = 7\n"
		    "[nccl]\nusers = root\n");
	close(fd);
	return 0;
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static int configure(const char *line, struct np_config *cfg, struct np_err *err)
{
	struct np_cli cli;
	char text[400];
	int r;

	snprintf(text, sizeof(text), "%s --config %s", line, path);
	takes(text, &cli);
	np_config_init(cfg);
	np_err_clear(err);
	r = np_cli_config(&cli, cfg, err);
	np_cli_done(&cli);
	return r;
}

static void test_config_flags(void **state)
{
	struct np_config cfg;
	struct np_err err;

	(void)state;
	unsetenv("SUDO_USER");
	assert_int_equal(configure("apply", &cfg, &err), 0);
	assert_int_equal(cfg.wait_s, 7);
	assert_false(cfg.force);
	if (geteuid() == 0) { /* file and caller are the same: once */
		assert_int_equal(cfg.users.n, 1);
		assert_string_equal(cfg.users.v[0], "root");
	}
	np_config_done(&cfg);
	assert_int_equal(configure("apply --timeout 3 --force --user root --ip 10.0.0.50/24", &cfg,
				   &err),
			 0);
	assert_int_equal(cfg.wait_s, 3);
	assert_true(cfg.force);
	np_config_done(&cfg);
	if (geteuid() == 0) {
		setenv("SUDO_USER", "nobody", 1);
		assert_int_equal(configure("apply", &cfg, &err), 0);
		assert_true(np_strv_has(&cfg.users, "nobody") && np_strv_has(&cfg.users, "root"));
		np_config_done(&cfg);
		unsetenv("SUDO_USER");
	}
}

static void test_config_refused(void **state)
{
	static const struct {
		const char *line, *code;
	} cases[] = {
		{ "apply --ip 10.0.0.50", "usage.address" },
		{ "apply --ip 10.0.1.50/24 --ip 10.0.1.50/24", "usage.address" },
		{ "apply --ip ''", "usage.address" },
		{ "apply --ifname ''", "usage.value" },
		{ "apply --ifname abcdefghijklmnop", "usage.value" },
		{ "apply --ifname a/b", "usage.value" },
		{ "apply --user no-such-user-here", "usage.user" },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct np_config cfg;
		struct np_err err;

		if (configure(cases[i].line, &cfg, &err) >= 0)
			fail_msg("taken: %s", cases[i].line);
		assert_string_equal(err.code, cases[i].code);
		assert_true(err.hint[0]);
		np_config_done(&cfg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options_anywhere), cmocka_unit_test(test_every_option),
		cmocka_unit_test(test_help_and_version), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_config_flags),	 cmocka_unit_test(test_config_refused),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
