/* SPDX-License-Identifier: MIT */
#include "selftest/ranks_options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TIMEOUT_DEFAULT_S 120
#define TIMEOUT_MIN_S	  5
#define TIMEOUT_MAX_S	  86400
#define TRIALS_MAX	  1000
#define FACTOR_MAX	  1000
#define SIZE_DEFAULT	  (1u << 20)
#define SIZE_MIN	  1024u
#define SIZE_MAX_BYTES	  (64u << 20)

const char np_ranks_help[] =
	"usage: LAUNCHER nodeprep-ranks [options]\n"
	"Proves that every rank reaches every other over UCX, and reduces over all of them.\n"
	"Start one rank a GPU, or one a node, by a launcher with PMIx:\n"
	"  srun --mpi=pmix -N 16 --ntasks-per-node=4 nodeprep-ranks\n"
	"  mpirun --map-by ppr:4:node nodeprep-ranks\n"
	"Exit status: 0 every rank verified everything, 1 not so, 2 usage, 5 internal error.\n"
	"\n"
	"  --trials N            times that each rank sends to all others; default 2\n"
	"  --size BYTES          messages that measure bandwidth; default 1048576\n"
	"  --factor N            so many times worse than its like is slow; default 3\n"
	"  --close-endpoints     one endpoint at a time, closed after each round: less memory\n"
	"  --no-allreduce        point to point alone\n"
	"  --host-memory         the allreduce over UCX in host memory, also with GPUs\n"
	"  --env-file FILE       what apply wrote; default /etc/nodeprep/ucx.env\n"
	"  --timeout SECONDS     deadline of the whole job; default 120\n"
	"  --json                one JSON document, by rank 0\n"
	"  --quiet               no list of each rank\n"
	"  --verbose             say more on stderr\n"
	"  --version, --help\n";

enum option {
	TRIALS,
	SIZE,
	FACTOR,
	ENV_FILE,
	TIMEOUT,
	CLOSE_ENDPOINTS,
	NO_ALLREDUCE,
	HOST_MEMORY,
	JSON,
	QUIET,
	VERBOSE,
	VERSION,
	HELP
};

/* In the order of enum option; up to TIMEOUT they take a value. */
static const char *const names[] = {
	"--trials",	     "--size",	       "--factor",	"--env-file", "--timeout",
	"--close-endpoints", "--no-allreduce", "--host-memory", "--json",     "--quiet",
	"--verbose",	     "--version",      "--help",	NULL
};

static int number(const char *name, const char *text, uint64_t least, uint64_t most, uint64_t *out,
		  struct np_err *err)
{
	uint64_t n;

	if (np_parse_u64(text, 10, most, &n) < 0 || n < least)
		return np_err_set(err, -EINVAL, "usage", "%s takes a number from %llu to %llu",
				  name, (unsigned long long)least, (unsigned long long)most);
	*out = n;
	return 0;
}

static int set_value(enum option option, const char *value, struct np_ranks_options *out,
		     struct np_err *err)
{
	uint64_t n = 0;
	int ret = 0;

	switch (option) {
	case TRIALS:
		ret = number(names[option], value, 1, TRIALS_MAX, &n, err);
		out->trials = (int)n;
		break;
	case SIZE:
		ret = number(names[option], value, SIZE_MIN, SIZE_MAX_BYTES, &n, err);
		out->size_bytes = n;
		break;
	case FACTOR:
		ret = number(names[option], value, 2, FACTOR_MAX, &n, err);
		out->factor = (double)n;
		break;
	case TIMEOUT:
		ret = number(names[option], value, TIMEOUT_MIN_S, TIMEOUT_MAX_S, &n, err);
		out->timeout_ms = (int)n * 1000;
		break;
	default:
		out->config_env = value;
		break;
	}
	return ret;
}

static void set_flag(enum option option, enum np_ranks_action *action, struct np_ranks_options *out)
{
	switch (option) {
	case CLOSE_ENDPOINTS:
		out->close_endpoints = true;
		break;
	case NO_ALLREDUCE:
		out->no_allreduce = true;
		break;
	case HOST_MEMORY:
		out->host_only = true;
		break;
	case JSON:
		out->json = true;
		break;
	case QUIET:
		out->quiet = true;
		break;
	case VERBOSE:
		out->verbose = true;
		break;
	case VERSION:
		*action = NP_RANKS_VERSION;
		break;
	default:
		*action = NP_RANKS_HELP;
		break;
	}
}

/* "--name=value" or the next word. */
static int take(int argc, char **argv, int *i, enum np_ranks_action *action,
		struct np_ranks_options *out, struct np_err *err)
{
	const char *word = argv[*i], *equals = strchr(word, '=');
	size_t len = equals ? (size_t)(equals - word) : strlen(word);
	int option = 0;

	while (names[option] &&
	       (strlen(names[option]) != len || strncmp(names[option], word, len) != 0))
		option++;
	if (!names[option])
		return np_err_usage(err, np_nearest(word, names), "unknown option", word);
	if (option > TIMEOUT) {
		if (equals)
			return np_err_usage(err, NULL, "takes no value:", word);
		set_flag((enum option)option, action, out);
		return 0;
	}
	if (!equals && *i + 1 == argc)
		return np_err_usage(err, NULL, "needs a value:", word);
	return set_value((enum option)option, equals ? equals + 1 : argv[++*i], out, err);
}

int np_ranks_options_parse(int argc, char **argv, enum np_ranks_action *action,
			   struct np_ranks_options *out, struct np_err *err)
{
	*action = NP_RANKS_RUN;
	memset(out, 0, sizeof(*out));
	out->trials = 2;
	out->size_bytes = SIZE_DEFAULT;
	out->factor = 3;
	out->timeout_ms = TIMEOUT_DEFAULT_S * 1000;
	out->config_env = NP_SYSCONFDIR "/nodeprep/ucx.env";
	for (int i = 1; i < argc; i++) {
		int ret;

		if (argv[i][0] != '-')
			return np_err_usage(err, NULL, "takes no argument, only options:", argv[i]);
		ret = take(argc, argv, &i, action, out, err);
		if (ret < 0)
			return ret;
	}
	return 0;
}

void np_ranks_options_str(const struct np_ranks_options *options, char *out, size_t size)
{
	snprintf(out, size, "--trials %d --size %llu --timeout %d%s%s%s", options->trials,
		 (unsigned long long)options->size_bytes, options->timeout_ms / 1000,
		 options->close_endpoints ? " --close-endpoints" : "",
		 options->no_allreduce ? " --no-allreduce" : "",
		 options->host_only ? " --host-memory" : "");
}
