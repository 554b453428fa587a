/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "selftest/ranks_gpu.h"

#define BOOT_1 "5f0c0c0e-5e3b-4a44-9c3f-000000000001"
#define BOOT_2 "5f0c0c0e-5e3b-4a44-9c3f-000000000002"
#define GPU_0  "0000:17:00.0"
#define GPU_1  "0000:18:00.0"

static char h1[] = "h1", h2[] = "h2";
static char *hosts[] = { h1, h1, h2, h2 };
static const struct np_ranks_gpu_card good[] = {
	{ .host = BOOT_1, .pci = GPU_0, .nccl = "2.28.3" },
	{ .host = BOOT_1, .pci = GPU_1, .nccl = "2.28.3" },
	{ .host = BOOT_2, .pci = GPU_0, .nccl = "2.28.3" },
	{ .host = BOOT_2, .pci = GPU_1, .nccl = "2.28.3" },
};
static struct np_ranks_gpu_card cards[4];
static struct np_err err;
static int about;

static int setup(void **state)
{
	(void)state;
	memcpy(cards, good, sizeof(cards));
	np_err_clear(&err);
	about = -2;
	return 0;
}

static void a_gpu_for_each(void **state)
{
	(void)state;
	/* the same addresses on two hosts are two GPUs */
	assert_int_equal(np_ranks_gpu_judge(cards, 4, hosts, &about, &err), 0);
	assert_int_equal(np_ranks_gpu_judge(cards, 1, hosts, &about, &err), 0);
}

static void one_gpu_for_two(void **state)
{
	(void)state;
	np_strcpy(cards[3].pci, sizeof(cards[3].pci), GPU_0);
	assert_int_equal(np_ranks_gpu_judge(cards, 4, hosts, &about, &err), -EBUSY);
	assert_string_equal(err.code, "ranks.gpu_shared");
	assert_non_null(strstr(err.message, "ranks 2 and 3 on h2"));
	assert_non_null(strstr(err.message, GPU_0));
	assert_non_null(strstr(err.hint, "--host-memory"));
	assert_int_equal(about, 3);
	/* two containers of a host with names of their own */
	memcpy(cards, good, sizeof(cards));
	np_strcpy(cards[2].host, sizeof(cards[2].host), BOOT_1);
	assert_int_equal(np_ranks_gpu_judge(cards, 4, hosts, &about, &err), -EBUSY);
	assert_non_null(strstr(err.message, "ranks 0 and 2"));
}

static void versions_that_differ(void **state)
{
	(void)state;
	np_strcpy(cards[2].nccl, sizeof(cards[2].nccl), "2.27.7");
	assert_int_equal(np_ranks_gpu_judge(cards, 4, hosts, &about, &err), -EPROTO);
	assert_string_equal(err.code, "ranks.nccl_differs");
	assert_string_equal(err.message, "rank 2 on h2 has NCCL 2.27.7, rank 0 on h1 has 2.28.3");
	assert_int_equal(about, 2);
}

static void one_that_is_not_ready(void **state)
{
	(void)state;
	np_strcpy(cards[1].code, sizeof(cards[1].code), "nccl.no_library");
	np_strcpy(cards[1].message, sizeof(cards[1].message), "NCCL cannot be used");
	np_strcpy(cards[1].hint, sizeof(cards[1].hint), "install it");
	cards[1].nccl[0] = '\0';
	/* that, and not that its version differs */
	assert_int_equal(np_ranks_gpu_judge(cards, 4, hosts, &about, &err), -ENODEV);
	assert_string_equal(err.code, "nccl.no_library");
	assert_string_equal(err.message, "rank 1 on h1: NCCL cannot be used");
	assert_string_equal(err.hint, "install it");
	assert_int_equal(about, 1);
	cards[3] = cards[1];
	assert_int_equal(np_ranks_gpu_judge(cards, 4, hosts, &about, &err), -ENODEV);
	assert_string_equal(err.message, "2 ranks cannot use NCCL, the first: rank 1 on h1: NCCL "
					 "cannot be used");
	assert_int_equal(about, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_gpu_for_each, setup),
		cmocka_unit_test_setup(one_gpu_for_two, setup),
		cmocka_unit_test_setup(versions_that_differ, setup),
		cmocka_unit_test_setup(one_that_is_not_ready, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
