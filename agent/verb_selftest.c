/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "agent/cli.h"
#include "agent/ladder.h"
#include "agent/selftest_run.h"
#include "agent/ucx_prefix.h"
#include "base/log.h"
#include "base/user.h"

#define DEFAULT_RUNG_TIMEOUT_S 60

static int excluded(const char *what, struct np_err *err)
{
	np_err_set(err, -EINVAL, "usage.value", "%s exclude each other", what);
	np_err_hint(err, "give one of them");
	return -EINVAL;
}

/* Whom the rungs run as: what was asked for, or an error; never someone else in silence.
 * @rungs_as_root: what they load is run by root, whether by --as-root or by name. */
static int check_user(const struct np_cli *cli, bool *rungs_as_root, struct np_err *err)
{
	np_auto_user struct np_user user = { .uid = cli->as_root ? 0 : geteuid() };
	int r = cli->run_as ? np_user_by_name(cli->run_as, &user, err) : 0;

	*rungs_as_root = (cli->as_root || cli->run_as) && user.uid == 0;
	if (r < 0 || geteuid() == 0 || user.uid == geteuid())
		return r;
	np_err_set(err, -EPERM, "privilege.root",
		   "%s needs root: only root can become another user",
		   cli->as_root ? "--as-root" : "--run-as");
	np_err_hint(err, "run it with sudo, or leave the option out");
	return -EPERM;
}

/* The rungs choose these themselves; their own warning is in a log that nobody sees. */
static void warn_of_no_effect(const struct np_cli *cli)
{
	for (size_t i = 0; i < cli->env.n; i++)
		if (np_starts_with(cli->env.v[i], "UCX_TLS=") ||
		    np_starts_with(cli->env.v[i], "UCX_NET_DEVICES="))
			np_warning("--env %.*s has no effect: each rung chooses its transport and "
				   "device",
				   (int)strcspn(cli->env.v[i], "="), cli->env.v[i]);
}

static int check_usage(const struct np_cli *cli, bool *rungs_as_root, struct np_err *err)
{
	int r;

	if (cli->as_root && cli->run_as)
		return excluded("--as-root and --run-as", err);
	if (cli->quick && cli->full)
		return excluded("--quick and --full", err);
	r = check_user(cli, rungs_as_root, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < cli->args.n; i++) {
		const char *word = cli->args.v[i], *near;
		bool known = false;
		char shown[80];

		for (size_t n = 0; np_rung_names[n]; n++)
			known |= np_streq(np_rung_names[n], word);
		if (known)
			continue;
		near = np_nearest(word, np_rung_names);
		np_err_set(err, -EINVAL, "usage.unknown", "unknown rung \"%s\"%s%s%s",
			   np_printable(word, shown, sizeof(shown)),
			   near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
		np_err_hint(err, "see nodeprep selftest --help");
		return -EINVAL;
	}
	return 0;
}

/* A rung that was named and had to skip did not prove what was asked. */
static bool named_rung_skipped(const struct np_cli *cli, const json_t *entries)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (entries, i, entry) {
		const char *rung = json_string_value(json_object_get(entry, "rung"));

		if (np_streq(json_string_value(json_object_get(entry, "status")), "skip") &&
		    np_strv_has(&cli->args, rung ? rung : ""))
			return true;
	}
	return false;
}

int np_verb_selftest(const struct np_cli *cli, struct np_config *cfg, struct np_result *result)
{
	np_auto_facts struct np_facts facts = { 0 };
	np_auto_selection struct np_selection sel = { 0 };
	struct np_rung_options options = {
		.rungs = &cli->args,
		.run_as = cli->run_as,
		.as_root = cli->as_root,
		.full = cli->full,
		.force = cli->force,
		.timeout_ms = 1000 * (cli->timeout_s > 0 ? cli->timeout_s : DEFAULT_RUNG_TIMEOUT_S),
		.env = &cli->env,
	};
	char library_path[2 * PATH_MAX + 32];
	bool rungs_as_root;
	int r = check_usage(cli, &rungs_as_root, &result->error);

	if (r < 0)
		return np_verb_fail(result, r == -EPERM ? NP_EXIT_REFUSED : NP_EXIT_USAGE);
	warn_of_no_effect(cli);
	if (cli->ucx_prefix) {
		r = np_ucx_prefix_path(cli->ucx_prefix, rungs_as_root, library_path,
				       sizeof(library_path), &result->error);
		if (r < 0)
			return np_verb_fail(result, r == -EACCES ? NP_EXIT_REFUSED : NP_EXIT_USAGE);
		options.library_path = library_path;
	}
	r = np_observe(cfg, NP_OBSERVE_PATHS, &facts, &result->error);
	if (r < 0)
		return np_verb_fail(result, NP_EXIT_INTERNAL);
	if (np_select(cfg, &facts, &sel, &result->error) < 0)
		return np_verb_fail(result, NP_EXIT_REFUSED);
	result->selftest = json_array();
	result->converged = true;
	r = np_selftest_run(cfg, &facts, &sel, &options, result->selftest, &result->error);
	if (r < 0)
		return np_verb_fail(result, np_starts_with(result->error.code, "usage.ucx_prefix") ?
						    NP_EXIT_USAGE :
					    r == -ENOENT ? NP_EXIT_REFUSED :
							   NP_EXIT_INTERNAL);
	result->converged = !named_rung_skipped(cli, result->selftest);
	result->exit = np_result_ready(result) ? NP_EXIT_READY : NP_EXIT_NOT_READY;
	return 0;
}
