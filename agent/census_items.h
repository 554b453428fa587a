/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_CENSUS_ITEMS_H
#define NP_AGENT_CENSUS_ITEMS_H

#include "agent/census_read.h"

/* Private to census_look.c and census_items.c: the places that a census goes to. */

#define NP_CENSUS_ITEMS_MAX 256

/* One folder or installation that somebody names. */
struct np_census_item {
	char path[256];
	char real[256]; /* "" = it is not there */
	enum np_library_place place;
	char where[200];
	bool prefix;
	bool roots;
	uid_t owner;
};

struct np_census_look {
	const struct np_config *cfg;
	struct np_census *out;
	struct np_census_item *items;
	size_t n;
	int64_t homes_until;
	struct np_err *err;
};

/* Adds a place, unless it is there already. */
void np_census_item_add(struct np_census_look *l, enum np_library_place place, bool prefix,
			const char *path, const char *where);
/* All that the system and the configuration name, but for what logins set. Reads the loader
 * cache and ld.so.conf. Returns 0 or -ENOMEM. */
int np_census_items(struct np_census_look *l) np_must_check;
/* Where a login looks. */
void np_census_items_login(struct np_census_look *l, const struct np_census_login *login);

#endif
