/* SPDX-License-Identifier: MIT */
#include "agent/image.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "base/user.h"

#define ARPHRD_IPOIB 32 /* ARPHRD_INFINIBAND, linux/if_arp.h */

static void leave(struct np_checks *left, const char *target, const char *hint, const char *why)
{
	np_checks_add(left, "file", target, NP_CHECK_SKIP, "image.first_boot", hint,
		      "left for nodeprep apply on the node: %s", why);
}

/* ---- ports ---- */

static struct np_ca *add_ca(struct np_facts *facts, const char *name)
{
	struct np_ca *v;

	for (size_t i = 0; i < facts->cas.n; i++)
		if (np_streq(facts->cas.v[i].name, name))
			return &facts->cas.v[i];
	v = reallocarray(facts->cas.v, facts->cas.n + 1, sizeof(*v));
	if (!v)
		return NULL;
	facts->cas.v = v;
	v += facts->cas.n++;
	memset(v, 0, sizeof(*v));
	np_strcpy(v->name, sizeof(v->name), name);
	v->node_type = NP_NODE_CA;
	v->numa_node = -1;
	return v;
}

/* A port that the configuration names is taken to be usable on the node. */
static int add_port(struct np_facts *facts, const char *name, int number)
{
	struct np_ca *ca = add_ca(facts, name);
	struct np_port *v = ca ? reallocarray(ca->ports, ca->n_ports + 1, sizeof(*v)) : NULL;

	if (!v)
		return -ENOMEM;
	ca->ports = v;
	v += ca->n_ports++;
	memset(v, 0, sizeof(*v));
	v->num = number;
	v->state = NP_PORT_ACTIVE;
	v->phys_state = NP_PHYS_LINKUP;
	v->link_layer = NP_LL_INFINIBAND;
	v->has_lid = true;
	v->lid = 1;
	return 0;
}

/* "mlx5_0:1". Of "mlx5_0" alone only the node knows how many ports it has. */
static int make_ports(const struct np_config *cfg, struct np_facts *facts)
{
	for (size_t i = 0; i < cfg->port_devices.n; i++) {
		const char *device = cfg->port_devices.v[i], *colon = strchr(device, ':');
		char name[64];
		uint64_t number;

		if (!colon || (size_t)(colon - device) >= sizeof(name) ||
		    np_parse_u64(colon + 1, 10, 255, &number) < 0)
			continue;
		memcpy(name, device, (size_t)(colon - device));
		name[colon - device] = '\0';
		if (add_port(facts, name, (int)number) < 0)
			return -ENOMEM;
	}
	return 0;
}

static bool all_ports_named(const struct np_config *cfg)
{
	for (size_t i = 0; i < cfg->port_devices.n; i++)
		if (!strchr(cfg->port_devices.v[i], ':'))
			return false;
	return cfg->port_devices.n > 0;
}

/* ---- netdevs ---- */

static int add_netdev(struct np_facts *facts, const char *name)
{
	struct np_netdev *v = reallocarray(facts->netdevs.v, facts->netdevs.n + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	facts->netdevs.v = v;
	v += facts->netdevs.n++;
	memset(v, 0, sizeof(*v));
	v->ifindex = (int)facts->netdevs.n;
	v->type = ARPHRD_IPOIB;
	v->flags = IFF_UP | IFF_RUNNING;
	np_strcpy(v->name, sizeof(v->name), name);
	/* it will have one: which, may be another matter for each node */
	v->addrs = calloc(1, sizeof(*v->addrs));
	if (!v->addrs)
		return -ENOMEM;
	v->n_addrs = 1;
	v->addrs->inet.family = AF_INET;
	v->addrs->scope = RT_SCOPE_UNIVERSE;
	return np_strv_add(&facts->netdev_names, name);
}

static void forget_netdev(struct np_want_netdev *want)
{
	free(want->addrs);
	free(want->sources);
}

/* Those that are named; of the others a node has to say which they are. */
static int make_netdevs(struct np_config *cfg, struct np_facts *facts, struct np_checks *left)
{
	size_t kept = 0;

	for (size_t i = 0; i < cfg->n_netdevs; i++) {
		struct np_want_netdev *want = &cfg->netdevs[i];

		if (!want->name[0])
			np_strcpy(want->name, sizeof(want->name), cfg->ifname);
		if (!want->name[0] || want->match != NP_MATCH_NAME) {
			leave(left, want->name[0] ? want->name : "netdev",
			      "name the netdev: [netdev ib0], or --ifname",
			      "which netdev is meant shows there");
			forget_netdev(want);
			continue;
		}
		if (add_netdev(facts, want->name) < 0)
			return -ENOMEM;
		cfg->netdevs[kept++] = *want;
	}
	cfg->n_netdevs = kept;
	if (kept == 0 && cfg->ifname[0])
		return np_config_netdev(cfg, cfg->ifname) ? add_netdev(facts, cfg->ifname) :
							    -ENOMEM;
	return 0;
}

/* Names that [nccl] socket_ifname takes are taken to be there. */
static int add_names(const char *value, struct np_facts *facts)
{
	np_auto_strv struct np_strv names = { 0 };
	int r = 0;

	if (!value || *value == '^')
		return 0;
	r = np_strv_split(&names, value + (*value == '='), ",");
	for (size_t i = 0; i < names.n && r == 0; i++)
		if (!np_strv_has(&facts->netdev_names, names.v[i]))
			r = np_strv_add(&facts->netdev_names, names.v[i]);
	return r;
}

/* ---- modules ---- */

/* Those of the configuration: what it requires is taken to load. */
static int make_modules(const struct np_config *cfg, struct np_facts *facts)
{
	facts->gdrdrv.major = -1;
	for (size_t i = 0; i < cfg->n_modules; i++) {
		struct np_kmod *v = reallocarray(facts->kmods.v, facts->kmods.n + 1, sizeof(*v));

		if (!v)
			return -ENOMEM;
		facts->kmods.v = v;
		v += facts->kmods.n++;
		memset(v, 0, sizeof(*v));
		np_strcpy(v->name, sizeof(v->name), cfg->modules[i].name);
		v->state =
			cfg->modules[i].require == NP_REQUIRE_YES ? NP_KMOD_LIVE : NP_KMOD_ABSENT;
	}
	return 0;
}

int np_image_facts(struct np_config *cfg, struct np_facts *facts, struct np_checks *left)
{
	memset(facts, 0, sizeof(*facts));
	if (make_ports(cfg, facts) < 0 || make_netdevs(cfg, facts, left) < 0 ||
	    add_names(cfg->nccl_socket_ifname, facts) < 0 || make_modules(cfg, facts) < 0)
		return -ENOMEM;
	return left->failed ? -ENOMEM : 0;
}

/* ---- files ---- */

static bool is_ucx(enum np_file_role role)
{
	return role == NP_ROLE_PROFILE_SH || role == NP_ROLE_PROFILE_CSH || role == NP_ROLE_UCX_ENV;
}

/* Without the ports, UCX would be held to what little is named. */
static const char *needs_node(const struct np_config *cfg, enum np_file_role role)
{
	if (is_ucx(role) && cfg->ucx.profile != NP_UCX_OFF && !all_ports_named(cfg) &&
	    !cfg->ucx_net_devices)
		return "[ports] devices names no port (mlx5_0:1), nor does [ucx] net_devices";
	if ((role == NP_ROLE_DASK_YAML || role == NP_ROLE_DASK_ENV) && cfg->dask.enabled)
		return "Dask's files depend on the node's GPUs and ports";
	return NULL;
}

static void drop_files(const struct np_config *cfg, struct np_facts *facts, struct np_checks *left)
{
	size_t kept = 0;

	for (size_t i = 0; i < facts->n_files; i++) {
		struct np_file_fact *fact = &facts->files[i];
		const char *why = needs_node(cfg, fact->role);

		if (!why) {
			facts->files[kept++] = *fact;
			continue;
		}
		leave(left, fact->file.path, "run nodeprep apply on the node", why);
		np_target_file_done(&fact->file);
	}
	facts->n_files = kept;
}

int np_image_observe(struct np_config *cfg, struct np_facts *facts, struct np_checks *left,
		     struct np_err *err)
{
	gid_t gid;
	int r;

	if (np_image_facts(cfg, facts, left) < 0)
		return np_err_nomem(err);
	r = np_facts_observe_files(cfg, facts, err);
	if (r < 0)
		return r;
	drop_files(cfg, facts, left);
	if (!cfg->memlock_keep) {
		facts->limits.looked = true;
		facts->limits.group_known =
			!cfg->limits_group[0] || np_group_by_name(cfg->limits_group, &gid) == 0;
		if (np_limit_texts_read(&facts->limits.texts) < 0)
			return np_err_nomem(err);
	}
	return left->failed ? np_err_nomem(err) : 0;
}

void np_image_keep(struct np_actions *planned)
{
	size_t kept = 0;

	for (size_t i = 0; i < planned->n; i++) {
		if (planned->v[i].kind == NP_ACTION_FILE && planned->v[i].has_new)
			planned->v[kept++] = planned->v[i];
		else
			np_action_done(&planned->v[i]);
	}
	planned->n = kept;
}
