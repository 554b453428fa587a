/* SPDX-License-Identifier: MIT */
/* What UCP prints of a context (as seen with 1.13 and 1.23), and the verdicts on transports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "selftest/ucx_verdict.h"

static const char context[] = "#\n# UCP context\n#\n"
			      "#     component 0  :  tcp\n"
			      "#     component 1  :  ib\n"
			      "#     component 2  :  cuda_cpy\n"
			      "#\n"
			      "#            md 0  :  component 0  tcp \n"
			      "#            md 1  :  component 1  mlx5_0 \n"
			      "#\n"
			      "#      resource 0  :  md 0  dev 0  flags -- tcp/ib0\n"
			      "#      resource 1  :  md 1  dev 1  flags a- rc_mlx5/mlx5_0:1\n"
			      "#\n# memory: 1.0MB, file descriptors: 9\n";

static void context_is_read(void **state)
{
	np_auto_ucx_view struct np_ucx_view view = { 0 };
	const struct np_ucx_transport *rc;

	(void)state;
	assert_int_equal(np_ucx_view_parse(context, &view), 0);
	assert_int_equal(view.components.n, 3);
	assert_string_equal(view.components.v[2], "cuda_cpy");
	assert_int_equal(view.n_mds, 2);
	assert_string_equal(view.mds[1].name, "mlx5_0");
	assert_string_equal(view.mds[1].component, "ib");
	assert_int_equal(view.n_transports, 2);
	rc = &view.transports[1];
	assert_string_equal(rc->name, "rc_mlx5");
	assert_string_equal(rc->device, "mlx5_0:1");
	assert_string_equal(rc->md, "mlx5_0");
	assert_false(rc->opened);
	assert_null(rc->type);
}

static void other_words_are_passed_over(void **state)
{
	static const char *const texts[] = {
		"",
		"nothing",
		"# md 0 : component 0 x\n# resource 0 : md 0 dev 0 flags -- a/b\n",
		"#  component 1 : late\n",
		"#  component x : late\n",
		"#  component 0 : tcp\n# md 0 : component 7 far\n# resource 0 : md 0 -- a/b\n",
		"#  component 0 : tcp\n# md 0 : component 18446744073709551616 far\n",
		"#  component 0 : tcp\n# md 0 : component 0 tcp\n# resource 0 : md 3 dev 0 flags -- a/b\n",
		"#  component 0 : tcp\n# md 0 : component 0 tcp\n# resource 0 : md 0 dev 0 flags -- a\n",
		"#  component 0 : tcp\n# md 0 : component 0 tcp\n# resource 0 : md 0 dev 0 flags\n",
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(texts); i++) {
		np_auto_ucx_view struct np_ucx_view view = { 0 };

		assert_int_equal(np_ucx_view_parse(texts[i], &view), 0);
		assert_int_equal(view.n_transports, 0);
	}
}

static void versions(void **state)
{
	unsigned int major, minor;
	char *end;

	(void)state;
	major = (unsigned int)strtoul(np_ucx_built_against(), &end, 10);
	assert_int_equal(*end, '.');
	minor = (unsigned int)strtoul(end + 1, &end, 10);
	assert_int_equal(*end, '\0');
	assert_true(np_ucx_is_exact(major, minor));
	assert_false(np_ucx_is_exact(major, minor + 1));
	assert_false(np_ucx_is_exact(major, minor - 1));
	assert_false(np_ucx_is_exact(major + 1, minor));
}

static const struct np_ucx_wanted *wanted(const char *name)
{
	const struct np_ucx_wanted *w = np_ucx_wanted;

	while (!np_streq(w->name, name))
		w++;
	return w;
}

/* Status of a transport, its reason in @why. */
static const char *judged(const struct np_ucx_view *view, const char *name,
			  const struct np_ucx_evidence *evidence, bool brief, char why[420])
{
	const struct np_ucx_evidence none = { 0 };
	struct np_ucx_verdict v;

	np_ucx_judge(view, wanted(name), evidence ? evidence : &none, brief, &v);
	np_strcpy(why, 420, v.reason);
	return np_ucx_status_str(v.status);
}

static void verdicts(void **state)
{
	const struct np_ucx_evidence no_gpu = { .device_error = "cuInit says no" };
	const struct np_ucx_evidence broken = { .module_path = "/x/libuct_cuda_gdrcopy.so.0",
						.module_error = "libgdrapi.so.2: none" };
	const struct np_ucx_evidence fine = { .module_path = "/x/libuct_cuda_gdrcopy.so.0" };
	np_auto_ucx_view struct np_ucx_view view = { .version = "1.23.0", .path = "/x/libucp.so" };
	char why[420];

	(void)state;
	assert_int_equal(np_ucx_view_parse(context, &view), 0);
	assert_string_equal(judged(&view, "rc", NULL, false, why), "usable");
	assert_string_equal(why, "");
	assert_string_equal(judged(&view, "tcp", NULL, false, why), "usable");
	assert_string_equal(judged(&view, "cuda_copy", &no_gpu, false, why), "device not usable");
	assert_string_equal(why, "cuInit says no");
	assert_string_equal(judged(&view, "cuda_copy", &no_gpu, true, why), "not tried");
	assert_string_equal(judged(&view, "gdr_copy", NULL, false, why), "built without");
	assert_non_null(strstr(why, "/x/libucp.so"));
	assert_string_equal(judged(&view, "gdr_copy", NULL, true, why), "built without");
	assert_string_equal(judged(&view, "gdr_copy", &broken, true, why), "device not usable");
	assert_non_null(strstr(why, "libgdrapi.so.2: none"));
	assert_string_equal(judged(&view, "gdr_copy", &fine, true, why), "not tried");
	/* tcp is a part of libuct: without a device it is never "built without" */
	view.n_transports = 0;
	assert_string_equal(judged(&view, "tcp", NULL, false, why), "device not usable");
}

static void a_device_that_does_not_open(void **state)
{
	np_auto_ucx_view struct np_ucx_view view = { 0 };
	struct np_ucx_transport *rc;
	char why[420];

	(void)state;
	assert_int_equal(np_ucx_view_parse(context, &view), 0);
	np_strcpy(view.transports[1].failure, sizeof(view.transports[1].failure), "No such device");
	assert_string_equal(judged(&view, "rc", NULL, false, why), "device not usable");
	assert_string_equal(why, "mlx5_0:1 cannot be opened: No such device");
	/* one that works is enough */
	rc = np_ucx_view_add_transport(&view);
	np_strcpy(rc->name, sizeof(rc->name), "rc_verbs");
	assert_string_equal(judged(&view, "rc", NULL, false, why), "usable");
	/* so is the reason of the memory domain, where there is no transport */
	view.n_transports = 0;
	np_strcpy(view.mds[1].failure, sizeof(view.mds[1].failure), "No space");
	assert_string_equal(judged(&view, "rc", NULL, false, why), "device not usable");
	assert_string_equal(why, "UCX finds no device for it: No space");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(context_is_read),
		cmocka_unit_test(other_words_are_passed_over),
		cmocka_unit_test(versions),
		cmocka_unit_test(verdicts),
		cmocka_unit_test(a_device_that_does_not_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
