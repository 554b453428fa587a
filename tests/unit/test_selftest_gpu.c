/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/str.h"
#include "selftest/gdr_lib.h"
#include "selftest/gpu_set.h"
#include "selftest/nccl_check.h"
#include "selftest/nccl_lib.h"

static void gpu_names(void **state)
{
	static const char *const wrong[] = {
		"",	 "GPU",	    "GPUx",    "GPU-1",		"GPU0 ",       "gpu0",
		"17:00", "17:00.8", "g7:00.0", "0000:17:00.0x", "000:17:00.0", "mlx5_0:1"
	};
	struct np_err err;
	size_t number = 77;
	char pci[16];

	(void)state;
	assert_int_equal(np_gpu_name_parse("GPU12", pci, &number, &err), 0);
	assert_int_equal(number, 12);
	assert_string_equal(pci, "");
	assert_int_equal(np_gpu_name_parse("3B:00.0", pci, &number, &err), 0);
	assert_string_equal(pci, "0000:3b:00.0");
	assert_int_equal(np_gpu_name_parse("00000000:3B:00.0", pci, &number, &err), 0);
	assert_string_equal(pci, "0000:3b:00.0");
	assert_int_equal(np_gpu_name_parse("10001:3b:00.0", pci, &number, &err), 0);
	assert_string_equal(pci, "10001:3b:00.0");
	for (size_t i = 0; i < NP_ARRAY_SIZE(wrong); i++) {
		assert_int_equal(np_gpu_name_parse(wrong[i], pci, &number, &err), -EINVAL);
		assert_string_equal(err.code, "usage");
	}
}

static void nccl_versions(void **state)
{
	(void)state;
	assert_int_equal(np_nccl_version(2304), 20304);
	assert_int_equal(np_nccl_version(2400), 20400);
	assert_int_equal(np_nccl_version(2804), 20804);
	assert_int_equal(np_nccl_version(20903), 20903);
	assert_int_equal(np_nccl_version(1304), 10304);
}

static void sums_are_compared(void **state)
{
	enum { N = 3000, RANKS = 9 };
	float *sum = calloc(N, sizeof(float)), *one = malloc(N * sizeof(float));
	const size_t wrong[] = { 0, 1023, 1024, N - 1 };
	struct np_nccl_diff diff;

	(void)state;
	assert_non_null(sum);
	assert_non_null(one);
	for (size_t rank = 0; rank < RANKS; rank++) {
		np_nccl_fill(one, 0, N, 42, rank, RANKS);
		for (size_t i = 0; i < N; i++)
			sum[i] += one[i];
	}
	assert_true(np_nccl_check(sum, 0, N, 42, RANKS, &diff));
	assert_false(np_nccl_check(sum, 0, N, 43, RANKS, &diff));
	assert_false(np_nccl_check(sum, 0, N, 42, RANKS - 1, &diff));
	for (size_t i = 0; i < NP_ARRAY_SIZE(wrong); i++) {
		float right = sum[wrong[i]];

		sum[wrong[i]] = right + 1;
		assert_false(np_nccl_check(sum, 0, N, 42, RANKS, &diff));
		assert_int_equal(diff.element, wrong[i]);
		assert_true(diff.expected == right && diff.got == right + 1);
		sum[wrong[i]] = NAN;
		assert_false(np_nccl_check(sum, 0, N, 42, RANKS, &diff));
		sum[wrong[i]] = right;
	}
	/* in pieces */
	for (size_t rank = 0; rank < RANKS; rank++) {
		np_nccl_fill(one, 1500, 700, 42, rank, RANKS);
		for (size_t i = 0; i < 700; i++)
			sum[1500 + i] = (rank ? sum[1500 + i] : 0) + one[i];
	}
	assert_true(np_nccl_check(sum, 0, N, 42, RANKS, &diff));
	assert_true(np_nccl_check(sum + 1501, 1501, 1200, 42, RANKS, &diff));
	sum[1502] += 1;
	assert_false(np_nccl_check(sum + 1501, 1501, 1200, 42, RANKS, &diff));
	assert_int_equal(diff.element, 1502);
	free(sum);
	free(one);
}

/* Inputs differ from rank to rank and from seed to seed, and are exact in float32. */
static void inputs_differ(void **state)
{
	float a[256], b[256], c[256];
	size_t same_rank = 0, same_seed = 0;

	(void)state;
	np_nccl_fill(a, 0, 256, 7, 0, 2);
	np_nccl_fill(b, 0, 256, 7, 1, 2);
	np_nccl_fill(c, 0, 256, 8, 0, 2);
	for (size_t i = 0; i < 256; i++) {
		assert_true(a[i] >= 0 && a[i] < 65536 && a[i] == floorf(a[i]));
		same_rank += a[i] == b[i];
		same_seed += a[i] == c[i];
	}
	assert_true(same_rank < 8 && same_seed < 8);
}

/* However many ranks there are, and in whatever order they are added. */
static void sums_of_many_ranks_are_exact(void **state)
{
	enum { N = 64 };
	static const size_t many[] = { 256, 257, 1000, 4096, 20000 };
	float up[N], down[N], one[N];
	struct np_nccl_diff diff;

	(void)state;
	for (size_t m = 0; m < NP_ARRAY_SIZE(many); m++) {
		size_t ranks = many[m];
		float most = 0;

		memset(up, 0, sizeof(up));
		memset(down, 0, sizeof(down));
		for (size_t rank = 0; rank < ranks; rank++) {
			np_nccl_fill(one, 0, N, 42, rank, ranks);
			for (size_t i = 0; i < N; i++) {
				up[i] += one[i];
				most = one[i] > most ? one[i] : most;
			}
			np_nccl_fill(one, 0, N, 42, ranks - 1 - rank, ranks);
			for (size_t i = 0; i < N; i++)
				down[i] += one[i];
		}
		assert_memory_equal(up, down, sizeof(up));
		assert_true(np_nccl_check(up, 0, N, 42, ranks, &diff));
		/* as many bits as there is room for */
		assert_true(most * (float)ranks <= 16777216.0f);
		assert_true(most * (float)ranks > 4194304.0f);
		up[N - 1] += 1;
		assert_false(np_nccl_check(up, 0, N, 42, ranks, &diff));
		assert_int_equal(diff.element, N - 1);
	}
}

static void bus_bandwidth(void **state)
{
	(void)state;
	assert_true(fabs(np_nccl_bandwidth(1000000, 10, 1) - 100000) < 1e-6);
	assert_true(fabs(np_nccl_bandwidth(1000000, 10, 2) - 100000) < 1e-6);
	assert_true(fabs(np_nccl_bandwidth(1000000, 10, 8) - 175000) < 1e-6);
}

/* What gdr_open's failure comes from, with gdrdrv at each of its rungs. */
static void causes_of_gdr_open(void **state)
{
	static const struct {
		struct np_gdrdrv driver;
		int minor, cuda;
		const char *code, *said;
	} cases[] = {
		{ { .major = -1 },
		  6,
		  13000,
		  "gdrapi.no_backend",
		  "no gdrdrv, and CUDA driver 13.0 is older than the 13.3 that the dma-buf backend "
		  "needs" },
		{ { .major = -1 }, 5, 13030, "gdrapi.no_backend", "has no dma-buf backend" },
		{ { .major = -1 }, 6, 13030, "gdrapi.no_backend", "does not start" },
		{ { .major = 240 }, 6, 13000, "gdrcopy.node_missing", "no /dev/gdrdrv" },
		{ { .major = 240, .node_exists = true }, 6, 13000, "gdrcopy.node_wrong", "240:0" },
		{ { .major = 240, .node_exists = true, .node_matches = true, .open_errno = EACCES },
		  6,
		  13000,
		  "gdrcopy.open_failed",
		  "Permission denied" },
		{ { .major = 240,
		    .node_exists = true,
		    .node_matches = true,
		    .handshake_errno = ENOTTY },
		  6,
		  13000,
		  "gdrcopy.handshake_failed",
		  "handshake" },
		{ { .major = 240,
		    .node_exists = true,
		    .node_matches = true,
		    .driver_version = 1 << 16 | 9 },
		  6,
		  13000,
		  "gdrcopy.too_old",
		  "gdrdrv 1.9 is older than the 2.0" },
		{ { .major = 240,
		    .node_exists = true,
		    .node_matches = true,
		    .driver_version = 2 << 16 | 5,
		    .min_library_version = 2 << 16 | 4 },
		  3,
		  13000,
		  "gdrcopy.too_old",
		  "libgdrapi 2.3" },
		{ { .major = 240,
		    .node_exists = true,
		    .node_matches = true,
		    .driver_version = 2 << 16 | 5,
		    .min_library_version = 2 << 16 | 4 },
		  4,
		  13000,
		  "gdrapi.failed",
		  "though gdrdrv 2.5 answers" },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct np_gdr_lib lib = { .path = "/lib/libgdrapi.so.2", .major = 2 };
		struct np_err err;

		lib.minor = cases[i].minor;
		np_err_clear(&err);
		assert_true(np_gdr_cause(&cases[i].driver, &lib, cases[i].cuda, &err) < 0);
		assert_string_equal(err.code, cases[i].code);
		assert_non_null(strstr(err.message, cases[i].said));
		assert_true(err.hint[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gpu_names),
		cmocka_unit_test(nccl_versions),
		cmocka_unit_test(sums_are_compared),
		cmocka_unit_test(inputs_differ),
		cmocka_unit_test(sums_of_many_ranks_are_exact),
		cmocka_unit_test(bus_bandwidth),
		cmocka_unit_test(causes_of_gdr_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
