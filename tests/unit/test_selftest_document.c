/* SPDX-License-Identifier: MIT */
/* The document on stdout, the command line and what is taken from the environment. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "selftest/document.h"
#include "selftest/early.h"
#include "selftest/netif.h"
#include "selftest/options.h"

static json_t *load(const struct np_rung_report *report, const struct np_err *err)
{
	_cleanup_free_ char *text = np_document(report, err);
	json_t *document;

	assert_non_null(text);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	assert_int_equal(strncmp(text, "{\"schema\": 1,", 13), 0);
	document = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(document);
	return document;
}

static const json_t *entry(const json_t *document, size_t i, const char *key)
{
	return json_object_get(json_array_get(json_object_get(document, "selftest"), i), key);
}

static void numbers_of_an_ok_rung(void **state)
{
	np_auto_rung_report struct np_rung_report report = { 0 };
	struct np_rung_result *result = np_rung_add(&report, "rc", "mlx5_0:1");
	json_t *document;

	(void)state;
	result->sizes[0] = (struct np_rung_size){ 8, 1.23456, 3.5 };
	result->sizes[1] = (struct np_rung_size){ 8388608, 700, 12000.12345 };
	result->n_sizes = 2;
	np_rung_ok(result, "moved %d", 2);
	document = load(&report, NULL);
	assert_true(json_is_true(json_object_get(document, "ready")));
	assert_true(json_is_false(json_object_get(document, "changed")));
	assert_int_equal(json_array_size(json_object_get(document, "actions")), 0);
	assert_true(json_is_array(json_object_get(document, "checks")));
	assert_null(json_object_get(document, "error"));
	assert_string_equal(json_string_value(entry(document, 0, "status")), "ok");
	assert_string_equal(json_string_value(entry(document, 0, "code")), "");
	assert_int_equal(json_integer_value(entry(document, 0, "size_bytes")), 8388608);
	assert_float_equal(json_real_value(entry(document, 0, "latency_us")), 1.235, 1e-9);
	assert_float_equal(json_real_value(entry(document, 0, "bandwidth_MBps")), 12000.123, 1e-9);
	assert_int_equal(json_array_size(entry(document, 0, "sizes")), 2);
	json_decref(document);
}

static void not_measured_is_null(void **state)
{
	np_auto_rung_report struct np_rung_report report = { 0 };
	struct np_rung_result *result = np_rung_add(&report, "rc", NULL);
	struct np_err why;
	json_t *document;

	(void)state;
	np_err_set(&why, -ENOENT, "selftest.rc.no_uverbs", "none \xff here");
	np_err_hint(&why, "load ib_uverbs");
	np_rung_fail(result, &why);
	document = load(&report, NULL);
	assert_true(json_is_false(json_object_get(document, "ready")));
	assert_true(json_is_null(entry(document, 0, "latency_us")));
	assert_true(json_is_null(entry(document, 0, "size_bytes")));
	assert_string_equal(json_string_value(entry(document, 0, "code")), "selftest.rc.no_uverbs");
	assert_string_equal(json_string_value(entry(document, 0, "message")), "none \\xff here");
	assert_string_equal(json_string_value(entry(document, 0, "hint")), "load ib_uverbs");
	json_decref(document);
}

static void a_skip_is_not_ready(void **state)
{
	np_auto_rung_report struct np_rung_report report = { 0 };
	struct np_err why;

	(void)state;
	assert_false(np_rung_report_ok(&report));
	np_rung_ok(np_rung_add(&report, "rc", "mlx5_0:1"), "good");
	assert_true(np_rung_report_ok(&report));
	np_err_set(&why, -ENETDOWN, "selftest.rc.port_not_active", "down");
	np_rung_warn(np_rung_add(&report, "umad", "mlx5_0:1"), &why);
	assert_true(np_rung_report_ok(&report));
	np_rung_skip(np_rung_add(&report, "rc", "mlx5_1:1"), &why);
	assert_false(np_rung_report_ok(&report));
}

static void an_error_has_its_member(void **state)
{
	struct np_rung_report report = { 0 };
	struct np_err err;
	json_t *document;

	(void)state;
	np_err_nomem(&err);
	document = load(&report, &err);
	assert_true(json_is_false(json_object_get(document, "ready")));
	assert_non_null(json_object_get(json_object_get(document, "error"), "code"));
	json_decref(document);
}

static int parse(const char *const *words, struct np_options *out, struct np_err *err)
{
	char *argv[16] = { (char *)"nodeprep-selftest" };
	int argc = 1;

	for (; words[argc - 1]; argc++)
		argv[argc] = (char *)words[argc - 1];
	np_err_clear(err);
	return np_options_parse(argc, argv, out, err);
}

/* What was not measured is null; counters are there where they were looked at. */
static void a_warning_without_bandwidth(void **state)
{
	np_auto_rung_report struct np_rung_report report = { 0 };
	struct np_rung_result *result = np_rung_add(&report, "umad", "mlx5_0:1");
	const json_t *size;
	struct np_err why;
	json_t *document;

	(void)state;
	np_err_set(&why, -EIO, "selftest.umad.degraded", "1X of 4X");
	result->sizes[0] = (struct np_rung_size){ 256, 5, 0 };
	result->n_sizes = 1;
	np_rung_warn(result, &why);
	result = np_rung_add(&report, "verbs", "mlx5_0:1");
	result->growth = (struct np_port_growth){ true, 11, 12, 10 };
	document = load(&report, NULL);
	assert_true(
		json_is_false(json_object_get(document, "ready"))); /* the second has no verdict */
	assert_string_equal(json_string_value(entry(document, 0, "status")), "warn");
	assert_string_equal(json_string_value(entry(document, 0, "code")),
			    "selftest.umad.degraded");
	assert_true(json_is_null(entry(document, 0, "bandwidth_MBps")));
	size = json_array_get(entry(document, 0, "sizes"), 0);
	assert_true(json_is_null(json_object_get(size, "bandwidth_MBps")));
	assert_null(entry(document, 0, "counters"));
	assert_int_equal(
		json_integer_value(json_object_get(entry(document, 1, "counters"), "xmit_bytes")),
		11);
	assert_int_equal(
		json_integer_value(json_object_get(entry(document, 1, "counters"), "rcv_bytes")),
		12);
	assert_int_equal(
		json_integer_value(json_object_get(entry(document, 1, "counters"), "moved_bytes")),
		10);
	json_decref(document);
}

static void options_around_the_rung(void **state)
{
	const char *const words[] = { "--full", "rc",	 "--device=mlx5_0:1", "--timeout-ms",
				      "500",	"--env", "UCX_IB_SL=1",	      NULL };
	np_auto_options struct np_options options = { 0 };
	struct np_err err;

	(void)state;
	assert_int_equal(parse(words, &options, &err), 0);
	assert_string_equal(options.rung->name, "rc");
	assert_string_equal(options.rung_options.device, "mlx5_0:1");
	assert_true(options.rung_options.full);
	assert_int_equal(options.rung_options.timeout_ms, 500);
	assert_int_equal(options.n_env, 1);
	assert_string_equal(options.env[0], "UCX_IB_SL=1");
}

static void options_of_verbs(void **state)
{
	static const char *const plain[] = { "verbs", NULL };
	static const char *const both[] = { "verbs", "--peer=mlx5_1:1", "--gid-index", "3", NULL };
	static const char *const bad[] = { "verbs", "--gid-index", "-1", NULL };
	struct np_options options = { 0 };
	struct np_err err;

	(void)state;
	assert_int_equal(parse(plain, &options, &err), 0);
	assert_null(options.rung_options.peer);
	assert_int_equal(options.rung_options.gid_index, -1);
	np_options_done(&options);
	assert_int_equal(parse(both, &options, &err), 0);
	assert_string_equal(options.rung_options.peer, "mlx5_1:1");
	assert_int_equal(options.rung_options.gid_index, 3);
	np_options_done(&options);
	assert_int_equal(parse(bad, &options, &err), -EINVAL);
}

static void wrong_command_lines(void **state)
{
	static const char *const lines[][4] = {
		{ NULL },
		{ "rcc", NULL },
		{ "rc", "tcp", NULL },
		{ "rc", "--devise", "x", NULL },
		{ "rc", "--device", NULL },
		{ "rc", "--timeout-ms", "0", NULL },
		{ "rc", "--timeout-ms", "1e3", NULL },
		{ "rc", "--timeout-ms=99999999999", NULL },
		{ "rc", "--full=yes", NULL },
		{ "rc", "--env", "=x", NULL },
		{ "rc", "--env", "NAME", NULL },
		{ "rc", "--env", "A B=x", NULL },
		{ "rc", "-", NULL },
	};
	struct np_options options = { 0 };
	struct np_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(parse(lines[i], &options, &err), -EINVAL);
		assert_true(err.message[0]);
		assert_null(options.env);
	}
	assert_int_equal(parse(lines[3], &options, &err), -EINVAL);
	assert_string_equal(err.hint, "did you mean --device?");
}

static void ucx_settings_are_not_inherited(void **state)
{
	char *env[] = { (char *)"UCX_TLS=all",
			(char *)"PATH=/bin",
			(char *)"HOME=/root",
			(char *)"UCX_",
			(char *)"UCXPY_X=1",
			(char *)"HOMEDIR=/x",
			(char *)"UCX_LOG_LEVEL=debug",
			(char *)"NCCL_ALGO=Ring",
			(char *)"CUDA_VISIBLE_DEVICES=",
			NULL };

	(void)state;
	assert_int_equal(np_early_clean(env), 6);
	assert_string_equal(env[0], "PATH=/bin");
	assert_string_equal(env[1], "UCXPY_X=1");
	assert_string_equal(env[2], "HOMEDIR=/x");
	assert_null(env[3]);
	assert_int_equal(np_early_clean(env), 0);
}

static void addresses(void **state)
{
	static const char *const wrong[] = { "",    "10.0.0",	 "10.0.0.256", "ib0",
					     "::g", "10.0.0.1 ", "%s%n" };
	struct np_err err;
	char out[64];

	(void)state;
	assert_int_equal(np_netif_address("10.0.0.50/24", out, &err), 0);
	assert_string_equal(out, "10.0.0.50");
	assert_int_equal(np_netif_address("FD00:0::0001", out, &err), 0);
	assert_string_equal(out, "fd00::1");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(np_netif_address(wrong[i], out, &err), -EINVAL);
}

static void sizes_in_words(void **state)
{
	char out[32];

	(void)state;
	assert_string_equal(np_size_str(1, out), "1 B");
	assert_string_equal(np_size_str(1500, out), "1500 B");
	assert_string_equal(np_size_str(65536, out), "64 KiB");
	assert_string_equal(np_size_str(64u << 20, out), "64 MiB");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_of_an_ok_rung),
		cmocka_unit_test(not_measured_is_null),
		cmocka_unit_test(a_skip_is_not_ready),
		cmocka_unit_test(an_error_has_its_member),
		cmocka_unit_test(a_warning_without_bandwidth),
		cmocka_unit_test(options_of_verbs),
		cmocka_unit_test(options_around_the_rung),
		cmocka_unit_test(wrong_command_lines),
		cmocka_unit_test(ucx_settings_are_not_inherited),
		cmocka_unit_test(addresses),
		cmocka_unit_test(sizes_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
