/* SPDX-License-Identifier: MIT */
/* [libraries], and [nccl] version_min. */
#include <errno.h>
#include <string.h>

#include "agent/config_site.h"

bool np_config_is_prefix(const char *path)
{
	size_t len = strlen(path);

	/* what ".." leads to through a symbolic link is not what it says */
	return path[0] == '/' && !strstr(path, "/../") &&
	       !(len >= 3 && np_streq(path + len - 3, "/.."));
}

int np_config_set_library_prefixes(const struct np_config_site *s, const char *value)
{
	np_auto_strv struct np_strv parts = { 0 };

	if (np_strv_split(&parts, value, ", \t") < 0)
		return np_err_nomem(s->err);
	for (size_t i = 0; i < parts.n; i++) {
		if (!np_config_is_prefix(parts.v[i]) || strlen(parts.v[i]) > 200)
			return np_config_bad_value(
				s, parts.v[i], "absolute paths without .., for example /opt/conda");
		if (np_strv_add(&s->cfg->library_prefixes, parts.v[i]) < 0)
			return np_err_nomem(s->err);
	}
	return 0;
}

int np_config_set_nccl_version_min(const struct np_config_site *s, const char *value)
{
	size_t len = strlen(value);

	if (len == 0 || len >= sizeof(s->cfg->nccl_version_min) ||
	    strspn(value, "0123456789.") != len || value[0] == '.' || value[len - 1] == '.' ||
	    strstr(value, ".."))
		return np_config_bad_value(s, value, "a version, for example 2.4");
	np_strcpy(s->cfg->nccl_version_min, sizeof(s->cfg->nccl_version_min), value);
	return 0;
}
