/* SPDX-License-Identifier: MIT */
/* The proof of a transport below UCP, over UCX's loopback, which puts and gets as gdr_copy
 * does; only the memory is the host's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "selftest/uct_copy.h"
#include "selftest/ucx_view.h"

static const uint64_t sizes[] = { 1, 8, 64, 512, 1 << 20 };

static struct np_uct_copy spec_of(const char *component, const char *transport)
{
	const struct np_uct_copy spec = {
		.code = "selftest.gdr_copy.uct",
		.component = component,
		.transport = transport,
		.mem = &np_ucp_mem_host,
		.sizes = sizes,
		.n_sizes = 5,
	};

	return spec;
}

static int writes, reads;

static int counted_write(void *ctx, void *mem, const void *host, size_t len, struct np_err *err)
{
	(void)ctx;
	(void)err;
	writes++;
	memcpy(mem, host, len);
	return 0;
}

static int counted_read(void *ctx, void *host, const void *mem, size_t len, struct np_err *err)
{
	(void)ctx;
	(void)err;
	reads++;
	memcpy(host, mem, len);
	return 0;
}

/* It never arrives where others look for it. */
static int lost_write(void *ctx, void *mem, const void *host, size_t len, struct np_err *err)
{
	(void)ctx;
	(void)mem;
	(void)host;
	(void)len;
	(void)err;
	return 0;
}

static void bytes_go_both_ways(void **state)
{
	struct np_uct_copy spec = spec_of("self", "self");
	struct np_ucp_mem mem = np_ucp_mem_host;
	struct np_uct_copied out;
	struct np_err err;

	(void)state;
	if (np_uct_copy_prove(&spec, &out, &err) != 0)
		fail_msg("%s: %s", err.code, err.message);
	assert_int_equal(out.smallest, 1);
	assert_int_equal(out.largest, 512); /* what lies above does not fit */
	assert_true(out.put_us > 0 && out.get_us > 0);
	mem.write = counted_write;
	mem.read = counted_read;
	spec.mem = &mem;
	assert_int_equal(np_uct_copy_prove(&spec, &out, &err), 0);
	assert_int_equal(writes, 4 * 2 * 50);
	assert_int_equal(reads, 4 * 50);
}

static void wrong_bytes(void **state)
{
	struct np_uct_copy spec = spec_of("self", "self");
	struct np_ucp_mem mem = np_ucp_mem_host;
	struct np_uct_copied out;
	struct np_err err;

	(void)state;
	mem.write = lost_write;
	mem.read = counted_read;
	spec.mem = &mem;
	assert_int_equal(np_uct_copy_prove(&spec, &out, &err), -EBADMSG);
	assert_string_equal(err.code, "selftest.data_corrupt");
#ifdef NP_TEST_HOOKS
	/* the hook counts from ten: a put, a get */
	static const char *const nth[] = { "11", "12" };

	spec.mem = &np_ucp_mem_host;
	for (size_t i = 0; i < NP_ARRAY_SIZE(nth); i++) {
		setenv("NP_TEST_CORRUPT", nth[i], 1);
		assert_int_equal(np_uct_copy_prove(&spec, &out, &err), -EBADMSG);
		assert_non_null(strstr(err.message, "UCT's transport self: message 1"));
	}
	unsetenv("NP_TEST_CORRUPT");
#endif
}

static void what_is_not_there(void **state)
{
	struct np_uct_copy spec = spec_of("gdr_copy", "gdr_copy");
	struct np_uct_copied out;
	struct np_err err;

	(void)state;
	assert_int_equal(np_uct_copy_prove(&spec, &out, &err), -EIO);
	assert_string_equal(err.code, "selftest.gdr_copy.uct");
	assert_non_null(strstr(err.message, "opening its memory domain"));
	spec = spec_of("self", "gdr_copy");
	assert_int_equal(np_uct_copy_prove(&spec, &out, &err), -EIO);
	assert_non_null(strstr(err.message, "opening its interface"));
	/* it has no put */
	spec = spec_of("cma", "cma");
	assert_int_equal(np_uct_copy_prove(&spec, &out, &err), -EIO);
	assert_non_null(strstr(err.message, "whether it can put and get"));
	assert_true(err.hint[0]);
}

static void another_version_is_not_touched(void **state)
{
	const unsigned int major = UCP_API_MAJOR, minor = UCP_API_MINOR;
	struct np_err err;

	(void)state;
	assert_int_equal(np_uct_usable(major, minor, 0, true, &err), 0);
	assert_int_equal(np_uct_usable(major, minor, 7, true, &err), 0);
	assert_int_equal(np_uct_usable(major, minor + 10, 1, true, &err), 1);
	assert_non_null(strstr(err.message, np_ucx_built_against()));
	assert_non_null(strstr(err.message, ".1"));
	assert_int_equal(np_uct_usable(major + 1, minor, 0, true, &err), 1);
	assert_int_equal(np_uct_usable(major, minor, 0, false, &err), 1);
	assert_non_null(strstr(err.message, "two places"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_go_both_ways),
		cmocka_unit_test(wrong_bytes),
		cmocka_unit_test(what_is_not_there),
		cmocka_unit_test(another_version_is_not_touched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
