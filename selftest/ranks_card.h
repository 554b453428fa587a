/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_RANKS_CARD_H
#define NP_SELFTEST_RANKS_CARD_H

#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

/*
 * What a rank says of itself before anything else: lines NAME=VALUE, so that a rank of
 * another version can still be read. Names: protocol, nodeprep, host, pid, pidns, port,
 * ifname, family, mtu, firmware, ucx, nccl, tls, cpus; differs.NAME (the environment and the
 * node's configuration say different things), lacks.NAME (the environment says nothing
 * and the configuration's value was taken); conf.NAME is what that value is.
 */
struct np_ranks_field {
	char name[48];
	char value[400];
};

struct np_ranks_card {
	struct np_ranks_field *v;
	size_t n;
};

/* Of this rank. @env_file: what apply wrote; its variables that the environment lacks are
 * set, for UCX to read. Returns 0 or -ENOMEM. */
int np_ranks_card_make(const char *env_file, struct np_ranks_card *card,
		       struct np_err *err) np_must_check;
void np_ranks_card_done(struct np_ranks_card *card);

int np_ranks_card_add(struct np_ranks_card *card, const char *name,
		      const char *value) np_must_check;
/* "" when it has none of that name. */
const char *np_ranks_card_get(const struct np_ranks_card *card, const char *name);

/* As text, and back: lines that are none are passed over. Return 0 or -ENOMEM. */
int np_ranks_card_write(const struct np_ranks_card *card, struct np_buf *out) np_must_check;
int np_ranks_card_read(const char *text, size_t len, struct np_ranks_card *out) np_must_check;

/* The one variable of a line of ucx.env or nccl.conf: NAME=VALUE, blanks around cut, quotes
 * around the value too. False: it is none (empty, a comment). Changes @line. */
bool np_ranks_assignment(char *line, const char **name, const char **value);

#endif
