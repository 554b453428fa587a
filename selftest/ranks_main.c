/* SPDX-License-Identifier: MIT */
#include <unistd.h>

#include "base/log.h"
#include "selftest/ranks_options.h"
#include "selftest/ranks_pmix.h"
#include "selftest/ranks_super.h"
#include "selftest/watch.h"

#ifndef NP_VERSION
#define NP_VERSION "0"
#endif

enum { EXIT_READY = 0, EXIT_USAGE = 2, EXIT_INTERNAL = 5 };

int main(int argc, char **argv)
{
	struct np_ranks_options options;
	enum np_ranks_action action;
	struct np_err err;

	np_err_clear(&err);
	if (np_ranks_options_parse(argc, argv, &action, &options, &err) < 0) {
		np_error("%s%s%s", err.message, err.hint[0] ? "; " : "", err.hint);
		return EXIT_USAGE;
	}
	if (action == NP_RANKS_HELP)
		return np_watch_write(np_ranks_help) < 0 ? EXIT_INTERNAL : EXIT_READY;
	if (action == NP_RANKS_VERSION)
		return np_watch_write("nodeprep-ranks " NP_VERSION "\n") < 0 ? EXIT_INTERNAL :
									       EXIT_READY;
	if (options.verbose)
		np_log_set_level(NP_LOG_DEBUG);
	if (!np_pmix_launched()) {
		np_error("no launcher with PMIx started this; start it with srun --mpi=pmix, "
			 "mpirun or prterun, one rank a GPU or a node: mpirun --map-by ppr:1:node "
			 "nodeprep-ranks");
		return EXIT_USAGE;
	}
	/* the verdict is out: no library's exit handler is to change it */
	_exit(np_ranks_supervise(&options));
}
