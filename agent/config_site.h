/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_CONFIG_SITE_H
#define NP_AGENT_CONFIG_SITE_H

#include "agent/config.h"

/* Private to the config_*.c files: one key where it stands. */
struct np_config_site {
	struct np_config *cfg;
	const char *section; /* "netdev" */
	const char *object;  /* "ib0", "" */
	const char *key, *where;
	struct np_err *err;
};

/* Takes @value for the key. Returns 0 or a negative errno with message. */
typedef int np_config_setter(const struct np_config_site *s, const char *value);

/* "FILE:LINE: [SECTION] KEY = "VALUE": expected EXPECTED"; returns -EINVAL. */
int np_config_bad_value(const struct np_config_site *s, const char *value, const char *expected);

/* [module NAME] */
np_config_setter np_config_set_require, np_config_set_module_options,
	np_config_set_ignore_blacklist, np_config_set_node_mode, np_config_set_node_group;

/* [limits] */
np_config_setter np_config_set_memlock, np_config_set_limits_group;

/* [dask] */
np_config_setter np_config_set_dask_enabled, np_config_set_dask_protocol,
	np_config_set_dask_scheduler, np_config_set_dask_interface, np_config_set_dask_prefix,
	np_config_set_dask_pool, np_config_set_dask_timeout, np_config_set_dask_nvlink,
	np_config_set_dask_context, np_config_set_dask_forks, np_config_set_dask_per_gpu;

/* [libraries], [nccl] version_min */
/* An absolute path that has no ".." in it. */
bool np_config_is_prefix(const char *path);
np_config_setter np_config_set_library_prefixes, np_config_set_nccl_version_min;

/* [selftest] */
np_config_setter np_config_set_min_bandwidth;

#endif
