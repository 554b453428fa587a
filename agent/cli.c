/* SPDX-License-Identifier: MIT */
#include "agent/cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

const struct np_verb np_verbs[] = {
	{ "apply", "", "make the node ready",
	  "Loads missing modules, brings up the IPoIB netdev and its addresses, waits for the\n"
	  "ports, writes the files of NCCL and UCX, proves the data path, and reports.\n"
	  "A second run changes nothing. A failure takes back what was done.\n",
	  NP_VERB_APPLY, np_verb_apply },
	{ "plan", "", "say what apply would do, and change nothing",
	  "Exit code 0, also when there is something to do.\n", NP_VERB_PLAN, np_verb_plan },
	{ "check", "", "observe and judge, and change nothing",
	  "Exit code 0 when the node is ready and as configured, 1 when not.\n", NP_VERB_CHECK,
	  np_verb_check },
	{ "selftest", "[RUNG...]", "prove the data paths",
	  "Rungs, bottom first: umad, verbs (each port, and one to another), rc (UCX over each\n"
	  "port), tcp (UCX over the IPoIB address); with GPUs cuda, cuda_copy, cuda_ipc, gdrapi,\n"
	  "gdr_copy, gdr_rdma, nccl. What stands on a broken rung is not tried.\n"
	  "A rung that is named and has to skip makes the exit code 1.\n",
	  NP_VERB_SELFTEST, np_verb_selftest },
	{ "show", "[ports|netdevs|modules|gpus|libraries|topology|config]...", "show the facts",
	  "Without an argument: all of them.\n"
	  "config with --user, --unit or --pid: which values of NCCL, UCX and Dask are in\n"
	  "force there, from which file and line, and what they override.\n"
	  "libraries: UCX with its transports, CUDA, libgdrapi, NCCL, libibverbs; it runs\n"
	  "nodeprep-selftest, as user nobody where the caller is root. Then a census of every\n"
	  "NCCL, UCX and libgdrapi that a process may pick up, and who gets which.\n",
	  NP_VERB_SHOW, np_verb_show },
	{ "revert", "", "take back what apply did",
	  "Back to before the first apply: files, addresses, mode, MTU and link. What somebody\n"
	  "changed since is left, or keeps all but our lines. A second revert does nothing.\n",
	  NP_VERB_REVERT, np_verb_revert },
	{ "confirm", "", "keep what apply --confirm did",
	  "Exit code 4 when it comes too late: then the run has been taken back.\n",
	  NP_VERB_CONFIRM, np_verb_confirm },
	{ NULL, NULL, NULL, NULL, 0, NULL },
};

#define ALL_VERBS \
	(NP_VERB_APPLY | NP_VERB_PLAN | NP_VERB_CHECK | NP_VERB_SELFTEST | NP_VERB_SHOW | \
	 NP_VERB_REVERT | NP_VERB_CONFIRM)
#define APPLY_LIKE (NP_VERB_APPLY | NP_VERB_PLAN | NP_VERB_CHECK)

enum option_id {
	OPT_IP,
	OPT_IFNAME,
	OPT_USER,
	OPT_NO_SELFTEST,
	OPT_NO_PROBE,
	OPT_FORCE,
	OPT_DRY_RUN,
	OPT_CONFIRM,
	OPT_LAST,
	OPT_PROMETHEUS,
	OPT_RUN_AS,
	OPT_AS_ROOT,
	OPT_QUICK,
	OPT_FULL,
	OPT_ENV,
	OPT_UCX_PREFIX,
	OPT_UNIT,
	OPT_PID,
	OPT_CONFIG,
	OPT_ROOT,
	OPT_JSON,
	OPT_TIMEOUT,
	OPT_QUIET,
	OPT_VERBOSE,
	OPT_VERSION,
	OPT_HELP,
};

const struct np_option np_options[] = {
	{ "ip", "[IFNAME=]ADDR/LEN",
	  "address for an IPoIB netdev, may repeat (default netdev: ib0)", APPLY_LIKE, OPT_IP,
	  NP_VALUE_NETDEV_ADDRESS },
	{ "ifname", "NAME", "the IPoIB netdev, where it is not ib0", APPLY_LIKE | NP_VERB_SELFTEST,
	  OPT_IFNAME, NP_VALUE_NETDEV },
	{ "user", "NAME", "owner of a home for .nccl.conf, may repeat; show config: that login",
	  APPLY_LIKE | NP_VERB_SHOW, OPT_USER, NP_VALUE_USER },
	{ "unit", "UNIT", "show config: what NCCL, UCX and Dask get in this systemd unit",
	  NP_VERB_SHOW, OPT_UNIT, NP_VALUE_UNIT },
	{ "pid", "PID", "show config: the same of a process, with its libraries and limits",
	  NP_VERB_SHOW, OPT_PID, NP_VALUE_PID },
	{ "no-selftest", NULL, "do not try the data paths", APPLY_LIKE, OPT_NO_SELFTEST,
	  NP_VALUE_FREE },
	{ "no-probe", NULL, "do not ask whether another node has the address", APPLY_LIKE,
	  OPT_NO_PROBE, NP_VALUE_FREE },
	{ "force", NULL, "also where it cuts the default route or a job, or an HCA is in use",
	  APPLY_LIKE | NP_VERB_SELFTEST | NP_VERB_REVERT, OPT_FORCE, NP_VALUE_FREE },
	{ "confirm", "SECONDS", "take it back unless nodeprep confirm is run within that time",
	  APPLY_LIKE, OPT_CONFIRM, NP_VALUE_FREE },
	{ "dry-run", NULL, "say what it would do, and change nothing",
	  NP_VERB_APPLY | NP_VERB_REVERT, OPT_DRY_RUN, NP_VALUE_FREE },
	{ "last", NULL, "take back the last run alone", NP_VERB_REVERT, OPT_LAST, NP_VALUE_FREE },
	{ "prometheus", NULL, "print Prometheus text", NP_VERB_CHECK, OPT_PROMETHEUS,
	  NP_VALUE_FREE },
	{ "run-as", "NAME", "user that the rungs run as (default: nobody)", NP_VERB_SELFTEST,
	  OPT_RUN_AS, NP_VALUE_USER },
	{ "as-root", NULL, "run the rungs as root", NP_VERB_SELFTEST, OPT_AS_ROOT, NP_VALUE_FREE },
	{ "quick", NULL, "few sizes (the default)", NP_VERB_SELFTEST, OPT_QUICK, NP_VALUE_FREE },
	{ "full", NULL, "all sizes", NP_VERB_SELFTEST, OPT_FULL, NP_VALUE_FREE },
	{ "env", "NAME=VALUE", "variable for the rungs, may repeat", NP_VERB_SELFTEST, OPT_ENV,
	  NP_VALUE_FREE },
	{ "ucx-prefix", "DIR", "the UCX in DIR/lib (Conda, HPC-X) for the rungs", NP_VERB_SELFTEST,
	  OPT_UCX_PREFIX, NP_VALUE_FOLDER },
	{ "config", "FILE", "read this file instead of /etc/nodeprep/nodeprep.conf and conf.d",
	  ALL_VERBS, OPT_CONFIG, NP_VALUE_FILE },
	{ "root", "DIR", "write the files into the tree of an image, and touch nothing else",
	  NP_VERB_APPLY | NP_VERB_PLAN, OPT_ROOT, NP_VALUE_FOLDER },
	{ "json", NULL, "print one JSON document", ALL_VERBS, OPT_JSON, NP_VALUE_FREE },
	{ "timeout", "SECONDS", "for ports to come up, and for each rung", ALL_VERBS, OPT_TIMEOUT,
	  NP_VALUE_FREE },
	{ "quiet", NULL, "no warnings on stderr", ALL_VERBS, OPT_QUIET, NP_VALUE_FREE },
	{ "verbose", NULL, "say more on stderr", ALL_VERBS, OPT_VERBOSE, NP_VALUE_FREE },
	{ "version", NULL, "print the version", ALL_VERBS, OPT_VERSION, NP_VALUE_FREE },
	{ "help", NULL, "this text", ALL_VERBS, OPT_HELP, NP_VALUE_FREE },
	{ NULL, NULL, NULL, 0, 0, 0 },
};
#define N_OPTIONS (NP_ARRAY_SIZE(np_options) - 1)

static int unknown(const char *what, const char *word, const char *const *names, const char *dashes,
		   struct np_err *err)
{
	const char *near = np_nearest(word, names);
	char shown[80];

	np_printable(word, shown, sizeof(shown));
	np_err_set(err, -EINVAL, "usage.unknown", "unknown %s \"%s%s\"%s%s%s%s", what, dashes,
		   shown, near ? "; did you mean \"" : "", near ? dashes : "", near ? near : "",
		   near ? "\"?" : "");
	np_err_hint(err, "see nodeprep --help");
	return -EINVAL;
}

static const struct np_verb *find_verb(const char *name)
{
	for (const struct np_verb *v = np_verbs; v->name; v++)
		if (strcmp(v->name, name) == 0)
			return v;
	return NULL;
}

static int set_verb(struct np_cli *cli, const char *word, struct np_err *err)
{
	const char *names[16];
	size_t n = 0;

	cli->verb = find_verb(word);
	if (cli->verb)
		return 0;
	for (const struct np_verb *v = np_verbs; v->name; v++)
		names[n++] = v->name;
	names[n] = NULL;
	return unknown("verb", word, names, "", err);
}

static int set_seconds(const char *name, int min, const char *value, int *out, struct np_err *err)
{
	uint64_t seconds;
	char shown[80];

	if (np_parse_u64(value, 10, 86400, &seconds) < 0 || seconds < (uint64_t)min) {
		np_err_set(err, -EINVAL, "usage.value",
			   "--%s \"%s\": expected seconds from %d to 86400", name,
			   np_printable(value, shown, sizeof(shown)), min);
		np_err_hint(err, "give whole seconds, for example --%s 30", name);
		return -EINVAL;
	}
	*out = (int)seconds;
	return 0;
}

static int set_pid(struct np_cli *cli, const char *value, struct np_err *err)
{
	uint64_t pid;
	char shown[80];

	if (np_parse_u64(value, 10, INT32_MAX, &pid) < 0 || pid == 0) {
		np_err_set(err, -EINVAL, "usage.value", "--pid \"%s\": not a process number",
			   np_printable(value, shown, sizeof(shown)));
		np_err_hint(err, "see `ps -e`");
		return -EINVAL;
	}
	cli->pid = (pid_t)pid;
	return 0;
}

static int set_env(struct np_cli *cli, const char *value, struct np_err *err)
{
	size_t name =
		!value ? 0 :
			 strspn(value,
				"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

	if (name == 0 || value[name] != '=' || (value[0] >= '0' && value[0] <= '9') ||
	    cli->env.n >= 64) {
		np_err_set(err, -EINVAL, "usage.value",
			   "--env: expected NAME=VALUE, at most 64 times");
		np_err_hint(err, "for example --env UCX_IB_GID_INDEX=1");
		return -EINVAL;
	}
	return np_strv_add(&cli->env, value) < 0 ? np_err_nomem(err) : 0;
}

static int set_option(struct np_cli *cli, enum option_id id, const char *value, struct np_err *err)
{
	switch (id) {
	case OPT_IP:
		return np_strv_add(&cli->ips, value) < 0 ? np_err_nomem(err) : 0;
	case OPT_USER:
		return np_strv_add(&cli->users, value) < 0 ? np_err_nomem(err) : 0;
	case OPT_IFNAME:
		cli->ifname = value;
		return 0;
	case OPT_CONFIG:
		cli->config_path = value;
		return 0;
	case OPT_ROOT:
		cli->root = value;
		return 0;
	case OPT_RUN_AS:
		cli->run_as = value;
		return 0;
	case OPT_TIMEOUT:
		return set_seconds("timeout", 0, value, &cli->timeout_s, err);
	case OPT_CONFIRM:
		return set_seconds("confirm", 1, value, &cli->confirm_s, err);
	case OPT_UCX_PREFIX:
		cli->ucx_prefix = value;
		return 0;
	case OPT_UNIT:
		cli->unit = value;
		return 0;
	case OPT_PID:
		return set_pid(cli, value, err);
	case OPT_ENV:
		return set_env(cli, value, err);
	case OPT_NO_SELFTEST:
		cli->no_selftest = true;
		return 0;
	case OPT_NO_PROBE:
		cli->no_probe = true;
		return 0;
	case OPT_FORCE:
		cli->force = true;
		return 0;
	case OPT_DRY_RUN:
		cli->dry_run = true;
		return 0;
	case OPT_LAST:
		cli->last = true;
		return 0;
	case OPT_PROMETHEUS:
		cli->format = NP_FORMAT_PROMETHEUS;
		return 0;
	case OPT_AS_ROOT:
		cli->as_root = true;
		return 0;
	case OPT_QUICK:
		cli->quick = true;
		return 0;
	case OPT_FULL:
		cli->full = true;
		return 0;
	case OPT_JSON:
		cli->format = NP_FORMAT_JSON;
		return 0;
	case OPT_QUIET:
		cli->quiet = true;
		return 0;
	case OPT_VERBOSE:
		cli->verbose = true;
		return 0;
	case OPT_VERSION:
		cli->version = true;
		return 0;
	case OPT_HELP:
		cli->help = true;
		return 0;
	}
	return -EINVAL;
}

static const struct np_option *find_option(const char *word, size_t len)
{
	for (size_t i = 0; i < N_OPTIONS; i++)
		if (strlen(np_options[i].name) == len &&
		    strncmp(np_options[i].name, word, len) == 0)
			return &np_options[i];
	return NULL;
}

static int unknown_option(const char *word, struct np_err *err)
{
	const char *names[N_OPTIONS + 1];
	char name[64];

	for (size_t i = 0; i < N_OPTIONS; i++)
		names[i] = np_options[i].name;
	names[N_OPTIONS] = NULL;
	np_strcpy(name, sizeof(name), word);
	name[strcspn(name, "=")] = '\0';
	return unknown("option", name, names, "--", err);
}

/* One "--name", "--name=value" or "--name value". *i moves over a value taken. */
static int parse_option(int argc, char **argv, int *i, struct np_cli *cli, int *used,
			struct np_err *err)
{
	const char *word = argv[*i] + 2, *equals = strchr(word, '=');
	const struct np_option *opt =
		find_option(word, equals ? (size_t)(equals - word) : strlen(word));
	const char *value = equals ? equals + 1 : NULL;

	if (!opt)
		return unknown_option(word, err);
	if (opt->argument && !value) {
		if (*i + 1 >= argc) {
			np_err_set(err, -EINVAL, "usage.value", "--%s needs a value: %s", opt->name,
				   opt->argument);
			np_err_hint(err, "write --%s %s", opt->name, opt->argument);
			return -EINVAL;
		}
		value = argv[++*i];
	} else if (!opt->argument && value) {
		np_err_set(err, -EINVAL, "usage.value", "--%s takes no value", opt->name);
		np_err_hint(err, "write --%s alone", opt->name);
		return -EINVAL;
	}
	used[opt - np_options] = 1;
	return set_option(cli, opt->id, value, err);
}

/* Options may stand before the verb, so whom they belong to shows at the end. */
static int check_owner(const struct np_cli *cli, const int *used, struct np_err *err)
{
	for (size_t i = 0; i < N_OPTIONS; i++) {
		if (!used[i] || (np_options[i].verbs & (int)cli->verb->bit))
			continue;
		np_err_set(err, -EINVAL, "usage.unknown", "%s takes no option --%s",
			   cli->verb->name, np_options[i].name);
		np_err_hint(err, "see nodeprep %s --help", cli->verb->name);
		return -EINVAL;
	}
	if (cli->verb->bit == NP_VERB_SHOW &&
	    cli->users.n + (cli->unit ? 1 : 0) + (cli->pid ? 1 : 0) > 1) {
		np_err_set(err, -EINVAL, "usage.value",
			   "show takes one of --user, --unit and --pid, once");
		np_err_hint(err, "ask for one at a time");
		return -EINVAL;
	}
	if (cli->root && cli->confirm_s) {
		np_err_set(err, -EINVAL, "usage.value",
			   "--confirm cannot be had with --root: a tree has no run to take back");
		np_err_hint(err, "leave --confirm out");
		return -EINVAL;
	}
	if (cli->args.n && !*cli->verb->arguments) {
		char shown[80];

		np_err_set(err, -EINVAL, "usage.unknown", "%s takes no argument \"%s\"",
			   cli->verb->name, np_printable(cli->args.v[0], shown, sizeof(shown)));
		np_err_hint(err, "see nodeprep %s --help", cli->verb->name);
		return -EINVAL;
	}
	return 0;
}

static const char *short_option(const char *word)
{
	if (strcmp(word, "-h") == 0)
		return "--help";
	if (strcmp(word, "-V") == 0)
		return "--version";
	if (strcmp(word, "-q") == 0)
		return "--quiet";
	if (strcmp(word, "-v") == 0)
		return "--verbose";
	return word;
}

int np_cli_parse(int argc, char **argv, struct np_cli *cli, struct np_err *err)
{
	int used[N_OPTIONS] = { 0 };
	bool only_words = false;

	memset(cli, 0, sizeof(*cli));
	cli->timeout_s = -1;
	for (int i = 1; i < argc; i++) {
		int r = 0;

		argv[i] = (char *)short_option(argv[i]);
		if (!only_words && strcmp(argv[i], "--") == 0)
			only_words = true;
		else if (!only_words && np_starts_with(argv[i], "--"))
			r = parse_option(argc, argv, &i, cli, used, err);
		else if (!only_words && argv[i][0] == '-' && argv[i][1])
			r = unknown_option(argv[i] + 1, err);
		else if (!cli->verb)
			r = set_verb(cli, argv[i], err);
		else
			r = np_strv_add(&cli->args, argv[i]) < 0 ? np_err_nomem(err) : 0;
		if (r < 0) {
			/* a fault before --json was reached is told in JSON too */
			for (int k = i; k < argc; k++)
				if (np_streq(argv[k], "--json"))
					cli->format = NP_FORMAT_JSON;
			return r;
		}
	}
	if (cli->help || cli->version)
		return 0;
	if (!cli->verb) {
		np_err_set(err, -EINVAL, "usage.no_verb", "no verb given");
		np_err_hint(err,
			    "for example nodeprep apply --ip 10.0.0.50/24; see nodeprep --help");
		return -EINVAL;
	}
	return check_owner(cli, used, err);
}

void np_cli_done(struct np_cli *cli)
{
	np_strv_done(&cli->args);
	np_strv_done(&cli->ips);
	np_strv_done(&cli->users);
	np_strv_done(&cli->env);
}

void np_cli_help(const struct np_cli *cli, struct np_buf *out)
{
	const struct np_verb *verb = cli->verb;

	if (verb) {
		np_buf_printf(out, "usage: nodeprep %s%s%s [options]\n\n%s: %s.\n%s\noptions:\n",
			      verb->name, *verb->arguments ? " " : "", verb->arguments, verb->name,
			      verb->summary, verb->help);
	} else {
		np_buf_str(out,
			   "usage: nodeprep VERB [options]\n\n"
			   "Makes a GPU and InfiniBand node ready for RAPIDS, Dask, NCCL and UCX,\n"
			   "and proves it.\n\nverbs (nodeprep VERB --help says more):\n");
		for (const struct np_verb *v = np_verbs; v->name; v++)
			np_buf_printf(out, "  %-10s %s\n", v->name, v->summary);
		np_buf_str(out, "\noptions:\n");
	}
	for (size_t i = 0; i < N_OPTIONS; i++) {
		char name[64];

		if (verb ? !(np_options[i].verbs & (int)verb->bit) :
			   np_options[i].verbs != ALL_VERBS)
			continue;
		snprintf(name, sizeof(name), "--%s%s%s", np_options[i].name,
			 np_options[i].argument ? " " : "",
			 np_options[i].argument ? np_options[i].argument : "");
		np_buf_printf(out, "  %-24s %s\n", name, np_options[i].help);
	}
	np_buf_str(out,
		   "\nexit codes: 0 ready, 1 not ready, 2 usage or config error, 3 cannot or must\n"
		   "not run here, 4 failed and rolled back, 5 internal error. See nodeprep(8).\n");
}

int np_verb_need_root(struct np_result *result, const char *message, const char *hint)
{
	if (geteuid() == 0)
		return 0;
	np_err_set(&result->error, -EPERM, "privilege.root", "%s", message);
	np_err_hint(&result->error, "%s", hint);
	return np_verb_fail(result, NP_EXIT_REFUSED);
}

int np_verb_fail(struct np_result *result, enum np_exit code)
{
	result->exit = code;
	return result->error.num;
}
