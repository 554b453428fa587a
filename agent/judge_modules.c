/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "agent/judge.h"
#include "agent/module_policy.h"
#include "modules/lookup.h"

/* /dev/gdrdrv from the node to the handshake: the first rung that does not hold. */
static void judge_node(const struct np_gdrdrv *g, enum np_check_status bad, struct np_checks *out)
{
	if (g->usable)
		np_checks_add(out, "module", "gdrdrv", NP_CHECK_OK, "module.loaded", NULL,
			      "loaded, " NP_GDRDRV_NODE " answers: driver %u.%u",
			      g->driver_version >> 16, g->driver_version & 0xffff);
	else if (!g->node_exists)
		np_checks_add(out, "module", "gdrdrv", bad, "gdrcopy.node_missing",
			      "run nodeprep apply, which makes it",
			      "loaded, but there is no " NP_GDRDRV_NODE);
	else if (!g->node_matches)
		np_checks_add(out, "module", "gdrdrv", bad, "gdrcopy.node_wrong",
			      "run nodeprep apply, which replaces it",
			      NP_GDRDRV_NODE
			      " is not the character device that gdrdrv registered (major %d)",
			      g->major);
	else if (g->open_errno)
		np_checks_add(out, "module", "gdrdrv", bad, "gdrcopy.open_failed",
			      "look at the mode and owner of " NP_GDRDRV_NODE
			      ", and at the kernel log",
			      NP_GDRDRV_NODE " cannot be opened: %s", strerror(g->open_errno));
	else if (g->handshake_errno == 0)
		np_checks_add(out, "module", "gdrdrv", bad, "gdrcopy.handshake_failed",
			      "install a gdrdrv of version 2.0 or newer",
			      NP_GDRDRV_NODE " answers, but driver %u.%u is too old",
			      g->driver_version >> 16, g->driver_version & 0xffff);
	else
		np_checks_add(out, "module", "gdrdrv", bad, "gdrcopy.handshake_failed",
			      "install a gdrdrv of version 2.0 or newer",
			      NP_GDRDRV_NODE " does not answer the version handshake%s%s",
			      g->handshake_errno > 0 ? ": " : "",
			      g->handshake_errno > 0 ? strerror(g->handshake_errno) : "");
}

static const char *flavour_hint(enum np_gpu_flavour loaded)
{
	return loaded == NP_GPU_FLAVOUR_OPEN ?
		       "build gdrdrv anew against the open GPU kernel modules that are installed" :
		       "build gdrdrv anew against the proprietary GPU driver that is installed";
}

/* gdrdrv is absent or does not answer, and libgdrapi has another way. */
static bool judge_dmabuf(const struct np_facts *facts, struct np_checks *out)
{
	const struct np_libraries *l = &facts->libraries;

	if (!np_gdr_dmabuf_usable(facts))
		return false;
	np_checks_add(
		out, "module", "gdrdrv", NP_CHECK_OK, "gdrcopy.dmabuf", NULL,
		"gdr_copy can do without it: libgdrapi %u.%u (%s) maps GPU memory by dma-buf with CUDA "
		"driver %d.%d",
		l->gdrapi >> 16, l->gdrapi & 0xffff, l->gdrapi_path, l->cuda / 1000,
		l->cuda % 1000 / 10);
	return true;
}

static void judge_gdrdrv(const struct np_config *cfg, const struct np_facts *facts, bool required,
			 struct np_checks *out)
{
	const struct np_gdrdrv *g = &facts->gdrdrv;
	enum np_gpu_flavour flavour = facts->gpu_driver.flavour;
	enum np_check_status bad = required ? NP_CHECK_FAIL : NP_CHECK_WARN;

	judge_node(g, bad, out);
	if (!g->usable)
		judge_dmabuf(facts, out);
	if (g->built_for != NP_GPU_FLAVOUR_UNKNOWN && flavour != NP_GPU_FLAVOUR_UNKNOWN &&
	    g->built_for != flavour)
		np_checks_add(out, "module", "gdrdrv", bad, "gdrcopy.flavour_mismatch",
			      flavour_hint(flavour),
			      "built for the %s GPU driver, but the %s one is loaded",
			      np_gpu_flavour_str(g->built_for), np_gpu_flavour_str(flavour));
	if (g->persistent_mapping == 0 &&
	    strstr(np_module_options(cfg, "gdrdrv"), "use_persistent_mapping=1"))
		np_checks_add(
			out, "module", "gdrdrv", NP_CHECK_WARN, "gdrcopy.no_persistent_mapping",
			"load it anew when no job uses it (rmmod gdrdrv; nodeprep apply), or at the next boot",
			"loaded with persistent mapping off: options take effect when it is loaded");
	for (size_t i = 0; i < cfg->n_modules; i++)
		if (np_streq(cfg->modules[i].name, "gdrdrv") && cfg->modules[i].group[0] &&
		    g->major >= 0 && !facts->gdrdrv_group.known)
			np_checks_add(
				out, "module", "gdrdrv", NP_CHECK_FAIL, "gdrcopy.group_unknown",
				"correct [module gdrdrv] group, or look why `getent group` does not know it",
				"[module gdrdrv] group: no group \"%s\" in the group database",
				cfg->modules[i].group);
}

/* Not loaded: why not, by what is on disk. */
static void judge_absent(const struct np_config *cfg, const struct np_facts *facts,
			 const struct np_kmod *mod, bool required, struct np_checks *out)
{
	enum np_check_status bad = required ? NP_CHECK_FAIL : NP_CHECK_WARN;
	struct np_err why = { 0 };
	char hint[96];

	if (mod->state == NP_KMOD_ABSENT && mod->lookup &&
	    np_kmod_loadable(mod->lookup, np_module_ignores_blacklist(cfg, mod->name), &why) < 0) {
		np_checks_add(out, "module", mod->name, bad, why.code, why.hint, "%s", why.message);
		return;
	}
	if (mod->state == NP_KMOD_ABSENT && strcmp(mod->name, "gdrdrv") == 0 &&
	    np_gdrdrv_flavour_differs(facts)) {
		np_checks_add(
			out, "module", mod->name, bad, "gdrcopy.flavour_mismatch",
			flavour_hint(facts->gpu_driver.flavour),
			"not loaded: it was built for the %s GPU driver, but the %s one is loaded",
			np_gpu_flavour_str(np_gdrdrv_built_for(mod->lookup)),
			np_gpu_flavour_str(facts->gpu_driver.flavour));
		return;
	}
	snprintf(hint, sizeof(hint), "load it: modprobe %s", mod->name);
	np_checks_add(out, "module", mod->name, bad, "module.missing", hint,
		      mod->state == NP_KMOD_ABSENT ? "%s is not loaded" :
						     "%s is being loaded or removed",
		      mod->name);
}

void np_judge_modules(const struct np_config *cfg, const struct np_facts *facts,
		      struct np_checks *out)
{
	for (size_t i = 0; i < facts->kmods.n; i++) {
		const struct np_kmod *mod = &facts->kmods.v[i];
		enum np_require require = np_module_require(cfg, facts, mod->name);
		bool loaded = mod->state == NP_KMOD_LIVE || mod->state == NP_KMOD_BUILTIN;

		if (require == NP_REQUIRE_NO)
			continue;
		if (!loaded && require == NP_REQUIRE_AUTO && strcmp(mod->name, "gdrdrv") == 0 &&
		    judge_dmabuf(facts, out))
			continue;
		if (loaded && strcmp(mod->name, "gdrdrv") == 0)
			judge_gdrdrv(cfg, facts, require == NP_REQUIRE_YES, out);
		else if (loaded)
			np_checks_add(out, "module", mod->name, NP_CHECK_OK, "module.loaded", NULL,
				      "%s", np_kmod_state_str(mod->state));
		else if (mod->state == NP_KMOD_UNKNOWN)
			np_checks_add(out, "module", mod->name,
				      require == NP_REQUIRE_YES ? NP_CHECK_FAIL : NP_CHECK_UNKNOWN,
				      "module.unknown", "look at /sys/module",
				      "its state cannot be read");
		else
			judge_absent(cfg, facts, mod, require == NP_REQUIRE_YES, out);
	}
}
