/* SPDX-License-Identifier: MIT */
/* Keys of [dask]. What is taken here goes into a systemd EnvironmentFile= unquoted. */
#include <errno.h>
#include <string.h>

#include "agent/config_site.h"
#include "base/bytes.h"

#define CONNECT_TIMEOUT_MAX_S 600

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

const char *const np_choice_names[] = { "auto", "yes", "no", NULL };

static int set_bool(const struct np_config_site *s, const char *value, bool *out)
{
	return np_parse_bool(value, out) < 0 ? np_config_bad_value(s, value, "yes or no") : 0;
}

static int set_choice(const struct np_config_site *s, const char *value, enum np_choice *out)
{
	bool yes;

	if (strcmp(value, "auto") == 0)
		*out = NP_CHOICE_AUTO;
	else if (np_parse_bool(value, &yes) == 0)
		*out = yes ? NP_CHOICE_YES : NP_CHOICE_NO;
	else
		return np_config_bad_value(s, value, "auto, yes or no");
	return 0;
}

/* Not empty, of @allowed alone. */
static bool is_word(const char *value, const char *allowed)
{
	return *value && strspn(value, allowed) == strlen(value);
}

int np_config_set_dask_enabled(const struct np_config_site *s, const char *value)
{
	return set_bool(s, value, &s->cfg->dask.enabled);
}

int np_config_set_dask_protocol(const struct np_config_site *s, const char *value)
{
	s->cfg->dask.tcp = strcmp(value, "tcp") == 0;
	if (!s->cfg->dask.tcp && strcmp(value, "ucx") != 0)
		return np_config_bad_value(s, value, "ucx or tcp");
	return 0;
}

/* "10.0.0.50", "head-ib0:8786" */
int np_config_set_dask_scheduler(const struct np_config_site *s, const char *value)
{
	const char *colon = strchr(value, ':');
	char host[sizeof(s->cfg->dask.scheduler)];
	uint64_t port = NP_DASK_PORT;
	bool fits = np_strcpy(host, sizeof(host), value);

	if (fits && colon)
		host[colon - value] = '\0';
	if (!fits || !is_word(host, LETTERS ".-") || host[0] == '-' ||
	    (colon && np_parse_u64(colon + 1, 10, 65535, &port) < 0) || port == 0)
		return np_config_bad_value(s, value,
					   "a host name or an IPv4 address, with :PORT or without");
	np_strcpy(s->cfg->dask.scheduler, sizeof(s->cfg->dask.scheduler), value);
	return 0;
}

int np_config_set_dask_interface(const struct np_config_site *s, const char *value)
{
	if (!is_word(value, LETTERS "_.-@:") || value[0] == '-' ||
	    !np_strcpy(s->cfg->dask.interface, sizeof(s->cfg->dask.interface), value))
		return np_config_bad_value(s, value, "the name of an interface");
	return 0;
}

int np_config_set_dask_prefix(const struct np_config_site *s, const char *value)
{
	if (!np_config_is_prefix(value) || !is_word(value, LETTERS "/_.,=^+-") ||
	    !np_strcpy(s->cfg->dask.prefix, sizeof(s->cfg->dask.prefix), value))
		return np_config_bad_value(
			s, value,
			"the absolute path of an environment, such as "
			"/opt/rapids: letters, digits and /_.,=^+- only, without ..");
	return 0;
}

int np_config_set_dask_pool(const struct np_config_site *s, const char *value)
{
	return np_parse_bytes(value, &s->cfg->dask.pool_bytes) < 0 ?
		       np_config_bad_value(s, value, "a number of KiB, MiB or GiB such as 24 GiB") :
		       0;
}

int np_config_set_dask_timeout(const struct np_config_site *s, const char *value)
{
	uint64_t seconds;

	if (np_parse_u64(value, 10, CONNECT_TIMEOUT_MAX_S, &seconds) < 0 || seconds == 0)
		return np_config_bad_value(s, value, "seconds from 1 to 600");
	s->cfg->dask.connect_timeout_s = (int)seconds;
	return 0;
}

int np_config_set_dask_nvlink(const struct np_config_site *s, const char *value)
{
	return set_choice(s, value, &s->cfg->dask.nvlink);
}

int np_config_set_dask_context(const struct np_config_site *s, const char *value)
{
	return set_choice(s, value, &s->cfg->dask.cuda_context);
}

int np_config_set_dask_per_gpu(const struct np_config_site *s, const char *value)
{
	return set_bool(s, value, &s->cfg->dask.per_gpu);
}

int np_config_set_dask_forks(const struct np_config_site *s, const char *value)
{
	return set_bool(s, value, &s->cfg->dask.find_forks);
}
