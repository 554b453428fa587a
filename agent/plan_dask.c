/* SPDX-License-Identifier: MIT */
/* /etc/dask/nodeprep.yaml and /etc/nodeprep/dask.env. */
#include <errno.h>
#include <string.h>

#include "agent/dask_files.h"
#include "agent/module_policy.h"
#include "agent/plan.h"

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

int np_dask_file_content(const struct np_config *cfg, const struct np_facts *facts,
			 const struct np_selection *sel, enum np_file_role role, bool *wanted,
			 struct np_buf *content, struct np_err *err)
{
	np_auto_strv struct np_strv ports = { 0 };
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
	if (r == 0 && np_usable_ports(cfg, facts, &ports) < 0)
		r = np_err_nomem(err);
	if (r == 0) {
		in.interface = dev->name;
		in.ucx_tls = find_value(&env, "UCX_TLS");
		in.infiniband = ports.n > 0;
		r = render(&in, role, content, err);
	}
	np_env_done(&env);
	return r;
}
