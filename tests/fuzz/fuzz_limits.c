/* SPDX-License-Identifier: MIT */
/* Any bytes as limits.conf and a file of limits.d, as /proc/PID/limits and as
 * /proc/PID/cgroup. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/login_limits.h"
#include "base/process.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "does not hold: %s\n", #condition); \
			abort(); \
		} \
	} while (0)

static const struct np_memlock base = { 64 << 10, 128 << 10 }, untouched = { 1, 2 };

static int group_gid(const char *name, gid_t *out)
{
	*out = 2000 + (gid_t)strlen(name) % 2;
	return 0;
}

static void try_user(const struct np_limit_rules *rules, const struct np_limit_user *user)
{
	struct np_login_limit all, some;

	np_login_limit(rules, user, NULL, &base, &untouched, &all);
	MUST(all.limit.soft <= all.limit.hard);
	MUST(!all.switched_off || (!all.soft && !all.hard && all.limit.hard == untouched.hard));
	MUST(!all.soft || all.soft->soft);
	MUST(!all.hard || (all.hard->hard && all.limit.hard == all.hard->value));
	MUST(all.soft || all.hard || all.switched_off || all.limit.soft == base.soft);
	/* without the second file nothing comes from it */
	np_login_limit(rules, user, "b", &base, &untouched, &some);
	MUST(!some.soft || strcmp(some.soft->path, "a") == 0);
	MUST(!some.hard || strcmp(some.hard->path, "a") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const gid_t gids[] = { 2000 };
	struct np_limit_user users[] = {
		{ .name = "carol",
		  .uid = 1500,
		  .gid = 2000,
		  .gids = gids,
		  .n_gids = 1,
		  .group_gid = group_gid },
		{ .name = "root", .gids = gids, .group_gid = group_gid, .root_by_name = true },
		{ .name = NULL },
		{ .group = "ib" },
	};
	np_auto_limit_texts struct np_limit_texts texts = { 0 };
	np_auto_limit_rules struct np_limit_rules rules = { 0 };
	size_t half = size ? data[0] * size / 256 : 0;
	char *text = malloc(size + 1), unit[64];
	struct np_memlock limit = { 0 };

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	MUST(np_limit_texts_add(&texts, "a", text, half) == 0);
	MUST(np_limit_texts_add(&texts, "b", text + half, size - half) == 0);
	MUST(np_limit_rules_parse(&texts, &rules) == 0);
	MUST(rules.n_issues <= NP_LIMIT_ISSUES_MAX);
	for (size_t i = 0; i < rules.n; i++)
		MUST(rules.v[i].off || rules.v[i].soft || rules.v[i].hard);
	for (size_t i = 0; i < NP_ARRAY_SIZE(users); i++)
		try_user(&rules, &users[i]);
	(void)!np_memlock_parse(text, &limit);
	if (np_cgroup_unit(text, unit, sizeof(unit)))
		MUST(strlen(unit) > strlen(".scope") && !strchr(unit, '/'));
	free(text);
	return 0;
}
