/* SPDX-License-Identifier: MIT */
#include "agent/plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct np_action *add_link_action(struct np_actions *out, enum np_action_kind kind,
					 const struct np_netdev *dev, uint32_t from, uint32_t to)
{
	struct np_action *a = np_actions_add(out, kind);

	if (!a)
		return NULL;
	a->ifindex = dev->ifindex;
	memcpy(a->ifname, dev->name, sizeof(a->ifname));
	a->from_value = from;
	a->to_value = to;
	return a;
}

/* Datagram mode takes smaller MTUs than connected mode, and a change of mode sets the
 * MTU anew (Linux ipoib_set_mode). So the MTU comes before the step to datagram and
 * after the one to connected: then it is allowed both on the way there and back. */
static int plan_mode_and_mtu(const struct np_want_netdev *want, const struct np_netdev *dev,
			     struct np_actions *out)
{
	/* where connected mode is not to be had, datagram stays with the MTU that it has */
	bool refused = want->mode == NP_IPOIB_CONNECTED && np_netdev_lacks_connected(dev);
	bool mode = want->mode != NP_IPOIB_MODE_UNKNOWN && dev->mode != want->mode && !refused;
	bool mtu = want->mtu && dev->mtu != want->mtu && !refused;
	bool mtu_first = mode && want->mode == NP_IPOIB_DATAGRAM;

	if (mtu && mtu_first && !add_link_action(out, NP_ACTION_MTU, dev, dev->mtu, want->mtu))
		return -ENOMEM;
	if (mode) {
		struct np_action *a =
			add_link_action(out, NP_ACTION_MODE, dev, dev->mode, want->mode);

		if (!a)
			return -ENOMEM;
		a->old_mtu = mtu_first && mtu ? want->mtu : dev->mtu;
	}
	if (mtu && !mtu_first && !add_link_action(out, NP_ACTION_MTU, dev, dev->mtu, want->mtu))
		return -ENOMEM;
	return 0;
}

/* Routes that an address which is gone for a moment could take with it. */
static bool carries_routes(const struct np_facts *facts, int ifindex)
{
	for (size_t i = 0; i < facts->routes.n; i++)
		if (facts->routes.v[i].ifindex == ifindex &&
		    (facts->routes.v[i].is_default || facts->routes.v[i].has_src))
			return true;
	return false;
}

/* Mode, MTU, administrative state, addresses: an address wants a netdev that is up. */
static int plan_netdev(const struct np_facts *facts, const struct np_selected_netdev *selected,
		       struct np_actions *out, struct np_err *err)
{
	struct np_selected_netdev careful = *selected, *sel = &careful;
	const struct np_want_netdev *want = sel->want;
	const struct np_netdev *dev = sel->dev;

	if (!want)
		return 0;
	if (plan_mode_and_mtu(want, dev, out) < 0)
		return np_err_nomem(err);
	if (!(dev->flags & IFF_UP) && !add_link_action(out, NP_ACTION_LINK, dev, 0, 1))
		return np_err_nomem(err);
	careful.keep_broadcast = carries_routes(facts, dev->ifindex);
	return np_plan_addresses(sel, out, err);
}

/* ---- what must not be done ---- */

static int refuse_address_in_use(const struct np_facts *facts, struct np_err *err)
{
	for (size_t i = 0; i < facts->n_addrs; i++) {
		const struct np_addr_fact *fact = &facts->addrs[i];
		char text[NP_INET_STRLEN];

		if (!fact->owner.local)
			continue;
		np_err_set(err, -EADDRINUSE, "netdev.address_in_use",
			   "address %s is already on %s of this node",
			   np_inet_addr_str(&fact->inet, text), fact->owner.ifname);
		np_err_hint(
			err,
			"choose another address, or take it off %s first (ip address del ... dev %s)",
			fact->owner.ifname, fact->owner.ifname);
		return -EADDRINUSE;
	}
	return 0;
}

static int refuse_cutting_default_route(const struct np_routes *routes,
					const struct np_actions *actions, struct np_err *err)
{
	for (size_t i = 0; i < actions->n; i++) {
		const struct np_action *a = &actions->v[i];

		if (!np_action_cuts_netdev(a))
			continue;
		for (size_t k = 0; k < routes->n; k++) {
			const struct np_route *route = &routes->v[k];
			char from[80];

			if (!route->is_default || route->ifindex != a->ifindex)
				continue;
			np_err_set(err, -EBUSY, "netdev.cuts_default_route",
				   "the default route runs over %s, and %s (now %s) could cut it",
				   a->ifname, np_action_id(a),
				   np_action_from(a, from, sizeof(from)));
			np_err_hint(
				err,
				"run it from a console with --force, or move the default route first");
			return -EBUSY;
		}
	}
	return 0;
}

/* Was the same address, with another length, added before actions[@index]? */
static bool is_held(const struct np_actions *actions, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (actions->v[i].kind == NP_ACTION_ADDR_ADD &&
		    actions->v[i].ifindex == actions->v[index].ifindex &&
		    np_inet_same_addr(&actions->v[i].addr.inet, &actions->v[index].addr.inet))
			return true;
	return false;
}

/* The kernel drops a route with the address that is its source, also when that
 * address comes back a moment later. */
static int refuse_losing_routes(const struct np_routes *routes, const struct np_actions *actions,
				struct np_err *err)
{
	for (size_t i = 0; i < actions->n; i++) {
		const struct np_action *a = &actions->v[i];
		char addr[NP_INET_STRLEN], dst[NP_INET_STRLEN];

		/* an address that is there with another length keeps its routes */
		if (a->kind != NP_ACTION_ADDR_DEL || is_held(actions, i))
			continue;
		for (size_t k = 0; k < routes->n; k++) {
			const struct np_route *route = &routes->v[k];

			if (!route->has_src || !np_inet_same_addr(&route->src, &a->addr.inet))
				continue;
			np_err_set(
				err, -EBUSY, "netdev.cuts_route",
				"the route to %s has the source address %s, which has to leave %s for a moment: the kernel would drop that route",
				route->is_default ? "default" : np_inet_str(&route->dst, dst),
				np_inet_addr_str(&a->addr.inet, addr), a->ifname);
			np_err_hint(
				err,
				"run it with --force and set that route again, or change the address by hand");
			return -EBUSY;
		}
	}
	return 0;
}

int np_plan_refuse_cuts(const struct np_routes *routes, const struct np_actions *actions,
			struct np_err *err)
{
	int r = refuse_cutting_default_route(routes, actions, err);

	return r < 0 ? r : refuse_losing_routes(routes, actions, err);
}

int np_plan_make(const struct np_config *cfg, const struct np_facts *facts, unsigned int parts,
		 struct np_actions *out, struct np_err *err)
{
	np_auto_selection struct np_selection sel = { 0 };
	np_auto_actions struct np_actions actions = { 0 };
	int r = 0;

	if (parts & NP_PLAN_MODULES)
		r = np_plan_modules(cfg, facts, &actions, err);
	if (r == 0 && (parts & ~(unsigned int)NP_PLAN_MODULES)) {
		r = np_select(cfg, facts, &sel, err);
		if (r == -ENODEV && actions.n > 0) {
			np_err_clear(err);
			parts = NP_PLAN_MODULES;
			r = 0;
		}
	}
	if (r < 0)
		return r;
	r = refuse_address_in_use(facts, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < sel.n_netdevs && (parts & NP_PLAN_NETDEVS); i++) {
		r = plan_netdev(facts, &sel.netdevs[i], &actions, err);
		if (r < 0)
			return r;
	}
	r = cfg->force ? 0 : np_plan_refuse_cuts(&facts->routes, &actions, err);
	if (r < 0)
		return r;
	if (parts & NP_PLAN_FILES) {
		r = np_plan_files(cfg, facts, &sel, &actions, err);
		if (r < 0)
			return r;
	}
	*out = actions;
	memset(&actions, 0, sizeof(actions));
	return 0;
}
