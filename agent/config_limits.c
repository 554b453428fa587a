/* SPDX-License-Identifier: MIT */
/* Keys of [limits]. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/config_site.h"

/* "unlimited", "keep", "64 GiB" */
int np_config_set_memlock(const struct np_config_site *s, const char *value)
{
	static const struct {
		const char *unit;
		int shift;
	} units[] = { { "KiB", 10 }, { "MiB", 20 }, { "GiB", 30 } };
	char number[24];
	size_t digits = strspn(value, "0123456789");
	const char *unit = value + digits + strspn(value + digits, " \t");
	uint64_t n;

	s->cfg->memlock_keep = strcmp(value, "keep") == 0;
	if (s->cfg->memlock_keep)
		return 0;
	if (strcmp(value, "unlimited") == 0) {
		s->cfg->memlock = NP_UNLIMITED;
		return 0;
	}
	snprintf(number, sizeof(number), "%.*s", (int)(digits < 20 ? digits : 20), value);
	for (size_t i = 0; i < NP_ARRAY_SIZE(units); i++) {
		if (strcmp(unit, units[i].unit) != 0)
			continue;
		if (np_parse_u64(number, 10, (NP_UNLIMITED - 1) >> units[i].shift, &n) < 0 ||
		    n == 0)
			break;
		s->cfg->memlock = n << units[i].shift;
		return 0;
	}
	return np_config_bad_value(
		s, value, "unlimited, keep, or a number of KiB, MiB or GiB such as 64 GiB");
}

/* A word of limits.conf: what ends it there must not be in it. */
int np_config_set_limits_group(const struct np_config_site *s, const char *value)
{
	for (const char *c = value; *c; c++)
		if (*c <= ' ' || *c > '~' || strchr("@#:%*", *c))
			return np_config_bad_value(s, value, "the name of a group, without @");
	if (!*value || !np_strcpy(s->cfg->limits_group, sizeof(s->cfg->limits_group), value))
		return np_config_bad_value(s, value, "the name of a group, at most 32 characters");
	return 0;
}
