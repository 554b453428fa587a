/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "agent/module_policy.h"
#include "agent/plan.h"

static int plan_load(const struct np_config *cfg, const struct np_facts *facts,
		     const struct np_kmod *mod, struct np_actions *out)
{
	struct np_action *a;

	if (!np_module_to_load(cfg, facts, mod))
		return 0;
	a = np_actions_add(out, NP_ACTION_MODULE);
	if (!a)
		return -ENOMEM;
	a->to_value = 1;
	a->ignore_blacklist = np_module_ignores_blacklist(cfg, mod->name);
	np_strcpy(a->module, sizeof(a->module), mod->name);
	np_strcpy(a->options, sizeof(a->options), np_module_options(cfg, mod->name));
	return 0;
}

static bool same_attr(const struct np_file_attr *a, const struct np_file_attr *b)
{
	return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid;
}

static int plan_node(const struct np_config *cfg, const struct np_facts *facts,
		     struct np_actions *out)
{
	const struct np_gdrdrv *g = &facts->gdrdrv;
	struct np_file_attr attr;
	struct np_action *a;

	if (facts->gdrdrv_node_failed || !np_gdrdrv_wanted_node(cfg, facts, &attr) ||
	    (g->node_matches && same_attr(&attr, &g->node)))
		return 0;
	a = np_actions_add(out, NP_ACTION_GDRDRV_NODE);
	if (!a)
		return -ENOMEM;
	a->from_value = a->to_value = (uint32_t)g->major;
	a->replaces = g->node_exists && !g->node_matches;
	a->had_old = g->node_matches;
	a->has_new = true;
	a->attr = g->node;
	a->new_attr = attr;
	return 0;
}

static bool any_to_load(const struct np_config *cfg, const struct np_facts *facts)
{
	for (size_t i = 0; i < facts->kmods.n; i++)
		if (np_module_to_load(cfg, facts, &facts->kmods.v[i]))
			return true;
	return false;
}

int np_plan_modules(const struct np_config *cfg, const struct np_facts *facts,
		    struct np_actions *out, struct np_err *err)
{
	/* the options of an earlier configuration must not go along: loading reads modprobe.d */
	if (any_to_load(cfg, facts)) {
		int r = np_plan_modprobe_file(cfg, facts, out, err);

		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < facts->kmods.n; i++)
		if (plan_load(cfg, facts, &facts->kmods.v[i], out) < 0)
			return np_err_nomem(err);
	return plan_node(cfg, facts, out) < 0 ? np_err_nomem(err) : 0;
}
