/* SPDX-License-Identifier: MIT */
/* The real observer, through the real libibumad and without it, on made-up trees: each way
 * of reading says the same. */
#include "tests/unit/fake_sys.h"

#include "ibmad/ca.h"

/* ---- the made-up devices ---- */

static void drop(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/class/infiniband/%s", tree, name);
	assert_int_equal(unlink(path), 0);
}

/* Reading it fails with EINVAL, as `speed` of the loopback device always does. */
static void break_attr(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/class/infiniband/%s", tree, name);
	assert_int_equal(mount("/sys/devices/virtual/net/lo/speed", path, NULL, MS_BIND, NULL), 0);
}

struct port_text {
	const char *state, *phys_state, *rate, *lid, *sm_lid, *link_layer, *gid;
};

static const struct port_text active = { "4: ACTIVE",
					 "5: LinkUp",
					 "100 Gb/sec (4X EDR)",
					 "0xf",
					 "0x1",
					 "InfiniBand",
					 "fe80:0000:0000:0000:506b:4b03:00f5:ce9c" };

#define IB "class/infiniband"

static void put_port(const char *ca, int num, const struct port_text *p)
{
	put(p->state, IB "/%s/ports/%d/state", ca, num);
	put(p->phys_state, IB "/%s/ports/%d/phys_state", ca, num);
	put(p->rate, IB "/%s/ports/%d/rate", ca, num);
	put(p->lid, IB "/%s/ports/%d/lid", ca, num);
	put(p->sm_lid, IB "/%s/ports/%d/sm_lid", ca, num);
	put(p->link_layer, IB "/%s/ports/%d/link_layer", ca, num);
	put(p->gid, IB "/%s/ports/%d/gids/0", ca, num);
	put("3", IB "/%s/ports/%d/sm_sl", ca, num);
	put("2", IB "/%s/ports/%d/lid_mask_count", ca, num);
	put("0x2651e848", IB "/%s/ports/%d/cap_mask", ca, num);
	put("0xffff", IB "/%s/ports/%d/pkeys/0", ca, num);
	for (int i = 1; i < 11; i++)
		put(i == 10 ? "0x8001" : "0x0000", IB "/%s/ports/%d/pkeys/%d", ca, num, i);
	put("4096", IB "/%s/ports/%d/counters/port_rcv_data", ca, num);
	put("N/A (no PMA)", IB "/%s/ports/%d/counters/port_xmit_wait", ca, num);
	put("18446744073709551615", IB "/%s/ports/%d/counters/port_xmit_data", ca, num);
}

static void put_ca(const char *ca, const char *node_type, const char *driver)
{
	char name[128], target[128];

	put(node_type, IB "/%s/node_type", ca);
	put("MT4119", IB "/%s/hca_type", ca);
	put("16.28.2006", IB "/%s/fw_ver", ca);
	put("0", IB "/%s/hw_rev", ca);
	put("MT_0000000008", IB "/%s/board_id", ca);
	put("506b:4b03:00f5:ce9c", IB "/%s/node_guid", ca);
	put("506b:4b03:00f5:ce9c", IB "/%s/sys_image_guid", ca);
	snprintf(target, sizeof(target), "../../../../bus/pci/drivers/%s", driver);
	snprintf(name, sizeof(name), IB "/%s/device/driver", ca);
	put_link(target, name);
}

static const unsigned int all[] = { 0, NP_CA_SYSFS_ONLY, NP_CA_LEAN };

static void observe(unsigned int detail, struct np_cas *out)
{
	struct np_err err;

	np_err_clear(&err);
	memset(out, 0, sizeof(*out));
	assert_int_equal(np_cas_observe(detail, out, &err), 0);
}

static const struct np_port *port_of(const struct np_cas *list, const char *ca)
{
	const struct np_port *port = np_cas_find_port(list, ca, 1);

	assert_non_null(port);
	return port;
}

/* ---- the cases ---- */

static void guide_node(void **state)
{
	static const char *const lids[] = { "0xf", "0x6", "0x2", "0x11" };
	char ca[24];

	(void)state;
	need_namespace();
	for (int i = 0; i < 4; i++) {
		struct port_text text = active;

		snprintf(ca, sizeof(ca), "mlx5_%d", i);
		text.lid = lids[i];
		put_ca(ca, "1: CA", "mlx5_core");
		put_port(ca, 1, &text);
		put("0x1", IB "/%s/device/net/ib%d/flags", ca, i);
		put(i < 1 ? "0" : "1", IB "/%s/device/numa_node", ca);
	}
	lay_over("class");
	for (size_t i = 0; i < NP_ARRAY_SIZE(all); i++) {
		const bool lean = all[i] == NP_CA_LEAN;
		struct np_cas list;
		const struct np_port *port;

		observe(all[i], &list);
		assert_int_equal(list.n, 4);
		assert_string_equal(list.v[3].name, "mlx5_3");
		assert_int_equal(list.v[0].from_libibumad, all[i] == 0);
		assert_int_equal(list.v[0].node_type, NP_NODE_CA);
		assert_string_equal(list.v[0].ca_type, "MT4119");
		assert_string_equal(list.v[0].fw_ver, lean ? "" : "16.28.2006");
		assert_string_equal(list.v[0].hw_rev, lean ? "" : "0");
		assert_string_equal(list.v[0].board_id, lean ? "" : "MT_0000000008");
		assert_int_equal(list.v[1].numa_node, lean ? -1 : 1);
		np_cas_read_numa(&list);
		assert_int_equal(list.v[1].numa_node, 1);
		assert_string_equal(list.v[0].driver, "mlx5_core");
		assert_true(list.v[0].node_guid == (lean ? 0 : 0x506b4b0300f5ce9cULL));
		assert_true(list.v[0].sys_image_guid == (lean ? 0 : 0x506b4b0300f5ce9cULL));
		assert_false(list.v[0].management_only);
		assert_int_equal(list.v[2].netdevs.n, 1);
		assert_string_equal(list.v[2].netdevs.v[0], "ib2");
		port = port_of(&list, "mlx5_3");
		assert_int_equal(port->state, NP_PORT_ACTIVE);
		assert_int_equal(port->phys_state, NP_PHYS_LINKUP);
		assert_int_equal(port->link_layer, NP_LL_INFINIBAND);
		assert_string_equal(port->link_layer_raw, "InfiniBand");
		assert_true(port->has_lid && port->lid == 0x11);
		assert_true(port->has_sm_lid && port->sm_lid == 1);
		assert_string_equal(port->rate, "100 Gb/sec (4X EDR)");
		assert_true(port->rate_gbps == 100 && port->width == 4);
		assert_string_equal(port->speed, "EDR");
		assert_string_equal(port->gid, active.gid);
		assert_true(port->guid == 0x506b4b0300f5ce9cULL);
		assert_int_equal(port->unreadable.n, 0);
		assert_null(port->counters);
		assert_null(port->pkeys);
		np_cas_done(&list);
	}
}

static void tables_with_counters(void **state)
{
	(void)state;
	need_namespace();
	put_ca("mlx5_0", "1: CA", "mlx5_core");
	put_port("mlx5_0", 1, &active);
	put("1", IB "/mlx5_0/ports/1/counters/symbol_error");
	put("0xffff", IB "/mlx5_0/ports/1/pkeys/11");
	break_attr("mlx5_0/ports/1/counters/symbol_error");
	break_attr("mlx5_0/ports/1/pkeys/11");
	lay_over("class");
	for (size_t i = 0; i < NP_ARRAY_SIZE(all); i++) {
		struct np_cas list;
		const struct np_port *port;

		observe(NP_CA_COUNTERS | all[i], &list);
		port = port_of(&list, "mlx5_0");
		assert_int_equal(port->unreadable.n, 1);
		assert_string_equal(port->unreadable.v[0], "pkeys/11: Invalid argument");
		assert_int_equal(port->n_counters, 4);
		assert_string_equal(port->counters[0].name, "port_rcv_data");
		assert_true(port->counters[0].known && port->counters[0].value == 4096);
		assert_true(port->counters[1].known && port->counters[1].value == UINT64_MAX);
		assert_string_equal(port->counters[2].name, "port_xmit_wait");
		assert_false(port->counters[2].known);
		assert_string_equal(port->counters[3].name, "symbol_error");
		assert_false(port->counters[3].known);
		assert_int_equal(port->n_pkeys, 2);
		assert_int_equal(port->pkeys[0], 0xffff);
		assert_int_equal(port->pkeys[1], 0x8001);
		assert_int_equal(port->sm_sl, 3);
		assert_int_equal(port->lmc, 2);
		assert_int_equal(port->cap_mask, 0x2651e848);
		np_cas_done(&list);
	}
}

static void unreadable_attributes(void **state)
{
	(void)state;
	need_namespace();
	for (int i = 0; i < 3; i++) {
		char ca[24];

		snprintf(ca, sizeof(ca), "mlx5_%d", i);
		put_ca(ca, "1: CA", "mlx5_core");
		put_port(ca, 1, &active);
	}
	break_attr("mlx5_0/ports/1/rate");
	drop("mlx5_1/ports/1/link_layer"); /* libibumad says "IB" */
	drop("mlx5_2/ports/1/state");
	break_attr("mlx5_2/ports/1/gids/0");
	lay_over("class");
	for (size_t i = 0; i < NP_ARRAY_SIZE(all); i++) {
		struct np_cas list;
		const struct np_port *port;

		observe(all[i], &list);
		port = port_of(&list, "mlx5_0");
		assert_false(list.v[0].from_libibumad);
		assert_string_equal(port->rate, "");
		assert_true(port->rate_gbps == 0 && port->width == 0);
		assert_int_equal(port->unreadable.n, 1);
		assert_string_equal(port->unreadable.v[0], "rate: Invalid argument");
		assert_int_equal(port->state, NP_PORT_ACTIVE);
		assert_int_equal(port->lid, 0xf);

		port = port_of(&list, "mlx5_1");
		assert_int_equal(port->link_layer, NP_LL_UNKNOWN);
		assert_string_equal(port->link_layer_raw, "");
		assert_int_equal(port->unreadable.n, 1);
		assert_string_equal(port->unreadable.v[0], "link_layer: No such file or directory");
		assert_true(port->rate_gbps == 100);

		port = port_of(&list, "mlx5_2");
		assert_int_equal(port->state, NP_PORT_UNKNOWN);
		assert_string_equal(port->gid, "");
		assert_true(port->guid == 0);
		assert_int_equal(port->unreadable.n, 2);
		assert_string_equal(port->unreadable.v[0], "state: No such file or directory");
		assert_string_equal(port->unreadable.v[1], "gids/0: Invalid argument");
		assert_int_equal(port->phys_state, NP_PHYS_LINKUP);
		np_cas_done(&list);
	}
}

/* A text that is there but makes no sense is unknown, too; libibumad says 0. */
static void nonsense(void **state)
{
	static const struct port_text odd = { "strange", "9: Warp",    "fast",	    "none",
					      "",	 "Token Ring", "fe80::gggg" };

	(void)state;
	need_namespace();
	put_ca("mlx5_0", "1: CA", "mlx5_core");
	put_port("mlx5_0", 1, &odd);
	lay_over("class");
	for (size_t i = 0; i < NP_ARRAY_SIZE(all); i++) {
		struct np_cas list;
		const struct np_port *port;

		observe(all[i], &list);
		port = port_of(&list, "mlx5_0");
		assert_int_equal(port->state, NP_PORT_UNKNOWN);
		assert_int_equal(port->phys_state, NP_PHYS_UNKNOWN);
		assert_int_equal(port->link_layer, NP_LL_UNKNOWN);
		assert_string_equal(port->link_layer_raw, "Token Ring");
		assert_false(port->has_lid || port->has_sm_lid);
		assert_true(port->rate[0] == '\0' && port->rate_gbps == 0);
		assert_true(port->gid[0] == '\0' && port->guid == 0);
		assert_int_equal(port->unreadable.n, 6);
		np_cas_done(&list);
	}
}

static void other_kinds(void **state)
{
	struct port_text text = active;

	(void)state;
	need_namespace();
	text.rate = "400 Gb/sec (4X NDR)";
	text.lid = "0x0";
	text.sm_lid = "0x0";
	text.link_layer = "Ethernet";
	put_ca("mlx5_bond_0", "1: CA", "mlx5_core");
	put_port("mlx5_bond_0", 1, &text);
	put_ca("irdma0", "4: RNIC", "irdma");
	put_port("irdma0", 1, &text);
	put_ca("hfi1_0", "1: CA", "none");
	put_port("hfi1_0", 1, &active);
	put_ca("opap1s0", "1: CA", "hfi1");
	put_port("opap1s0", 1, &active);
	text = active;
	text.rate = "2.5 Gb/sec (1X SDR)";
	text.lid = "0x0";
	put_ca("a_name_longer_than_libibumad_takes", "1: CA", "mlx5_core");
	put_port("a_name_longer_than_libibumad_takes", 1, &text);
	lay_over("class");
	for (size_t i = 0; i < NP_ARRAY_SIZE(all); i++) {
		struct np_cas list;
		const struct np_port *port;

		observe(all[i], &list);
		assert_int_equal(list.n, 5);
		port = port_of(&list, "mlx5_bond_0");
		assert_int_equal(port->link_layer, NP_LL_ETHERNET);
		assert_true(port->has_lid && port->lid == 0);
		assert_true(port->has_sm_lid && port->sm_lid == 0);
		assert_true(port->rate_gbps == 400);
		assert_int_equal(port->unreadable.n, 0);
		assert_int_equal(np_cas_find(&list, "irdma0")->node_type, NP_NODE_RNIC);
		assert_int_equal(port_of(&list, "irdma0")->link_layer, NP_LL_ETHERNET);
		assert_int_equal(port_of(&list, "hfi1_0")->link_layer, NP_LL_OMNIPATH);
		assert_string_equal(port_of(&list, "hfi1_0")->link_layer_raw, "InfiniBand");
		assert_int_equal(port_of(&list, "opap1s0")->link_layer, NP_LL_OMNIPATH);
		port = port_of(&list, "a_name_longer_than_libibumad_takes");
		assert_true(port->rate_gbps == 2.5 && port->width == 1);
		assert_true(port->has_lid && port->lid == 0);
		np_cas_done(&list);
	}
}

static void many_and_management(void **state)
{
	char ca[24], vpd[256 - 3 + sizeof("SW_MNG")];

	(void)state;
	need_namespace();
	/* the marker lies across two reads */
	memset(vpd, 'x', sizeof(vpd));
	memcpy(vpd + 256 - 3, "SW_MNG", sizeof("SW_MNG"));
	for (int i = 11; i >= 0; i--) {
		struct port_text text = active;

		snprintf(ca, sizeof(ca), "mlx5_%d", i);
		if (i < 2) {
			text.state = "1: DOWN";
			text.phys_state = "3: Disabled";
			text.rate = "40 Gb/sec (4X QDR)";
			text.link_layer = "Ethernet";
		}
		put_ca(ca, "1: CA", "mlx5_core");
		put_port(ca, 1, &text);
		put(i == 9 ? vpd : "SMDL=NIC", IB "/%s/device/vpd", ca);
	}
	lay_over("class");
	for (size_t i = 0; i < NP_ARRAY_SIZE(all); i++) {
		struct np_cas list;

		observe(all[i], &list);
		assert_int_equal(list.n, 12);
		for (int j = 0; j < 12; j++) {
			snprintf(ca, sizeof(ca), "mlx5_%d", j);
			assert_string_equal(list.v[j].name, ca);
			assert_int_equal(list.v[j].management_only, j == 9);
		}
		assert_int_equal(list.v[1].ports[0].phys_state, NP_PHYS_DISABLED);
		assert_int_equal(list.v[1].ports[0].link_layer, NP_LL_ETHERNET);
		np_cas_done(&list);
	}
}

/* Four adapters need a reason more for a look at the slow VPD. */
static void management_beside_nvswitch(void **state)
{
	struct np_cas list;

	(void)state;
	need_namespace();
	put_ca("mlx5_0", "1: CA", "mlx5_core");
	put_port("mlx5_0", 1, &active);
	put("V0SMDL=SW_MNG", IB "/mlx5_0/device/vpd");
	put(NULL, "bus");
	lay_over("class");
	lay_over("bus");
	observe(0, &list);
	assert_false(list.v[0].management_only);
	np_cas_done(&list);
	put("", "bus/pci/drivers/nvidia-nvswitch/0000:c1:00.0");
	observe(0, &list);
	assert_true(list.v[0].management_only);
	np_cas_done(&list);
}

static void nothing_there(void **state)
{
	struct np_cas list;

	(void)state;
	need_namespace();
	put(NULL, "class");
	lay_over("class");
	for (size_t i = 0; i < NP_ARRAY_SIZE(all); i++) {
		observe(all[i], &list);
		assert_int_equal(list.n, 0); /* and no mthca0 */
		np_cas_done(&list);
	}
	put(NULL, IB);
	observe(0, &list);
	assert_int_equal(list.n, 0);
	np_cas_done(&list);
	/* a CA whose ports are not there must not pass for one in order */
	put("1: CA", IB "/mlx5_0/node_type");
	observe(0, &list);
	assert_int_equal(list.n, 1);
	assert_int_equal(list.v[0].n_ports, 1);
	assert_int_equal(list.v[0].ports[0].state, NP_PORT_UNKNOWN);
	assert_string_equal(list.v[0].ports[0].unreadable.v[0], "ports: No such file or directory");
	np_cas_done(&list);
}

static void refresh(void **state)
{
	struct np_cas list;
	struct np_port *port;

	(void)state;
	need_namespace();
	put_ca("mlx5_0", "1: CA", "mlx5_core");
	put_port("mlx5_0", 1, &active);
	lay_over("class");
	observe(0, &list);
	port = &list.v[0].ports[0];
	put("2: INIT", IB "/mlx5_0/ports/1/state");
	assert_int_equal(np_port_refresh("mlx5_0", port), 0);
	assert_int_equal(port->state, NP_PORT_INIT);
	assert_int_equal(port->lid, 0xf);
	drop("mlx5_0/ports/1/state");
	assert_int_equal(np_port_refresh("mlx5_0", port), 0);
	assert_int_equal(port->state, NP_PORT_UNKNOWN);
	assert_int_equal(port->phys_state, NP_PHYS_LINKUP);
	assert_int_equal(np_port_refresh("mlx5_7", port), -ENOENT);
	assert_int_equal(port->phys_state, NP_PHYS_LINKUP);
	np_cas_done(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		CASE(guide_node),
		CASE(tables_with_counters),
		CASE(unreadable_attributes),
		CASE(nonsense),
		CASE(other_kinds),
		CASE(many_and_management),
		CASE(management_beside_nvswitch),
		CASE(nothing_there),
		CASE(refresh),
	};
	int failed;

	enter_namespace();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	leave_namespace();
	return failed;
}
