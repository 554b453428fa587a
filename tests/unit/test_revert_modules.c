/* SPDX-License-Identifier: MIT */
/* Which modules go with a revert, and which stay. */
#include "facts_build.h"

#include "agent/journal.h"
#include "agent/revert_plan.h"

static struct np_kmod_use idle(const char *name)
{
	struct np_kmod_use use = { .state = NP_KMOD_LIVE, .holders_known = true };

	np_strcpy(use.name, sizeof(use.name), name);
	return use;
}

/* @use is held by @holder, too. */
static void hold(struct np_kmod_use *use, const char *holder)
{
	assert_int_equal(np_strv_add(&use->holders, holder), 0);
	use->refcnt++;
}

static char why[NP_KMOD_WHY_SIZE];

static void test_modules(void **state)
{
	struct np_kmod_use use = idle("ib_umad");

	(void)state;
	assert_null(np_kmod_kept(&use, NULL, why));
	use.refcnt = 1;
	assert_string_equal(np_kmod_kept(&use, NULL, why), "it is in use");
	use.refcnt = -1;
	assert_non_null(np_kmod_kept(&use, NULL, why));
	use = idle("ib_uverbs");
	use.holders_known = false;
	assert_non_null(np_kmod_kept(&use, NULL, why));
	use = idle("gdrdrv");
	use.has_devices = true;
	assert_non_null(np_kmod_kept(&use, NULL, why));
	use = idle("gdrdrv");
	use.state = NP_KMOD_BUILTIN;
	assert_non_null(np_kmod_kept(&use, NULL, why));
	/* whose use count says nothing of netdevs, devices or memory regions */
	for (const char *const *name = FB_LIST("ib_ipoib", "mlx5_core", "mlx5_ib", "nvidia",
					       "nvidia_uvm", "nvidia_peermem", "ib_core");
	     *name; name++) {
		use = idle(*name);
		assert_non_null(np_kmod_kept(&use, NULL, why));
	}
}

/* Those that use it may go before; what is left of its use count is somebody else's. */
static void test_holders(void **state)
{
	np_auto_strv struct np_strv going = { 0 };
	np_auto_kmod_use struct np_kmod_use use = idle("rdma_cm");

	(void)state;
	use.refcnt = 1;
	assert_string_equal(np_kmod_kept(&use, NULL, why), "it is in use");
	use.refcnt = 0;
	hold(&use, "rdma_ucm");
	assert_string_equal(np_kmod_kept(&use, NULL, why), "rdma_ucm uses it");
	assert_int_equal(np_strv_add(&going, "rdma_ucm"), 0);
	assert_null(np_kmod_kept(&use, &going, why));
	hold(&use, "nvme_rdma");
	assert_string_equal(np_kmod_kept(&use, &going, why), "nvme_rdma uses it");
	assert_int_equal(np_strv_add(&going, "nvme_rdma"), 0);
	assert_null(np_kmod_kept(&use, &going, why));
	use.refcnt++;
	assert_string_equal(np_kmod_kept(&use, &going, why),
			    "it is in use, perhaps only by what goes before it");
	/* a count that does not even tell of its holders tells nothing */
	use.refcnt = 1;
	assert_string_equal(np_kmod_kept(&use, &going, why), "whether it is in use cannot be told");
}

static struct np_action *add_load(struct np_actions *list, const char *name,
				  const char *const *brings)
{
	struct np_action *a = np_actions_add(list, NP_ACTION_MODULE);

	assert_non_null(a);
	np_strcpy(a->module, sizeof(a->module), name);
	a->to_value = 1;
	a->status = NP_STATUS_DONE;
	for (; brings && *brings; brings++)
		assert_int_equal(np_strv_add(&a->brings, *brings), 0);
	return a;
}

/* The modules of @list, as "a b c". */
static const char *names(const struct np_actions *list)
{
	static char text[400];

	text[0] = '\0';
	for (size_t i = 0; i < list->n; i++) {
		if (i)
			strcat(text, " ");
		strcat(text, list->v[i].module);
	}
	return text;
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
	for (size_t i = 0; i < 2; i++)
		add_load(&base, uses[i].name, NULL);
	uses[1].refcnt = 3;
	assert_int_equal(np_revert_plan(&base, &now, &run, &checks, &err), 0);
	assert_int_equal(run.n, 1);
	assert_string_equal(np_action_id(&run.v[0]), "module.unload");
	assert_string_equal(run.v[0].module, "ib_umad");
	assert_int_equal(checks.n, 1);
	assert_string_equal(checks.v[0].code, "revert.module_kept");
	np_checks_done(&checks);
}

/* ---- what came along ---- */

/* A node on which ib_ipoib and rdma_ucm were loaded, with what they need. */
struct stack {
	struct np_kmod_use uses[6];
	struct np_now now;
	struct np_actions run, base, plan;
	struct np_checks checks;
	struct np_err err;
};

enum { IB_CM, IB_IPOIB, IW_CM, CONFIGFS, RDMA_CM, RDMA_UCM };

static int set_up_stack(void **state)
{
	struct stack *s = calloc(1, sizeof(*s));

	s->uses[IB_CM] = idle("ib_cm");
	s->uses[IB_IPOIB] = idle("ib_ipoib");
	s->uses[IW_CM] = idle("iw_cm");
	s->uses[CONFIGFS] = idle("configfs");
	s->uses[RDMA_CM] = idle("rdma_cm");
	s->uses[RDMA_UCM] = idle("rdma_ucm");
	hold(&s->uses[IB_CM], "ib_ipoib");
	hold(&s->uses[IB_CM], "rdma_cm");
	hold(&s->uses[IW_CM], "rdma_cm");
	hold(&s->uses[CONFIGFS], "rdma_cm");
	hold(&s->uses[RDMA_CM], "rdma_ucm");
	s->now = (struct np_now){ .kmods = s->uses, .n_kmods = 6 };
	add_load(&s->run, "ib_ipoib", FB_LIST("ib_cm"));
	add_load(&s->run, "rdma_ucm", FB_LIST("iw_cm", "configfs", "rdma_cm"));
	*state = s;
	return 0;
}

static int tear_down_stack(void **state)
{
	struct stack *s = *state;

	for (size_t i = 0; i < 6; i++)
		np_kmod_use_done(&s->uses[i]);
	np_actions_done(&s->run);
	np_actions_done(&s->base);
	np_actions_done(&s->plan);
	np_checks_done(&s->checks);
	free(s);
	return 0;
}

static void plan(struct stack *s)
{
	np_actions_done(&s->plan);
	np_checks_done(&s->checks);
	assert_int_equal(np_revert_plan(&s->base, &s->now, &s->plan, &s->checks, &s->err), 0);
}

static const char *kept(const struct stack *s, const char *module)
{
	for (size_t i = 0; i < s->checks.n; i++)
		if (np_streq(s->checks.v[i].target, module)) {
			assert_string_equal(s->checks.v[i].code, "revert.module_kept");
			return s->checks.v[i].message;
		}
	return NULL;
}

static void test_all_that_came_along_goes(void **state)
{
	struct stack *s = *state;

	assert_int_equal(np_record_merge(&s->base, &s->run, &s->err), 0);
	assert_string_equal(names(&s->base), "ib_cm ib_ipoib iw_cm configfs rdma_cm rdma_ucm");
	plan(s);
	assert_string_equal(names(&s->plan), "rdma_ucm rdma_cm configfs iw_cm");
	for (size_t i = 0; i < s->plan.n; i++)
		assert_string_equal(np_action_id(&s->plan.v[i]), "module.unload");
	/* and there is a word on each that stays */
	assert_int_equal(s->checks.n, 2);
	assert_string_equal(kept(s, "ib_cm"), "it stays loaded: ib_ipoib uses it");
	assert_non_null(kept(s, "ib_ipoib"));
}

/* Whoever uses one of them keeps it, and what it needs. */
static void test_in_use_by_others(void **state)
{
	struct stack *s = *state;

	assert_int_equal(np_record_merge(&s->base, &s->run, &s->err), 0);
	hold(&s->uses[RDMA_CM], "nvme_rdma");
	plan(s);
	assert_string_equal(names(&s->plan), "rdma_ucm");
	assert_string_equal(kept(s, "rdma_cm"), "it stays loaded: nvme_rdma uses it");
	assert_string_equal(kept(s, "iw_cm"), "it stays loaded: rdma_cm uses it");
	/* a program with the device open */
	s->uses[RDMA_UCM].refcnt = 1;
	plan(s);
	assert_int_equal(s->plan.n, 0);
	assert_string_equal(kept(s, "rdma_ucm"), "it stays loaded: it is in use");
	assert_int_equal(s->checks.n, 6);
	/* one that was there before is none of ours, whoever uses it */
	s->uses[RDMA_UCM].refcnt = 0;
	s->uses[IW_CM].state = NP_KMOD_ABSENT;
	plan(s);
	assert_null(kept(s, "iw_cm"));
}

/* They were loaded anew by somebody, and then again by us: the order of the record is not that
 * of their needs. */
static void test_order_is_that_of_use(void **state)
{
	struct stack *s = *state;

	add_load(&s->base, "rdma_ucm", NULL);
	add_load(&s->base, "rdma_cm", NULL);
	add_load(&s->base, "iw_cm", NULL);
	plan(s);
	assert_string_equal(names(&s->plan), "rdma_ucm rdma_cm iw_cm");
	assert_int_equal(s->checks.n, 0);
}

/* Modules go last: a device node goes before its driver. */
static void test_after_everything_else(void **state)
{
	np_auto_actions struct np_actions base = { 0 };
	np_auto_actions struct np_actions run = { 0 };
	struct np_checks checks = { 0 };
	struct np_err err = { 0 };
	struct np_kmod_use use = idle("gdrdrv");
	struct np_now now = { .kmods = &use, .n_kmods = 1 };
	struct np_action *node = np_actions_add(&base, NP_ACTION_GDRDRV_NODE);

	(void)state;
	node->status = NP_STATUS_DONE;
	node->has_new = true;
	node->new_attr.mode = 0666;
	node->from_value = node->to_value = 511;
	now.gdrdrv = (struct np_gdrdrv){
		.major = 511, .node_exists = true, .node_matches = true, .node = { .mode = 0666 }
	};
	add_load(&base, "gdrdrv", NULL);
	assert_int_equal(np_revert_plan(&base, &now, &run, &checks, &err), 0);
	assert_int_equal(run.n, 2);
	assert_int_equal(run.v[0].kind, NP_ACTION_GDRDRV_NODE);
	assert_int_equal(run.v[1].kind, NP_ACTION_MODULE);
	assert_int_equal(checks.n, 0);
}

/* ---- whose it is ---- */

/* A load that failed at its end has left what it needs; one that did not run has not. */
static void test_failed_load(void **state)
{
	np_auto_actions struct np_actions run = { 0 };
	np_auto_actions struct np_actions base = { 0 };
	struct np_err err = { 0 };

	(void)state;
	add_load(&run, "rdma_ucm", FB_LIST("iw_cm", "rdma_cm"))->status = NP_STATUS_FAILED;
	add_load(&run, "ib_ipoib", FB_LIST("ib_cm"))->status = NP_STATUS_NOT_RUN;
	assert_int_equal(np_record_merge(&base, &run, &err), 0);
	assert_string_equal(names(&base), "iw_cm rdma_cm");
}

/* Somebody else was faster. */
static void test_loaded_by_others(void **state)
{
	np_auto_actions struct np_actions run = { 0 };
	np_auto_actions struct np_actions base = { 0 };
	struct np_err err = { 0 };

	(void)state;
	add_load(&run, "ib_umad", NULL)->from_value = 1;
	assert_int_equal(np_record_merge(&base, &run, &err), 0);
	assert_int_equal(base.n, 0);
}

/* Of a run that was killed nobody knows what it loaded: what was absent and is there now. */
static void test_killed_while_loading(void **state)
{
	struct stack *s = *state;
	struct np_state_id id = { "0123456789abcdef", "00000000-1111" };
	np_auto_journal struct np_journal back = { .run = "" };
	struct np_journal journal = { .id = id, .run = "0123456789abcdef", .actions = s->run };
	_cleanup_free_ char *text = NULL;

	s->run.v[0].status = s->run.v[1].status = NP_STATUS_PLANNED;
	text = np_journal_text(&journal);
	assert_non_null(text);
	assert_int_equal(np_journal_parse(text, strlen(text), &id, &back, &s->err), 0);
	assert_string_equal(names(&back.actions), "ib_cm ib_ipoib iw_cm configfs rdma_cm rdma_ucm");
	s->uses[RDMA_CM].state = s->uses[RDMA_UCM].state = NP_KMOD_ABSENT;
	assert_int_equal(np_actions_net(&back.actions, &s->now, &s->base), 0);
	assert_string_equal(names(&s->base), "ib_cm ib_ipoib iw_cm configfs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_holders),
		cmocka_unit_test(test_module_goes_or_stays),
		cmocka_unit_test_setup_teardown(test_all_that_came_along_goes, set_up_stack,
						tear_down_stack),
		cmocka_unit_test_setup_teardown(test_in_use_by_others, set_up_stack,
						tear_down_stack),
		cmocka_unit_test_setup_teardown(test_order_is_that_of_use, set_up_stack,
						tear_down_stack),
		cmocka_unit_test(test_after_everything_else),
		cmocka_unit_test(test_failed_load),
		cmocka_unit_test(test_loaded_by_others),
		cmocka_unit_test_setup_teardown(test_killed_while_loading, set_up_stack,
						tear_down_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
