/* SPDX-License-Identifier: MIT */
#include "agent/module_policy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "modules/lookup.h"

/* gdrcopy's insmod.sh */
#define GDRDRV_OPTIONS "dbg_enabled=0 info_enabled=0 use_persistent_mapping=1"

/* dma-buf export of GPU memory: the kernel's importer side and NVIDIA's exporter */
#define DMABUF_KERNEL_MAJOR 5
#define DMABUF_KERNEL_MINOR 12
#define DMABUF_NVIDIA_MAJOR 515

static const struct np_want_module *find(const struct np_config *cfg, const char *name)
{
	for (size_t i = 0; i < cfg->n_modules; i++)
		if (strcmp(cfg->modules[i].name, name) == 0)
			return &cfg->modules[i];
	return NULL;
}

bool np_has_gpu(const struct np_facts *facts)
{
	for (size_t i = 0; i < facts->gpus.n; i++)
		if (!np_gpu_is_given_away(&facts->gpus.v[i]))
			return true;
	return false;
}

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

/* Somebody wants it, GPU or not: then it shall work. */
static bool is_loaded_gdrdrv(const struct np_facts *facts, const char *name)
{
	const struct np_kmod *mod = np_kmods_find(&facts->kmods, "gdrdrv");

	return strcmp(name, "gdrdrv") == 0 && mod && mod->state == NP_KMOD_LIVE;
}

enum np_require np_module_require(const struct np_config *cfg, const struct np_facts *facts,
				  const char *name)
{
	static const char *const fabric[] = { "ib_umad", "ib_uverbs", "ib_ipoib", "rdma_ucm",
					      NULL };
	static const char *const gpu[] = { "gdrdrv", "nvidia_uvm", NULL };
	const struct np_want_module *want = find(cfg, name);
	bool expected = false;

	if (want && want->require != NP_REQUIRE_AUTO)
		return want->require;
	if (is_one_of(name, fabric))
		expected = facts->cas.n > 0;
	else if (is_one_of(name, gpu))
		expected = np_has_gpu(facts) || is_loaded_gdrdrv(facts, name);
	else if (strcmp(name, "nvidia_peermem") == 0)
		expected = np_has_gpu(facts) && facts->cas.n > 0 && facts->gpu_driver.loaded &&
			   !np_gpu_dmabuf_available(facts);
	return expected ? NP_REQUIRE_AUTO : NP_REQUIRE_NO;
}

const char *np_module_options(const struct np_config *cfg, const char *name)
{
	const struct np_want_module *want = find(cfg, name);

	if (want && want->options[0])
		return want->options;
	return strcmp(name, "gdrdrv") == 0 ? GDRDRV_OPTIONS : "";
}

bool np_module_ignores_blacklist(const struct np_config *cfg, const char *name)
{
	const struct np_want_module *want = find(cfg, name);

	return want && want->ignore_blacklist;
}

bool np_module_to_load(const struct np_config *cfg, const struct np_facts *facts,
		       const struct np_kmod *mod)
{
	return mod->state == NP_KMOD_ABSENT && mod->lookup && !mod->lookup->builtin &&
	       !mod->load_failed && np_module_require(cfg, facts, mod->name) != NP_REQUIRE_NO &&
	       np_kmod_loadable(mod->lookup, np_module_ignores_blacklist(cfg, mod->name), NULL) ==
		       0 &&
	       !(strcmp(mod->name, "gdrdrv") == 0 && np_gdrdrv_flavour_differs(facts));
}

/* The number at @text, and where it ends; what is none counts as 0. */
static uint64_t number_at(const char *text, const char **end)
{
	size_t digits = strspn(text, "0123456789");
	uint64_t value = 0;
	char number[20];

	*end = text + digits;
	if (digits == 0 || digits >= sizeof(number))
		return 0;
	memcpy(number, text, digits);
	number[digits] = '\0';
	return np_parse_u64(number, 10, UINT32_MAX, &value) == 0 ? value : 0;
}

/* "5.12.0-1-amd64" */
static bool version_at_least(const char *version, uint64_t major, uint64_t minor)
{
	const char *end;
	uint64_t have_major = number_at(version, &end);
	uint64_t have_minor = *end == '.' ? number_at(end + 1, &end) : 0;

	return have_major > major || (have_major == major && have_minor >= minor);
}

bool np_gpu_dmabuf_available(const struct np_facts *facts)
{
	const struct np_gpu_driver *driver = &facts->gpu_driver;

	return driver->loaded && driver->flavour == NP_GPU_FLAVOUR_OPEN &&
	       version_at_least(driver->version, DMABUF_NVIDIA_MAJOR, 0) &&
	       version_at_least(facts->kernel, DMABUF_KERNEL_MAJOR, DMABUF_KERNEL_MINOR);
}

bool np_gdr_dmabuf_usable(const struct np_facts *facts)
{
	const struct np_libraries *l = &facts->libraries;

	return l->known && np_has_gpu(facts) &&
	       facts->gpu_driver.flavour != NP_GPU_FLAVOUR_PROPRIETARY &&
	       np_gdr_dmabuf_backend(l->gdrapi, l->cuda);
}

bool np_gdrdrv_flavour_differs(const struct np_facts *facts)
{
	const struct np_kmod *mod = np_kmods_find(&facts->kmods, "gdrdrv");
	enum np_gpu_flavour built_for, loaded = facts->gpu_driver.flavour;

	if (!mod || !mod->lookup || !mod->lookup->available || !facts->gpu_driver.loaded)
		return false;
	built_for = np_gdrdrv_built_for(mod->lookup);
	return built_for != NP_GPU_FLAVOUR_UNKNOWN && loaded != NP_GPU_FLAVOUR_UNKNOWN &&
	       built_for != loaded;
}

bool np_gdrdrv_wanted_node(const struct np_config *cfg, const struct np_facts *facts,
			   struct np_file_attr *out)
{
	const struct np_want_module *want = find(cfg, "gdrdrv");
	const struct np_kmod *mod = np_kmods_find(&facts->kmods, "gdrdrv");

	if (!mod || mod->state != NP_KMOD_LIVE || facts->gdrdrv.major < 0 ||
	    np_module_require(cfg, facts, "gdrdrv") == NP_REQUIRE_NO)
		return false;
	/* another's own node may be open in his hands, with a mode of his choice */
	*out = facts->gdrdrv_default;
	if (facts->gdrdrv.node_matches && facts->gdrdrv.node.uid == out->uid)
		*out = facts->gdrdrv.node;
	if (want && want->has_mode)
		out->mode = want->mode;
	if (want && want->group[0] && facts->gdrdrv_group.known)
		out->gid = facts->gdrdrv_group.gid;
	return true;
}

/* ---- files ---- */

/* What the HCA needs is loaded by udev when it appears, and by nodeprep at boot; nobody
 * else loads the rest. A module that would not load is left out: the boot would fail. */
static bool is_for_boot(const struct np_config *cfg, const struct np_facts *facts,
			const struct np_kmod *mod)
{
	static const char *const gpu[] = { "gdrdrv", "nvidia_uvm", "nvidia_peermem", NULL };
	enum np_require require = np_module_require(cfg, facts, mod->name);

	if (require == NP_REQUIRE_NO || (require == NP_REQUIRE_AUTO && !is_one_of(mod->name, gpu)))
		return false;
	return mod->state == NP_KMOD_LIVE || np_module_to_load(cfg, facts, mod);
}

static void add_line(struct np_buf *content, const char *line)
{
	if (content->len == 0)
		np_buf_str(
			content,
			"# Written by nodeprep; changes made here are lost. To change it, edit the\n"
			"# [module NAME] sections of /etc/nodeprep/nodeprep.conf and run: nodeprep apply\n");
	np_buf_printf(content, "%s\n", line);
}

int np_module_file_content(const struct np_config *cfg, const struct np_facts *facts,
			   enum np_file_role role, bool *wanted, struct np_buf *content)
{
	for (size_t i = 0; i < facts->kmods.n; i++) {
		const struct np_kmod *mod = &facts->kmods.v[i];
		const char *options = np_module_options(cfg, mod->name);
		char line[256];

		if (role == NP_ROLE_MODULES_LOAD && is_for_boot(cfg, facts, mod)) {
			add_line(content, mod->name);
		} else if (role == NP_ROLE_MODPROBE && *options &&
			   np_module_require(cfg, facts, mod->name) != NP_REQUIRE_NO) {
			snprintf(line, sizeof(line), "options %s %s", mod->name, options);
			add_line(content, line);
		}
	}
	*wanted = content->len > 0;
	return content->failed ? -ENOMEM : 0;
}
