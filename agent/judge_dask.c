/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "agent/judge.h"
#include "agent/plan.h"

/* From here on distributed-ucxx speaks ucx:// and reads "distributed-ucxx:". */
#define UCXX_SINCE "0.46"
/* From here on Dask itself has no ucx:// by ucx-py. */
#define NO_UCX_PY_SINCE "2025.9"

static void judge_address(const struct np_config *cfg, const struct np_facts *facts,
			  const struct np_selection *sel, struct np_checks *out)
{
	const struct np_netdev *dev = np_dask_netdev(cfg, facts, sel);
	const char *name = dev ? dev->name : cfg->dask.interface[0] ? cfg->dask.interface : "node";

	if (dev && np_has_ipv4(sel, dev))
		return;
	np_checks_add(
		out, "dask", name, NP_CHECK_WARN, "dask.no_address",
		"give it an IPv4 address, or correct [dask] interface",
		dev ? "has no IPv4 address, and Dask ends at once on such an interface: its files are not written" :
		      "[dask] is enabled, but there is no such interface: its files are not written");
}

static bool is_since(const char *version, const char *wanted)
{
	return version[0] && np_natural_cmp(version, wanted) >= 0;
}

/* What is installed never reads some of what is written. connect-timeout nobody reads up
 * to now (distributed-ucxx 0.52, Dask 2025.7 with ucx-py), though Dask-CUDA's manual names
 * it; the variable is read by distributed-ucxx 0.46 and ucx-py 0.42 and newer. */
static void judge_keys(const struct np_config *cfg, const struct np_dask_versions *v,
		       struct np_checks *out)
{
	bool ucxx = is_since(v->ucxx, UCXX_SINCE), timeout = cfg->dask.connect_timeout_s > 0;
	bool variable = ucxx || is_since(v->ucx_py, "0.42");

	if (ucxx && !timeout)
		return;
	np_checks_add(out, "dask", ucxx ? "distributed-ucxx" : "ucx-py", NP_CHECK_OK,
		      "dask.key_not_read", NULL, "%s in %s never reads %s%s%s",
		      ucxx ? v->ucxx : v->ucx_py, v->folder,
		      ucxx    ? "distributed-ucxx.connect-timeout, " :
		      timeout ? "distributed-ucxx.*, " :
				"distributed-ucxx.*",
		      timeout ? "distributed.comm.ucx.connect-timeout" : "",
		      !timeout ? "; the older names are there too" :
		      variable ? "; it reads UCXPY_CONNECT_TIMEOUT, which the units have" :
				 "; it always gives up after 5 s");
}

static void judge_versions(const struct np_config *cfg, const struct np_dask_versions *v,
			   struct np_checks *out)
{
	bool ucx_py = v->ucx_py[0] && !is_since(v->distributed, NO_UCX_PY_SINCE);

	if (!v->distributed[0]) {
		if (cfg->dask.prefix[0])
			np_checks_add(out, "dask", cfg->dask.prefix, NP_CHECK_WARN,
				      "dask.not_found",
				      "correct [dask] prefix, or install Dask there",
				      "has no Dask (distributed) below lib/python3*");
		return;
	}
	if (cfg->dask.tcp)
		return;
	if (is_since(v->ucxx, UCXX_SINCE) || ucx_py)
		judge_keys(cfg, v, out);
	else
		np_checks_add(out, "dask", "distributed", NP_CHECK_WARN, "dask.no_ucx",
			      "install distributed-ucxx " UCXX_SINCE
			      " or newer beside it, name the environment that has it in [dask] "
			      "prefix, or set [dask] protocol = tcp",
			      "%s in %s cannot speak ucx: distributed-ucxx is %s%s, ucx-py %s",
			      v->distributed, v->folder, v->ucxx[0] ? "too old, " : "not there",
			      v->ucxx, v->ucx_py[0] ? "does not suit this Dask" : "neither");
}

void np_judge_dask(const struct np_config *cfg, const struct np_facts *facts,
		   const struct np_selection *sel, struct np_checks *out)
{
	if (!cfg->dask.enabled)
		return;
	judge_address(cfg, facts, sel, out);
	if (facts->dask.looked)
		judge_versions(cfg, &facts->dask, out);
}
