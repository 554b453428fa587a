/* SPDX-License-Identifier: MIT */
/* The judgement of the rung umad. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "selftest/umad_judge.h"

/* A port of EDR that is well, and the kernel's view of it. */
static struct np_umad_view view;
static struct np_port port;
static struct np_ca ca;

static int set_up(void **state)
{
	(void)state;
	view = (struct np_umad_view){
		.node = { .type = NP_NODE_CA, .n_ports = 1, .node_guid = 0x506b4b0300f5ce9c },
		.info = {
			.num = 1, .state = NP_PORT_ACTIVE, .phys_state = NP_PHYS_LINKUP,
			.lid = 0xf, .sm_lid = 1,
			.width_supported = NP_WIDTH_1X | NP_WIDTH_4X,
			.width_enabled = NP_WIDTH_1X | NP_WIDTH_4X, .width_active = NP_WIDTH_4X,
			.speed_supported = NP_SPEED_EDR * 2 - 1,
			.speed_enabled = NP_SPEED_EDR * 2 - 1, .speed_active = NP_SPEED_EDR,
		},
		.sm_asked = true, .sm_answered = true,
		.sm = { .state = NP_SM_MASTER, .priority = 14 },
	};
	port = (struct np_port){ .num = 1,
				 .state = NP_PORT_ACTIVE,
				 .has_lid = true,
				 .lid = 0xf,
				 .has_sm_lid = true,
				 .sm_lid = 1,
				 .width = 4,
				 .speed = "EDR" };
	ca = (struct np_ca){ .name = "mlx5_0", .node_guid = 0x506b4b0300f5ce9c };
	return 0;
}

static void warns(const char *code, const char *hint)
{
	char text[512];
	struct np_err err;

	np_umad_describe(&view, text, sizeof(text));
	assert_true(np_umad_warning(&view, "mlx5_0:1", text, &err));
	assert_string_equal(err.code, code);
	assert_non_null(strstr(err.message, text));
	assert_non_null(strstr(err.hint, hint));
}

static void is_fine(const char *expected)
{
	char text[512];
	struct np_err err;

	np_umad_describe(&view, text, sizeof(text));
	assert_string_equal(text, expected);
	assert_false(np_umad_warning(&view, "mlx5_0:1", text, &err));
}

static void a_port_that_is_well(void **state)
{
	(void)state;
	is_fine("ACTIVE, LinkUp, 4X EDR of 4X EDR supported, lid 0xf, SM lid 0x1 is MASTER "
		"(priority 14)");
	view.info.speed_active = 0; /* what is not known is no fault */
	view.info.width_active = 0;
	is_fine("ACTIVE, LinkUp, ?X ? of 4X EDR supported, lid 0xf, SM lid 0x1 is MASTER "
		"(priority 14)");
}

static void narrower_and_slower(void **state)
{
	(void)state;
	view.info.width_active = NP_WIDTH_1X;
	warns("selftest.umad.degraded", "lane");
	view.info.width_active = NP_WIDTH_2X;
	view.info.width_supported |= NP_WIDTH_2X;
	view.info.width_enabled |= NP_WIDTH_2X;
	warns("selftest.umad.degraded", "lane");
	view.info.width_active = NP_WIDTH_4X;
	view.info.speed_active = NP_SPEED_FDR;
	warns("selftest.umad.degraded", "slower");
	view.info.speed_active = NP_SPEED_SDR;
	warns("selftest.umad.degraded", "slower");
}

/* Somebody chose so: said, not warned of. */
static void limited_by_what_is_enabled(void **state)
{
	(void)state;
	view.info.width_active = view.info.width_enabled = NP_WIDTH_1X;
	view.info.speed_active = NP_SPEED_QDR;
	view.info.speed_enabled = NP_SPEED_QDR * 2 - 1;
	is_fine("ACTIVE, LinkUp, 1X QDR of 4X EDR supported and 1X QDR enabled, lid 0xf, "
		"SM lid 0x1 is MASTER (priority 14)");
}

static void not_active(void **state)
{
	(void)state;
	view.sm_asked = view.sm_answered = false;
	view.info.state = NP_PORT_INIT;
	view.info.sm_lid = view.info.lid = 0;
	warns("selftest.umad.not_active", "subnet manager");
	view.info.state = NP_PORT_DOWN;
	view.info.phys_state = NP_PHYS_POLLING;
	view.info.width_active = NP_WIDTH_1X; /* a leftover: the cable comes first */
	warns("selftest.umad.not_active", "cable");
	view.info.phys_state = NP_PHYS_DISABLED;
	warns("selftest.umad.not_active", "enable");
}

static void subnet_managers(void **state)
{
	(void)state;
	view.sm.state = NP_SM_STANDBY;
	warns("selftest.umad.sm_not_master", "saquery");
	view.sm_answered = false;
	warns("selftest.umad.sm_silent", "sminfo");
}

static void same_port(void **state)
{
	struct np_err err;

	(void)state;
	assert_int_equal(np_umad_mismatch(&view, &ca, &port, &err), 0);
	/* what the kernel does not know */
	port.width = 0;
	port.speed[0] = '\0';
	port.has_lid = port.has_sm_lid = false;
	port.lid = 99;
	port.state = NP_PORT_UNKNOWN;
	ca.node_guid = 0;
	assert_int_equal(np_umad_mismatch(&view, &ca, &port, &err), 0);
	/* a vendor's speed */
	set_up(NULL);
	view.info.speed_active = NP_SPEED_QDR;
	np_strcpy(port.speed, sizeof(port.speed), "FDR10");
	assert_int_equal(np_umad_mismatch(&view, &ca, &port, &err), 0);
	/* leftovers of a port that is down */
	set_up(NULL);
	port.state = view.info.state = NP_PORT_DOWN;
	port.lid = 868;
	port.width = 1;
	assert_int_equal(np_umad_mismatch(&view, &ca, &port, &err), 0);
}

static void differs(const char *what)
{
	struct np_err err;

	assert_int_equal(np_umad_mismatch(&view, &ca, &port, &err), -EBADMSG);
	assert_string_equal(err.code, "selftest.umad.mismatch");
	assert_non_null(strstr(err.message, what));
	set_up(NULL);
}

static void another_port(void **state)
{
	struct np_err err;

	(void)state;
	ca.node_guid++;
	differs("node GUID of port mlx5_0:1: the kernel shows 0x506b4b0300f5ce9d");
	view.info.num = 2;
	differs("number");
	port.state = NP_PORT_INIT;
	differs("state of port mlx5_0:1: the kernel shows INIT, the port itself says ACTIVE");
	port.lid = 0x10;
	differs("lid of port mlx5_0:1: the kernel shows 0x10, the port itself says 0xf");
	port.sm_lid = 7;
	differs("SM lid");
	port.width = 1;
	differs("link of port mlx5_0:1: the kernel shows 1X EDR, the port itself says 4X EDR");
	np_strcpy(port.speed, sizeof(port.speed), "HDR");
	differs("4X HDR");
	assert_int_equal(np_umad_mismatch(&view, &ca, NULL, &err), -ENODEV);
	assert_string_equal(err.code, "selftest.umad.gone");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_port_that_is_well, set_up),
		cmocka_unit_test_setup(narrower_and_slower, set_up),
		cmocka_unit_test_setup(limited_by_what_is_enabled, set_up),
		cmocka_unit_test_setup(not_active, set_up),
		cmocka_unit_test_setup(subnet_managers, set_up),
		cmocka_unit_test_setup(same_port, set_up),
		cmocka_unit_test_setup(another_port, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
