/* SPDX-License-Identifier: MIT */
/* What a plan would cut. Pure. */
#include <errno.h>
#include <string.h>

#include "agent/in_use.h"

/* A node that is made where none was is no change for anybody. */
static bool changes_node(const struct np_action *a)
{
	return a->kind == NP_ACTION_GDRDRV_NODE && (a->had_old || a->replaces);
}

bool np_any_may_cut(const struct np_actions *actions)
{
	for (size_t i = 0; i < actions->n; i++)
		if (np_action_cuts_netdev(&actions->v[i]) || changes_node(&actions->v[i]))
			return true;
	return false;
}

static int add_addr(struct np_touched *t, const struct np_inet *inet, int ifindex)
{
	struct np_touched_addr *v;

	if (np_touches_addr(t, inet, ifindex))
		return 0;
	v = reallocarray(t->addrs, t->n_addrs + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	t->addrs = v;
	v[t->n_addrs++] = (struct np_touched_addr){ .inet = *inet, .ifindex = ifindex };
	return 0;
}

static int add_port(struct np_touched *t, const struct np_netdev *dev)
{
	struct np_touched_port *v = reallocarray(t->ports, t->n_ports + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	t->ports = v;
	v += t->n_ports++;
	np_strcpy(v->ca, sizeof(v->ca), dev->ca);
	v->port = dev->port;
	return 0;
}

static bool is_link_local(const struct np_inet *inet)
{
	return inet->family == AF_INET6 && inet->bytes[0] == 0xfe &&
	       (inet->bytes[1] & 0xc0) == 0x80;
}

const char *np_touched_name(const struct np_touched *t)
{
	return t->is_node ? "gdrdrv" : t->action->ifname;
}

/* Every netdev has its link-local addresses: there the netdev decides, unless nobody knows it. */
bool np_touches_addr(const struct np_touched *t, const struct np_inet *addr, int ifindex)
{
	for (size_t i = 0; i < t->n_addrs; i++)
		if (np_inet_same_addr(&t->addrs[i].inet, addr) &&
		    (!is_link_local(addr) || ifindex == 0 || t->addrs[i].ifindex == ifindex))
			return true;
	return false;
}

static const struct np_netdev *find(const struct np_netdevs *netdevs, int ifindex)
{
	for (size_t i = 0; i < netdevs->n; i++)
		if (netdevs->v[i].ifindex == ifindex)
			return &netdevs->v[i];
	return NULL;
}

/* Does @upper stand on @lower: a VLAN, a P_Key child, a bond or bridge that it is part of? */
static bool stands_on(const struct np_netdev *upper, const struct np_netdev *lower)
{
	return upper != lower &&
	       (upper->parent_ifindex == lower->ifindex || lower->master_ifindex == upper->ifindex);
}

/* Marks all that can be reached from @start. A kernel's stack of netdevs is no circle, but
 * one end of a veth pair is the parent of the other: each is taken once. */
static void reach(const struct np_netdevs *netdevs, const struct np_netdev *start, bool upwards,
		  bool *marked)
{
	bool grown = true;

	marked[start - netdevs->v] = true;
	while (grown) {
		grown = false;
		for (size_t i = 0; i < netdevs->n; i++) {
			for (size_t k = 0; k < netdevs->n && marked[i]; k++) {
				const struct np_netdev *from = &netdevs->v[i], *to = &netdevs->v[k];

				if (marked[k] ||
				    !(upwards ? stands_on(to, from) : stands_on(from, to)))
					continue;
				marked[k] = grown = true;
			}
		}
	}
}

static int add_ports_below(struct np_touched *t, const struct np_netdevs *netdevs,
			   const struct np_netdev *dev, bool *marked)
{
	int r = 0;

	reach(netdevs, dev, false, marked);
	for (size_t i = 0; i < netdevs->n && r == 0; i++)
		if (marked[i] && netdevs->v[i].ca[0])
			r = add_port(t, &netdevs->v[i]);
	return r;
}

static int add_addrs_above(struct np_touched *t, const struct np_netdevs *netdevs,
			   const struct np_netdev *dev, bool *marked)
{
	int r = 0;

	reach(netdevs, dev, true, marked);
	for (size_t i = 0; i < netdevs->n; i++)
		for (size_t k = 0; k < netdevs->v[i].n_addrs && marked[i] && r == 0; k++)
			r = add_addr(t, &netdevs->v[i].addrs[k].inet, netdevs->v[i].ifindex);
	return r;
}

static struct np_touched *touched_by(struct np_touched_list *list, const struct np_action *a)
{
	struct np_touched *v;

	for (size_t i = 0; i < list->n; i++)
		if (list->v[i].action->kind != NP_ACTION_GDRDRV_NODE &&
		    list->v[i].action->ifindex == a->ifindex && a->kind != NP_ACTION_GDRDRV_NODE)
			return &list->v[i];
	v = reallocarray(list->v, list->n + 1, sizeof(*v));
	if (!v)
		return NULL;
	list->v = v;
	v += list->n++;
	memset(v, 0, sizeof(*v));
	v->action = a;
	v->is_node = a->kind == NP_ACTION_GDRDRV_NODE;
	return v;
}

/* Once for each netdev, when all its actions are known. */
static int complete(struct np_touched *t, const struct np_netdevs *netdevs)
{
	const struct np_netdev *dev = t->is_node ? NULL : find(netdevs, t->action->ifindex);
	_cleanup_free_ bool *above = NULL, *below = NULL;
	int r;

	if (!dev)
		return 0;
	above = calloc(netdevs->n, sizeof(*above));
	below = calloc(netdevs->n, sizeof(*below));
	if (!above || !below)
		return -ENOMEM;
	r = add_ports_below(t, netdevs, dev, below);
	return r == 0 && t->whole ? add_addrs_above(t, netdevs, dev, above) : r;
}

int np_touched_make(const struct np_actions *actions, const struct np_netdevs *netdevs,
		    struct np_touched_list *out)
{
	np_auto_touched struct np_touched_list list = { 0 };

	for (size_t i = 0; i < actions->n; i++) {
		const struct np_action *a = &actions->v[i];
		struct np_touched *t;

		if (!np_action_cuts_netdev(a) && !changes_node(a))
			continue;
		t = touched_by(&list, a);
		if (!t ||
		    (a->kind == NP_ACTION_ADDR_DEL && add_addr(t, &a->addr.inet, a->ifindex) < 0))
			return -ENOMEM;
		t->whole |= !t->is_node && a->kind != NP_ACTION_ADDR_DEL;
	}
	for (size_t i = 0; i < list.n; i++)
		if (complete(&list.v[i], netdevs) < 0)
			return -ENOMEM;
	*out = list;
	memset(&list, 0, sizeof(list));
	return 0;
}

void np_touched_done(struct np_touched_list *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->n; i++) {
		free(list->v[i].addrs);
		free(list->v[i].ports);
	}
	free(list->v);
	memset(list, 0, sizeof(*list));
}
