/* SPDX-License-Identifier: MIT */
/* Which modules go with a revert, and which stay. */
#include "facts_build.h"

#include "agent/revert_plan.h"

static struct np_kmod_use idle(const char *name)
{
	struct np_kmod_use use = { .state = NP_KMOD_LIVE };

	np_strcpy(use.name, sizeof(use.name), name);
	return use;
}

static void test_modules(void **state)
{
	struct np_kmod_use use = idle("ib_umad");

	(void)state;
	assert_null(np_kmod_kept(&use));
	use.refcnt = 1;
	assert_non_null(np_kmod_kept(&use));
	use.refcnt = -1;
	assert_non_null(np_kmod_kept(&use));
	use = idle("ib_uverbs");
	use.n_holders = 1;
	assert_non_null(np_kmod_kept(&use));
	use = idle("gdrdrv");
	use.has_devices = true;
	assert_non_null(np_kmod_kept(&use));
	use = idle("gdrdrv");
	use.state = NP_KMOD_BUILTIN;
	assert_non_null(np_kmod_kept(&use));
	/* whose use count says nothing of netdevs, devices or memory regions */
	for (const char *const *name = FB_LIST("ib_ipoib", "mlx5_core", "mlx5_ib", "nvidia",
					       "nvidia_uvm", "nvidia_peermem", "ib_core");
	     *name; name++) {
		use = idle(*name);
		assert_non_null(np_kmod_kept(&use));
	}
}

static void test_module_goes_or_stays(void **state)
{
	np_auto_actions struct np_actions base = { 0 };
	np_auto_actions struct np_actions run = { 0 };
	struct np_checks checks = { 0 };
	struct np_err err = { 0 };
	struct np_kmod_use uses[2] = { idle("ib_umad"), idle("ib_uverbs") };
	struct np_now now = { .kmods = uses, .n_kmods = 2 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct np_action *a = np_actions_add(&base, NP_ACTION_MODULE);

		np_strcpy(a->module, sizeof(a->module), uses[i].name);
		a->to_value = 1;
		a->status = NP_STATUS_DONE;
	}
	uses[1].refcnt = 3;
	assert_int_equal(np_revert_plan(&base, &now, &run, &checks, &err), 0);
	assert_int_equal(run.n, 1);
	assert_string_equal(np_action_id(&run.v[0]), "module.unload");
	assert_string_equal(run.v[0].module, "ib_umad");
	assert_int_equal(checks.n, 1);
	assert_string_equal(checks.v[0].code, "revert.module_kept");
	np_checks_done(&checks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_module_goes_or_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
