/* SPDX-License-Identifier: MIT */
/* Keys of [limits]. */
#include <errno.h>
#include <string.h>

#include "agent/config_site.h"
#include "base/bytes.h"

/* "unlimited", "keep", "64 GiB" */
int np_config_set_memlock(const struct np_config_site *s, const char *value)
{
	s->cfg->memlock_keep = strcmp(value, "keep") == 0;
	if (s->cfg->memlock_keep)
		return 0;
	if (strcmp(value, "unlimited") == 0) {
		s->cfg->memlock = NP_UNLIMITED;
		return 0;
	}
	if (np_parse_bytes(value, &s->cfg->memlock) == 0)
		return 0;
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
