/* SPDX-License-Identifier: MIT */
#include "agent/consumer_ucx.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "agent/consumer_nccl.h"

/* UCX reads a line with fgets into this many bytes (src/ucs/config/ini.h). */
#define INI_PIECE 199

/* ---- ucx.conf ---- */

struct ini {
	struct np_settings *list;
	const char *file;
	int line;
	bool in_section;
	char last[64]; /* the name above, for a line that goes on */
};

/* Cuts the comment that a blank and a ';' start, and blanks at the end. */
static char *clean(char *s)
{
	for (char *p = s; *p; p++)
		if (*p == ';' && p > s && (p[-1] == ' ' || p[-1] == '\t')) {
			*p = '\0';
			break;
		}
	return np_strip(s);
}

static void ini_set(struct ini *ini, const char *name, const char *value)
{
	np_settings_add(ini->list, name, value, ini->file, ini->line,
			ini->in_section ? NP_SETTING_MAYBE : NP_SETTING_TAKEN);
}

static void ini_piece(struct ini *ini, char *piece)
{
	bool indented = *piece == ' ' || *piece == '\t';
	char *s = np_strip(piece), *separator;

	if (*s == '\0' || *s == ';' || *s == '#')
		return;
	if (indented && ini->last[0]) {
		ini_set(ini, ini->last, s);
		return;
	}
	if (*s == '[') {
		ini->in_section = s[1] != ']' && strchr(s, ']');
		ini->last[0] = '\0';
		return;
	}
	separator = strpbrk(s, "=:");
	if (!separator)
		return;
	*separator = '\0';
	s = np_strip(s);
	np_strcpy(ini->last, sizeof(ini->last), s);
	if (*s)
		ini_set(ini, s, clean(separator + 1));
}

void np_ucx_conf_settings(struct np_settings *list, const char *file, const char *text, size_t len,
			  struct np_checks *notes)
{
	struct ini ini = { .list = list, .file = file, .line = 1 };
	size_t pos = 0;

	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		pos = 3;
	while (pos < len) {
		const char *end = memchr(text + pos, '\n', len - pos);
		size_t n = end ? (size_t)(end - text) - pos : len - pos;
		char piece[INI_PIECE + 1];

		if (n > INI_PIECE) {
			char target[128];

			snprintf(target, sizeof(target), "%.110s:%d", file, ini.line);
			np_checks_add(
				notes, "file", target, NP_CHECK_WARN, "ucx.line_too_long",
				"shorten the line",
				"the line has %zu bytes: UCX reads what stands behind byte %d as another line",
				n, INI_PIECE);
		}
		for (size_t at = 0; at < n || at == 0; at += INI_PIECE) {
			size_t take = n - at < INI_PIECE ? n - at : INI_PIECE;

			memcpy(piece, text + pos + at, take);
			piece[take] = '\0';
			ini_piece(&ini, piece);
		}
		pos += n + 1;
		ini.line++;
	}
}

/* ---- lists ---- */

static bool has(const char *list, const char *const *names)
{
	for (const char *s = list; *s; s += strspn(s, ",")) {
		size_t n = strcspn(s, ",");

		for (const char *const *name = names; *name; name++)
			if (strlen(*name) == n && strncmp(s, *name, n) == 0)
				return true;
		s += n;
	}
	return false;
}

static const struct np_port *port_by_name(const struct np_facts *facts, const char *name)
{
	const char *colon = strchr(name, ':');
	char ca[64];
	uint64_t num;

	if (!colon || (size_t)(colon - name) >= sizeof(ca) ||
	    np_parse_u64(colon + 1, 10, 255, &num) < 0)
		return NULL;
	memcpy(ca, name, (size_t)(colon - name));
	ca[colon - name] = '\0';
	return np_cas_find_port(&facts->cas, ca, (int)num);
}

/* tcp can go over it. */
static bool is_usable(const struct np_netdev *dev)
{
	return (dev->flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING) &&
	       !(dev->flags & IFF_LOOPBACK) && np_netdev_addressed(dev);
}

static bool takes(const char *list, const char *name)
{
	const char *s = *list == '^' ? list + 1 : list;
	bool found = false;

	for (; *s && !found; s += strspn(s, ",")) {
		size_t n = strcspn(s, ",");
		char entry[80];

		np_strcpy(entry, n + 1 < sizeof(entry) ? n + 1 : sizeof(entry), s);
		found = np_streq(entry, "all") || fnmatch(entry, name, 0) == 0;
		s += n;
	}
	return found != (*list == '^');
}

static const char *const tcp[] = { "tcp", NULL };

bool np_ucx_tcp_has_device(const char *tls, const char *net_devices, const struct np_selection *sel,
			   const struct np_facts *facts)
{
	if (*tls == '^' || !has(tls, tcp))
		return true;
	for (size_t i = 0; i < facts->netdevs.n; i++)
		if (is_usable(&facts->netdevs.v[i]) &&
		    (!net_devices || takes(net_devices, facts->netdevs.v[i].name)))
			return true;
	for (size_t i = 0; sel && i < sel->n_netdevs; i++)
		if (sel->netdevs[i].n_addrs > 0 &&
		    (!net_devices || takes(net_devices, sel->netdevs[i].dev->name)))
			return true;
	/* names of netdevs that were not looked at: nothing is known against them */
	for (size_t i = 0; sel && i < facts->netdev_names.n; i++)
		if (!np_netdevs_find(&facts->netdevs, facts->netdev_names.v[i]) &&
		    (!net_devices || takes(net_devices, facts->netdev_names.v[i])))
			return true;
	return false;
}

void np_ucx_tcp_unusable(const char *net_devices, const char *target, struct np_checks *out)
{
	np_checks_add(
		out, "file", target, NP_CHECK_WARN, "ucx.tcp_unusable",
		"add the IPoIB netdev to UCX_NET_DEVICES, and give it an address",
		"UCX_TLS lists tcp, but %s%.100s leaves it no network interface that is up and has an address: Dask hangs",
		net_devices ? "UCX_NET_DEVICES=" : "this node", net_devices ? net_devices : "");
}

void np_ucx_judge_tls(const char *tls, const char *net_devices, const char *target,
		      const struct np_facts *facts, struct np_checks *out)
{
	static const char *const all[] = { "all", "ALL", NULL },
				 *const shared[] = { "sm",  "shm",   "posix", "sysv",
						     "cma", "xpmem", "knem",  NULL },
				 *const self[] = { "self", NULL };

	if (!tls || *tls == '^')
		return;
	if (!np_ucx_tcp_has_device(tls, net_devices, NULL, facts))
		np_ucx_tcp_unusable(net_devices, target, out);
	if (!has(tls, all) && !(has(tls, shared) && has(tls, self)))
		np_checks_add(
			out, "file", target, NP_CHECK_OK, "ucx.no_shared_memory", NULL,
			"UCX_TLS lacks %s: processes of one node talk over the network, and MPI within the node may not start",
			has(tls, shared) ? "self" :
			has(tls, self)	 ? "sm" :
					   "sm and self");
}

static void add_unusable(const char *target, const char *name, const char *why,
			 struct np_checks *out)
{
	np_checks_add(out, "file", target, NP_CHECK_WARN, "ucx.net_device_unusable",
		      "correct UCX_NET_DEVICES, or run nodeprep apply",
		      "UCX_NET_DEVICES names %.60s: %s", name, why);
}

static int judge_device(const char *name, const char *target, const struct np_facts *facts,
			struct np_strv *matches, struct np_checks *out)
{
	const struct np_netdev *dev = np_netdevs_find(&facts->netdevs, name);
	const struct np_port *port = port_by_name(facts, name);

	if (dev && is_usable(dev))
		return np_strv_add(matches, name);
	if (port && port->state == NP_PORT_ACTIVE)
		return np_strv_add(matches, name);
	if (dev)
		add_unusable(target, name, "it is not up and running with an address", out);
	else if (port)
		add_unusable(target, name, "the port is not ACTIVE", out);
	else if (np_cas_find(&facts->cas, name))
		add_unusable(target, name, "UCX wants the port too, as in mlx5_0:1", out);
	else
		add_unusable(target, name, "there is no such port or interface", out);
	return 0;
}

/* Those that an exclusion, "all" or a pattern leaves. */
static int take_devices(const char *list, const struct np_facts *facts, struct np_strv *matches)
{
	for (size_t i = 0; i < facts->cas.n; i++)
		for (size_t p = 0; p < facts->cas.v[i].n_ports; p++) {
			const struct np_port *port = &facts->cas.v[i].ports[p];
			_cleanup_free_ char *name =
				np_asprintf("%s:%d", facts->cas.v[i].name, port->num);

			if (!name)
				return -ENOMEM;
			if (port->state == NP_PORT_ACTIVE && takes(list, name) &&
			    np_strv_add(matches, name) < 0)
				return -ENOMEM;
		}
	for (size_t i = 0; i < facts->netdevs.n; i++)
		if (is_usable(&facts->netdevs.v[i]) && takes(list, facts->netdevs.v[i].name) &&
		    np_strv_add(matches, facts->netdevs.v[i].name) < 0)
			return -ENOMEM;
	return 0;
}

int np_ucx_judge_net_devices(const char *value, const char *target, const struct np_facts *facts,
			     struct np_strv *matches, struct np_checks *out)
{
	np_auto_strv struct np_strv parts = { 0 };

	if (!value || *value == '^' || strpbrk(value, "*?[") || np_streq(value, "all"))
		return take_devices(value ? value : "all", facts, matches);
	if (np_strv_split(&parts, value, ",") < 0)
		return -ENOMEM;
	for (size_t i = 0; i < parts.n; i++)
		if (judge_device(parts.v[i], target, facts, matches, out) < 0)
			return -ENOMEM;
	return 0;
}

/* ---- Dask ---- */

/* YAML by indentation: enough for a key that stands below a section of its own. */
int np_dask_ucx_line(const char *text, size_t len)
{
	int number = 0, section = -1;
	size_t pos = 0;

	while (pos < len) {
		const char *line = text + pos, *end = memchr(line, '\n', len - pos);
		size_t n = end ? (size_t)(end - line) : len - pos, indent = 0, name;

		pos += n + 1;
		number++;
		while (indent < n && line[indent] == ' ')
			indent++;
		if (indent == n || line[indent] == '#' || line[indent] == '\r')
			continue;
		if (section >= 0 && (int)indent > section)
			return number;
		section = -1;
		for (name = indent; name < n && line[name] != ':'; name++)
			;
		if (name < n && ((name - indent == 3 && strncmp(line + indent, "ucx", 3) == 0) ||
				 (name - indent == 16 &&
				  strncmp(line + indent, "distributed-ucxx", 16) == 0))) {
			size_t rest = name + 1;

			while (rest < n && strchr(" \t\r", line[rest]))
				rest++;
			/* "ucx: {tcp: true}" */
			if (rest < n && line[rest] == '{')
				return number;
			section = (int)indent;
		}
	}
	return 0;
}
