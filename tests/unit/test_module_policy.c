/* SPDX-License-Identifier: MIT */
/* Which modules a node shall have, their files, and the node of gdrdrv. */
#include "judge_scene.h"

#include "agent/module_policy.h"
#include "agent/plan.h"
#include "modules/lookup.h"

#define LOAD  "/etc/modules-load.d/nodeprep.conf"
#define PROBE "/etc/modprobe.d/nodeprep.conf"
#define GUIDE "dbg_enabled=0 info_enabled=0 use_persistent_mapping=1"

/* On disk for this kernel. */
static struct np_kmod_lookup *on_disk(struct np_kmod *mod)
{
	mod->lookup = calloc(1, sizeof(*mod->lookup));
	assert_non_null(mod->lookup);
	np_strcpy(mod->lookup->name, sizeof(mod->lookup->name), mod->name);
	mod->lookup->available = true;
	return mod->lookup;
}

static void gpu_node(struct scene *s, enum np_gpu_flavour flavour, const char *version)
{
	fb_gpu(&s->facts);
	s->facts.gpu_driver.loaded = true;
	s->facts.gpu_driver.flavour = flavour;
	np_strcpy(s->facts.gpu_driver.version, sizeof(s->facts.gpu_driver.version), version);
	np_strcpy(s->facts.kernel, sizeof(s->facts.kernel), "6.1.0-57-amd64");
	s->facts.gdrdrv.major = -1;
	s->facts.gdrdrv.persistent_mapping = -1;
}

static void make_plan(struct scene *s, struct np_actions *out)
{
	np_actions_done(out);
	if (np_plan_make(&s->cfg, &s->facts, NP_PLAN_MODULES | NP_PLAN_FILES, out, &s->err) < 0)
		fail_msg("%s", s->err.message);
}

static const struct np_action *action(const struct np_actions *list, const char *id,
				      const char *target)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(np_action_id(&list->v[i]), id) == 0 &&
		    strcmp(np_action_target(&list->v[i]), target) == 0)
			return &list->v[i];
	return NULL;
}

static void test_auto(void **state)
{
	static const struct {
		const char *driver; /* of the GPU; NULL = no GPU */
		bool hca;
		enum np_gpu_flavour flavour;
		const char *version, *kernel;
		bool fabric, gpu, peermem;
	} cases[] = {
		{ NULL, false, NP_GPU_FLAVOUR_UNKNOWN, "", "6.1.0", false, false, false },
		{ NULL, true, NP_GPU_FLAVOUR_UNKNOWN, "", "6.1.0", true, false, false },
		{ "nvidia", false, NP_GPU_FLAVOUR_OPEN, "580.65.06", "6.1.0", false, true, false },
		{ "nvidia", true, NP_GPU_FLAVOUR_OPEN, "580.65.06", "6.1.0", true, true, false },
		{ "nvidia", true, NP_GPU_FLAVOUR_OPEN, "515.43", "5.12", true, true, false },
		{ "nvidia", true, NP_GPU_FLAVOUR_OPEN, "510.47", "6.1.0", true, true, true },
		{ "nvidia", true, NP_GPU_FLAVOUR_OPEN, "580.65.06", "5.4.0-150", true, true, true },
		{ "nvidia", true, NP_GPU_FLAVOUR_PROPRIETARY, "580.65.06", "6.1.0", true, true,
		  true },
		{ "pci-stub", true, NP_GPU_FLAVOUR_PROPRIETARY, "580.65.06", "6.1.0", true, false,
		  false },
		{ "vfio-pci", true, NP_GPU_FLAVOUR_PROPRIETARY, "580.65.06", "6.1.0", true, false,
		  false },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct scene s;
		const struct {
			const char *name;
			bool wanted;
		} expect[] = { { "ib_umad", cases[i].fabric },
			       { "ib_ipoib", cases[i].fabric },
			       { "ib_uverbs", cases[i].fabric },
			       { "rdma_ucm", cases[i].fabric },
			       { "gdrdrv", cases[i].gpu },
			       { "nvidia_uvm", cases[i].gpu },
			       { "nvidia_peermem", cases[i].peermem },
			       { "mlx5_ib", false },
			       { "nvidia", false } };

		begin(&s);
		if (cases[i].driver) {
			gpu_node(&s, cases[i].flavour, cases[i].version);
			np_strcpy(s.facts.gpus.v[0].driver, sizeof(s.facts.gpus.v[0].driver),
				  cases[i].driver);
		}
		if (cases[i].hca)
			fb_active(&s.facts, "mlx5_0");
		np_strcpy(s.facts.kernel, sizeof(s.facts.kernel), cases[i].kernel);
		for (size_t k = 0; k < NP_ARRAY_SIZE(expect); k++)
			if ((np_module_require(&s.cfg, &s.facts, expect[k].name) !=
			     NP_REQUIRE_NO) != expect[k].wanted)
				fail_msg("case %zu: %s", i, expect[k].name);
		/* what the admin says wins */
		set(&s, "module gdrdrv", "require", "yes");
		set(&s, "module ib_umad", "require", "no");
		assert_int_equal(np_module_require(&s.cfg, &s.facts, "gdrdrv"), NP_REQUIRE_YES);
		assert_int_equal(np_module_require(&s.cfg, &s.facts, "ib_umad"), NP_REQUIRE_NO);
		end(&s);
	}
}

static void test_load(void **state)
{
	struct np_actions plan = { 0 };
	const struct np_action *a;
	struct scene s;

	(void)state;
	begin(&s);
	gpu_node(&s, NP_GPU_FLAVOUR_OPEN, "580.65.06");
	on_disk(fb_kmod(&s.facts, "gdrdrv", NP_KMOD_ABSENT));
	fb_file(&s.facts, NP_ROLE_MODULES_LOAD, LOAD, NULL, NULL);
	fb_file(&s.facts, NP_ROLE_MODPROBE, PROBE, NULL, NULL);
	make_plan(&s, &plan);
	a = action(&plan, "module.load", "gdrdrv");
	assert_non_null(a);
	assert_string_equal(a->options, GUIDE);
	assert_false(a->ignore_blacklist);
	a = action(&plan, "file.write", LOAD);
	assert_non_null(a);
	assert_non_null(strstr(a->new_content.data, "\ngdrdrv\n"));
	a = action(&plan, "file.write", PROBE);
	assert_non_null(a);
	assert_non_null(strstr(a->new_content.data, "\noptions gdrdrv " GUIDE "\n"));
	assert_int_equal(plan.n, 3);

	/* tried, in vain: not again, and a boot need not fail over it either */
	s.facts.kmods.v[0].load_failed = true;
	make_plan(&s, &plan);
	assert_null(action(&plan, "module.load", "gdrdrv"));
	assert_null(action(&plan, "file.write", LOAD));
	s.facts.kmods.v[0].load_failed = false;

	/* blacklisted: only where the configuration says so */
	s.facts.kmods.v[0].lookup->blacklisted = true;
	make_plan(&s, &plan);
	assert_null(action(&plan, "module.load", "gdrdrv"));
	judge(&s);
	has(&s, "gdrdrv", "module.blacklisted", NP_CHECK_WARN);
	set(&s, "module gdrdrv", "ignore_blacklist", "yes");
	set(&s, "module gdrdrv", "options", "dbg_enabled=1");
	make_plan(&s, &plan);
	a = action(&plan, "module.load", "gdrdrv");
	assert_non_null(a);
	assert_true(a->ignore_blacklist);
	assert_string_equal(a->options, "dbg_enabled=1");
	np_actions_done(&plan);
	end(&s);
}

/* Built for the other flavour: it would not load, so nobody tries. */
static void test_flavour(void **state)
{
	struct np_actions plan = { 0 };
	struct np_kmod *mod;
	struct scene s;

	(void)state;
	begin(&s);
	gpu_node(&s, NP_GPU_FLAVOUR_PROPRIETARY, "535.54");
	mod = fb_kmod(&s.facts, "gdrdrv", NP_KMOD_ABSENT);
	np_strcpy(on_disk(mod)->description, sizeof(mod->lookup->description),
		  "GDRCopy kernel-mode driver built for opensource NVIDIA driver");
	make_plan(&s, &plan);
	assert_int_equal(plan.n, 0);
	judge(&s);
	has(&s, "gdrdrv", "gdrcopy.flavour_mismatch", NP_CHECK_WARN);
	s.facts.gpu_driver.flavour = NP_GPU_FLAVOUR_OPEN;
	make_plan(&s, &plan);
	assert_non_null(action(&plan, "module.load", "gdrdrv"));
	/* loaded all the same, by force */
	s.facts.gpu_driver.flavour = NP_GPU_FLAVOUR_PROPRIETARY;
	s.facts.kmods.v[0].state = NP_KMOD_LIVE;
	s.facts.gdrdrv.built_for = NP_GPU_FLAVOUR_OPEN;
	judge(&s);
	has(&s, "gdrdrv", "gdrcopy.flavour_mismatch", NP_CHECK_WARN);
	np_actions_done(&plan);
	end(&s);
}

static void live_gdrdrv(struct scene *s)
{
	gpu_node(s, NP_GPU_FLAVOUR_OPEN, "580.65.06");
	fb_kmod(&s->facts, "gdrdrv", NP_KMOD_LIVE);
	s->facts.gdrdrv.major = 511;
	s->facts.gdrdrv_default = (struct np_file_attr){ .mode = 0666 };
}

/* C20: made where there is none, replaced where something else is in its place. */
static void test_node(void **state)
{
	struct np_gdrdrv *g;
	struct np_actions plan = { 0 };
	const struct np_action *a;
	struct scene s;
	char text[80];

	(void)state;
	begin(&s);
	live_gdrdrv(&s);
	g = &s.facts.gdrdrv;
	make_plan(&s, &plan);
	a = action(&plan, "gdrdrv.node", "/dev/gdrdrv");
	assert_non_null(a);
	assert_string_equal(np_action_from(a, text, sizeof(text)), "absent");
	assert_string_equal(np_action_to(a, text, sizeof(text)), "c 511:0 mode 0666 owner 0:0");

	g->node_exists = true; /* a wrong major, a file, a symlink */
	make_plan(&s, &plan);
	a = action(&plan, "gdrdrv.node", "/dev/gdrdrv");
	assert_non_null(a);
	assert_string_equal(np_action_from(a, text, sizeof(text)), "something else");

	/* the right one with a site's own mode: kept, unless the configuration names one */
	g->node_matches = true;
	g->node = (struct np_file_attr){ .mode = 0660, .gid = 44 };
	make_plan(&s, &plan);
	assert_int_equal(plan.n, 0);
	set(&s, "module gdrdrv", "mode", "0600");
	make_plan(&s, &plan);
	a = action(&plan, "gdrdrv.node", "/dev/gdrdrv");
	assert_non_null(a);
	assert_string_equal(np_action_from(a, text, sizeof(text)), "c 511:0 mode 0660 owner 0:44");
	assert_string_equal(np_action_to(a, text, sizeof(text)), "c 511:0 mode 0600 owner 0:44");
	s.facts.gdrdrv_node_failed = true;
	make_plan(&s, &plan);
	assert_int_equal(plan.n, 0);
	s.facts.gdrdrv_node_failed = false;

	/* a node that somebody else owns is his to open */
	g->node = (struct np_file_attr){ .mode = 0600, .uid = 1000 };
	make_plan(&s, &plan);
	a = action(&plan, "gdrdrv.node", "/dev/gdrdrv");
	assert_non_null(a);
	assert_int_equal(a->new_attr.uid, 0);

	set(&s, "module gdrdrv", "group", "gpu");
	g->node = (struct np_file_attr){ .mode = 0600 };
	make_plan(&s, &plan);
	assert_int_equal(plan.n, 0); /* no such group here */
	judge(&s);
	has(&s, "gdrdrv", "gdrcopy.group_unknown", NP_CHECK_FAIL);
	s.facts.gdrdrv_group.known = true;
	s.facts.gdrdrv_group.gid = 27;
	make_plan(&s, &plan);
	a = action(&plan, "gdrdrv.node", "/dev/gdrdrv");
	assert_non_null(a);
	assert_int_equal(a->new_attr.gid, 27);
	np_actions_done(&plan);
	end(&s);
}

/* What is not asked for leaves no file behind; what the HCA needs is udev's. */
static void test_files(void **state)
{
	struct np_actions plan = { 0 };
	const struct np_action *a;
	struct scene s;

	(void)state;
	begin_guide(&s, FB_LIST("10.0.0.50/24"));
	fb_file(&s.facts, NP_ROLE_MODULES_LOAD, LOAD, NULL, "gdrdrv\n");
	fb_file(&s.facts, NP_ROLE_MODPROBE, PROBE, NULL, NULL);
	make_plan(&s, &plan);
	assert_non_null(action(&plan, "file.remove", LOAD));
	assert_null(action(&plan, "file.write", PROBE));
	set(&s, "module ib_ipoib", "require", "yes");
	set(&s, "module mlx5_core", "options", "prof_sel=3"); /* not wanted: not written */
	set(&s, "module ib_umad", "options", "a=1");
	make_plan(&s, &plan);
	a = action(&plan, "file.write", LOAD);
	assert_non_null(a);
	assert_non_null(strstr(a->new_content.data, "\nib_ipoib\n"));
	assert_null(strstr(a->new_content.data, "umad"));
	a = action(&plan, "file.write", PROBE);
	assert_non_null(a);
	assert_non_null(strstr(a->new_content.data, "\noptions ib_umad a=1\n"));
	assert_null(strstr(a->new_content.data, "mlx5"));
	np_actions_done(&plan);
	end(&s);
}

static size_t place_of(const struct np_actions *list, const char *id, const char *target)
{
	const struct np_action *a = action(list, id, target);

	assert_non_null(a);
	return (size_t)(a - list->v);
}

/* Loading reads modprobe.d: what an earlier configuration wrote there goes first. */
static void test_stale_options(void **state)
{
	struct np_actions plan = { 0 };
	struct scene s;

	(void)state;
	begin_guide(&s, FB_LIST("10.0.0.50/24"));
	fb_file(&s.facts, NP_ROLE_MODULES_LOAD, LOAD, NULL, NULL);
	fb_file(&s.facts, NP_ROLE_MODPROBE, PROBE, NULL, "options nvidia_peermem wrong=1\n");
	on_disk(fb_kmod(&s.facts, "nvidia_peermem", NP_KMOD_ABSENT));
	set(&s, "module nvidia_peermem", "require", "yes");
	for (int with_options = 0; with_options < 2; with_options++) {
		const char *change = with_options ? "file.write" : "file.remove";

		if (with_options)
			set(&s, "module nvidia_peermem", "options", "right=1");
		make_plan(&s, &plan);
		assert_true(place_of(&plan, change, PROBE) <
			    place_of(&plan, "module.load", "nvidia_peermem"));
		for (size_t i = place_of(&plan, change, PROBE) + 1; i < plan.n; i++)
			assert_string_not_equal(np_action_target(&plan.v[i]), PROBE);
		/* apply does the modules before it has a netdev to speak of */
		np_actions_done(&plan);
		assert_int_equal(np_plan_make(&s.cfg, &s.facts, NP_PLAN_MODULES, &plan, &s.err), 0);
		assert_int_equal(place_of(&plan, change, PROBE), 0);
		assert_int_equal(place_of(&plan, "module.load", "nvidia_peermem"), 1);
	}
	/* nothing to load: it is a file like the others */
	s.facts.kmods.v[s.facts.kmods.n - 1].state = NP_KMOD_LIVE;
	np_actions_done(&plan);
	assert_int_equal(np_plan_make(&s.cfg, &s.facts, NP_PLAN_MODULES, &plan, &s.err), 0);
	assert_int_equal(plan.n, 0);
	np_actions_done(&plan);
	end(&s);
}

static void test_persistent(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	live_gdrdrv(&s);
	s.facts.gdrdrv.persistent_mapping = 0;
	judge(&s);
	has(&s, "gdrdrv", "gdrcopy.no_persistent_mapping", NP_CHECK_WARN);
	set(&s, "module gdrdrv", "options", "use_persistent_mapping=0");
	judge(&s);
	assert_null(find(&s, "gdrdrv", "gdrcopy.no_persistent_mapping"));
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_auto),	   cmocka_unit_test(test_load),
		cmocka_unit_test(test_flavour),	   cmocka_unit_test(test_node),
		cmocka_unit_test(test_files),	   cmocka_unit_test(test_stale_options),
		cmocka_unit_test(test_persistent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
