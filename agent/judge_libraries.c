/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "agent/judge.h"
#include "agent/module_policy.h"
#include "agent/plan.h"

#define UCX_AUTO_SINCE "1.11.1"

bool np_libraries_matter(const struct np_facts *facts, bool thorough)
{
	return np_has_gpu(facts) || (thorough && facts->cas.n > 0);
}

bool np_nvlink_matters(const struct np_config *cfg, const struct np_facts *facts)
{
	return cfg->dask.enabled && !cfg->dask.tcp && cfg->dask.nvlink == NP_CHOICE_AUTO &&
	       cfg->ucx.profile != NP_UCX_AUTO && np_has_gpu(facts);
}

/* gdrdrv answers, and takes no library as old as this one. */
static void judge_gdrapi(const struct np_facts *facts, struct np_checks *out)
{
	const struct np_libraries *l = &facts->libraries;
	const struct np_gdrdrv *g = &facts->gdrdrv;

	if (g->usable && l->gdrapi && l->gdrapi < g->min_library_version)
		np_checks_add(
			out, "library", "gdrapi", NP_CHECK_WARN, "gdrcopy.library_too_old",
			"install libgdrapi of gdrdrv's version, and remove the old one",
			"libgdrapi %u.%u (%s) is older than the %u.%u that gdrdrv %u.%u takes",
			l->gdrapi >> 16, l->gdrapi & 0xffff, l->gdrapi_path,
			g->min_library_version >> 16, g->min_library_version & 0xffff,
			g->driver_version >> 16, g->driver_version & 0xffff);
}

/* Does @entry of a UCX_TLS ask for @transport? UCX has names for several of them. */
static bool asks_for(const char *entry, const char *transport)
{
	static const char *const rc[] = { "rc", "rc_x", "rc_v", "rc_mlx5", "rc_verbs", "ib", NULL };

	if (strcmp(entry, transport) == 0)
		return true;
	if (strcmp(transport, "rc") == 0) {
		for (const char *const *name = rc; *name; name++)
			if (strcmp(entry, *name) == 0)
				return true;
		return false;
	}
	return strcmp(entry, "cuda") == 0 &&
	       (np_starts_with(transport, "cuda_") || strcmp(transport, "gdr_copy") == 0);
}

/* rc is a matter of HCAs, the others but tcp of GPUs. */
static bool concerns(const struct np_facts *facts, const char *transport)
{
	if (strcmp(transport, "rc") == 0)
		return facts->cas.n > 0;
	return strcmp(transport, "tcp") == 0 || np_has_gpu(facts);
}

static const char *fix(const char *transport)
{
	return strcmp(transport, "rc") == 0 ?
		       "install a UCX with verbs (Debian: libucx0, ibverbs-providers; Conda: ucx, "
		       "rdma-core), or see that jobs bring their own" :
		       "install a UCX with CUDA (and gdrcopy), or see that jobs bring their own, "
		       "as Conda's does";
}

static void judge_transports(const struct np_facts *facts, const struct np_strv *listed,
			     struct np_checks *out)
{
	const struct np_libraries *l = &facts->libraries;

	for (size_t i = 0; i < l->n_transports; i++) {
		const struct np_library_transport *t = &l->transports[i];
		bool asked = false;

		for (size_t k = 0; k < listed->n; k++)
			asked |= asks_for(listed->v[k], t->name);
		if (!asked || !t->missing || !concerns(facts, t->name))
			continue;
		if (t->built)
			np_checks_add(out, "library", t->name, NP_CHECK_WARN,
				      "ucx.transport_missing", fix(t->name),
				      "UCX %s has it, but %s", l->ucx_version, t->reason);
		else
			np_checks_add(out, "library", t->name, NP_CHECK_WARN,
				      "ucx.transport_missing", fix(t->name),
				      "in UCX_TLS, but UCX %s (%s) is built without it",
				      l->ucx_version, l->ucx_path);
	}
}

static void judge_ucx(const struct np_config *cfg, const struct np_facts *facts,
		      const struct np_selection *sel, struct np_checks *out)
{
	np_auto_strv struct np_strv listed = { 0 };
	struct np_env env = { 0 };
	bool wanted = false;
	int r = np_plan_ucx_env(cfg, facts, sel, &wanted, &env, NULL);

	for (size_t i = 0; i < env.n; i++)
		/* "^rc" is all but those, and "all" names none */
		if (strcmp(env.v[i].name, "UCX_TLS") == 0 && env.v[i].value[0] != '^' &&
		    np_strv_split(&listed, env.v[i].value, ",") < 0)
			out->failed = true;
	/* what cannot be written has been refused by the plan */
	if (r == 0)
		judge_transports(facts, &listed, out);
	np_env_done(&env);
}

/* From 1.11.1 on UCX chooses transports and HCAs well by itself (Dask-CUDA's manual). */
static void judge_auto(const struct np_config *cfg, const struct np_facts *facts,
		       struct np_checks *out)
{
	const struct np_libraries *l = &facts->libraries;

	if (cfg->ucx.profile == NP_UCX_AUTO && !cfg->ucx_tls &&
	    np_ucx_is_older(l->ucx_version, UCX_AUTO_SINCE))
		np_checks_add(out, "library", "ucx", NP_CHECK_WARN, "ucx.too_old_for_auto",
			      "install UCX " UCX_AUTO_SINCE
			      " or newer, or name the transports: [ucx] profile = standard or dask",
			      "UCX %s (%s) is older than the " UCX_AUTO_SINCE
			      " that can choose its transports by itself",
			      l->ucx_version, l->ucx_path);
}

void np_judge_libraries(const struct np_config *cfg, const struct np_facts *facts,
			const struct np_selection *sel, struct np_checks *out)
{
	const struct np_libraries *l = &facts->libraries;

	if (!l->asked)
		return;
	if (!l->known) {
		np_checks_add(out, "library", "ucx", NP_CHECK_UNKNOWN, l->err.code, l->err.hint,
			      "the libraries cannot be looked at: %s", l->err.message);
		return;
	}
	judge_gdrapi(facts, out);
	judge_auto(cfg, facts, out);
	judge_ucx(cfg, facts, sel, out);
}
