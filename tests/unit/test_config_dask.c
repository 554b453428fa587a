/* SPDX-License-Identifier: MIT */
/* The keys of [dask]: what is taken, and what is not. */
#include "facts_build.h"

static void test_values(void **state)
{
	static const struct {
		const char *key, *good, *bad[8];
	} cases[] = {
		{ "enabled", "yes", { "", "maybe", "auto" } },
		{ "protocol", "tcp", { "", "ucxx", "tls", "ucx://" } },
		{ "scheduler_address",
		  "10.0.0.50:8786",
		  { "", "a b", "ucx://x", "x:", "x:0", "x:65536", "-x", "$x" } },
		{ "interface", "ib0.8001", { "", "ib0 ib1", "-x", "ib0;x", "a23456789012345678" } },
		{ "prefix", "/opt/conda/envs/r-1", { "", "opt", "/a b", "/a:b", "/a$b", "/a%b" } },
		{ "rmm_pool_size", "24GiB", { "", "24", "24 GB", "auto", "0 GiB" } },
		{ "connect_timeout", "60", { "", "0", "601", "60s", "1.5", "-1" } },
		{ "nvlink", "auto", { "", "maybe" } },
		{ "create_cuda_context", "no", { "", "2" } },
		{ "find_forks", "on", { "", "auto" } },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct np_config cfg;
		struct np_err err;

		np_config_init(&cfg);
		assert_int_equal(
			np_config_set(&cfg, "dask", cases[i].key, cases[i].good, "x:1", &err), 0);
		for (size_t k = 0; k < 8 && cases[i].bad[k]; k++) {
			np_err_clear(&err);
			if (np_config_set(&cfg, "dask", cases[i].key, cases[i].bad[k], "x:1",
					  &err) != -EINVAL)
				fail_msg("%s = \"%s\" is taken", cases[i].key, cases[i].bad[k]);
			assert_string_equal(err.code, "config.bad_value");
		}
		np_config_done(&cfg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_values) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
