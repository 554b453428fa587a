/* SPDX-License-Identifier: MIT */
/* Pure parsing of ibmad/: rates, port names, words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ibmad/ca.h"

static const struct {
	const char *text;
	double gbps;
	int width;
	const char *speed;
} rate_cases[] = {
	{ "2.5 Gb/sec (1X SDR)", 2.5, 1, "SDR" },
	{ "5 Gb/sec (1X DDR)", 5, 1, "DDR" },
	{ "10 Gb/sec (4X SDR)", 10, 4, "SDR" },
	{ "10 Gb/sec (4X)", 10, 4, "" }, /* kernels before 4.x */
	{ "40 Gb/sec (4X QDR)", 40, 4, "QDR" },
	{ "40 Gb/sec (4X FDR10)", 40, 4, "FDR10" },
	{ "56 Gb/sec (4X FDR)", 56, 4, "FDR" },
	{ "14 Gb/sec (1X FDR)", 14, 1, "FDR" },
	{ "25 Gb/sec (1X EDR)", 25, 1, "EDR" },
	{ "100 Gb/sec (4X EDR)", 100, 4, "EDR" },
	{ "104 Gb/sec (4X EDR)", 104, 4, "EDR" },
	{ "200 Gb/sec (4X HDR)", 200, 4, "HDR" },
	{ "100 Gb/sec (2X HDR)", 100, 2, "HDR" },
	{ "300 Gb/sec (12X EDR)", 300, 12, "EDR" },
	{ "400 Gb/sec (4X NDR)", 400, 4, "NDR" },
	{ "800 Gb/sec (4X XDR)", 800, 4, "XDR" },
	{ "2.125 Gb/sec (1X SDR)", 2.125, 1, "SDR" },
	{ "100 Gb/sec", 100, 0, "" },
	{ "100 Gb/sec (3X EDR)", 100, 0, "EDR" },
	{ "1600 Gb/sec (4X ZDR)", 1600, 4, "" },
	{ "100 Gb/sec (4X EDR", 100, 4, "EDR" },
	{ "100 Gb/sec (999999999999999999999X EDR)", 100, 0, "" },
};
static const char *const bad_rates[] = { "",
					 "garbage",
					 "-1 Gb/sec (4X EDR)",
					 "100",
					 "100 Mb/sec (4X EDR)",
					 ".5 Gb/sec (1X SDR)",
					 "2. Gb/sec (1X SDR)",
					 " 100 Gb/sec (4X EDR)",
					 "99999999999999999999999999 Gb/sec (4X EDR)",
					 "N/A",
					 NULL };

static void rates(void **state)
{
	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(rate_cases); i++) {
		double gbps = -1;
		int width = -1;
		char speed[8] = "?";

		assert_int_equal(np_rate_parse(rate_cases[i].text, &gbps, &width, speed), 0);
		assert_true(gbps == rate_cases[i].gbps);
		assert_int_equal(width, rate_cases[i].width);
		assert_string_equal(speed, rate_cases[i].speed);
	}
	for (size_t i = 0; i < NP_ARRAY_SIZE(bad_rates); i++) {
		double gbps = -1;
		int width = -1;
		char speed[8] = "?";

		assert_true(np_rate_parse(bad_rates[i], &gbps, &width, speed) < 0);
		assert_true(gbps == -1 && width == -1 && strcmp(speed, "?") == 0);
	}
}

static void port_names(void **state)
{
	static const struct {
		const char *text, *ca;
		int port;
	} good[] = {
		{ "mlx5_0", "mlx5_0", 0 },
		{ "mlx5_0:1", "mlx5_0", 1 },
		{ "mlx5_bond_0:2", "mlx5_bond_0", 2 },
		{ "roceP1p1s0f0", "roceP1p1s0f0", 0 },
		{ "hfi1_0:254", "hfi1_0", 254 },
		{ "a.b-c", "a.b-c", 0 },
	};
	static const char *const bad[] = {
		"",
		":1",
		"mlx5_0:",
		"mlx5_0:0",
		"mlx5_0:255",
		"mlx5_0:1:1",
		"mlx5_0:+1",
		"mlx5_0: 1",
		"mlx5_0:0x1",
		"mlx5_0:1x",
		" mlx5_0",
		"mlx5 0",
		"../etc",
		"..",
		".",
		"-mlx5",
		"_x",
		"mlx5/0",
		"mlx5_0;id",
		"mlx5_\xc3\xa9",
		"mlx5_0\n",
		/* 64 characters */
		"a123456789a123456789a123456789a123456789a123456789a123456789a123",
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(good); i++) {
		char ca[64];
		int port = -1;

		assert_int_equal(np_port_name_parse(good[i].text, ca, &port, NULL), 0);
		assert_string_equal(ca, good[i].ca);
		assert_int_equal(port, good[i].port);
	}
	for (size_t i = 0; i < NP_ARRAY_SIZE(bad); i++) {
		char ca[64] = "kept";
		struct np_err err;
		int port = -1;

		np_err_clear(&err);
		assert_true(np_port_name_parse(bad[i], ca, &port, &err) < 0);
		assert_string_equal(ca, "kept");
		assert_int_equal(port, -1);
		assert_string_equal(err.code, "usage.port_name");
		assert_null(strchr(err.message, '\n'));
		assert_true(err.hint[0] != '\0');
	}
}

static void words(void **state)
{
	(void)state;
	assert_string_equal(np_port_state_str(NP_PORT_ACTIVE), "ACTIVE");
	assert_string_equal(np_port_state_str(NP_PORT_INIT), "INIT");
	assert_string_equal(np_port_state_str(NP_PORT_ACTIVE_DEFER), "ACTIVE_DEFER");
	assert_string_equal(np_port_state_str((enum np_port_state)77), "unknown");
	assert_string_equal(np_phys_state_str(NP_PHYS_LINKUP), "LinkUp");
	assert_string_equal(np_phys_state_str(NP_PHYS_POLLING), "Polling");
	assert_string_equal(np_phys_state_str((enum np_phys_state)77), "unknown");
	assert_string_equal(np_link_layer_str(NP_LL_INFINIBAND), "InfiniBand");
	assert_string_equal(np_link_layer_str(NP_LL_ETHERNET), "Ethernet");
	assert_string_equal(np_link_layer_str(NP_LL_OMNIPATH), "Omni-Path");
	assert_string_equal(np_link_layer_str((enum np_link_layer)77), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates),
		cmocka_unit_test(port_names),
		cmocka_unit_test(words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
