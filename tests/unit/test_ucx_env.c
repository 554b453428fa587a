/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "agent/ucx_env.h"

#define HCAS "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1"

struct fixture {
	struct np_strv ports;
	struct np_ucx_input in;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f || np_strv_split(&f->ports, HCAS, ",") < 0)
		return -1;
	f->in.hca_ports = &f->ports;
	f->in.netdev = "ib0";
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	np_strv_done(&f->ports);
	free(f);
	return 0;
}

/* "NAME=VALUE NAME=VALUE" */
static void check(const struct np_ucx_input *in, const char *wanted)
{
	np_auto_buf struct np_buf got = { 0 };
	struct np_env env = { 0 };
	struct np_err err;

	assert_int_equal(np_ucx_env(in, &env, &err), 0);
	np_buf_str(&got, "");
	for (size_t i = 0; i < env.n; i++)
		np_buf_printf(&got, "%s%s=%s", i ? " " : "", env.v[i].name, env.v[i].value);
	assert_string_equal(got.data, wanted);
	np_env_done(&env);
}

static void test_profiles(void **state)
{
	struct fixture *f = *state;
	struct np_ucx_input in = f->in;

	in.profile = NP_UCX_STANDARD;
	check(&in, "UCX_TLS=rc,cuda_copy,cuda_ipc,tcp,sm,self UCX_NET_DEVICES=" HCAS ",ib0");
	in.gdr_copy = true;
	check(&in,
	      "UCX_TLS=rc,cuda_copy,cuda_ipc,gdr_copy,tcp,sm,self UCX_NET_DEVICES=" HCAS ",ib0");
	in.profile = NP_UCX_GUIDE;
	check(&in, "UCX_TLS=rc,cuda_copy,cuda_ipc,gdr_copy UCX_NET_DEVICES=" HCAS);
	in.profile = NP_UCX_DASK;
	check(&in, "UCX_TLS=rc,tcp,cuda_copy,cuda_ipc,gdr_copy UCX_NET_DEVICES=" HCAS ",ib0"
		   " UCX_MAX_RNDV_RAILS=1 UCX_MEMTYPE_REG_WHOLE_ALLOC_TYPES=cuda"
		   " UCX_SOCKADDR_TLS_PRIORITY=rdmacm,tcp");
	in.profile = NP_UCX_AUTO;
	check(&in, "UCX_TLS=all");
	in.profile = NP_UCX_OFF;
	check(&in, "");
	in.profile = NP_UCX_GUIDE;
	in.gdr_copy = false;
	check(&in, "UCX_TLS=rc,cuda_copy,cuda_ipc UCX_NET_DEVICES=" HCAS);
	in.profile = NP_UCX_DASK;
	in.netdev = NULL;
	check(&in, "UCX_TLS=rc,tcp,cuda_copy,cuda_ipc UCX_NET_DEVICES=" HCAS
		   " UCX_MAX_RNDV_RAILS=1 UCX_MEMTYPE_REG_WHOLE_ALLOC_TYPES=cuda"
		   " UCX_SOCKADDR_TLS_PRIORITY=rdmacm,tcp");
}

/* What UCX does by itself is not said; of an unknown version everything is. */
static void test_dask_by_version(void **state)
{
	static const struct {
		const char *version;
		bool said;
	} cases[] = { { NULL, true },	   { "", true },	{ "1.9.0", true },
		      { "1.11.2", true },  { "1.12.0", false }, { "1.13.1", false },
		      { "1.22.0", false }, { "2.0.0", false } };
	struct fixture *f = *state;
	struct np_ucx_input in = f->in;

	in.profile = NP_UCX_DASK;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		in.version = cases[i].version;
		check(&in, cases[i].said ?
				   "UCX_TLS=rc,tcp,cuda_copy,cuda_ipc UCX_NET_DEVICES=" HCAS ",ib0"
				   " UCX_MAX_RNDV_RAILS=1 UCX_MEMTYPE_REG_WHOLE_ALLOC_TYPES=cuda"
				   " UCX_SOCKADDR_TLS_PRIORITY=rdmacm,tcp" :
				   "UCX_TLS=rc,tcp,cuda_copy,cuda_ipc UCX_NET_DEVICES=" HCAS ",ib0"
				   " UCX_MAX_RNDV_RAILS=1 UCX_SOCKADDR_TLS_PRIORITY=rdmacm,tcp");
	}
	assert_true(np_ucx_is_older("1.11.0", "1.11.1"));
	assert_false(np_ucx_is_older("1.11.1", "1.11.1"));
	assert_false(np_ucx_is_older("1.13.1", "1.11.1"));
	assert_true(np_ucx_is_older("1.9.0", "1.11.1"));
	assert_false(np_ucx_is_older("", "1.11.1") || np_ucx_is_older(NULL, "1.11.1"));
	assert_false(np_ucx_is_since("", "1.11.1") || np_ucx_is_since(NULL, "1.11.1"));
}

static void test_no_hca(void **state)
{
	static const enum np_ucx_profile profiles[] = { NP_UCX_STANDARD, NP_UCX_GUIDE };
	static const char *const tls[] = { "UCX_TLS=rc,cuda_copy,cuda_ipc,tcp,sm,self",
					   "UCX_TLS=rc,cuda_copy,cuda_ipc" };
	struct fixture *f = *state;
	struct np_strv none = { 0 };

	for (size_t i = 0; i < NP_ARRAY_SIZE(profiles); i++) {
		struct np_ucx_input in = f->in;
		char wanted[120];

		in.profile = profiles[i];
		in.hca_ports = i ? NULL : &none;
		snprintf(wanted, sizeof(wanted), "%s UCX_NET_DEVICES=ib0", tls[i]);
		check(&in, wanted);
		in.netdev = NULL;
		check(&in, tls[i]);
	}
}

static void test_overrides(void **state)
{
	struct fixture *f = *state;
	struct np_ucx_input in = f->in;

	in.tls = "rc,cuda_copy";
	in.net_devices = "mlx5_0:1,ib0";
	check(&in, "UCX_TLS=rc,cuda_copy UCX_NET_DEVICES=mlx5_0:1,ib0");
	in.profile = NP_UCX_AUTO;
	check(&in, "UCX_TLS=rc,cuda_copy UCX_NET_DEVICES=mlx5_0:1,ib0");
	in.profile = NP_UCX_OFF;
	check(&in, "");
}

static void test_bad_values(void **state)
{
	static const char *const bad[] = {
		"",	" ",	"rc sm", "rc;id",    "$(id)",  "`id`", "rc'", "rc\"",
		"rc\\", "rc\n", "rc!",	 "rc&",	     "rc|x",   "rc>x", "~",   "*",
		"rc#x", "rc%",	"@",	 "\xc3\xa9", "rc\x01", "{a}",
	};
	struct fixture *f = *state;
	struct np_env env = { 0 };
	struct np_err err;

	for (size_t i = 0; i < NP_ARRAY_SIZE(bad); i++) {
		struct np_ucx_input in = f->in;

		in.tls = bad[i];
		np_err_clear(&err);
		assert_int_equal(np_ucx_env(&in, &env, &err), -EINVAL);
		assert_string_equal(err.code, "ucx.value_invalid");
		in.tls = NULL;
		in.netdev = bad[i];
		assert_int_equal(np_ucx_env(&in, &env, &err), bad[i][0] ? -EINVAL : 0);
		np_env_done(&env);
	}
}

static void test_parse(void **state)
{
	enum np_ucx_profile p = NP_UCX_DASK;

	(void)state;
	for (int i = 0; np_ucx_profile_names[i]; i++) {
		assert_int_equal(np_ucx_profile_parse(np_ucx_profile_names[i], &p), 0);
		assert_int_equal(p, i);
		assert_string_equal(np_ucx_profile_str(p), np_ucx_profile_names[i]);
	}
	assert_int_equal(p, NP_UCX_OFF);
	assert_int_equal(np_ucx_profile_parse("Standard", &p), -EINVAL);
	assert_int_equal(np_ucx_profile_parse(NULL, &p), -EINVAL);
	assert_int_equal(p, NP_UCX_OFF);
}

static void test_render(void **state)
{
	char name_value[] = "rc,tcp";
	struct np_env_var var = { .name = "UCX_TLS", .value = name_value };
	struct np_env env = { .v = &var, .n = 1 }, empty = { 0 };
	np_auto_buf struct np_buf out = { 0 };

	(void)state;
	assert_int_equal(np_ucx_render_sh(&env, &out), 0);
	assert_true(np_starts_with(out.data, "# Written by nodeprep"));
	assert_non_null(strstr(out.data, "[ucx] section of /etc/nodeprep/nodeprep.conf"));
	assert_non_null(strstr(out.data, "\nif [ \"${UCX_TLS+set}\" != set ]; then\n"
					 "\tUCX_TLS='rc,tcp'\n\texport UCX_TLS\nfi\n"));
	assert_int_equal(np_ucx_render_csh(&env, &out), 0);
	assert_non_null(strstr(out.data, "\nif ( ! $?UCX_TLS ) setenv UCX_TLS 'rc,tcp'\n"));
	assert_int_equal(np_ucx_render_env(&env, NULL, &out), 0);
	assert_non_null(strstr(out.data, "\nUCX_TLS=rc,tcp\n"));
	assert_null(strchr(out.data, '\''));
	assert_int_equal(np_ucx_render_sh(&empty, &out), 0);
	assert_non_null(strstr(out.data, "# Nothing is set"));
	for (const char *line = out.data; *line; line = strchr(line, '\n') + 1)
		assert_int_equal(*line, '#');
}

/* The whitelist holds even for variables that did not come from np_ucx_env. */
static void test_render_refuses(void **state)
{
	char bad_value[] = "a'b", good_value[] = "a";
	struct np_env_var vars[] = { { .name = "UCX_TLS", .value = bad_value },
				     { .name = "ucx;id", .value = good_value },
				     { .name = "", .value = good_value } };
	np_auto_buf struct np_buf out = { 0 };

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(vars); i++) {
		struct np_env env = { .v = &vars[i], .n = 1 };

		assert_int_equal(np_ucx_render_sh(&env, &out), -EINVAL);
		assert_int_equal(np_ucx_render_csh(&env, &out), -EINVAL);
		assert_int_equal(np_ucx_render_env(&env, NULL, &out), -EINVAL);
		assert_null(out.data);
	}
}

static void test_modulefile(void **state)
{
	char value[] = "rc,tcp";
	struct np_env_var var = { .name = "UCX_TLS", .value = value };
	struct np_env env = { .v = &var, .n = 1 };
	np_auto_buf struct np_buf out = { 0 };

	(void)state;
	assert_int_equal(np_ucx_render_modulefile(&env, "/m/ucx", &out), 0);
	/* without that line neither tool takes the file for one of its own */
	assert_true(np_starts_with(out.data, "#%Module1.0\n"));
	assert_true(np_ucx_is_ours(out.data));
	assert_non_null(strstr(out.data, "\nif { ![info exists env(UCX_TLS)] || $env(UCX_TLS) eq "
					 "\"rc,tcp\" } {\n\tsetenv UCX_TLS \"rc,tcp\"\n}\n"));
	assert_int_equal(np_ucx_render_modulefile(&env, "/m/ucx.lua", &out), 0);
	assert_true(np_ucx_is_ours(out.data));
	assert_non_null(strstr(out.data, "\ndefault(\"UCX_TLS\", \"rc,tcp\")\n"));
	assert_false(np_ucx_modulefile_is_lua(".lua"));
	assert_false(np_ucx_is_ours("#%Module1.0\n# of the site, once Written by nodeprep\n"));
}

/* Where it was written, in the file that is always there with it. */
static void test_modulefile_is_remembered(void **state)
{
	struct np_env env = { 0 };
	np_auto_buf struct np_buf out = { 0 };
	_cleanup_free_ char *path = NULL, *none = NULL;

	(void)state;
	assert_int_equal(np_ucx_render_env(&env, "/m/ucx.lua", &out), 0);
	path = np_ucx_env_modulefile(out.data, out.len);
	assert_string_equal(path, "/m/ucx.lua");
	assert_int_equal(np_ucx_render_env(&env, NULL, &out), 0);
	none = np_ucx_env_modulefile(out.data, out.len);
	assert_null(none);
	/* nothing that the key would not take */
	none = np_ucx_env_modulefile("# The same as a modulefile: ../x\n", 33);
	assert_null(none);
}

static void test_modulefile_path(void **state)
{
	static const char *const good[] = { "/etc/modulefiles/ucx", "/a.lua", "/a/b-1.2+c=d,e/f",
					    "/etc/nodeprep/modulefiles/ucx",
					    "/etc/profile.d/modules/ucx" },
				 *const bad[] = {
					 "", "ucx", "/", "/a/", "/a b", "/a/.x", "/a/../b",
					 "/a/./b", "/a//b", "/a'b", "/.lua", "/a\nb",
					 /* read by others, or nodeprep's own */
					 "/etc/nccl.conf", "/etc/profile.d/nodeprep-ucx.sh",
					 "/etc/nodeprep/ucx.env", "/etc/nodeprep/conf.d/x.conf",
					 "/etc/modprobe.d/nodeprep.conf",
					 "/etc/security/limits.d/x.conf", "/etc/dask/nodeprep.yaml",
					 "/var/lib/nodeprep/journal.json", "/proc/self/x", "/dev/x"
				 };
	char longest[NP_UCX_MODULEFILE_MAX + 2];

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(good); i++)
		if (!np_ucx_modulefile_ok(good[i]))
			fail_msg("\"%s\" is refused", good[i]);
	for (size_t i = 0; i < NP_ARRAY_SIZE(bad); i++)
		if (np_ucx_modulefile_ok(bad[i]))
			fail_msg("\"%s\" is taken", bad[i]);
	memset(longest, 'a', sizeof(longest));
	longest[0] = '/';
	longest[NP_UCX_MODULEFILE_MAX + 1] = '\0';
	assert_false(np_ucx_modulefile_ok(longest));
	longest[NP_UCX_MODULEFILE_MAX] = '\0';
	assert_true(np_ucx_modulefile_ok(longest));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_profiles, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_dask_by_version, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_hca, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_overrides, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bad_values, set_up, tear_down),
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_render),
		cmocka_unit_test(test_render_refuses),
		cmocka_unit_test(test_modulefile),
		cmocka_unit_test(test_modulefile_is_remembered),
		cmocka_unit_test(test_modulefile_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
