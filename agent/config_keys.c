/* SPDX-License-Identifier: MIT */
/* Sections and keys of nodeprep.conf(5): one table, one setter a key. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/config_site.h"
#include "ibmad/ca.h"
#include "modules/module.h"

int np_config_bad_value(const struct np_config_site *s, const char *value, const char *expected)
{
	char shown[80];

	np_err_set(s->err, -EINVAL, "config.bad_value", "%s: [%s%s%s] %s = \"%s\": expected %s",
		   s->where, s->section, *s->object ? " " : "", s->object, s->key,
		   np_printable(value, shown, sizeof(shown)), expected);
	np_err_hint(s->err, "correct the value; see nodeprep.conf(5)");
	return -EINVAL;
}

static int replace_text(char **slot, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	free(*slot);
	*slot = copy;
	return 0;
}

/* ---- [netdev NAME] ---- */

static struct np_want_netdev *netdev(const struct np_config_site *s)
{
	return np_config_netdev(s->cfg, s->object);
}

static int add_source(const struct np_config_site *s, struct np_want_netdev *want, const char *text)
{
	struct np_address_source src, *v;
	const char *expected;

	if (np_address_source_parse(text, &src, &expected) < 0)
		return np_config_bad_value(s, text, expected);
	np_strcpy(src.where, sizeof(src.where), s->where);
	src.at = want->n_addrs;
	v = reallocarray(want->sources, want->n_sources + 1, sizeof(*v));
	if (!v)
		return np_err_nomem(s->err);
	want->sources = v;
	v[want->n_sources++] = src;
	return 0;
}

static int set_address(const struct np_config_site *s, const char *value)
{
	np_auto_strv struct np_strv parts = { 0 };
	struct np_want_netdev *want = netdev(s);

	if (!want || np_strv_split(&parts, value, ", \t") < 0)
		return np_err_nomem(s->err);
	for (size_t i = 0; i < parts.n; i++) {
		struct np_inet inet, *addrs;
		int r;

		if (np_is_address_source(parts.v[i])) {
			r = add_source(s, want, parts.v[i]);
			if (r < 0)
				return r;
			continue;
		}
		r = np_inet_parse(parts.v[i], &inet, s->err);
		if (r < 0) {
			np_err_context(s->err, "%s: [netdev %s] address", s->where, s->object);
			return r;
		}
		addrs = reallocarray(want->addrs, want->n_addrs + 1, sizeof(*addrs));
		if (!addrs)
			return np_err_nomem(s->err);
		want->addrs = addrs;
		want->addrs[want->n_addrs++] = inet;
	}
	return 0;
}

/* "auto", "mlx5_0:1", or a port GUID as sysfs and ibstat print it */
static int set_match(const struct np_config_site *s, const char *value)
{
	struct np_want_netdev *want = netdev(s);
	char digits[32];
	size_t n = 0;

	if (!want)
		return np_err_nomem(s->err);
	if (strcmp(value, "auto") == 0) {
		want->match = NP_MATCH_AUTO;
		return 0;
	}
	for (const char *c = value; *c && n < sizeof(digits) - 1; c++)
		if (*c != ':')
			digits[n++] = *c;
	digits[n] = '\0';
	if ((n == 16 || np_starts_with(value, "0x")) &&
	    np_parse_u64(digits, 16, UINT64_MAX, &want->match_guid) == 0) {
		want->match = NP_MATCH_GUID;
		return 0;
	}
	if (np_port_name_parse(value, want->match_ca, &want->match_port, s->err) < 0)
		return np_config_bad_value(s, value, "auto, CA:PORT or a port GUID");
	want->match = NP_MATCH_PORT;
	return 0;
}

static int set_mode(const struct np_config_site *s, const char *value)
{
	struct np_want_netdev *want = netdev(s);

	if (!want)
		return np_err_nomem(s->err);
	if (strcmp(value, "datagram") == 0)
		want->mode = NP_IPOIB_DATAGRAM;
	else if (strcmp(value, "connected") == 0)
		want->mode = NP_IPOIB_CONNECTED;
	else if (strcmp(value, "keep") == 0)
		want->mode = NP_IPOIB_MODE_UNKNOWN;
	else
		return np_config_bad_value(s, value, "connected, datagram or keep");
	return 0;
}

/* IPoIB: 65520 in connected mode (RFC 4755), 576 is IPv4's own minimum (RFC 791) */
static int set_mtu(const struct np_config_site *s, const char *value)
{
	struct np_want_netdev *want = netdev(s);
	uint64_t mtu;

	if (!want)
		return np_err_nomem(s->err);
	if (strcmp(value, "keep") == 0) {
		want->mtu = 0;
		return 0;
	}
	if (np_parse_u64(value, 10, 65520, &mtu) < 0 || mtu < 576)
		return np_config_bad_value(s, value, "bytes from 576 to 65520, or keep");
	want->mtu = (uint32_t)mtu;
	return 0;
}

static int set_exclusive(const struct np_config_site *s, const char *value)
{
	struct np_want_netdev *want = netdev(s);

	if (!want)
		return np_err_nomem(s->err);
	return np_parse_bool(value, &want->exclusive) < 0 ?
		       np_config_bad_value(s, value, "yes or no") :
		       0;
}

/* ---- [ports] ---- */

static int set_port_list(const struct np_config_site *s, const char *value)
{
	struct np_strv *list =
		strcmp(s->key, "devices") == 0 ? &s->cfg->port_devices : &s->cfg->port_ignore;
	np_auto_strv struct np_strv parts = { 0 };

	if (np_strv_split(&parts, value, ", \t") < 0)
		return np_err_nomem(s->err);
	for (size_t i = 0; i < parts.n; i++) {
		char ca[64];
		int port;

		if (np_port_name_parse(parts.v[i], ca, &port, s->err) < 0)
			return np_config_bad_value(s, parts.v[i],
						   "CA or CA:PORT, for example mlx5_0:1");
		if (np_strv_add(list, parts.v[i]) < 0)
			return np_err_nomem(s->err);
	}
	return 0;
}

static int set_min_rate(const struct np_config_site *s, const char *value)
{
	np_auto_strv struct np_strv parts = { 0 };
	uint64_t gbps;

	if (np_strv_split(&parts, value, " \t") < 0)
		return np_err_nomem(s->err);
	if (parts.n == 0 || np_parse_u64(parts.v[0], 10, 100000, &gbps) < 0 ||
	    (parts.n > 1 && strcmp(parts.v[1], "Gb/sec") != 0) || parts.n > 2)
		return np_config_bad_value(s, value, "a rate in Gb/sec, for example 100");
	s->cfg->min_rate_gbps = (double)gbps;
	return 0;
}

static int set_wait(const struct np_config_site *s, const char *value)
{
	uint64_t seconds;

	if (np_parse_u64(value, 10, 3600, &seconds) < 0)
		return np_config_bad_value(s, value, "seconds from 0 to 3600");
	s->cfg->wait_s = (int)seconds;
	return 0;
}

/* ---- [nccl], [ucx] ---- */

static int set_scope(const struct np_config_site *s, const char *value)
{
	static const char *const names[] = { "both", "home", "system", "off" };

	for (size_t i = 0; i < NP_ARRAY_SIZE(names); i++) {
		if (strcmp(value, names[i]) == 0) {
			s->cfg->nccl_scope = (enum np_nccl_scope)i;
			return 0;
		}
	}
	return np_config_bad_value(s, value, "both, home, system or off");
}

static int set_users(const struct np_config_site *s, const char *value)
{
	return np_strv_split(&s->cfg->users, value, ", \t") < 0 ? np_err_nomem(s->err) : 0;
}

/* One line of nccl.conf: a blank or a line end in it would be read as something else. */
static int set_nccl_text(const struct np_config_site *s, const char *value)
{
	char **slot =
		strcmp(s->key, "ib_hca") == 0 ? &s->cfg->nccl_ib_hca : &s->cfg->nccl_socket_ifname;

	if (!*value)
		return np_config_bad_value(s, value, "names; leave the key out for the default");
	for (const char *c = value; *c; c++)
		if (*c <= ' ' || *c > '~')
			return np_config_bad_value(s, value,
						   "names without blanks, joined by commas");
	return replace_text(slot, value) < 0 ? np_err_nomem(s->err) : 0;
}

static int set_profile(const struct np_config_site *s, const char *value)
{
	if (np_ucx_profile_parse(value, &s->cfg->ucx.profile) < 0)
		return np_config_bad_value(s, value, "standard, guide, dask, auto or off");
	return 0;
}

static int set_ucx_text(const struct np_config_site *s, const char *value)
{
	char **slot = strcmp(s->key, "tls") == 0 ? &s->cfg->ucx_tls : &s->cfg->ucx_net_devices;

	/* it ends up in scripts that every login shell sources */
	if (!*value)
		return np_config_bad_value(s, value, "a list; leave the key out for the default");
	if (strspn(value,
		   "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.,:=^/+-") !=
	    strlen(value))
		return np_config_bad_value(s, value, "only letters, digits and _.,:=^/+-");
	return replace_text(slot, value) < 0 ? np_err_nomem(s->err) : 0;
}

static int set_modulefile(const struct np_config_site *s, const char *value)
{
	if (!np_ucx_modulefile_ok(value))
		return np_config_bad_value(s, value,
					   "the absolute path of a file, of at most 160 letters, "
					   "digits and /_.,=+-, in a folder of modulefiles alone");
	return replace_text(&s->cfg->ucx_modulefile, value) < 0 ? np_err_nomem(s->err) : 0;
}

/* ---- keys of the contract that this version only reads ---- */

static int set_later(const struct np_config_site *s, const char *value)
{
	_cleanup_free_ char *text = np_asprintf("%s: [%s] %s has no effect in this version",
						s->where, s->section, s->key);

	(void)value;
	return !text || np_strv_add(&s->cfg->warnings, text) < 0 ? np_err_nomem(s->err) : 0;
}

static const struct key {
	const char *section, *name;
	np_config_setter *set;
} keys[] = {
	{ "netdev", "address", set_address },
	{ "netdev", "match", set_match },
	{ "netdev", "mode", set_mode },
	{ "netdev", "mtu", set_mtu },
	{ "netdev", "exclusive", set_exclusive },
	{ "netdev", "pkey", set_later },
	{ "netdev", "persist", set_later },
	{ "ports", "devices", set_port_list },
	{ "ports", "ignore", set_port_list },
	{ "ports", "min_rate", set_min_rate },
	{ "ports", "wait", set_wait },
	{ "module", "require", np_config_set_require },
	{ "module", "options", np_config_set_module_options },
	{ "module", "mode", np_config_set_node_mode },
	{ "module", "group", np_config_set_node_group },
	{ "module", "ignore_blacklist", np_config_set_ignore_blacklist },
	{ "nccl", "scope", set_scope },
	{ "nccl", "users", set_users },
	{ "nccl", "socket_ifname", set_nccl_text },
	{ "nccl", "ib_hca", set_nccl_text },
	{ "nccl", "version_min", np_config_set_nccl_version_min },
	{ "ucx", "profile", set_profile },
	{ "ucx", "tls", set_ucx_text },
	{ "ucx", "net_devices", set_ucx_text },
	{ "ucx", "modulefile", set_modulefile },
	{ "libraries", "prefixes", np_config_set_library_prefixes },
	{ "selftest", "min_bandwidth_MBps.RUNG", np_config_set_min_bandwidth },
	{ "limits", "memlock", np_config_set_memlock },
	{ "limits", "group", np_config_set_limits_group },
	{ "dask", "enabled", np_config_set_dask_enabled },
	{ "dask", "protocol", np_config_set_dask_protocol },
	{ "dask", "scheduler_address", np_config_set_dask_scheduler },
	{ "dask", "interface", np_config_set_dask_interface },
	{ "dask", "prefix", np_config_set_dask_prefix },
	{ "dask", "rmm_pool_size", np_config_set_dask_pool },
	{ "dask", "connect_timeout", np_config_set_dask_timeout },
	{ "dask", "nvlink", np_config_set_dask_nvlink },
	{ "dask", "create_cuda_context", np_config_set_dask_context },
	{ "dask", "find_forks", np_config_set_dask_forks },
	{ "dask", "per_gpu", np_config_set_dask_per_gpu },
};

/* A name that ends in RUNG stands for one of each rung. */
static bool is_key(const char *name, const char *given)
{
	size_t stem = strlen(name) - strlen("RUNG");

	if (strlen(name) > strlen("RUNG") && np_streq(name + stem, "RUNG"))
		return strncmp(name, given, stem) == 0;
	return strcmp(name, given) == 0;
}

static const char *const sections[] = { "netdev",    "ports",  "module",   "nccl",  "ucx", "dask",
					"libraries", "limits", "selftest", "watch", NULL };

static bool section_is_later(const char *section)
{
	return np_streq(section, "watch");
}

static int unknown(const struct np_config_site *s, const char *what, const char *word,
		   const char *const *names)
{
	const char *near = np_nearest(word, names);
	char shown[80];

	np_err_set(s->err, -EINVAL,
		   strcmp(what, "key") == 0 ? "config.unknown_key" : "config.unknown_section",
		   "%s: unknown %s \"%s\"%s%s%s", s->where, what,
		   np_printable(word, shown, sizeof(shown)), near ? "; did you mean \"" : "",
		   near ? near : "", near ? "\"?" : "");
	np_err_hint(s->err, "see nodeprep.conf(5) for the %ss", what);
	return -EINVAL;
}

/* Does the section take this object name? */
static int check_object(const struct np_config_site *s)
{
	bool named = np_streq(s->section, "netdev") || np_streq(s->section, "module");
	const char *names[32];
	size_t n = 0;

	if (!named && *s->object)
		return np_err_set(s->err, -EINVAL, "config.unknown_section",
				  "%s: section [%s] takes no name", s->where, s->section);
	if (named && !*s->object)
		return np_err_set(s->err, -EINVAL, "config.unknown_section",
				  "%s: section [%s NAME] needs a name", s->where, s->section);
	if (np_streq(s->section, "netdev") && strlen(s->object) >= IFNAMSIZ)
		return np_err_set(s->err, -EINVAL, "config.bad_value",
				  "%s: [netdev %s]: an interface name has at most %d characters",
				  s->where, s->object, IFNAMSIZ - 1);
	if (np_streq(s->section, "netdev") && strpbrk(s->object, "/ \t"))
		return np_err_set(s->err, -EINVAL, "config.bad_value",
				  "%s: [netdev %s]: an interface name has no blank and no slash",
				  s->where, s->object);
	if (!np_streq(s->section, "module"))
		return 0;
	for (const struct np_kmod_info *m = np_kmod_known; m->name && n < 31; m++) {
		if (np_streq(m->name, s->object))
			return 0;
		names[n++] = m->name;
	}
	names[n] = NULL;
	return unknown(s, "module", s->object, names);
}

/* "netdev ib0": the word and the object, blanks around both cut. */
static int open_section(struct np_config_site *s, const char *section, char *text, size_t size)
{
	size_t i;
	char *space;

	np_strcpy(text, size, section + strspn(section, " \t"));
	s->section = np_strip(text);
	s->object = "";
	space = text + strcspn(text, " \t");
	if (*space) {
		*space = '\0';
		s->object = np_strip(space + 1);
	}
	if (!*s->section && s->key)
		return np_err_set(s->err, -EINVAL, "config.syntax",
				  "%s: key \"%s\" stands before any [section]", s->where, s->key);
	for (i = 0; sections[i] && strcmp(sections[i], s->section) != 0; i++)
		;
	return sections[i] ? check_object(s) : unknown(s, "section", s->section, sections);
}

int np_config_section(struct np_config *cfg, const char *section, const char *where,
		      struct np_err *err)
{
	struct np_config_site s = { .cfg = cfg, .where = where, .err = err };
	char text[128];

	return open_section(&s, section, text, sizeof(text));
}

int np_config_set(struct np_config *cfg, const char *section, const char *key, const char *value,
		  const char *where, struct np_err *err)
{
	struct np_config_site s = { .cfg = cfg, .key = key, .where = where, .err = err };
	const char *names[NP_ARRAY_SIZE(keys) + 1];
	char text[128];
	size_t n = 0;
	int r = open_section(&s, section, text, sizeof(text));

	if (r < 0)
		return r;
	if (section_is_later(s.section))
		return set_later(&s, value);
	for (size_t i = 0; i < NP_ARRAY_SIZE(keys); i++) {
		if (strcmp(keys[i].section, s.section) != 0)
			continue;
		if (is_key(keys[i].name, key))
			return keys[i].set(&s, value);
		names[n++] = keys[i].name;
	}
	names[n] = NULL;
	return unknown(&s, "key", key, names);
}
