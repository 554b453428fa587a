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

/* Mode, MTU, administrative state, addresses: in this order, since a mode change
 * resets what the MTU may be and an address wants a netdev that is up. */
static int plan_netdev(const struct np_selected_netdev *sel, struct np_actions *out,
		       struct np_err *err)
{
	const struct np_want_netdev *want = sel->want;
	const struct np_netdev *dev = sel->dev;

	if (!want)
		return 0;
	if (want->mode != NP_IPOIB_MODE_UNKNOWN && dev->mode != want->mode) {
		struct np_action *a =
			add_link_action(out, NP_ACTION_MODE, dev, dev->mode, want->mode);

		if (!a)
			return np_err_nomem(err);
		a->old_mtu = dev->mtu;
	}
	if (want->mtu && dev->mtu != want->mtu &&
	    !add_link_action(out, NP_ACTION_MTU, dev, dev->mtu, want->mtu))
		return np_err_nomem(err);
	if (!(dev->flags & IFF_UP) && !add_link_action(out, NP_ACTION_LINK, dev, 0, 1))
		return np_err_nomem(err);
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
		np_err_hint(err, "choose another address, or take it off %s first (ip address del ... dev %s)",
			    fact->owner.ifname, fact->owner.ifname);
		return -EADDRINUSE;
	}
	return 0;
}

/* Adding an address or bringing a netdev up cuts nothing; the rest may. */
static bool may_cut(const struct np_action *a)
{
	return a->kind == NP_ACTION_ADDR_DEL || a->kind == NP_ACTION_MODE ||
	       a->kind == NP_ACTION_MTU || (a->kind == NP_ACTION_LINK && a->to_value == 0);
}

static int refuse_cutting_default_route(const struct np_config *cfg, const struct np_facts *facts,
					const struct np_actions *actions, struct np_err *err)
{
	if (cfg->force)
		return 0;
	for (size_t i = 0; i < actions->n; i++) {
		const struct np_action *a = &actions->v[i];

		if (!may_cut(a))
			continue;
		for (size_t k = 0; k < facts->routes.n; k++) {
			const struct np_route *route = &facts->routes.v[k];
			char from[80];

			if (!route->is_default || route->ifindex != a->ifindex)
				continue;
			np_err_set(err, -EBUSY, "netdev.cuts_default_route",
				   "the default route runs over %s, and %s (now %s) could cut it",
				   a->ifname, np_action_id(a),
				   np_action_from(a, from, sizeof(from)));
			np_err_hint(err, "run it from a console with --force, or move the default route first");
			return -EBUSY;
		}
	}
	return 0;
}

int np_plan_make(const struct np_config *cfg, const struct np_facts *facts, unsigned int parts,
		 struct np_actions *out, struct np_err *err)
{
	np_auto_selection struct np_selection sel = { 0 };
	np_auto_actions struct np_actions actions = { 0 };
	int r = np_select(cfg, facts, &sel, err);

	if (r < 0)
		return r;
	r = refuse_address_in_use(facts, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < sel.n_netdevs && (parts & NP_PLAN_NETDEVS); i++) {
		r = plan_netdev(&sel.netdevs[i], &actions, err);
		if (r < 0)
			return r;
	}
	r = refuse_cutting_default_route(cfg, facts, &actions, err);
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
