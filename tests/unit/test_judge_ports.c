/* SPDX-License-Identifier: MIT */
#include "judge_scene.h"

static void test_guide_is_fine(void **state)
{
	struct scene s;

	(void)state;
	begin_guide(&s, FB_LIST("10.0.0.50/24"));
	fb_addr(&s.facts.netdevs.v[0], "10.0.0.50/24", 0);
	judge(&s);
	assert_int_equal(count_status(&s, NP_CHECK_OK), s.checks.n);
	assert_int_equal(count_of(&s, "port"), 4);
	says(has(&s, "mlx5_3:1", "port.active", NP_CHECK_OK), "lid 0x11, sm lid 0x1");
	says(has(&s, "mlx5_3:1", "port.active", NP_CHECK_OK), FB_EDR);
	says(has(&s, "ib0", "netdev.running", NP_CHECK_OK), "port mlx5_0:1");
	end(&s);
}

/* Every pair of states of a wanted port, by cause (C5, C11, C18) */
static void test_states(void **state)
{
	static const struct {
		enum np_port_state state;
		enum np_phys_state phys;
		const char *code;
	} cases[] = {
		{ NP_PORT_ACTIVE, NP_PHYS_LINKUP, "port.active" },
		{ NP_PORT_INIT, NP_PHYS_LINKUP, "port.no_sm" },
		{ NP_PORT_ARMED, NP_PHYS_LINKUP, "port.no_sm" },
		{ NP_PORT_DOWN, NP_PHYS_POLLING, "port.down" },
		{ NP_PORT_DOWN, NP_PHYS_SLEEP, "port.down" },
		{ NP_PORT_DOWN, NP_PHYS_TRAINING, "port.down" },
		{ NP_PORT_INIT, NP_PHYS_ERROR_RECOVERY, "port.down" },
		{ NP_PORT_ACTIVE, NP_PHYS_POLLING, "port.down" },
		{ NP_PORT_DOWN, NP_PHYS_DISABLED, "port.disabled" },
		{ NP_PORT_UNKNOWN, NP_PHYS_LINKUP, "port.state_unknown" },
		{ NP_PORT_ACTIVE, NP_PHYS_UNKNOWN, "port.state_unknown" },
		{ NP_PORT_UNKNOWN, NP_PHYS_UNKNOWN, "port.state_unknown" },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct np_port *port;
		struct scene s;

		begin(&s);
		port = fb_port(fb_ca(&s.facts, "mlx5_0"), 1, cases[i].state, cases[i].phys,
			       "10 Gb/sec (4X SDR)");
		port->lid = 868; /* stale ones are no business of a port that is not ACTIVE */
		judge(&s);
		has(&s, "mlx5_0:1", cases[i].code, i == 0 ? NP_CHECK_OK : NP_CHECK_FAIL);
		assert_int_equal(count_of(&s, "port"), 1);
		if (strcmp(cases[i].code, "port.no_sm") == 0)
			says(find(&s, "mlx5_0:1", "port.no_sm"), "subnet manager");
		if (strcmp(cases[i].code, "port.down") == 0)
			says(find(&s, "mlx5_0:1", "port.down"), "cable");
		end(&s);
	}
}

static void test_lid_zero(void **state)
{
	struct scene s;

	(void)state;
	for (int readable = 0; readable <= 1; readable++) {
		struct np_port *port;

		begin(&s);
		port = fb_active(&s.facts, "mlx5_0");
		port->lid = 0;
		port->has_lid = readable;
		judge(&s);
		says(has(&s, "mlx5_0:1", "port.lid_zero", NP_CHECK_FAIL),
		     readable ? "base lid 0" : "unreadable");
		end(&s);
	}
}

/* C13: an unreadable rate of one port is unknown, the rest is judged */
static void test_rate_unknown(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	fb_port(fb_ca(&s.facts, "mlx5_0"), 1, NP_PORT_ACTIVE, NP_PHYS_LINKUP, "");
	fb_active(&s.facts, "mlx5_1");
	fb_port(fb_ca(&s.facts, "mlx5_2"), 1, NP_PORT_DOWN, NP_PHYS_POLLING, "");
	judge(&s);
	has(&s, "mlx5_0:1", "port.rate_unknown", NP_CHECK_UNKNOWN);
	has(&s, "mlx5_1:1", "port.active", NP_CHECK_OK);
	has(&s, "mlx5_2:1", "port.down", NP_CHECK_FAIL);
	set(&s, "ports", "min_rate", "100");
	judge(&s);
	has(&s, "mlx5_0:1", "port.rate_unknown", NP_CHECK_FAIL);
	end(&s);
}

/* C33 */
static void test_width_degraded(void **state)
{
	static const char *const rates[] = { FB_EDR, "25 Gb/sec (1X EDR)", FB_EDR,
					     "25 Gb/sec (1X EDR)" };
	struct scene s;

	(void)state;
	begin(&s);
	for (int i = 0; i < 4; i++) {
		char name[32];

		snprintf(name, sizeof(name), "mlx5_%d", i);
		fb_port(fb_ca(&s.facts, name), 1, NP_PORT_ACTIVE, NP_PHYS_LINKUP, rates[i]);
	}
	judge(&s);
	says(has(&s, "mlx5_1:1", "port.width_degraded", NP_CHECK_FAIL),
	     "1 of the 4 lanes that mlx5_0:1 has");
	has(&s, "mlx5_3:1", "port.width_degraded", NP_CHECK_FAIL);
	has(&s, "mlx5_0:1", "port.active", NP_CHECK_OK);
	assert_int_equal(count_status(&s, NP_CHECK_FAIL), 2);
	/* another kind of adapter is no sibling, nor is a port that is not wanted */
	for (int i = 0; i < 4; i += 2)
		strcpy(s.facts.cas.v[i].ca_type, "MT4129");
	judge(&s);
	assert_int_equal(count_status(&s, NP_CHECK_FAIL), 0);
	for (int i = 0; i < 4; i += 2)
		strcpy(s.facts.cas.v[i].ca_type, "MT4115");
	set(&s, "ports", "ignore", "mlx5_0 mlx5_2");
	judge(&s);
	assert_int_equal(count_status(&s, NP_CHECK_FAIL), 0);
	end(&s);
}

static void test_rate_degraded(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	fb_active(&s.facts, "mlx5_0");
	fb_port(fb_ca(&s.facts, "mlx5_1"), 1, NP_PORT_ACTIVE, NP_PHYS_LINKUP, "40 Gb/sec (4X QDR)");
	judge(&s);
	says(has(&s, "mlx5_1:1", "port.rate_degraded", NP_CHECK_WARN), "sibling runs at " FB_EDR);
	has(&s, "mlx5_0:1", "port.active", NP_CHECK_OK);
	set(&s, "ports", "min_rate", "100");
	judge(&s);
	says(has(&s, "mlx5_1:1", "port.rate_degraded", NP_CHECK_FAIL), "min_rate of 100");
	has(&s, "mlx5_0:1", "port.active", NP_CHECK_OK);
	set(&s, "ports", "min_rate", "101");
	judge(&s);
	has(&s, "mlx5_0:1", "port.rate_degraded", NP_CHECK_FAIL);
	end(&s);
}

/* C15, C17, C19, C36, C37: each left out by its own reason, and no failure */
static void test_left_out(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	fb_active(&s.facts, "mlx5_0");
	fb_active(&s.facts, "roce")->link_layer = NP_LL_ETHERNET;
	fb_active(&s.facts, "irdma0")->link_layer = NP_LL_ETHERNET;
	s.facts.cas.v[2].node_type = NP_NODE_RNIC;
	fb_active(&s.facts, "hfi1_0")->link_layer = NP_LL_OMNIPATH;
	fb_port(fb_ca(&s.facts, "mlx5_8"), 1, NP_PORT_DOWN, NP_PHYS_POLLING, "");
	s.facts.cas.v[4].management_only = true;
	fb_port(fb_ca(&s.facts, "mlx5_3"), 1, NP_PORT_DOWN, NP_PHYS_POLLING, "");
	fb_port(fb_ca(&s.facts, "eth"), 1, NP_PORT_DOWN, NP_PHYS_DISABLED, "40 Gb/sec (4X QDR)")
		->link_layer = NP_LL_ETHERNET;
	set(&s, "ports", "ignore", "mlx5_3:1");
	judge(&s);
	assert_int_equal(count_status(&s, NP_CHECK_FAIL), 0);
	has(&s, "mlx5_0:1", "port.active", NP_CHECK_OK);
	says(has(&s, "roce:1", "port.ethernet", NP_CHECK_SKIP), "RoCE, not InfiniBand");
	says(has(&s, "irdma0:1", "port.ethernet", NP_CHECK_SKIP), "iWARP");
	says(has(&s, "hfi1_0:1", "port.not_infiniband", NP_CHECK_SKIP), "Omni-Path");
	says(has(&s, "mlx5_8:1", "port.management_only", NP_CHECK_SKIP), "SW_MNG");
	has(&s, "mlx5_3:1", "port.ignored", NP_CHECK_SKIP);
	has(&s, "eth:1", "port.ethernet", NP_CHECK_SKIP);
	end(&s);
}

static void test_listed_ports(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	fb_active(&s.facts, "mlx5_0");
	fb_active(&s.facts, "mlx5_1")->link_layer = NP_LL_ETHERNET;
	fb_active(&s.facts, "mlx5_2");
	strcpy(s.facts.cas.v[1].ports[0].link_layer_raw, "Ethernet");
	set(&s, "ports", "devices", "mlx5_0, mlx5_1:1, mlx5_0:2, mlx5_7");
	judge(&s);
	has(&s, "mlx5_0:1", "port.active", NP_CHECK_OK);
	says(has(&s, "mlx5_1:1", "port.ethernet", NP_CHECK_FAIL), "Ethernet where InfiniBand");
	has(&s, "mlx5_2:1", "port.not_listed", NP_CHECK_SKIP);
	has(&s, "mlx5_0:2", "port.missing", NP_CHECK_FAIL);
	has(&s, "mlx5_7", "port.missing", NP_CHECK_FAIL);
	end(&s);
}

static void test_link_layer_unknown(void **state)
{
	struct np_port *port;
	struct scene s;

	(void)state;
	begin(&s);
	port = fb_active(&s.facts, "mlx5_0");
	port->link_layer = NP_LL_UNKNOWN;
	port->link_layer_raw[0] = '\0';
	judge(&s);
	has(&s, "mlx5_0:1", "port.link_layer_unknown", NP_CHECK_FAIL);
	end(&s);
}

static void test_no_port(void **state)
{
	struct scene s;

	(void)state;
	begin(&s);
	judge(&s);
	has(&s, "node", "port.none", NP_CHECK_FAIL);
	fb_active(&s.facts, "roce")->link_layer = NP_LL_ETHERNET;
	judge(&s);
	has(&s, "node", "port.none", NP_CHECK_FAIL);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_guide_is_fine),	   cmocka_unit_test(test_states),
		cmocka_unit_test(test_lid_zero),	   cmocka_unit_test(test_rate_unknown),
		cmocka_unit_test(test_width_degraded),	   cmocka_unit_test(test_rate_degraded),
		cmocka_unit_test(test_left_out),	   cmocka_unit_test(test_listed_ports),
		cmocka_unit_test(test_link_layer_unknown), cmocka_unit_test(test_no_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
