/* SPDX-License-Identifier: MIT */
/* /etc/dask/nodeprep.yaml and /etc/nodeprep/dask.env. */
#include <errno.h>
#include <string.h>

#include "agent/dask_files.h"
#include "agent/module_policy.h"
#include "agent/plan.h"
#include "agent/topology.h"

const struct np_netdev *np_dask_netdev(const struct np_config *cfg, const struct np_facts *facts,
				       const struct np_selection *sel)
{
	return cfg->dask.interface[0] ? np_netdevs_find(&facts->netdevs, cfg->dask.interface) :
					sel->primary;
}

static const char *find_value(const struct np_env *env, const char *name)
{
	for (size_t i = 0; i < env->n; i++)
		if (strcmp(env->v[i].name, name) == 0)
			return env->v[i].value;
	return NULL;
}

static int render(const struct np_dask_input *in, enum np_file_role role, struct np_buf *content,
		  struct np_err *err)
{
	if (role == NP_ROLE_DASK_ENV)
		return np_dask_env(in, content, err);
	return np_dask_yaml(in, content) < 0 ? np_err_nomem(err) : 0;
}

/* For each GPU the ports nearest to it, as the profile lists them. What the admin has
 * listed, and what UCX shall choose, stays. */
static int list_gpus(const struct np_config *cfg, const struct np_facts *facts,
		     const struct np_selection *sel, struct np_strv *out)
{
	bool narrow = !cfg->ucx.net_devices && cfg->ucx.profile != NP_UCX_AUTO &&
		      cfg->ucx.profile != NP_UCX_OFF;
	np_auto_topology struct np_topology t = { 0 };
	int r = np_topology_make(facts, &t);

	for (size_t i = 0; i < t.n && r == 0; i++) {
		struct np_ucx_input input = { .profile = cfg->ucx.profile,
					      .netdev = np_consumer_netdev(sel) };
		np_auto_strv struct np_strv ports = { 0 };
		np_auto_buf struct np_buf value = { 0 };

		if (!t.v[i].gpu)
			continue;
		if (narrow)
			r = np_topology_nearest(cfg, &t, &t.v[i], &ports);
		input.hca_ports = &ports;
		if (ports.n > 0)
			np_ucx_net_devices(&input, &value);
		if (r == 0)
			r = value.failed ? -ENOMEM : np_strv_add(out, value.data ? value.data : "");
	}
	return r;
}

int np_dask_file_content(const struct np_config *cfg, const struct np_facts *facts,
			 const struct np_selection *sel, enum np_file_role role, bool *wanted,
			 struct np_buf *content, struct np_err *err)
{
	np_auto_strv struct np_strv ports = { 0 }, gpus = { 0 };
	const struct np_netdev *dev = np_dask_netdev(cfg, facts, sel);
	struct np_env env = { 0 };
	struct np_dask_input in = {
		.want = &cfg->dask,
		.automatic = cfg->ucx.profile == NP_UCX_AUTO,
		.gpu = np_has_gpu(facts),
		.nvlink = facts->libraries.nvlink,
	};
	bool ucx = false;
	int r;

	/* Dask ends at once on an interface without an IPv4 address */
	*wanted = cfg->dask.enabled && dev && np_has_ipv4(sel, dev);
	if (!*wanted)
		return 0;
	r = np_plan_ucx_env(cfg, facts, sel, &ucx, &env, err);
	if (r == 0 && (np_usable_ports(cfg, facts, &ports) < 0 ||
		       (cfg->dask.per_gpu && list_gpus(cfg, facts, sel, &gpus) < 0)))
		r = np_err_nomem(err);
	if (r == 0) {
		in.interface = dev->name;
		in.ucx_tls = find_value(&env, "UCX_TLS");
		in.net_devices = find_value(&env, "UCX_NET_DEVICES");
		in.gpus = &gpus;
		in.infiniband = ports.n > 0;
		/* not known to be older: nothing is said that the profile does not */
		in.whole_alloc =
			in.gpu && in.infiniband && !find_value(&env, NP_UCX_WHOLE_ALLOC) &&
			np_ucx_is_older(facts->libraries.ucx_version, NP_UCX_WHOLE_ALLOC_SINCE);
		r = render(&in, role, content, err);
	}
	np_env_done(&env);
	return r;
}
