/* SPDX-License-Identifier: MIT */
/* PortInfo, NodeInfo and SMInfo: fields, widths with 2X, speeds from SDR to XDR. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ibmad/smp.h"

#define EXT_SPEEDS (1u << 14)

/* Bytes of a PortInfo that matter for the link. */
struct link_bytes {
	uint8_t width_enabled, width_supported, width_active;
	uint8_t speed_supported, speed_active_enabled;
	uint8_t ext_active_supported, ext_enabled, ext2;
	uint32_t cap_mask;
};

static struct np_port_info decode(const struct link_bytes *bytes)
{
	uint8_t data[NP_SMP_DATA] = { 0 };
	struct np_port_info info;

	data[20] = (uint8_t)(bytes->cap_mask >> 24);
	data[21] = (uint8_t)(bytes->cap_mask >> 16);
	data[22] = (uint8_t)(bytes->cap_mask >> 8);
	data[23] = (uint8_t)bytes->cap_mask;
	data[29] = bytes->width_enabled;
	data[30] = bytes->width_supported;
	data[31] = bytes->width_active;
	data[32] = (uint8_t)(bytes->speed_supported << 4 | NP_PORT_ACTIVE);
	data[35] = bytes->speed_active_enabled;
	data[56] = bytes->ext2;
	data[62] = bytes->ext_active_supported;
	data[63] = bytes->ext_enabled;
	memset(&info, 0xa5, sizeof(info));
	np_port_info_decode(data, &info);
	return info;
}

/* Each speed as a port that can do all up to it would say it. */
static const struct {
	const char *name;
	struct link_bytes bytes;
	const char *supported, *enabled;
} speed_cases[] = {
	{ "SDR", { 2, 3, 2, 1, 0x11, 0, 0, 0, 0 }, "SDR", "SDR" },
	{ "DDR", { 2, 3, 2, 3, 0x23, 0, 0, 0, 0 }, "DDR", "DDR" },
	{ "QDR", { 2, 3, 2, 7, 0x47, 0, 0, 0, 0 }, "QDR", "QDR" },
	{ "QDR", { 2, 3, 2, 7, 0x4f, 0, 0, 0, 0 }, "QDR", "QDR" }, /* all that is supported */
	{ "FDR", { 2, 3, 2, 7, 0x47, 0x11, 0x01, 0, EXT_SPEEDS }, "FDR", "FDR" },
	{ "EDR", { 2, 3, 2, 7, 0x47, 0x23, 0x03, 0, EXT_SPEEDS }, "EDR", "EDR" },
	{ "EDR", { 2, 3, 2, 7, 0x07, 0x23, 31, 0, EXT_SPEEDS }, "EDR", "EDR" },
	{ "HDR", { 2, 3, 2, 7, 0x47, 0x47, 0x07, 0, EXT_SPEEDS }, "HDR", "HDR" },
	{ "NDR", { 2, 3, 2, 7, 0x47, 0x8f, 31, 0, EXT_SPEEDS }, "NDR", "NDR" },
	{ "XDR", { 2, 3, 2, 7, 0x47, 0x0f, 0x0f, 1 << 5 | 1 << 3 | 1, EXT_SPEEDS }, "XDR", "XDR" },
	/* slower than it can */
	{ "EDR", { 2, 3, 2, 7, 0x47, 0x27, 0x07, 0, EXT_SPEEDS }, "HDR", "HDR" },
	/* extended speeds disabled: QDR is the best left */
	{ "QDR", { 2, 3, 2, 7, 0x47, 0x0f, 30, 1, EXT_SPEEDS }, "XDR", "QDR" },
	/* enabled, but not supported, is not there */
	{ "EDR", { 2, 3, 2, 7, 0x47, 0x23, 0x0f, 1 << 5, EXT_SPEEDS }, "EDR", "EDR" },
	/* without the capability those bytes mean nothing */
	{ "QDR", { 2, 3, 2, 7, 0x47, 0xff, 0xff, 0xff, 0 }, "QDR", "QDR" },
};

static void speeds(void **state)
{
	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(speed_cases); i++) {
		struct np_port_info info = decode(&speed_cases[i].bytes);

		assert_string_equal(np_speed_str(info.speed_active), speed_cases[i].name);
		assert_string_equal(np_speed_str(info.speed_supported), speed_cases[i].supported);
		assert_string_equal(np_speed_str(info.speed_enabled), speed_cases[i].enabled);
		assert_int_equal(info.speed_enabled & ~info.speed_supported, 0);
		assert_int_equal(info.speed_active, np_speed_parse(speed_cases[i].name));
	}
	assert_int_equal(np_speed_parse("FDR10"), NP_SPEED_QDR);
	assert_int_equal(np_speed_parse("ZDR"), 0);
	assert_int_equal(np_speed_parse(""), 0);
	assert_string_equal(np_speed_str(0), "");
}

static void widths(void **state)
{
	static const struct {
		uint8_t enabled, supported, active;
		int lanes_enabled, lanes_supported, lanes_active;
	} cases[] = {
		{ 1, 1, 1, 1, 1, 1 },	       { 2, 3, 2, 4, 4, 4 },
		{ 3, 3, 1, 4, 4, 1 },	       { 0x13, 0x13, 0x10, 4, 4, 2 },
		{ 0x10, 0x13, 0x10, 2, 4, 2 }, { 4, 7, 4, 8, 8, 8 },
		{ 8, 0x1f, 8, 12, 12, 12 },    { 255, 0x13, 2, 4, 4, 4 },
		{ 0x1f, 3, 2, 4, 4, 4 },       { 0, 3, 0, 0, 4, 0 },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct link_bytes bytes = { .width_enabled = cases[i].enabled,
					    .width_supported = cases[i].supported,
					    .width_active = cases[i].active };
		struct np_port_info info = decode(&bytes);

		assert_int_equal(np_width_lanes(info.width_enabled), cases[i].lanes_enabled);
		assert_int_equal(np_width_lanes(info.width_supported), cases[i].lanes_supported);
		assert_int_equal(np_width_lanes(info.width_active), cases[i].lanes_active);
	}
}

static void the_other_fields_of_port_info(void **state)
{
	uint8_t data[NP_SMP_DATA] = { 0 };
	struct np_port_info info;

	(void)state;
	data[16] = 0x12, data[17] = 0x34;
	data[18] = 0x00, data[19] = 0x01;
	data[28] = 2;
	data[32] = 0x70 | NP_PORT_INIT;
	data[33] = NP_PHYS_LINKUP << 4 | 2;
	data[34] = 0xc0 | 3;
	data[36] = 0x50 | 7;
	np_port_info_decode(data, &info);
	assert_int_equal(info.lid, 0x1234);
	assert_int_equal(info.sm_lid, 1);
	assert_int_equal(info.num, 2);
	assert_int_equal(info.state, NP_PORT_INIT);
	assert_int_equal(info.phys_state, NP_PHYS_LINKUP);
	assert_int_equal(info.lmc, 3);
	assert_int_equal(info.sm_sl, 7);
	data[32] = 0x70 | 9; /* no such state */
	data[33] = 0xf0;
	np_port_info_decode(data, &info);
	assert_int_equal(info.state, NP_PORT_UNKNOWN);
	assert_int_equal(info.phys_state, NP_PHYS_UNKNOWN);
}

static void node_info_and_sm_info(void **state)
{
	uint8_t data[NP_SMP_DATA] = { 1, 1, NP_NODE_CA, 2 };
	struct np_node_info node;
	struct np_sm_info sm;

	(void)state;
	for (int i = 4; i < NP_SMP_DATA; i++)
		data[i] = (uint8_t)i;
	np_node_info_decode(data, &node);
	assert_int_equal(node.type, NP_NODE_CA);
	assert_int_equal(node.n_ports, 2);
	assert_true(node.sys_image_guid == 0x0405060708090a0bu);
	assert_true(node.node_guid == 0x0c0d0e0f10111213u);
	assert_true(node.port_guid == 0x1415161718191a1bu);
	assert_int_equal(node.device_id, 0x1e1f);
	assert_int_equal(node.vendor_id, 0x252627);
	data[2] = 9;
	np_node_info_decode(data, &node);
	assert_int_equal(node.type, NP_NODE_UNKNOWN);

	data[20] = 14 << 4 | NP_SM_MASTER;
	np_sm_info_decode(data, &sm);
	assert_true((sm.guid & 0xffffffffu) == 0x04050607u);
	assert_int_equal(sm.activity, 0x10111213);
	assert_int_equal(sm.priority, 14);
	assert_string_equal(np_sm_state_str(sm.state), "MASTER");
	data[20] = 9;
	np_sm_info_decode(data, &sm);
	assert_string_equal(np_sm_state_str(sm.state), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(speeds),
		cmocka_unit_test(widths),
		cmocka_unit_test(the_other_fields_of_port_info),
		cmocka_unit_test(node_info_and_sm_info),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
