/* SPDX-License-Identifier: MIT */
/* Keys of [module NAME]. */
#include <errno.h>
#include <string.h>

#include "agent/config_site.h"

static struct np_want_module *module(const struct np_config_site *s)
{
	struct np_config *cfg = s->cfg;
	struct np_want_module *v;

	for (size_t i = 0; i < cfg->n_modules; i++)
		if (strcmp(cfg->modules[i].name, s->object) == 0)
			return &cfg->modules[i];
	v = reallocarray(cfg->modules, cfg->n_modules + 1, sizeof(*v));
	if (!v)
		return NULL;
	cfg->modules = v;
	v += cfg->n_modules++;
	memset(v, 0, sizeof(*v));
	np_strcpy(v->name, sizeof(v->name), s->object);
	return v;
}

int np_config_set_require(const struct np_config_site *s, const char *value)
{
	static const char *const names[] = { "auto", "yes", "no" };
	struct np_want_module *want = module(s);

	if (!want)
		return np_err_nomem(s->err);
	for (size_t i = 0; i < NP_ARRAY_SIZE(names); i++) {
		if (strcmp(value, names[i]) == 0) {
			want->require = (enum np_require)i;
			return 0;
		}
	}
	return np_config_bad_value(s, value, "auto, yes or no");
}

int np_config_set_module_options(const struct np_config_site *s, const char *value)
{
	struct np_want_module *want = module(s);

	if (!want)
		return np_err_nomem(s->err);
	for (const char *c = value; *c; c++)
		if (*c < ' ' || *c > '~')
			return np_config_bad_value(s, value, "NAME=VALUE ... in plain text");
	/* modprobe.d would go on with the next line: another module's options */
	if (*value && value[strlen(value) - 1] == '\\')
		return np_config_bad_value(s, value, "NAME=VALUE ..., without a \\ at the end");
	if (!np_strcpy(want->options, sizeof(want->options), value))
		return np_config_bad_value(s, value, "at most 159 characters");
	return 0;
}

int np_config_set_ignore_blacklist(const struct np_config_site *s, const char *value)
{
	struct np_want_module *want = module(s);

	if (!want)
		return np_err_nomem(s->err);
	return np_parse_bool(value, &want->ignore_blacklist) < 0 ?
		       np_config_bad_value(s, value, "yes or no") :
		       0;
}

/* The node that nodeprep makes is /dev/gdrdrv; the rest is udev's. */
static int check_has_node(const struct np_config_site *s)
{
	if (np_streq(s->object, "gdrdrv"))
		return 0;
	np_err_set(s->err, -EINVAL, "config.unknown_key",
		   "%s: [module %s] %s: only [module gdrdrv] has a device node to set it for",
		   s->where, s->object, s->key);
	np_err_hint(s->err, "take the line out; udev rules set mode and group of other nodes");
	return -EINVAL;
}

int np_config_set_node_mode(const struct np_config_site *s, const char *value)
{
	struct np_want_module *want = module(s);
	uint64_t mode;
	int r = check_has_node(s);

	if (r < 0)
		return r;
	if (!want)
		return np_err_nomem(s->err);
	if (strlen(value) > 4 || np_parse_u64(value, 8, 0777, &mode) < 0)
		return np_config_bad_value(s, value, "an octal mode from 0 to 0777, such as 0660");
	want->has_mode = true;
	want->mode = (mode_t)mode;
	return 0;
}

int np_config_set_node_group(const struct np_config_site *s, const char *value)
{
	struct np_want_module *want = module(s);
	int r = check_has_node(s);

	if (r < 0)
		return r;
	if (!want)
		return np_err_nomem(s->err);
	if (!*value || strpbrk(value, ": \t") ||
	    !np_strcpy(want->group, sizeof(want->group), value))
		return np_config_bad_value(s, value, "the name of a group, at most 32 characters");
	return 0;
}
