/* SPDX-License-Identifier: MIT */
/* The document of nodeprep-selftest --libraries: taken member by member, from nobody who is
 * trusted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/libraries.h"
#include "agent/nvlink.h"

/* A good list of the brief ones; ' stands for " */
static const char good[] =
	"{'schema': 1, 'show': {'libraries': ["
	"{'name': 'ucx', 'status': 'loaded', 'path': '/x/libucp.so.0', 'version': '1.13.1',"
	" 'code': null, 'message': null, 'hint': null, 'gdrapi': null, 'nvml': null, 'ucx': {"
	"  'built_against': '1.13', 'exact': true, 'components': ['ib'],"
	"  'verdicts': [{'transport': 'rc', 'status': 'usable', 'reason': null},"
	"   {'transport': 'cuda_copy', 'status': 'built without', 'reason': 'no component'},"
	"   {'transport': 'gdr_copy', 'status': 'device not usable', 'reason': 'not loadable'}],"
	"  'memory_domains': [{'name': 'mlx5_0', 'component': 'ib', 'register': 'unlimited',"
	"   'allocate': null, 'rkey_bytes': 20, 'register_types': ['host', 'cuda'],"
	"   'access_types': ['host'], 'failure': null}],"
	"  'transports': [{'transport': 'rc_mlx5', 'device': 'mlx5_0:1', 'memory_domain': 'mlx5_0',"
	"   'type': 'network', 'bandwidth_MBps': 12208.5, 'shared_MBps': 12208.5,"
	"   'latency_ns': 600, 'latency_per_ep_ns': 1.0, 'overhead_ns': 40.5,"
	"   'put': {'short': 2048, 'bcopy': 8256, 'zcopy': 1073741824},"
	"   'get': {'short': null, 'bcopy': 8256, 'zcopy': 1073741824}, 'am': null,"
	"   'priority': 38, 'error_handling': ['peer failure'], 'failure': null}]}},"
	"{'name': 'cuda', 'status': 'loaded', 'path': '/x/libcuda.so.1', 'version': '13.3',"
	" 'code': null, 'message': null, 'hint': null, 'ucx': null, 'gdrapi': null, 'nvml': null},"
	"{'name': 'gdrapi', 'status': 'loaded', 'path': '/x/libgdrapi.so.2', 'version': '2.6',"
	" 'code': 'gdrapi.no_backend', 'message': 'none', 'hint': 'load', 'ucx': null, 'nvml': null,"
	" 'gdrapi': {'min_driver_version': '2.0', 'driver_version': null,"
	"  'min_library_version': null, 'backend': null, 'standin': false}}]}}";

/* @good with each @from replaced by @to; must be there. */
static char *changed(const char *from, const char *to)
{
	np_auto_buf struct np_buf out = { 0 };
	const char *at = strstr(good, from);

	assert_non_null(at);
	np_buf_add(&out, good, (size_t)(at - good));
	np_buf_str(&out, to);
	np_buf_str(&out, at + strlen(from));
	for (char *c = out.data; *c; c++)
		if (*c == '\'')
			*c = '"';
	return np_steal_pointer(&out.data);
}

static json_t *take(const char *text)
{
	return np_libraries_take(text, strlen(text), np_library_names_brief);
}

static void a_good_list(void **state)
{
	_cleanup_free_ char *text = changed("{'schema'", "{'more': 7, 'schema'");
	json_t *list = take(text);
	struct np_libraries l = { 0 };

	(void)state;
	assert_int_equal(json_array_size(list), 3);
	np_libraries_learn(list, &l);
	json_decref(list);
	assert_true(l.known);
	assert_int_equal(l.cuda, 13030);
	assert_int_equal(l.gdrapi, 2 << 16 | 6);
	assert_string_equal(l.gdrapi_path, "/x/libgdrapi.so.2");
	assert_string_equal(l.ucx_path, "/x/libucp.so.0");
	assert_string_equal(l.ucx_version, "1.13.1");
	assert_int_equal(l.n_transports, 3);
	assert_false(l.transports[0].missing);
	assert_true(l.transports[1].missing && !l.transports[1].built);
	assert_true(l.transports[2].missing && l.transports[2].built);
	assert_string_equal(l.transports[2].reason, "not loadable");
}

static void what_was_not_asked_for_is_left_behind(void **state)
{
	_cleanup_free_ char *text =
		changed("'path': '/x/libcuda.so.1'", "'path': '/x/libcuda.so.1', 'evil': 'x'");
	json_t *list = take(text);

	(void)state;
	assert_non_null(list);
	assert_null(json_object_get(json_array_get(list, 1), "evil"));
	json_decref(list);
}

static void anything_else_is_refused(void **state)
{
	static const char *const cases[][2] = {
		{ "{'schema'", "['schema'" },
		{ "'libraries'", "'library'" },
		{ "'show': {", "'show': 7, 'other': {" },
		/* the wrong libraries, too few, too many, twice */
		{ "'name': 'cuda'", "'name': 'nccl'" },
		{ "'name': 'cuda'", "'name': 'ucx'" },
		{ "'name': 'cuda'", "'name': 'worse'" },
		{ "'standin': false}}]", "'standin': false}}, {}]" },
		{ "{'name': 'cuda'", "{'name': 'cuda', 'name': 'cuda'" },
		/* types */
		{ "'path': '/x/libcuda.so.1'", "'path': 7" },
		{ "'path': '/x/libcuda.so.1'", "'path': ''" },
		{ "'path': '/x/libcuda.so.1'", "'path': ['/x']" },
		{ "'path': '/x/libcuda.so.1'", "'path': 'a\\nb'" },
		{ "'path': '/x/libcuda.so.1'", "'path': '\\u001b[31m'" },
		{ "'path': '/x/libcuda.so.1'", "'path': '\\u0000'" },
		{ "'path': '/x/libcuda.so.1', ", "" },
		{ "'exact': true", "'exact': 1" },
		{ "'components': ['ib']", "'components': [7]" },
		{ "'components': ['ib']", "'components': 'ib'" },
		{ "'components': ['ib']", "'components': null" },
		{ "'rkey_bytes': 20", "'rkey_bytes': -1" },
		{ "'rkey_bytes': 20", "'rkey_bytes': 1.5" },
		{ "'rkey_bytes': 20", "'rkey_bytes': 99999999999999999999" },
		{ "'short': 2048", "'short': 0" },
		{ "'short': 2048", "'short': -2048" },
		{ "'short': 2048", "'short': 'endless'" },
		{ "'latency_ns': 600", "'latency_ns': -600" },
		{ "'latency_ns': 600", "'latency_ns': 1e999" },
		{ "'latency_ns': 600", "'latency_ns': '600'" },
		{ "'put': {", "'put': [{" },
		{ "'am': null", "'am': {}" },
		/* words */
		{ "'status': 'loaded'", "'status': 'fine'" },
		{ "'status': 'usable'", "'status': 'ok'" },
		{ "'transport': 'rc'", "'transport': 'carrier pigeon'" },
		{ "'type': 'network'", "'type': 'netwerk'" },
		{ "'backend': null", "'backend': 'magic'" },
		{ "'code': 'gdrapi.no_backend'", "'code': 'No Such Code'" },
		{ "'code': 'gdrapi.no_backend'", "'code': 'gdrapi..x'" },
		{ "'code': 'gdrapi.no_backend'",
		  "'code': 'gdrapi.a_name_that_is_longer_than_a_code_can_be_here'" },
		/* together they make no sense */
		{ "'code': 'gdrapi.no_backend'", "'code': null" },
		{ "'status': 'loaded', 'path': '/x/libcuda.so.1'",
		  "'status': 'absent', 'path': '/x/libcuda.so.1'" },
		{ "'ucx': null, 'gdrapi': null, 'nvml': null}",
		  "'ucx': null, 'gdrapi': {'min_driver_version': '2.0', 'driver_version': null,"
		  " 'min_library_version': null, 'backend': null, 'standin': false}}" },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *text = changed(cases[i][0], cases[i][1]);
		json_t *list = take(text);

		if (list)
			fail_msg("taken: %s", cases[i][1]);
	}
	assert_null(take(""));
	assert_null(take("null"));
	assert_null(take("[[[[["));
}

static void lists_and_texts_have_an_end(void **state)
{
	static const size_t sizes[][2] = { { 700, 1 }, { 701, 0 }, { 100000, 0 } };
	np_auto_buf struct np_buf many = { 0 };
	json_t *list;

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(sizes); i++) {
		np_auto_buf struct np_buf path = { 0 };
		_cleanup_free_ char *text = NULL;

		np_buf_str(&path, "'path': '");
		for (size_t n = 0; n < sizes[i][0]; n++)
			np_buf_str(&path, "a");
		np_buf_str(&path, "'");
		text = changed("'path': '/x/libcuda.so.1'", path.data);
		list = take(text);
		assert_int_equal(list != NULL, sizes[i][1]);
		json_decref(list);
	}
	np_buf_str(&many, "'components': ['x'");
	for (int i = 0; i < 2048; i++)
		np_buf_str(&many, ", 'x'");
	np_buf_str(&many, "]");
	{
		_cleanup_free_ char *text = changed("'components': ['ib']", many.data);

		assert_null(take(text));
	}
}

static void versions_that_are_none(void **state)
{
	static const char *const versions[] = { "'13'", "'x.y'",    "'13.'",	 "'.3'",
						"null", "'13.3.1'", "'99999.1'", "'-13.3'" };

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(versions); i++) {
		_cleanup_free_ char *member = np_asprintf("'version': %s", versions[i]);
		_cleanup_free_ char *text = changed("'version': '13.3'", member);
		struct np_libraries l = { 0 };
		json_t *list = take(text);

		assert_non_null(list);
		np_libraries_learn(list, &l);
		json_decref(list);
		assert_int_equal(l.cuda, 0);
	}
}

static void a_standin_is_no_libgdrapi(void **state)
{
	_cleanup_free_ char *text = changed("'standin': false", "'standin': true");
	struct np_libraries l = { 0 };
	json_t *list = take(text);

	(void)state;
	np_libraries_learn(list, &l);
	json_decref(list);
	assert_true(l.known);
	assert_int_equal(l.gdrapi, 0);
}

/* @good with an entry of NVML behind it; ' stands for " */
static json_t *take_with_nvml(const char *members)
{
	_cleanup_free_ char *entry = np_asprintf(
		"'standin': false}},"
		"{'name': 'nvml', 'path': '/x/libnvidia-ml.so.1', 'version': '13.580.65.06',"
		" 'hint': null, 'ucx': null, 'gdrapi': null, %s}",
		members);
	_cleanup_free_ char *text = changed("'standin': false}}", entry);

	return np_libraries_take(text, strlen(text), np_library_names_nvlink);
}

#define LOADED "'status': 'loaded', 'code': null, 'message': null, "

static void what_nvml_says(void **state)
{
	static const struct {
		const char *members;
		enum np_tri nvlink;
	} cases[] = {
		{ LOADED "'nvml': {'nvlink': true, 'gpus': []}", NP_TRI_YES },
		{ LOADED "'nvml': {'nvlink': false, 'gpus': []}", NP_TRI_NO },
		{ LOADED "'nvml': {'nvlink': null, 'gpus': []}", NP_TRI_UNKNOWN },
		{ "'status': 'absent', 'code': 'nvml.no_library', 'message': 'm', 'nvml': null",
		  NP_TRI_UNKNOWN },
		{ "'status': 'unusable', 'code': 'nvml.failed', 'message': 'm', 'nvml': null",
		  NP_TRI_UNKNOWN },
	};
	static const char *const bad[] = {
		LOADED "'nvml': null",
		LOADED "'nvml': {}",
		LOADED "'nvml': {'nvlink': 1, 'gpus': []}",
		LOADED "'nvml': {'nvlink': 'yes', 'gpus': []}",
		"'status': 'absent', 'code': 'nvml.no_library', 'message': 'm',"
		" 'nvml': {'nvlink': true, 'gpus': []}",
		LOADED "'nvml': {'nvlink': true}",
		LOADED "'nvml': {'nvlink': true, 'gpus': [{'pci_address': 'a', 'peers': []}]}",
		LOADED "'nvml': {'nvlink': true, 'gpus': ["
		       "{'pci_address': 'a', 'active': -1, 'peers': []}]}",
		LOADED "'nvml': {'nvlink': true, 'gpus': ["
		       "{'pci_address': 'a', 'active': 1, 'peers': [{'pci_address': 'b'}]}]}",
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		json_t *list = take_with_nvml(cases[i].members);
		struct np_libraries l = { 0 };

		assert_int_equal(json_array_size(list), 4);
		np_libraries_learn(list, &l);
		json_decref(list);
		assert_true(l.known);
		assert_int_equal(l.nvlink, cases[i].nvlink);
	}
	for (size_t i = 0; i < NP_ARRAY_SIZE(bad); i++)
		if (take_with_nvml(bad[i]))
			fail_msg("taken: %s", bad[i]);
}

static void nvlink_between_gpus(void **state)
{
	json_t *list = take_with_nvml(
		LOADED "'nvml': {'nvlink': true, 'gpus': ["
		       "{'pci_address': '0000:17:00.0', 'active': 12, 'peers': ["
		       " {'pci_address': '0000:18:00.0', 'links': 12},"
		       " {'pci_address': '0000:19:00.0', 'links': 0},"
		       " {'pci_address': '0000:1a:00.0', 'links': null},"
		       " {'pci_address': '0000:1b:00.0', 'links': 4294967296}]},"
		       "{'pci_address': '0000:1a:00.0', 'active': null, 'peers': []}]}");
	const char *why = NULL;

	(void)state;
	assert_non_null(list);
	assert_int_equal(np_nvlink_active(list, "0000:17:00.0", &why), 12);
	assert_null(why);
	assert_int_equal(np_nvlink_active(list, "0000:1a:00.0", &why), -1);
	assert_non_null(strstr(why, "does not tell"));
	assert_int_equal(np_nvlink_active(list, "0000:19:00.0", &why), -1);
	assert_non_null(strstr(why, "does not list"));
	assert_int_equal(np_nvlink_between(list, "0000:17:00.0", "0000:18:00.0"), 12);
	assert_int_equal(np_nvlink_between(list, "0000:17:00.0", "0000:19:00.0"), 0);
	assert_int_equal(np_nvlink_between(list, "0000:17:00.0", "0000:1a:00.0"), -1);
	assert_int_equal(np_nvlink_between(list, "0000:17:00.0", "0000:1b:00.0"), -1);
	assert_int_equal(np_nvlink_between(list, "0000:1a:00.0", "0000:17:00.0"), -1);
	assert_int_equal(np_nvlink_between(list, "0000:1c:00.0", "0000:17:00.0"), -1);
	json_decref(list);

	list = take_with_nvml("'status': 'absent', 'code': 'nvml.no_library', 'message': 'm m',"
			      " 'nvml': null");
	assert_int_equal(np_nvlink_active(list, "0000:17:00.0", &why), -1);
	assert_string_equal(why, "m m");
	json_decref(list);
	assert_int_equal(np_nvlink_active(NULL, "0000:17:00.0", &why), -1);
	assert_non_null(strstr(why, "not asked"));
	assert_int_equal(np_nvlink_between(NULL, "0000:17:00.0", "0000:18:00.0"), -1);
}

static void nobody_to_ask(void **state)
{
	struct np_libraries l = { 0 };
	struct np_err why;
	json_t *list;

	(void)state;
	np_err_set(&why, -2, "selftest.not_installed", "no program");
	np_err_hint(&why, "install it");
	list = np_libraries_unknown(np_library_names, &why);
	assert_int_equal(json_array_size(list), 6);
	np_libraries_learn(list, &l);
	json_decref(list);
	assert_false(l.known);
	assert_string_equal(l.err.code, "selftest.not_installed");
	assert_string_equal(l.err.message, "no program");
	assert_string_equal(l.err.hint, "install it");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_list),
		cmocka_unit_test(what_was_not_asked_for_is_left_behind),
		cmocka_unit_test(anything_else_is_refused),
		cmocka_unit_test(lists_and_texts_have_an_end),
		cmocka_unit_test(versions_that_are_none),
		cmocka_unit_test(a_standin_is_no_libgdrapi),
		cmocka_unit_test(what_nvml_says),
		cmocka_unit_test(nvlink_between_gpus),
		cmocka_unit_test(nobody_to_ask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
