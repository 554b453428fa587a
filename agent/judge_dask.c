/* SPDX-License-Identifier: MIT */
#include "agent/judge.h"
#include "agent/plan.h"

void np_judge_dask(const struct np_config *cfg, const struct np_facts *facts,
		   const struct np_selection *sel, struct np_checks *out)
{
	const struct np_netdev *dev = np_dask_netdev(cfg, facts, sel);
	const char *name = dev ? dev->name : cfg->dask.interface[0] ? cfg->dask.interface : "node";

	if (!cfg->dask.enabled || (dev && np_has_ipv4(sel, dev)))
		return;
	np_checks_add(
		out, "dask", name, NP_CHECK_WARN, "dask.no_address",
		"give it an IPv4 address, or correct [dask] interface",
		dev ? "has no IPv4 address, and Dask ends at once on such an interface: its files are not written" :
		      "[dask] is enabled, but there is no such interface: its files are not written");
}
