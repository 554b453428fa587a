/* SPDX-License-Identifier: MIT */
#include "selftest/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_QUICK_MS 20000
#define TIMEOUT_FULL_MS	 90000
#define TIMEOUT_MAX_MS	 86400000

const char np_options_help[] =
	"usage: nodeprep-selftest RUNG [options]\n"
	"Moves data over one path of this node, verifies every byte and prints one JSON\n"
	"document. Exit status: 0 ok, 1 failed or skipped, 2 usage, 5 internal error.\n"
	"\n"
	"  --device CA[:PORT]   port to use (umad, verbs, rc, gdr_rdma); default: every\n"
	"                       InfiniBand port\n"
	"  --device GPU[,GPU]   GPUs to use (the others): 0000:17:00.0, or GPU0 in the order of\n"
	"                       PCI addresses; default: every one\n"
	"  --gpu GPU            GPU beside the port (gdr_rdma); default: one of its NUMA node\n"
	"  --peer CA[:PORT]     port of the other end (verbs); default: the same port\n"
	"  --gid-index N        GID of both ends (verbs); default: the best kind there is\n"
	"  --netdev NAME        IPoIB netdev to use (tcp)\n"
	"  --address ADDR       address it must have (tcp); default: its first\n"
	"  --quick              a few sizes, 8 B to 8 MiB (default)\n"
	"  --full               powers of 4, 1 B to 64 MiB\n"
	"  --force              also on a GPU that other processes use\n"
	"  --timeout-ms N       deadline of each device; default 20000, with --full 90000\n"
	"  --lines              a document for each device, written when it is done\n"
	"  --env NAME=VALUE     set in the environment, e.g. UCX_IB_SL=1 (repeat); UCX_*, NCCL_*,\n"
	"                       CUDA_*, GDRCOPY_* and HOME are not inherited\n"
	"  --list               name the rungs\n"
	"  --libraries          no rung: the libraries, and what UCX has on this node\n"
	"  --ucx-at DIR         no rung: names the first library of UCX that is not from DIR;\n"
	"                       exit status 1 where there is one\n"
	"  --brief              with --libraries: versions alone, no device is opened\n"
	"  --nvml               with --brief: NVML all the same, which opens the GPUs\n"
	"  --verbose            say more on stderr\n"
	"  --version, --help\n";

enum option {
	DEVICE,
	PEER,
	GPU,
	GID_INDEX,
	NETDEV,
	ADDRESS,
	TIMEOUT,
	UCX_AT,
	ENV,
	QUICK,
	FULL,
	FORCE,
	LINES,
	LIST,
	LIBRARIES,
	BRIEF,
	NVML,
	VERBOSE,
	VERSION,
	HELP
};

/* In the order of enum option; up to ENV they take a value. */
static const char *const names[] = { "--device", "--peer",    "--gpu",	      "--gid-index",
				     "--netdev", "--address", "--timeout-ms", "--ucx-at",
				     "--env",	 "--quick",   "--full",	      "--force",
				     "--lines",	 "--list",    "--libraries",  "--brief",
				     "--nvml",	 "--verbose", "--version",    "--help",
				     NULL };

static bool takes_value(enum option option)
{
	return option <= ENV;
}

static bool env_valid(const char *entry)
{
	const char *c = entry;

	if (!isalpha((unsigned char)*c) && *c != '_')
		return false;
	while (isalnum((unsigned char)*c) || *c == '_')
		c++;
	return *c == '=';
}

static int take_value(struct np_options *out, enum option option, const char *value,
		      struct np_err *err)
{
	struct np_rung_options *rung = &out->rung_options;
	uint64_t number;

	switch (option) {
	case DEVICE:
		rung->device = value;
		return 0;
	case PEER:
		rung->peer = value;
		return 0;
	case GPU:
		rung->gpu = value;
		return 0;
	case GID_INDEX:
		if (np_parse_u64(value, 10, 255, &number) < 0)
			return np_err_usage(err, NULL, "--gid-index wants 0 to 255, not", value);
		rung->gid_index = (int)number;
		return 0;
	case NETDEV:
		rung->netdev = value;
		return 0;
	case ADDRESS:
		rung->address = value;
		return 0;
	case UCX_AT:
		out->action = NP_OPTIONS_UCX_AT;
		out->ucx_at = value;
		return 0;
	case ENV:
		if (!env_valid(value))
			return np_err_usage(err, NULL, "--env wants NAME=VALUE, not", value);
		out->env[out->n_env++] = value;
		return 0;
	default:
		if (np_parse_u64(value, 10, TIMEOUT_MAX_MS, &number) < 0 || number == 0)
			return np_err_usage(err, NULL, "--timeout-ms wants 1 to 86400000, not",
					    value);
		rung->timeout_ms = (int)number;
		return 0;
	}
}

static void take_flag(struct np_options *out, enum option option)
{
	switch (option) {
	case QUICK:
	case FULL:
		out->rung_options.full = option == FULL;
		break;
	case FORCE:
		out->rung_options.force = true;
		break;
	case LINES:
		out->lines = true;
		break;
	case LIST:
		out->action = NP_OPTIONS_LIST;
		break;
	case LIBRARIES:
		out->action = NP_OPTIONS_LIBRARIES;
		break;
	case BRIEF:
		out->brief = true;
		break;
	case NVML:
		out->nvml = true;
		break;
	case VERBOSE:
		out->verbose = true;
		break;
	case VERSION:
		out->action = NP_OPTIONS_VERSION;
		break;
	default:
		out->action = NP_OPTIONS_HELP;
		break;
	}
}

/* One option at argv[*at]; moves *at to the last word it used. */
static int take_option(int argc, char **argv, int *at, struct np_options *out, struct np_err *err)
{
	const char *word = argv[*at], *value = strchr(word, '=');
	size_t len = value ? (size_t)(value - word) : strlen(word);
	char name[40];
	int option = 0;

	np_strcpy(name, sizeof(name), word);
	if (len < sizeof(name))
		name[len] = '\0';
	while (names[option] && !np_streq(names[option], name))
		option++;
	if (!names[option])
		return np_err_usage(err, np_nearest(name, names), "unknown option", name);
	if (!takes_value((enum option)option)) {
		if (value)
			return np_err_usage(err, NULL, "no value goes with", name);
		take_flag(out, (enum option)option);
		return 0;
	}
	if (value)
		return take_value(out, (enum option)option, value + 1, err);
	if (*at + 1 >= argc)
		return np_err_usage(err, NULL, "a value is missing after", name);
	return take_value(out, (enum option)option, argv[++*at], err);
}

static int take_rung(struct np_options *out, const char *word, struct np_err *err)
{
	if (out->rung)
		return np_err_usage(err, NULL, "one rung a run; one too many:", word);
	out->rung = np_rung_find(word);
	if (out->rung)
		return 0;
	np_err_usage(err, np_rung_nearest(word), "unknown rung", word);
	if (!err->hint[0])
		np_err_hint(err, "see nodeprep-selftest --list");
	return -EINVAL;
}

int np_options_parse(int argc, char **argv, struct np_options *out, struct np_err *err)
{
	struct np_options parsed = { .action = NP_OPTIONS_RUN, .rung_options.gid_index = -1 };
	int ret = 0;

	parsed.env = calloc((size_t)argc + 1, sizeof(*parsed.env));
	if (!parsed.env)
		return np_err_nomem(err);
	for (int i = 1; i < argc && ret == 0; i++)
		ret = argv[i][0] == '-' ? take_option(argc, argv, &i, &parsed, err) :
					  take_rung(&parsed, argv[i], err);
	if (ret == 0 && parsed.action == NP_OPTIONS_RUN && !parsed.rung) {
		ret = np_err_set(err, -EINVAL, "usage", "name a rung");
		np_err_hint(err, "see nodeprep-selftest --list");
	}
	if (ret == 0 && parsed.action == NP_OPTIONS_LIBRARIES && parsed.rung)
		ret = np_err_usage(err, NULL, "no rung goes with --libraries:", parsed.rung->name);
	if (ret == 0 && parsed.action != NP_OPTIONS_LIBRARIES && (parsed.brief || parsed.nvml))
		ret = np_err_set(err, -EINVAL, "usage", "%s goes with --libraries alone",
				 parsed.brief ? "--brief" : "--nvml");
	if (ret < 0) {
		np_options_done(&parsed);
		return ret;
	}
	if (parsed.rung_options.timeout_ms == 0)
		parsed.rung_options.timeout_ms =
			parsed.rung_options.full ? TIMEOUT_FULL_MS : TIMEOUT_QUICK_MS;
	*out = parsed;
	return 0;
}

void np_options_done(struct np_options *options)
{
	if (!options)
		return;
	free(options->env);
	options->env = NULL;
	options->n_env = 0;
}
