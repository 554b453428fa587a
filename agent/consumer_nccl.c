/* SPDX-License-Identifier: MIT */
#include "agent/consumer_nccl.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "agent/nccl_conf.h"
#include "agent/nccl_line.h"

/* ---- files ---- */

static void add_line(struct np_settings *list, const char *file, int number,
		     const struct np_nccl_line *line)
{
	size_t key_len = line->key_len < NP_NCCL_FIELD_MAX ? line->key_len : NP_NCCL_FIELD_MAX;
	size_t len = line->value_len < NP_NCCL_FIELD_MAX ? line->value_len : NP_NCCL_FIELD_MAX;
	_cleanup_free_ char *key = strndup(line->key, key_len);
	_cleanup_free_ char *value = strndup(line->value, len);

	if (!key || !value) {
		list->failed = true;
		return;
	}
	/* of a repeated name the first line counts */
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i].file, file) == 0 && strcmp(list->v[i].name, key) == 0) {
			np_settings_add(list, key, value, file, number, NP_SETTING_SKIPPED);
			return;
		}
	np_settings_add(list, key, value, file, number, NP_SETTING_TAKEN);
}

void np_nccl_conf_settings(struct np_settings *list, const char *file, const char *text, size_t len)
{
	struct np_nccl_line line;
	size_t pos = 0;

	for (int n = 1; len > 0 && np_nccl_line_next(text, len, &pos, &line); n++)
		if (line.read)
			add_line(list, file, n, &line);
}

/* ---- netdevs ---- */

bool np_netdev_addressed(const struct np_netdev *dev)
{
	for (size_t i = 0; i < dev->n_addrs; i++)
		if (dev->addrs[i].scope != RT_SCOPE_LINK || dev->addrs[i].inet.family == AF_INET)
			return true;
	return false;
}

static int take_matching(const char *list, const struct np_facts *facts, struct np_strv *named,
			 struct np_strv *usable)
{
	for (size_t i = 0; i < facts->netdevs.n; i++) {
		const struct np_netdev *dev = &facts->netdevs.v[i];

		if (!np_nccl_matches(list, dev->name, -1))
			continue;
		if (named && np_strv_add(named, dev->name) < 0)
			return -ENOMEM;
		if (np_netdev_addressed(dev) && np_strv_add(usable, dev->name) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Without a value (src/misc/socket.cc, ncclFindInterfaces): ib*, then what is neither
 * Docker's nor the loopback, then those. */
static int take_default(const struct np_facts *facts, struct np_strv *usable)
{
	static const char *const lists[] = { "ib", "^docker,lo", "docker", "lo" };
	int r = 0;

	for (size_t i = 0; i < NP_ARRAY_SIZE(lists) && r == 0 && usable->n == 0; i++)
		r = take_matching(lists[i], facts, NULL, usable);
	return r;
}

static void join(const struct np_strv *names, struct np_buf *out)
{
	for (size_t i = 0; i < names->n && i < 8; i++)
		np_buf_printf(out, "%s%s", i ? ", " : "", names->v[i]);
	if (names->n > 8)
		np_buf_str(out, ", ...");
	np_buf_str(out, "");
}

static int ipoib_names(const struct np_facts *facts, struct np_strv *out)
{
	for (size_t i = 0; i < facts->netdevs.n; i++)
		if (np_netdev_is_ipoib(&facts->netdevs.v[i]) &&
		    np_strv_add(out, facts->netdevs.v[i].name) < 0)
			return -ENOMEM;
	return 0;
}

int np_nccl_judge_ifname(const char *value, const char *target, const struct np_facts *facts,
			 struct np_strv *matches, struct np_checks *out)
{
	np_auto_strv struct np_strv named = { 0 };
	np_auto_strv struct np_strv ipoib = { 0 };
	np_auto_buf struct np_buf text = { 0 };

	/* one letter is no value to NCCL */
	if (!value || strlen(value) < 2)
		return take_default(facts, matches);
	if (take_matching(value, facts, &named, matches) < 0 || ipoib_names(facts, &ipoib) < 0)
		return -ENOMEM;
	if (named.n == 0) {
		join(&ipoib, &text);
		np_checks_add(out, "file", target, NP_CHECK_WARN, "nccl.matches_nothing",
			      "name an interface of this node, or remove the line",
			      "NCCL_SOCKET_IFNAME=%.80s matches no interface of this node; %s%s",
			      value,
			      ipoib.n ? "its IPoIB interfaces: " : "it has no IPoIB interface",
			      text.data ? text.data : "");
	} else if (matches->n == 0) {
		join(&named, &text);
		np_checks_add(out, "file", target, NP_CHECK_WARN, "nccl.no_address",
			      "give it an address: nodeprep apply --ip ADDR/LEN",
			      "NCCL_SOCKET_IFNAME=%.80s matches %s alone, without an IP address",
			      value, text.data ? text.data : "");
	}
	return text.failed ? -ENOMEM : 0;
}

/* ---- ports ---- */

int np_nccl_judge_hca(const char *value, const char *target, const struct np_facts *facts,
		      struct np_strv *matches, struct np_checks *out)
{
	size_t named = 0, ports = 0;

	for (size_t i = 0; i < facts->cas.n; i++) {
		const struct np_ca *ca = &facts->cas.v[i];

		for (size_t p = 0; p < ca->n_ports; p++) {
			_cleanup_free_ char *name = NULL;

			ports++;
			if (!np_nccl_matches(value, ca->name, ca->ports[p].num))
				continue;
			named++;
			if (ca->ports[p].state != NP_PORT_ACTIVE)
				continue;
			name = np_asprintf("%s:%d", ca->name, ca->ports[p].num);
			if (!name || np_strv_add(matches, name) < 0)
				return -ENOMEM;
		}
	}
	np_strv_sort_natural(matches);
	if (value && ports > 0 && named == 0)
		np_checks_add(out, "file", target, NP_CHECK_WARN, "nccl.matches_nothing",
			      "name a port of this node, or remove the line",
			      "NCCL_IB_HCA=%.80s matches no port of this node", value);
	else if (value && named > 0 && matches->n == 0)
		np_checks_add(out, "file", target, NP_CHECK_WARN, "nccl.matches_nothing",
			      "bring one of these ports up, or name another",
			      "NCCL_IB_HCA=%.80s matches no port that is ACTIVE", value);
	return 0;
}
