/* SPDX-License-Identifier: MIT */
/* The configuration in force, a row a key, for `show config`. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/config.h"
#include "base/bytes.h"

struct rows {
	struct np_config_row *v;
	size_t n;
	bool failed;
};

static void add(struct rows *rows, const char *section, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void add(struct rows *rows, const char *section, const char *key, const char *fmt, ...)
{
	struct np_config_row *v = reallocarray(rows->v, rows->n + 1, sizeof(*v));
	va_list args;

	if (!v) {
		rows->failed = true;
		return;
	}
	rows->v = v;
	v += rows->n;
	np_strcpy(v->section, sizeof(v->section), section);
	np_strcpy(v->key, sizeof(v->key), key);
	v->want = NULL;
	va_start(args, fmt);
	if (vasprintf(&v->value, fmt, args) < 0) {
		v->value = NULL;
		rows->failed = true;
	}
	va_end(args);
	rows->n++;
}

static void add_list(struct rows *rows, const char *section, const char *key,
		     const struct np_strv *list)
{
	np_auto_buf struct np_buf text = { 0 };

	for (size_t i = 0; i < list->n; i++)
		np_buf_printf(&text, "%s%s", i ? "," : "", list->v[i]);
	add(rows, section, key, "%s", text.data ? text.data : "");
}

/* In the order of the list; a source without an answer stands for itself. */
static void add_address(struct rows *rows, const char *section, const struct np_want_netdev *want)
{
	np_auto_buf struct np_buf text = { 0 };
	char address[NP_INET_STRLEN];
	size_t plain = 0, a = 0, s = 0;

	while (a < want->n_addrs || s < want->n_sources) {
		const struct np_address_source *src =
			s < want->n_sources && want->sources[s].at <= plain ? &want->sources[s++] :
									      NULL;

		plain += !src;
		np_buf_printf(&text, "%s%s", text.len ? "," : "",
			      src && !src->resolved ? src->text :
						      np_inet_str(&want->addrs[a++], address));
	}
	add(rows, section, "address", "%s", text.data ? text.data : "");
	if (want->n_sources && !rows->failed)
		rows->v[rows->n - 1].want = want;
}

static void add_netdev(struct rows *rows, const struct np_want_netdev *want)
{
	char section[64];

	snprintf(section, sizeof(section), "netdev %s", want->name);
	add_address(rows, section, want);
	if (want->match == NP_MATCH_AUTO)
		add(rows, section, "match", "auto");
	else if (want->match == NP_MATCH_PORT && want->match_port)
		add(rows, section, "match", "%s:%d", want->match_ca, want->match_port);
	else if (want->match == NP_MATCH_PORT)
		add(rows, section, "match", "%s", want->match_ca);
	else if (want->match == NP_MATCH_GUID)
		add(rows, section, "match", "0x%016llx", (unsigned long long)want->match_guid);
	add(rows, section, "mode", "%s",
	    want->mode == NP_IPOIB_MODE_UNKNOWN ? "keep" : np_ipoib_mode_str(want->mode));
	if (want->mtu)
		add(rows, section, "mtu", "%u", want->mtu);
	else
		add(rows, section, "mtu", "keep");
	add(rows, section, "exclusive", "%s", want->exclusive ? "yes" : "no");
}

static void add_limits(struct rows *rows, const struct np_config *cfg)
{
	char text[NP_MEMLOCK_STRLEN];

	add(rows, "limits", "memlock", "%s",
	    cfg->memlock_keep ? "keep" : np_memlock_str(cfg->memlock, text));
	if (cfg->limits_group[0])
		add(rows, "limits", "group", "%s", cfg->limits_group);
}

static void add_dask(struct rows *rows, const struct np_want_dask *dask)
{
	char text[NP_BYTES_STRLEN];

	add(rows, "dask", "enabled", "%s", dask->enabled ? "yes" : "no");
	add(rows, "dask", "protocol", "%s", dask->tcp ? "tcp" : "ucx");
	if (dask->scheduler[0])
		add(rows, "dask", "scheduler_address", "%s", dask->scheduler);
	if (dask->interface[0])
		add(rows, "dask", "interface", "%s", dask->interface);
	if (dask->prefix[0])
		add(rows, "dask", "prefix", "%s", dask->prefix);
	if (dask->pool_bytes)
		add(rows, "dask", "rmm_pool_size", "%s", np_bytes_str(dask->pool_bytes, text));
	if (dask->connect_timeout_s)
		add(rows, "dask", "connect_timeout", "%d", dask->connect_timeout_s);
	add(rows, "dask", "nvlink", "%s", np_choice_names[dask->nvlink]);
	add(rows, "dask", "create_cuda_context", "%s", np_choice_names[dask->cuda_context]);
	add(rows, "dask", "per_gpu", "%s", dask->per_gpu ? "yes" : "no");
	add(rows, "dask", "find_forks", "%s", dask->find_forks ? "yes" : "no");
}

int np_config_rows(const struct np_config *cfg, struct np_config_row **out, size_t *n)
{
	static const char *const scopes[] = { "both", "home", "system", "off" };
	static const char *const requires[] = { "auto", "yes", "no" };
	struct rows rows = { 0 };
	char section[80];

	for (size_t i = 0; i < cfg->n_netdevs; i++)
		add_netdev(&rows, &cfg->netdevs[i]);
	add_list(&rows, "ports", "devices", &cfg->port_devices);
	add_list(&rows, "ports", "ignore", &cfg->port_ignore);
	add(&rows, "ports", "min_rate", "%g", cfg->min_rate_gbps);
	add(&rows, "ports", "wait", "%d", cfg->wait_s);
	for (size_t i = 0; i < cfg->n_modules; i++) {
		snprintf(section, sizeof(section), "module %s", cfg->modules[i].name);
		add(&rows, section, "require", "%s", requires[cfg->modules[i].require]);
		if (cfg->modules[i].options[0])
			add(&rows, section, "options", "%s", cfg->modules[i].options);
		add(&rows, section, "ignore_blacklist", "%s",
		    cfg->modules[i].ignore_blacklist ? "yes" : "no");
		if (cfg->modules[i].has_mode)
			add(&rows, section, "mode", "%04o", (unsigned int)cfg->modules[i].mode);
		if (cfg->modules[i].group[0])
			add(&rows, section, "group", "%s", cfg->modules[i].group);
	}
	add(&rows, "nccl", "scope", "%s", scopes[cfg->nccl_scope]);
	add_list(&rows, "nccl", "users", &cfg->users);
	if (cfg->nccl_socket_ifname)
		add(&rows, "nccl", "socket_ifname", "%s", cfg->nccl_socket_ifname);
	if (cfg->nccl_ib_hca)
		add(&rows, "nccl", "ib_hca", "%s", cfg->nccl_ib_hca);
	add(&rows, "nccl", "version_min", "%s", cfg->nccl_version_min);
	if (cfg->library_prefixes.n)
		add_list(&rows, "libraries", "prefixes", &cfg->library_prefixes);
	add(&rows, "ucx", "profile", "%s", np_ucx_profile_str(cfg->ucx.profile));
	if (cfg->ucx_tls)
		add(&rows, "ucx", "tls", "%s", cfg->ucx_tls);
	if (cfg->ucx_net_devices)
		add(&rows, "ucx", "net_devices", "%s", cfg->ucx_net_devices);
	if (cfg->ucx_modulefile)
		add(&rows, "ucx", "modulefile", "%s", cfg->ucx_modulefile);
	for (size_t i = 0; i < cfg->n_floors; i++)
		add(&rows, "selftest", cfg->floors[i].key, "%g", cfg->floors[i].min_MBps);
	add_limits(&rows, cfg);
	add_dask(&rows, &cfg->dask);
	if (rows.failed) {
		np_config_rows_free(rows.v, rows.n);
		return -ENOMEM;
	}
	*out = rows.v;
	*n = rows.n;
	return 0;
}

void np_config_rows_free(struct np_config_row *rows, size_t n)
{
	for (size_t i = 0; rows && i < n; i++)
		free(rows[i].value);
	free(rows);
}
