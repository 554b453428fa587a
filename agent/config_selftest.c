/* SPDX-License-Identifier: MIT */
/* Keys of [selftest]. */
#include <errno.h>
#include <string.h>

#include "agent/config_site.h"
#include "agent/ladder.h"

int np_config_set_min_bandwidth(const struct np_config_site *s, const char *value)
{
	const char *rung = strchr(s->key, '.') + 1;
	struct np_floor *v;
	uint64_t floor;
	size_t i;

	for (i = 0; np_rung_names[i] && strcmp(np_rung_names[i], rung) != 0; i++)
		;
	if (!np_rung_names[i]) {
		const char *near = np_nearest(rung, np_rung_names);
		char shown[80];

		np_err_set(s->err, -EINVAL, "config.unknown_key",
			   "%s: [selftest] %s: no rung is called \"%s\"%s%s%s", s->where, s->key,
			   np_printable(rung, shown, sizeof(shown)),
			   near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
		np_err_hint(s->err, "see nodeprep(8) for the rungs");
		return -EINVAL;
	}
	if (np_parse_u64(value, 10, 1000000000, &floor) < 0)
		return np_config_bad_value(s, value,
					   "a whole number of 10^6 bytes a second, 0 for none");
	for (i = 0; i < s->cfg->n_floors; i++) {
		if (strcmp(s->cfg->floors[i].key, s->key) == 0) {
			s->cfg->floors[i].min_MBps = (double)floor;
			return 0;
		}
	}
	v = reallocarray(s->cfg->floors, s->cfg->n_floors + 1, sizeof(*v));
	if (!v)
		return np_err_nomem(s->err);
	s->cfg->floors = v;
	v += s->cfg->n_floors++;
	np_strcpy(v->key, sizeof(v->key), s->key);
	v->min_MBps = (double)floor;
	return 0;
}

double np_config_floor(const struct np_config *cfg, const char *rung)
{
	for (size_t i = 0; i < cfg->n_floors; i++)
		if (np_streq(strchr(cfg->floors[i].key, '.') + 1, rung))
			return cfg->floors[i].min_MBps;
	return 0;
}
