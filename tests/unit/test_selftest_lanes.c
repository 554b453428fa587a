/* SPDX-License-Identifier: MIT */
/* What UCX prints of an endpoint, as seen with 1.13 and as 1.22 words it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "selftest/ucx_lanes.h"

static const char *const tcp_only[] = { "tcp", NULL };
static const char *const rc_only[] = { "rc_verbs", "rc_mlx5", NULL };

static const char tcp_113[] =
	"#\n# UCP endpoint \n#\n#               peer: <no debug data>\n"
	"#                 lane[0]:  1:tcp/lo.0 md[0]                -> md[0]/tcp/sysdev[255] rma_bw#0 am am_bw#0\n"
	"#                 lane[1]:  0:tcp/eth0.0 md[0]              -> md[0]/tcp/sysdev[255] rma_bw#1 wireup\n"
	"#\n#                tag_send: 0..<egr/short>..8185..<rndv>..(inf)\n"
	"#                  rma_bw: mds [0] rndv_rkey_size 10\n#\n";

static const char rc_113[] =
	"#                 lane[0]:  0:rc_verbs/mlx5_0:1.0 md[0]     -> md[0]/ib/sysdev[255] rma_bw#0 am am_bw#0\n"
	"#                 lane[1]:  1:ud_verbs/mlx5_0:1.0 md[0]     -> md[0]/ib/sysdev[255] keepalive wireup\n";

static const char rc_122[] =
	"#                 lane[0]: 12:rc_mlx5/mlx5_2:1.0 md[4]      -> addr[1].md[4]/ib/sysdev[3] seg 8256 rma_bw#0 am am_bw#0 wireup{ud_mlx5/mlx5_2:1}\n"
	"#                 lane[1]: 12:rc_mlx5/mlx5_2:1.1 md[4]      -> addr[1].md[4]/ib/sysdev[3] seg 8256 rma_bw#1\n"
	"#                 lane[2]:  3:ud_mlx5/mlx5_3:1.0 md[4]      -> addr[2].md[4]/ib/sysdev[3] seg 4096 keepalive wireup\n"
	"#                 lane[3]: cm rdmacm\n";

/* As UCX 1.23 prints a worker on a node with GPUs, and with gdrcopy. */
static const char worker_123[] =
	"#\n# UCP worker 'vm:781'\n#\n#                 address: 148 bytes\n#\n# \n# \n#\n"
	"# UCP endpoint for NVIDIA GPU memory\n#\n#               peer: <no debug data>\n"
	"#                 lane[0]:  3:gdr_copy/cuda.0 md[3]         -> md[3]/gdr_copy/sysdev[2] seg 4294967295\n"
	"#                 lane[1]:  2:cuda_copy/cuda.0 md[2]        -> md[2]/cuda_cpy/sysdev[2] seg 4294967295 rma_bw#0\n"
	"#\n# +-------+-------------+----------------------------+\n"
	"# UCP endpoint for NVIDIA GPU managed/unified memory\n#\n"
	"#                 lane[0]:  2:cuda_copy/cuda.0 md[2]        -> md[2]/cuda_cpy/sysdev[2] seg 4294967295 rma_bw#0\n";

static void what_copies_to_the_gpu(void **state)
{
	static const char *const both[] = { "gdr_copy", "cuda_copy", NULL };
	static const char *const cuda[] = { "cuda_copy", NULL };
	struct np_ucx_lanes lanes;
	char text[80];

	(void)state;
	assert_int_equal(np_ucx_lanes_parse_memory(worker_123, "NVIDIA GPU memory", &lanes), 0);
	assert_string_equal(np_ucx_lanes_str(&lanes, text, sizeof(text)),
			    "gdr_copy/cuda, cuda_copy/cuda");
	assert_true(np_ucx_lanes_only(&lanes, both, NULL));
	assert_true(np_ucx_lanes_all(&lanes, both));
	assert_false(np_ucx_lanes_only(&lanes, cuda, NULL));
	assert_int_equal(np_ucx_lanes_parse_memory(worker_123, "NVIDIA GPU managed/unified memory",
						   &lanes),
			 0);
	assert_int_equal(lanes.n, 1);
	assert_true(np_ucx_lanes_only(&lanes, cuda, NULL));
	assert_false(np_ucx_lanes_all(&lanes, both));
	assert_int_equal(np_ucx_lanes_parse_memory(worker_123, "NVIDIA GPU", &lanes), -EINVAL);
	assert_int_equal(np_ucx_lanes_parse_memory("", "NVIDIA GPU memory", &lanes), -EINVAL);
	assert_int_equal(lanes.n, 0);
}

static void tcp_lanes(void **state)
{
	struct np_ucx_lanes lanes;
	char text[160];

	(void)state;
	assert_int_equal(np_ucx_lanes_parse(tcp_113, &lanes), 0);
	assert_int_equal(lanes.n, 2);
	assert_string_equal(lanes.v[1].transport, "tcp");
	assert_string_equal(lanes.v[1].device, "eth0");
	assert_string_equal(np_ucx_lanes_str(&lanes, text, sizeof(text)), "tcp/lo, tcp/eth0");
	assert_true(np_ucx_lanes_only(&lanes, tcp_only, NULL));
	assert_false(np_ucx_lanes_only(&lanes, tcp_only, "eth0"));
	assert_false(np_ucx_lanes_only(&lanes, rc_only, NULL));
}

static void wireup_over_ud_is_not_data(void **state)
{
	struct np_ucx_lanes lanes;
	char text[160];

	(void)state;
	assert_int_equal(np_ucx_lanes_parse(rc_113, &lanes), 0);
	assert_int_equal(lanes.n, 2);
	assert_true(lanes.v[0].data);
	assert_false(lanes.v[1].data);
	assert_string_equal(np_ucx_lanes_str(&lanes, text, sizeof(text)), "rc_verbs/mlx5_0:1");
	assert_true(np_ucx_lanes_only(&lanes, rc_only, "mlx5_0:1"));
	assert_false(np_ucx_lanes_only(&lanes, rc_only, "mlx5_0:2"));
}

static void newer_words(void **state)
{
	struct np_ucx_lanes lanes;
	char text[160];

	(void)state;
	assert_int_equal(np_ucx_lanes_parse(rc_122, &lanes), 0);
	assert_int_equal(lanes.n, 3);
	assert_false(lanes.v[2].data);
	assert_string_equal(np_ucx_lanes_str(&lanes, text, sizeof(text)), "rc_mlx5/mlx5_2:1");
	assert_true(np_ucx_lanes_only(&lanes, rc_only, "mlx5_2:1"));
}

static void names_with_dots(void **state)
{
	struct np_ucx_lanes lanes;

	(void)state;
	assert_int_equal(np_ucx_lanes_parse(
				 "# lane[0]:  0:tcp/ib0.8001.0 md[0] -> md[0]/tcp/sysdev[255] am\n",
				 &lanes),
			 0);
	assert_string_equal(lanes.v[0].device, "ib0.8001");
	assert_true(np_ucx_lanes_only(&lanes, tcp_only, "ib0.8001"));
}

static void another_carrier_is_seen(void **state)
{
	struct np_ucx_lanes lanes;

	(void)state;
	assert_int_equal(
		np_ucx_lanes_parse("lane[0]: 0:self/memory0.0 md[0] -> md[0]/self/sysdev[255] am\n"
				   "lane[1]: 1:tcp/ib0.0 md[1] -> md[1]/tcp/sysdev[255] rma_bw#0\n",
				   &lanes),
		0);
	assert_false(np_ucx_lanes_only(&lanes, tcp_only, NULL));
}

static void only_wireup_is_no_proof(void **state)
{
	struct np_ucx_lanes lanes;

	(void)state;
	assert_int_equal(
		np_ucx_lanes_parse("lane[0]: 0:tcp/ib0.0 md[0] -> md[0]/tcp/sysdev[255] wireup\n",
				   &lanes),
		0);
	assert_false(np_ucx_lanes_only(&lanes, tcp_only, NULL));
}

static void what_cannot_be_read(void **state)
{
	static const char *const broken[] = {
		"",
		"\n\n",
		"lane[",
		"lane[0]:",
		"lane[0]: cm tcp\n",
		"lane[0]: 0:tcp -> x am\n",
		"lane[0]: 0:/ib0 -> x am\n",
		"lane[0]: 0:tcp/ -> x am",
		"# UCP endpoint\n",
		"lane[0] 0:tcp/ib0.0 md[0] -> am\n",
		"lane[0]: tcp/ib0.0 -> am",
		"lane[0]: -> :a/b\n",
	};
	struct np_ucx_lanes lanes;
	char text[8];

	(void)state;
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		assert_int_equal(np_ucx_lanes_parse(broken[i], &lanes), -EINVAL);
		assert_int_equal(lanes.n, 0);
		assert_false(np_ucx_lanes_only(&lanes, tcp_only, NULL));
		assert_string_equal(np_ucx_lanes_str(&lanes, text, sizeof(text)), "");
	}
	assert_int_equal(np_ucx_lanes_parse(NULL, &lanes), -EINVAL);
}

static void many_lanes_and_little_room(void **state)
{
	struct np_ucx_lanes lanes;
	char text[24], device[80];

	(void)state;
	memset(&lanes, 0, sizeof(lanes));
	for (int i = 0; i < 100; i++) {
		snprintf(device, sizeof(device), "mlx5_%d:1", i);
		np_ucx_lanes_add(&lanes, "rc_mlx5", device, true);
	}
	assert_int_equal(lanes.n, NP_UCX_LANES_MAX);
	np_ucx_lanes_str(&lanes, text, sizeof(text));
	assert_int_equal(strlen(text), sizeof(text) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tcp_lanes),
		cmocka_unit_test(what_copies_to_the_gpu),
		cmocka_unit_test(wireup_over_ud_is_not_data),
		cmocka_unit_test(newer_words),
		cmocka_unit_test(names_with_dots),
		cmocka_unit_test(another_carrier_is_seen),
		cmocka_unit_test(only_wireup_is_no_proof),
		cmocka_unit_test(what_cannot_be_read),
		cmocka_unit_test(many_lanes_and_little_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
