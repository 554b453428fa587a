/* SPDX-License-Identifier: MIT */
#include "agent/facts.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/address_resolve.h"
#include "agent/module_policy.h"
#include "agent/nccl_conf.h"
#include "agent/plan.h"
#include "agent/select.h"
#include "base/child.h"
#include "base/user.h"

/* ---- netdevs ---- */

/* The names that matter, without a dump: those asked for, ib0, those of the HCAs,
 * and every name that begins with one of them (NCCL would take it too). */
static int names_of_interest(const struct np_config *cfg, const struct np_facts *facts,
			     struct np_strv *out)
{
	np_auto_strv struct np_strv stems = { 0 };
	int r = np_strv_add(&stems, "ib0");

	for (size_t i = 0; i < cfg->n_netdevs && r == 0; i++)
		if (cfg->netdevs[i].name[0])
			r = np_strv_add(&stems, cfg->netdevs[i].name);
	if (r == 0 && cfg->dask.interface[0])
		r = np_strv_add(&stems, cfg->dask.interface);
	for (size_t i = 0; i < facts->cas.n; i++)
		for (size_t n = 0; n < facts->cas.v[i].netdevs.n && r == 0; n++)
			r = np_strv_add(&stems, facts->cas.v[i].netdevs.v[n]);
	for (size_t i = 0; i < facts->netdev_names.n && r == 0; i++) {
		const char *name = facts->netdev_names.v[i];

		for (size_t s = 0; s < stems.n && r == 0; s++) {
			if (!np_starts_with(name, stems.v[s]))
				continue;
			r = np_strv_add(out, name);
			break;
		}
	}
	/* those that [nccl] socket_ifname takes: whether they have an address matters */
	for (size_t i = 0; i < facts->netdev_names.n && r == 0; i++)
		if (cfg->nccl_socket_ifname && *cfg->nccl_socket_ifname != '^' &&
		    np_nccl_matches(cfg->nccl_socket_ifname, facts->netdev_names.v[i], -1) &&
		    !np_strv_has(out, facts->netdev_names.v[i]))
			r = np_strv_add(out, facts->netdev_names.v[i]);
	np_strv_sort_natural(out);
	/* an altname is in no directory; the kernel finds it */
	for (size_t i = 0; i < cfg->n_netdevs && r == 0; i++)
		if (cfg->netdevs[i].name[0] && !np_strv_has(out, cfg->netdevs[i].name))
			r = np_strv_add(out, cfg->netdevs[i].name);
	/* and the NICs of which an address takes its host part */
	for (size_t i = 0; i < cfg->n_netdevs; i++)
		for (size_t k = 0; k < cfg->netdevs[i].n_sources && r == 0; k++)
			if (cfg->netdevs[i].sources[k].kind == NP_SOURCE_OFFSET)
				r = np_strv_add(out, cfg->netdevs[i].sources[k].subject);
	return r;
}

static bool all_wanted_found(const struct np_config *cfg, const struct np_facts *facts)
{
	bool any_ipoib = false;

	for (size_t i = 0; i < facts->netdevs.n; i++)
		any_ipoib |= np_netdev_is_ipoib(&facts->netdevs.v[i]);
	for (size_t i = 0; i < cfg->n_netdevs; i++) {
		const struct np_want_netdev *want = &cfg->netdevs[i];

		if (want->match != NP_MATCH_NAME ||
		    (want->name[0] && !np_netdevs_find(&facts->netdevs, want->name)))
			return false;
	}
	return any_ipoib;
}

static int observe_netdevs(const struct np_config *cfg, enum np_observe_scope scope,
			   struct np_netlink *nl, struct np_facts *facts, struct np_err *err)
{
	np_auto_strv struct np_strv names = { 0 };
	int r;

	if (scope == NP_OBSERVE_ALL)
		return np_netdevs_observe_all(nl, NP_NETDEV_STATS | NP_NETDEV_MANAGER,
					      &facts->netdevs, err);
	r = names_of_interest(cfg, facts, &names);
	if (r < 0)
		return np_err_nomem(err);
	r = np_netdevs_observe_named(nl, &names, NP_NETDEV_MANAGER, &facts->netdevs, err);
	if (r < 0 || all_wanted_found(cfg, facts))
		return r;
	/* something asked for is missing, or the HCAs hide their netdevs: look at all */
	np_netdevs_done(&facts->netdevs);
	return np_netdevs_observe_all(nl, NP_NETDEV_MANAGER, &facts->netdevs, err);
}

/* ---- routes ---- */

/* What the policy knows of: the wanted addresses, and what the netdevs that can be meant
 * have. Link-local networks, which every netdev has, overlap nothing. */
struct ours {
	struct np_inet *nets;
	size_t n_nets;
	int *ifindexes;
	size_t n_ifindexes;
};

static void ours_done(struct ours *ours)
{
	free(ours->nets);
	free(ours->ifindexes);
}

static int add_net(struct ours *ours, const struct np_inet *net)
{
	struct np_inet *v = reallocarray(ours->nets, ours->n_nets + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	ours->nets = v;
	v[ours->n_nets++] = *net;
	return 0;
}

static int collect_ours(const struct np_config *cfg, const struct np_facts *facts,
			struct ours *ours)
{
	int r = 0;

	ours->ifindexes = calloc(facts->netdevs.n + 1, sizeof(*ours->ifindexes));
	if (!ours->ifindexes)
		return -ENOMEM;
	for (size_t i = 0; i < cfg->n_netdevs; i++)
		for (size_t k = 0; k < cfg->netdevs[i].n_addrs && r == 0; k++)
			r = add_net(ours, &cfg->netdevs[i].addrs[k]);
	for (size_t i = 0; i < facts->netdevs.n; i++) {
		const struct np_netdev *dev = &facts->netdevs.v[i];

		if (!np_netdev_is_ipoib(dev))
			continue;
		ours->ifindexes[ours->n_ifindexes++] = dev->ifindex;
		for (size_t k = 0; k < dev->n_addrs && r == 0; k++)
			if (dev->addrs[k].scope != RT_SCOPE_LINK)
				r = add_net(ours, &dev->addrs[k].inet);
	}
	return r;
}

static bool has_family(const struct ours *ours, int family)
{
	for (size_t i = 0; i < ours->n_nets; i++)
		if (ours->nets[i].family == family)
			return true;
	return false;
}

static int add_routes(const struct np_routes_scope *scope, struct np_netlink *nl,
		      struct np_facts *facts, struct np_err *err)
{
	size_t from = facts->routes.n;
	int r = np_routes_observe(nl, scope, &facts->routes, err);

	for (size_t i = from; r == 0 && i < facts->routes.n; i++)
		np_route_name(nl, &facts->routes.v[i]);
	return r;
}

/* A crowded host has thousands of routes, of which few matter: default routes, those with
 * a source address, and networks that overlap ours. */
static int observe_routes(const struct ours *ours, struct np_netlink *nl, struct np_facts *facts,
			  struct np_err *err)
{
	const struct np_routes_scope scope = { .nets = ours->nets, .n_nets = ours->n_nets };

	return add_routes(&scope, nl, facts, err);
}

/* Of a family that is none of ours, the routes over our netdevs, which a change could cut:
 * needless where there is nothing to change. */
static int observe_cuttable(const struct np_config *cfg, const struct ours *ours,
			    struct np_netlink *nl, struct np_facts *facts, struct np_err *err)
{
	static const int families[] = { AF_INET, AF_INET6 };
	np_auto_actions struct np_actions planned = { 0 };
	int r = 0;

	if (np_plan_make(cfg, facts, NP_PLAN_NETDEVS, &planned, NULL) == 0 && planned.n == 0)
		return 0;
	for (size_t i = 0; i < NP_ARRAY_SIZE(families) && r == 0; i++) {
		const struct np_routes_scope scope = { .family = families[i],
						       .ifindexes = ours->ifindexes,
						       .n_ifindexes = ours->n_ifindexes };

		if (!has_family(ours, families[i]))
			r = add_routes(&scope, nl, facts, err);
	}
	return r;
}

/* ---- who has the wanted addresses ---- */

static bool has_address(const struct np_netdev *dev, const struct np_inet *inet)
{
	for (size_t i = 0; i < dev->n_addrs; i++)
		if (np_inet_equal(&dev->addrs[i].inet, inet))
			return true;
	return false;
}

static int observe_address(struct np_netlink *nl, const struct np_netdev *dev,
			   const struct np_inet *inet, struct np_facts *facts, struct np_err *err)
{
	struct np_addr_fact fact = { .inet = *inet }, *v;
	int r;

	/* the routing lookup costs one message; the dump, which also sees netdevs that
	 * are down, is only for an address that is about to be added */
	if (has_address(dev, inet))
		r = np_addr_lookup_owner(nl, inet, &fact.owner, err);
	else
		r = np_addr_find_owner(nl, inet, dev->ifindex, &fact.owner, err);
	if (r < 0)
		return r;
	if (fact.owner.local && fact.owner.ifindex == dev->ifindex)
		fact.owner.local = false;
	v = reallocarray(facts->addrs, facts->n_addrs + 1, sizeof(*v));
	if (!v)
		return np_err_nomem(err);
	facts->addrs = v;
	v[facts->n_addrs++] = fact;
	return 0;
}

static int observe_addresses(const struct np_config *cfg, struct np_netlink *nl,
			     struct np_facts *facts, struct np_err *err)
{
	np_auto_selection struct np_selection sel = { 0 };

	/* what cannot be selected is refused by the plan, in its own words */
	if (np_select(cfg, facts, &sel, NULL) < 0)
		return 0;
	for (size_t i = 0; i < sel.n_netdevs; i++) {
		const struct np_selected_netdev *s = &sel.netdevs[i];

		for (size_t k = 0; k < s->n_addrs; k++) {
			int r = observe_address(nl, s->dev, &s->addrs[k], facts, err);

			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* Where the wanted addresses lead, and who has them. */
static int observe_reach(const struct np_config *cfg, struct np_netlink *nl, struct np_facts *facts,
			 struct np_err *err)
{
	np_auto(ours_done) struct ours ours = { 0 };
	int r = collect_ours(cfg, facts, &ours);

	if (r < 0)
		return np_err_nomem(err);
	r = observe_routes(&ours, nl, facts, err);
	if (r == 0)
		r = observe_addresses(cfg, nl, facts, err);
	return r < 0 ? r : observe_cuttable(cfg, &ours, nl, facts, err);
}

/* ---- limits ---- */

/* What the site's own files say, which decides whether there is anything to write. */
static int observe_limits(const struct np_config *cfg, struct np_facts *facts, struct np_err *err)
{
	gid_t gid;

	if (facts->cas.n == 0 || cfg->memlock_keep)
		return 0;
	facts->limits.looked = true;
	facts->limits.group_known =
		!cfg->limits_group[0] || np_group_by_name(cfg->limits_group, &gid) == 0;
	facts->limits.refuses_login = np_limit_refuses_login(cfg->memlock);
	return np_limit_texts_read(&facts->limits.texts) < 0 ? np_err_nomem(err) : 0;
}

/* ---- modules ---- */

/* What is on disk is looked up for a module that is missing alone: it costs
 * milliseconds. Without libkmod nothing can be loaded, and the judgement says so. */
static int observe_modules(const struct np_config *cfg, enum np_observe_scope scope,
			   struct np_facts *facts, struct np_err *err)
{
	int r = np_kmods_observe(scope == NP_OBSERVE_ALL, &facts->kmods, err);

	for (size_t i = 0; i < facts->kmods.n && r == 0; i++) {
		const struct np_kmod *mod = &facts->kmods.v[i];
		struct np_err why = { 0 };

		if (mod->state != NP_KMOD_ABSENT ||
		    np_module_require(cfg, facts, mod->name) == NP_REQUIRE_NO)
			continue;
		if (np_kmods_look_up(&facts->kmods, mod->name, &why) == -ENOMEM)
			r = np_err_nomem(err);
	}
	return r;
}

static void observe_kernel(struct np_facts *facts)
{
	struct utsname name;

	if (uname(&name) == 0)
		np_strcpy(facts->kernel, sizeof(facts->kernel), name.release);
}

static void observe_gdrdrv(const struct np_config *cfg, struct np_facts *facts)
{
	np_gdrdrv_observe(&facts->gdrdrv);
	if (facts->gdrdrv.major < 0)
		return;
	np_gdrdrv_default_attr(&facts->gdrdrv_default);
	for (size_t i = 0; i < cfg->n_modules; i++)
		if (np_streq(cfg->modules[i].name, "gdrdrv") && cfg->modules[i].group[0])
			facts->gdrdrv_group.known = np_group_by_name(cfg->modules[i].group,
								     &facts->gdrdrv_group.gid) == 0;
}

/* ---- all ---- */

int np_observe(struct np_config *cfg, enum np_observe_scope scope, struct np_facts *facts,
	       struct np_err *err)
{
	np_auto_netlink struct np_netlink *nl = NULL;
	int r;

	memset(facts, 0, sizeof(*facts));
	r = np_cas_observe(scope == NP_OBSERVE_ALL ? NP_CA_COUNTERS : NP_CA_LEAN, &facts->cas, err);
	if (r < 0)
		return r;
	r = np_netlink_open(&nl, err);
	if (r < 0)
		return r;
	r = np_netdev_names(&facts->netdev_names, err);
	if (r < 0)
		return r;
	r = observe_netdevs(cfg, scope, nl, facts, err);
	if (r == 0 && scope == NP_OBSERVE_WANTED)
		r = np_address_sources_resolve(cfg, facts, err);
	if (r < 0)
		return r;
	r = observe_reach(cfg, nl, facts, err);
	if (r < 0)
		return r;
	r = np_gpus_observe(&facts->gpus, err);
	if (r < 0)
		return r;
	observe_kernel(facts);
	if (facts->gpus.n > 0) {
		np_gpu_driver_observe(&facts->gpu_driver);
		np_cas_read_numa(&facts->cas);
	}
	r = observe_modules(cfg, scope, facts, err);
	if (r < 0)
		return r;
	observe_gdrdrv(cfg, facts);
	/* which HCA is near to which GPU goes into a file */
	if (cfg->dask.enabled && cfg->dask.per_gpu && facts->gpus.n > 0)
		np_observe_pci(facts);
	if (cfg->dask.enabled)
		np_dask_versions_observe(cfg->dask.prefix, &facts->dask);
	r = observe_limits(cfg, facts, err);
	if (r < 0)
		return r;
	return np_facts_observe_files(cfg, facts, err);
}

static bool has_management_ca(const struct np_cas *cas)
{
	for (size_t i = 0; i < cas->n; i++)
		if (cas->v[i].management_only)
			return true;
	return false;
}

void np_observe_pci(struct np_facts *facts)
{
	np_cas_read_pci(&facts->cas);
	np_gpus_read_pci(&facts->gpus);
	facts->one_numa_node = np_one_numa_node();
	np_gpu_services_observe(facts->gpus.n_nvswitches > 0 || has_management_ca(&facts->cas),
				&facts->gpu_services);
}

void np_facts_done(struct np_facts *facts)
{
	if (!facts)
		return;
	np_strv_done(&facts->netdev_names);
	np_netdevs_done(&facts->netdevs);
	np_cas_done(&facts->cas);
	np_routes_done(&facts->routes);
	free(facts->addrs);
	np_kmods_done(&facts->kmods);
	np_gpus_done(&facts->gpus);
	for (size_t i = 0; i < facts->n_files; i++)
		np_target_file_done(&facts->files[i].file);
	free(facts->files);
	np_limit_texts_done(&facts->limits.texts);
	np_services_done(&facts->services);
	np_census_done(&facts->census);
	memset(facts, 0, sizeof(*facts));
}
