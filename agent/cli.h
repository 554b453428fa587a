/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_CLI_H
#define NP_AGENT_CLI_H

#include "agent/config.h"
#include "agent/report.h"

/* The command line: verbs and options, one table each (cli.c). */

enum np_verb_bit {
	NP_VERB_APPLY = 1 << 0,
	NP_VERB_PLAN = 1 << 1,
	NP_VERB_CHECK = 1 << 2,
	NP_VERB_SELFTEST = 1 << 3,
	NP_VERB_SHOW = 1 << 4,
	NP_VERB_REVERT = 1 << 5,
	NP_VERB_CONFIRM = 1 << 6,
};

struct np_cli {
	const struct np_verb *verb;
	struct np_strv args; /* what follows the verb */

	const char *config_path; /* --config, NULL = the system's */
	const char *root;	 /* --root: the tree of an image; NULL = this system */
	enum np_format format;
	bool quiet, verbose, help, version;
	int timeout_s; /* -1 = not given */

	struct np_strv ips; /* --ip, as written */
	const char *ifname;
	struct np_strv users;
	bool no_selftest, no_probe, force, dry_run;
	int confirm_s; /* --confirm, 0 = not given */
	bool last;     /* revert --last */

	const char *run_as;
	const char *ucx_prefix;
	bool as_root, quick, full;
	struct np_strv env; /* NAME=VALUE */

	const char *unit; /* show --unit */
	pid_t pid;	  /* show --pid; 0 = not given */
};

struct np_verb {
	const char *name, *arguments, *summary, *help;
	enum np_verb_bit bit;
	int (*run)(const struct np_cli *cli, struct np_config *cfg, struct np_result *result);
};

extern const struct np_verb np_verbs[]; /* ends with name NULL */

/* What of the node the value of an option is: shells offer it (etc/completion). */
enum np_value {
	NP_VALUE_FREE, /* nothing that could be listed */
	NP_VALUE_FILE,
	NP_VALUE_FOLDER,
	NP_VALUE_NETDEV,	 /* an IPoIB netdev */
	NP_VALUE_NETDEV_ADDRESS, /* such a netdev, '=' and an address */
	NP_VALUE_USER,
	NP_VALUE_UNIT, /* of systemd */
	NP_VALUE_PID,
};

struct np_option {
	const char *name, *argument, *help; /* argument NULL: a switch */
	int verbs;			    /* enum np_verb_bit */
	int id;
	enum np_value value;
};

extern const struct np_option np_options[]; /* ends with name NULL */

/* Fills @cli from the arguments. Returns 0, or -EINVAL with message and hint
 * (usage, exit 2). np_cli_done frees. */
int np_cli_parse(int argc, char **argv, struct np_cli *cli, struct np_err *err) np_must_check;
void np_cli_done(struct np_cli *cli);

/* The help text of the program or of cli->verb. */
void np_cli_help(const struct np_cli *cli, struct np_buf *out);

/* Configuration: defaults, files, then the flags of @cli. Sets result->exit to
 * NP_EXIT_USAGE and returns a negative errno with message when it is faulty. */
int np_cli_config(const struct np_cli *cli, struct np_config *cfg,
		  struct np_err *err) np_must_check;

/* ---- the verbs, one file each; each returns 0 or a negative errno (then
 * result->error and result->exit are set) ---- */
int np_verb_apply(const struct np_cli *cli, struct np_config *cfg, struct np_result *result);
int np_verb_plan(const struct np_cli *cli, struct np_config *cfg, struct np_result *result);
/* apply and plan with --root. */
int np_verb_image(const struct np_cli *cli, struct np_config *cfg, struct np_result *result);
int np_verb_check(const struct np_cli *cli, struct np_config *cfg, struct np_result *result);
int np_verb_selftest(const struct np_cli *cli, struct np_config *cfg, struct np_result *result);
int np_verb_show(const struct np_cli *cli, struct np_config *cfg, struct np_result *result);
int np_verb_revert(const struct np_cli *cli, struct np_config *cfg, struct np_result *result);
int np_verb_confirm(const struct np_cli *cli, struct np_config *cfg, struct np_result *result);

/* The caller is root: 0; else -EPERM with @message and @hint, exit 3. */
int np_verb_need_root(struct np_result *result, const char *message, const char *hint);

/* Sets the exit code and returns result->error.num. */
int np_verb_fail(struct np_result *result, enum np_exit code);

#endif
