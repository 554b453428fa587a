/* SPDX-License-Identifier: MIT */
#include "agent/select.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_NETDEV "ib0"

bool np_port_listed(const struct np_strv *list, const char *ca, int port)
{
	for (size_t i = 0; i < list->n; i++) {
		char name[64];
		int num;

		if (np_port_name_parse(list->v[i], name, &num, NULL) == 0 &&
		    strcmp(name, ca) == 0 && (num == 0 || num == port))
			return true;
	}
	return false;
}

enum np_port_role np_port_role(const struct np_config *cfg, const struct np_ca *ca,
			       const struct np_port *port)
{
	if (np_port_listed(&cfg->port_ignore, ca->name, port->num))
		return NP_PORT_IGNORED;
	if (ca->management_only)
		return NP_PORT_MANAGEMENT;
	if (cfg->port_devices.n > 0)
		return np_port_listed(&cfg->port_devices, ca->name, port->num) ? NP_PORT_WANTED :
										 NP_PORT_NOT_LISTED;
	if (ca->node_type != NP_NODE_CA && ca->node_type != NP_NODE_UNKNOWN)
		return NP_PORT_NOT_INFINIBAND;
	if (port->link_layer != NP_LL_INFINIBAND && port->link_layer != NP_LL_UNKNOWN)
		return NP_PORT_NOT_INFINIBAND;
	return NP_PORT_WANTED;
}

bool np_port_usable(const struct np_config *cfg, const struct np_ca *ca, const struct np_port *port)
{
	return np_port_role(cfg, ca, port) == NP_PORT_WANTED && port->state == NP_PORT_ACTIVE &&
	       port->phys_state == NP_PHYS_LINKUP && port->link_layer == NP_LL_INFINIBAND &&
	       port->has_lid && port->lid != 0 && port->lid <= 0xbfff;
}

int np_usable_ports(const struct np_config *cfg, const struct np_facts *facts, struct np_strv *out)
{
	for (size_t i = 0; i < facts->cas.n; i++) {
		const struct np_ca *ca = &facts->cas.v[i];

		for (size_t p = 0; p < ca->n_ports; p++) {
			char name[80];

			if (!np_port_usable(cfg, ca, &ca->ports[p]))
				continue;
			snprintf(name, sizeof(name), "%s:%d", ca->name, ca->ports[p].num);
			if (np_strv_add(out, name) < 0)
				return -ENOMEM;
		}
	}
	np_strv_sort_natural(out);
	return 0;
}

/* Children (ib0.8001) are never meant unless named. */
static bool is_candidate(const struct np_netdev *dev)
{
	return np_netdev_is_ipoib(dev) && dev->parent_ifindex == 0 && !strchr(dev->name, '.');
}

/* "ib0 (mlx5_0:1, GUID 506b:4b03:00f5:ce9c), ib1 (...)" */
static void list_candidates(const struct np_facts *facts, struct np_buf *out)
{
	for (size_t i = 0; i < facts->netdevs.n; i++) {
		const struct np_netdev *dev = &facts->netdevs.v[i];

		if (!np_netdev_is_ipoib(dev))
			continue;
		np_buf_printf(out, "%s%s", out->len ? ", " : "", dev->name);
		if (dev->ca[0])
			np_buf_printf(out, " (%s:%d, GUID %04x:%04x:%04x:%04x)", dev->ca, dev->port,
				      (unsigned int)(dev->port_guid >> 48) & 0xffff,
				      (unsigned int)(dev->port_guid >> 32) & 0xffff,
				      (unsigned int)(dev->port_guid >> 16) & 0xffff,
				      (unsigned int)dev->port_guid & 0xffff);
	}
}

static int no_such(const struct np_facts *facts, const char *name, struct np_err *err)
{
	np_auto_buf struct np_buf list = { 0 };

	list_candidates(facts, &list);
	if (list.len == 0) {
		np_err_set(err, -ENODEV, "netdev.no_such_interface", "%s%s%sno IPoIB interface",
			   *name ? "no interface \"" : "this node has ", name,
			   *name ? "\"; this node has " : "");
		np_err_hint(
			err,
			"load ib_ipoib (modprobe ib_ipoib) and look at `ip link show type ipoib`");
		return -ENODEV;
	}
	np_err_set(err, -ENODEV, "netdev.no_such_interface",
		   "no interface \"%s\"; the IPoIB interfaces here are: %s", name, list.data);
	np_err_hint(err, "name one of them with --ifname or [netdev NAME]");
	return -ENODEV;
}

static int find_default(const struct np_facts *facts, const struct np_netdev **out, bool *renamed,
			struct np_err *err)
{
	const struct np_netdev *dev = np_netdevs_find(&facts->netdevs, DEFAULT_NETDEV);
	np_auto_buf struct np_buf list = { 0 };
	size_t n = 0;

	*renamed = false;
	if (dev && np_netdev_is_ipoib(dev)) {
		*out = dev;
		return 0;
	}
	for (size_t i = 0; i < facts->netdevs.n; i++) {
		if (is_candidate(&facts->netdevs.v[i])) {
			dev = &facts->netdevs.v[i];
			n++;
		}
	}
	if (n == 1) {
		*out = dev;
		*renamed = true;
		return 0;
	}
	if (n == 0)
		return no_such(facts, "", err);
	list_candidates(facts, &list);
	np_err_set(err, -ENOTUNIQ, "netdev.ambiguous",
		   "nothing is called " DEFAULT_NETDEV
		   " and %zu IPoIB interfaces could be meant: %s",
		   n, list.data ? list.data : "");
	np_err_hint(err, "choose one with --ifname NAME");
	return -ENOTUNIQ;
}

static bool matches_owner(const struct np_want_netdev *want, const struct np_netdev *dev)
{
	if (want->match == NP_MATCH_GUID)
		return dev->port_guid == want->match_guid;
	return strcmp(dev->ca, want->match_ca) == 0 &&
	       (want->match_port == 0 || dev->port == want->match_port);
}

static int find_by_owner(const struct np_want_netdev *want, const struct np_facts *facts,
			 const struct np_netdev **out, struct np_err *err)
{
	np_auto_buf struct np_buf list = { 0 };
	const struct np_netdev *found = NULL;
	size_t n = 0;

	for (size_t i = 0; i < facts->netdevs.n; i++) {
		const struct np_netdev *dev = &facts->netdevs.v[i];

		if (!is_candidate(dev) || !matches_owner(want, dev))
			continue;
		found = dev;
		n++;
	}
	if (n == 1) {
		*out = found;
		return 0;
	}
	list_candidates(facts, &list);
	if (n > 1) {
		np_err_set(
			err, -ENOTUNIQ, "netdev.ambiguous",
			"[netdev %s] match: %zu IPoIB interfaces belong to that adapter; here are: %s",
			want->name, n, list.data ? list.data : "");
		np_err_hint(err, "give `match` a port, for example %s:1", want->match_ca);
		return -ENOTUNIQ;
	}
	np_err_set(err, -ENODEV, "netdev.no_such_interface",
		   "[netdev %s] match: no IPoIB interface belongs to that port; here are: %s",
		   want->name, list.data ? list.data : "none");
	np_err_hint(err, "correct `match`, or load ib_ipoib");
	return -ENODEV;
}

static int find_wanted(const struct np_want_netdev *want, const struct np_facts *facts,
		       const struct np_netdev **out, bool *renamed, struct np_err *err)
{
	const struct np_netdev *dev;

	*renamed = false;
	if (want->match == NP_MATCH_PORT || want->match == NP_MATCH_GUID)
		return find_by_owner(want, facts, out, err);
	dev = np_netdevs_find(&facts->netdevs, want->name);
	if (!*want->name || (!dev && want->match == NP_MATCH_AUTO))
		return find_default(facts, out, renamed, err);
	if (!dev)
		return no_such(facts, want->name, err);
	if (!np_netdev_is_ipoib(dev)) {
		np_auto_buf struct np_buf list = { 0 };

		list_candidates(facts, &list);
		np_err_set(
			err, -EINVAL, "netdev.not_ipoib",
			"%s is no IPoIB interface (link type %u, InfiniBand is 32); the IPoIB interfaces here are: %s",
			dev->name, dev->type, list.data ? list.data : "none");
		np_err_hint(err, "name an IPoIB interface with --ifname");
		return -EINVAL;
	}
	*out = dev;
	return 0;
}

static int add_selected(struct np_selection *sel, const struct np_netdev *dev,
			const struct np_want_netdev *want, bool renamed, struct np_err *err)
{
	struct np_selected_netdev *v;

	for (size_t i = 0; i < sel->n_netdevs; i++) {
		struct np_selected_netdev *other = &sel->netdevs[i];

		if (other->dev != dev)
			continue;
		/* --ip without a name, and [netdev ib0]: one netdev, flags override */
		if (want && other->want && !want->name[0] != !other->want->name[0] &&
		    want->from_flags != other->want->from_flags) {
			const struct np_want_netdev *flags = want->name[0] ? other->want : want;

			other->want = want->name[0] ? want : other->want;
			other->addrs = flags->addrs;
			other->n_addrs = flags->n_addrs;
			return 0;
		}
		np_err_set(err, -EINVAL, "netdev.asked_twice",
			   "%s is meant by two entries of the configuration (\"%s\" and \"%s\")",
			   dev->name, sel->netdevs[i].want ? sel->netdevs[i].want->name : "",
			   want ? want->name : "");
		np_err_hint(err, "put all its addresses into one [netdev %s]", dev->name);
		return -EINVAL;
	}
	v = reallocarray(sel->netdevs, sel->n_netdevs + 1, sizeof(*v));
	if (!v)
		return np_err_nomem(err);
	sel->netdevs = v;
	v[sel->n_netdevs++] = (struct np_selected_netdev){ .dev = dev,
							   .want = want,
							   .addrs = want ? want->addrs : NULL,
							   .n_addrs = want ? want->n_addrs : 0,
							   .renamed = renamed };
	return 0;
}

/* Which netdev each entry means is known now, so one address on two of them shows. */
static int refuse_shared_address(const struct np_selection *sel, struct np_err *err)
{
	for (size_t i = 0; i < sel->n_netdevs; i++) {
		for (size_t j = 0; j < i; j++) {
			const struct np_selected_netdev *a = &sel->netdevs[i],
							*b = &sel->netdevs[j];

			for (size_t k = 0; k < a->n_addrs * b->n_addrs; k++) {
				const struct np_inet *inet = &a->addrs[k / b->n_addrs];
				char text[NP_INET_STRLEN];

				if (!np_inet_same_addr(inet, &b->addrs[k % b->n_addrs]))
					continue;
				np_err_set(err, -EINVAL, "netdev.asked_twice",
					   "address %s is asked for on both %s and %s",
					   np_inet_addr_str(inet, text), b->dev->name,
					   a->dev->name);
				np_err_hint(err, "give each address to one interface");
				return -EINVAL;
			}
		}
	}
	return 0;
}

/* The first of the configuration, unless --ifname names another. */
static const struct np_netdev *choose_primary(const struct np_config *cfg,
					      const struct np_selection *sel)
{
	for (size_t i = 0; i < sel->n_netdevs && cfg->ifname[0]; i++)
		if (sel->netdevs[i].want && strcmp(sel->netdevs[i].want->name, cfg->ifname) == 0)
			return sel->netdevs[i].dev;
	return sel->n_netdevs > 0 ? sel->netdevs[0].dev : NULL;
}

int np_select(const struct np_config *cfg, const struct np_facts *facts, struct np_selection *out,
	      struct np_err *err)
{
	struct np_selection sel = { 0 };
	const struct np_netdev *dev;
	bool renamed;
	int r = 0;

	for (size_t i = 0; i < cfg->n_netdevs && r == 0; i++) {
		r = find_wanted(&cfg->netdevs[i], facts, &dev, &renamed, err);
		if (r == 0)
			r = add_selected(&sel, dev, &cfg->netdevs[i], renamed, err);
	}
	/* nothing asked for: consumers still are given the node's own IPoIB netdev,
	 * when there is one that is not to be mistaken */
	if (r == 0 && cfg->n_netdevs == 0 && find_default(facts, &dev, &renamed, NULL) == 0)
		r = add_selected(&sel, dev, NULL, renamed, err);
	if (r == 0)
		r = refuse_shared_address(&sel, err);
	if (r < 0) {
		np_selection_done(&sel);
		return r;
	}
	sel.primary = choose_primary(cfg, &sel);
	*out = sel;
	return 0;
}

const char *np_consumer_netdev(const struct np_selection *sel)
{
	const struct np_netdev *dev = sel->primary;

	for (size_t i = 0; dev && i < dev->n_addrs; i++)
		if (dev->addrs[i].scope != RT_SCOPE_LINK)
			return dev->name;
	for (size_t i = 0; dev && i < sel->n_netdevs; i++)
		if (sel->netdevs[i].dev == dev && sel->netdevs[i].n_addrs > 0)
			return dev->name;
	return NULL;
}

bool np_has_ipv4(const struct np_selection *sel, const struct np_netdev *dev)
{
	bool exclusive = false;

	for (size_t i = 0; i < sel->n_netdevs; i++) {
		const struct np_selected_netdev *s = &sel->netdevs[i];

		if (s->dev != dev)
			continue;
		for (size_t k = 0; k < s->n_addrs; k++)
			if (s->addrs[k].family == AF_INET)
				return true;
		exclusive = s->want && s->want->exclusive && s->n_addrs > 0;
	}
	for (size_t i = 0; i < dev->n_addrs && !exclusive; i++)
		if (dev->addrs[i].inet.family == AF_INET && dev->addrs[i].scope != RT_SCOPE_LINK)
			return true;
	return false;
}

void np_selection_done(struct np_selection *sel)
{
	if (!sel)
		return;
	free(sel->netdevs);
	memset(sel, 0, sizeof(*sel));
}
