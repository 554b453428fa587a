/* SPDX-License-Identifier: MIT */
/* What a module would bring along, and who uses one: libkmod and a made-up /lib/modules and
 * /sys/module. */
#include "tests/unit/test_modules_tree.h"

#include "modules/load.h"
#include "modules/private.h"
#include "modules/use.h"

static struct np_err err;

/* base <- mid <- top, with soft dependencies of top. */
static int set_up_stack(void **state)
{
	int r = set_up_modules(state);

	if (no_namespace)
		return r;
	put_module(RELEASE, "kernel/base", "", "np_base", NULL);
	put_module(RELEASE, "kernel/mid-dle", "", "np_mid", "np_base");
	put_module(RELEASE, "extra/top", "", NULL, "np_mid");
	put_module(RELEASE, "kernel/before", "", NULL, NULL);
	put_module(RELEASE, "kernel/after", "", NULL, NULL);
	put("live", "module/lively/initstate");
	return r;
}

/* As "a b c". */
static const char *brings(const char *name, bool ignore_blacklist)
{
	static char text[256];
	np_auto_strv struct np_strv list = { 0 };

	assert_int_equal(np_kmod_brings_at(&fake_place, name, ignore_blacklist, &list, &err), 0);
	text[0] = '\0';
	for (size_t i = 0; i < list.n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "",
			 list.v[i]);
	return text;
}

static void what_is_absent_comes_along(void **state)
{
	(void)state;
	need_namespace();
	put_file("softdep top pre: before post: after", "etc/modprobe.d/a.conf");
	index_modules(RELEASE);
	lay_over("module");
	assert_string_equal(brings("top", false), "before base mid_dle after");
	assert_string_equal(brings("mid-dle", false), "base");
	assert_string_equal(brings("base", false), "");
	assert_string_equal(brings("nothing", false), "");
}

/* Somebody else's: there already, or just coming. */
static void what_is_there_does_not(void **state)
{
	(void)state;
	need_namespace();
	put("live", "module/base/initstate");
	put("coming", "module/before/initstate");
	put_file("softdep top pre: before post: after", "etc/modprobe.d/a.conf");
	index_modules(RELEASE);
	lay_over("module");
	assert_string_equal(brings("top", false), "mid_dle after");
}

static void nor_what_is_forbidden(void **state)
{
	(void)state;
	need_namespace();
	put_file("softdep top pre: before post: after\nblacklist after\ninstall before /bin/true",
		 "etc/modprobe.d/a.conf");
	index_modules(RELEASE);
	lay_over("module");
	assert_string_equal(brings("top", false), "base mid_dle");
	assert_string_equal(brings("top", true), "base mid_dle after");
}

static void no_name(void **state)
{
	np_auto_strv struct np_strv list = { 0 };

	(void)state;
	need_namespace();
	index_modules(RELEASE);
	assert_int_equal(np_kmod_brings_at(&fake_place, "../top", false, &list, &err), -EINVAL);
	assert_string_equal(err.code, "module.name");
	assert_int_equal(list.n, 0);
}

/* ---- who uses one ---- */

static void users(void **state)
{
	np_auto_kmod_use struct np_kmod_use held = { 0 };
	np_auto_kmod_use struct np_kmod_use plain = { 0 };
	np_auto_kmod_use struct np_kmod_use gone = { 0 };
	char why[NP_KMOD_WHY_SIZE];

	(void)state;
	need_namespace();
	put("live", "module/rdma_cm/initstate");
	put("2", "module/rdma_cm/refcnt");
	put("", "module/rdma_cm/holders/rdma_ucm");
	put("", "module/rdma_cm/holders/nvme_rdma");
	put("live", "module/ib_umad/initstate");
	put("0", "module/ib_umad/refcnt");
	lay_over("module");
	np_kmod_use_observe("rdma-cm", &held);
	assert_string_equal(held.name, "rdma_cm");
	assert_int_equal(held.refcnt, 2);
	assert_true(held.holders_known);
	assert_int_equal(held.holders.n, 2);
	assert_true(np_strv_has(&held.holders, "rdma_ucm"));
	assert_true(np_strv_has(&held.holders, "nvme_rdma"));
	assert_false(held.has_devices);
	assert_non_null(strstr(np_kmod_kept(&held, NULL, why), " uses it"));
	/* without the folder nobody knows */
	np_kmod_use_observe("ib_umad", &plain);
	assert_int_equal(plain.refcnt, 0);
	assert_false(plain.holders_known);
	assert_non_null(np_kmod_kept(&plain, NULL, why));
	np_kmod_use_observe("ib_cm", &gone);
	assert_int_equal(gone.state, NP_KMOD_ABSENT);
	assert_int_equal(gone.refcnt, -1);
	assert_false(gone.holders_known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_absent_comes_along, set_up_stack,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_there_does_not, set_up_stack, tear_down),
		cmocka_unit_test_setup_teardown(nor_what_is_forbidden, set_up_stack, tear_down),
		cmocka_unit_test_setup_teardown(no_name, set_up_stack, tear_down),
		cmocka_unit_test_setup_teardown(users, set_up, tear_down),
	};

	int failed;

	enter_namespace();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	leave_namespace();
	return failed;
}
