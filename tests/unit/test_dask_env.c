/* SPDX-License-Identifier: MIT */
/* What dask.env has by the version of UCX. */
#include "facts_build.h"

#include "agent/plan.h"

#define WHOLE_ALLOC "UCX_MEMTYPE_REG_WHOLE_ALLOC_TYPES=cuda\n"

struct node {
	const char *profile, *version; /* of [ucx], of UCX */
	bool gpu;
	const char *ignored; /* ports; NULL = none */
};

static void set(struct np_config *cfg, const char *section, const char *key, const char *value)
{
	struct np_err err;

	if (value && np_config_set(cfg, section, key, value, "x:1", &err) < 0)
		fail_msg("%s", err.message);
}

/* The text of dask.env has the line. */
static bool has_whole_alloc(const struct node *n)
{
	struct np_actions actions = { 0 };
	struct np_facts facts;
	struct np_config cfg;
	struct np_err err;
	const char *text = NULL;
	bool found;

	fb_guide(&facts);
	if (n->gpu)
		fb_gpu(&facts);
	strcpy(facts.libraries.ucx_version, n->version);
	fb_config(&cfg, FB_LIST("10.0.0.50/24"));
	set(&cfg, "dask", "enabled", "yes");
	set(&cfg, "ucx", "profile", n->profile);
	set(&cfg, "ports", "ignore", n->ignored);
	if (np_config_finish(&cfg, &err) < 0 ||
	    np_plan_make(&cfg, &facts, NP_PLAN_ALL, &actions, &err) < 0)
		fail_msg("%s", err.message);
	for (size_t i = 0; i < actions.n; i++)
		if (actions.v[i].kind == NP_ACTION_FILE &&
		    np_streq(actions.v[i].path, "/etc/nodeprep/dask.env"))
			text = actions.v[i].new_content.data;
	assert_non_null(text);
	assert_non_null(strstr(text, "NODEPREP_DASK_INTERFACE=ib0\n"));
	found = strstr(text, "\n" WHOLE_ALLOC) != NULL;
	np_actions_done(&actions);
	np_facts_done(&facts);
	np_config_done(&cfg);
	return found;
}

/* Where the installed UCX does not do so by itself, whatever the profile; profile dask has
 * it in ucx.env. */
static void test_whole_allocations(void **state)
{
	static const struct node with[] = {
		{ "standard", "1.11.2", true, NULL },
		{ "guide", "1.9.0", true, NULL },
		{ "auto", "1.11.1", true, NULL },
		{ "off", "1.11.2", true, NULL },
	};
	static const struct node without[] = {
		{ "standard", "1.12.0", true, NULL },
		{ "standard", "1.18.1", true, NULL },
		{ "standard", "", true, NULL },
		{ "dask", "1.11.2", true, NULL },
		{ "standard", "1.11.2", false, NULL },
		/* nothing is registered with an HCA */
		{ "standard", "1.11.2", true, "mlx5_0, mlx5_1, mlx5_2, mlx5_3" },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(with); i++)
		if (!has_whole_alloc(&with[i]))
			fail_msg("not in: %s, UCX %s", with[i].profile, with[i].version);
	for (size_t i = 0; i < NP_ARRAY_SIZE(without); i++)
		if (has_whole_alloc(&without[i]))
			fail_msg("in: %s, UCX %s", without[i].profile, without[i].version);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
