/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_RANKS_OPTIONS_H
#define NP_SELFTEST_RANKS_OPTIONS_H

#include "selftest/ranks.h"

enum np_ranks_action { NP_RANKS_RUN, NP_RANKS_VERSION, NP_RANKS_HELP };

extern const char np_ranks_help[];

/* "--name value" or "--name=value". Returns 0 or -EINVAL with message (code "usage") and the
 * nearest name. The texts are those of @argv. */
int np_ranks_options_parse(int argc, char **argv, enum np_ranks_action *action,
			   struct np_ranks_options *out, struct np_err *err) np_must_check;

/* Those that all ranks must have alike, as words of a command line. */
void np_ranks_options_str(const struct np_ranks_options *options, char *out, size_t size);

#endif
