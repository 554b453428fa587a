/* SPDX-License-Identifier: MIT */
/* Which Dask is installed, and what that means for [dask]. */
#include <sys/stat.h>
#include <unistd.h>

#include "judge_scene.h"

static void test_names(void **state)
{
	static const struct {
		const char *name, *distributed, *ucxx, *ucx_py;
	} cases[] = {
		{ "distributed-2022.12.1+ds.1.egg-info", "2022.12.1", "", "" },
		{ "distributed-2025.9.0.dist-info", "2025.9.0", "", "" },
		{ "distributed-2022.12.1-py3.11.egg-info", "2022.12.1", "", "" },
		{ "distributed_ucxx-0.46.0.dist-info", "", "0.46.0", "" },
		{ "distributed_ucxx_cu12-0.46.0.dist-info", "", "0.46.0", "" },
		{ "distributed_ucxx_cu13-0.52.0a15.dist-info", "", "0.52.0", "" },
		{ "ucx_py-0.41.0.dist-info", "", "", "0.41.0" },
		{ "ucx_py_cu12-0.42.0.dist-info", "", "", "0.42.0" },
		/* others, and what is no metadata */
		{ "distributed", "", "", "" },
		{ "distributed-2025.9.0", "", "", "" },
		{ "distributed-.dist-info", "", "", "" },
		{ "distributed-x.dist-info", "", "", "" },
		{ "distributed-123456789012345678901234567890123.dist-info", "", "", "" },
		{ "distributed_ucxx_extra-1.0.dist-info", "", "", "" },
		{ "distributedx-1.0.dist-info", "", "", "" },
		{ "dask-2025.9.0.dist-info", "", "", "" },
		{ "ucxx-0.46.0.dist-info", "", "", "" },
		{ "", "", "", "" },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct np_dask_versions v = { 0 };
		bool any = cases[i].distributed[0] || cases[i].ucxx[0] || cases[i].ucx_py[0];

		assert_int_equal(np_dask_versions_take(cases[i].name, &v), any);
		assert_string_equal(v.distributed, cases[i].distributed);
		assert_string_equal(v.ucxx, cases[i].ucxx);
		assert_string_equal(v.ucx_py, cases[i].ucx_py);
	}
}

static void test_a_prefix(void **state)
{
	static const char *const folders[] = {
		"/lib", "/lib/python3.12", "/lib/python3.12/site-packages",
		"/lib/python3.12/site-packages/ucx_py-0.41.0.dist-info",
		"/lib/python3.12/site-packages/distributed-2024.9.0.dist-info"
	};
	char where[] = "/tmp/np-dask-XXXXXX", path[128];
	struct np_dask_versions v;

	(void)state;
	assert_non_null(mkdtemp(where));
	np_dask_versions_observe(where, &v);
	assert_true(v.looked);
	assert_string_equal(v.distributed, "");
	for (size_t i = 0; i < NP_ARRAY_SIZE(folders); i++) {
		snprintf(path, sizeof(path), "%s%s", where, folders[i]);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	np_dask_versions_observe(where, &v);
	assert_string_equal(v.distributed, "2024.9.0");
	assert_string_equal(v.ucx_py, "0.41.0");
	assert_string_equal(v.ucxx, "");
	snprintf(path, sizeof(path), "%s%s", where, folders[2]);
	assert_string_equal(v.folder, path);
	for (size_t i = NP_ARRAY_SIZE(folders); i > 0; i--) {
		snprintf(path, sizeof(path), "%s%s", where, folders[i - 1]);
		assert_int_equal(rmdir(path), 0);
	}
	assert_int_equal(rmdir(where), 0);
}

static void test_judgement(void **state)
{
	static const struct {
		const char *distributed, *ucxx, *ucx_py, *timeout;
		const char *code, *said, *not_said;
	} cases[] = {
		/* all is read */
		{ "2026.7.1", "0.52.0", "", "", "", "", NULL },
		{ "2025.9.0", "0.46.0", "", "60", "dask.key_not_read",
		  "distributed-ucxx.connect-timeout, distributed.comm.ucx.connect-timeout;",
		  "distributed-ucxx.*" },
		{ "2025.7.0", "", "0.44.0", "", "dask.key_not_read", "distributed-ucxx.*;",
		  "timeout" },
		{ "2025.7.0", "", "0.44.0", "60", "dask.key_not_read",
		  "distributed-ucxx.*, distributed.comm.ucx.connect-timeout; it reads "
		  "UCXPY_CONNECT_TIMEOUT",
		  NULL },
		{ "2022.12.1", "", "0.29.0", "60", "dask.key_not_read", "after 5 s", "UCXPY" },
		/* ucx:// is beyond them */
		{ "2022.12.1", "", "", "", "dask.no_ucx", "distributed-ucxx is not there", NULL },
		{ "2025.9.0", "", "0.44.0", "", "dask.no_ucx", "does not suit", NULL },
		{ "2025.7.0", "0.45.0", "", "", "dask.no_ucx", "too old, 0.45.0", NULL },
		/* nobody was found, and nobody said where to look */
		{ "", "", "", "60", "", "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct np_dask_versions *v;
		const struct np_check *c = NULL;
		struct scene s;

		begin_guide(&s, FB_LIST("10.0.0.50/24"));
		set(&s, "dask", "enabled", "yes");
		if (cases[i].timeout[0])
			set(&s, "dask", "connect_timeout", cases[i].timeout);
		v = &s.facts.dask;
		v->looked = true;
		strcpy(v->distributed, cases[i].distributed);
		strcpy(v->ucxx, cases[i].ucxx);
		strcpy(v->ucx_py, cases[i].ucx_py);
		strcpy(v->folder, "/opt/x");
		judge(&s);
		for (size_t k = 0; k < s.checks.n; k++)
			if (strcmp(s.checks.v[k].id, "dask") == 0) {
				assert_null(c);
				c = &s.checks.v[k];
			}
		assert_string_equal(c ? c->code : "", cases[i].code);
		if (c) {
			says(c, cases[i].said);
			assert_true(!cases[i].not_said || !strstr(c->message, cases[i].not_said));
		}
		/* Dask's own tcp needs none of that */
		set(&s, "dask", "protocol", "tcp");
		judge(&s);
		assert_int_equal(count_of(&s, "dask"), 0);
		end(&s);
	}
}

static void test_an_empty_prefix(void **state)
{
	struct scene s;

	(void)state;
	begin_guide(&s, FB_LIST("10.0.0.50/24"));
	set(&s, "dask", "enabled", "yes");
	set(&s, "dask", "prefix", "/opt/rapids");
	s.facts.dask.looked = true;
	judge(&s);
	has(&s, "/opt/rapids", "dask.not_found", NP_CHECK_WARN);
	s.facts.dask.looked = false;
	judge(&s);
	assert_int_equal(count_of(&s, "dask"), 0);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_a_prefix),
		cmocka_unit_test(test_judgement),
		cmocka_unit_test(test_an_empty_prefix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
