/* SPDX-License-Identifier: MIT */
/*
 * Kernel modules and GPUs, observed on made-up trees bound over /sys/module and
 * /sys/bus in a private mount namespace; and the parsing of PCI addresses.
 */
#include "tests/unit/fake_sys.h"

#include "modules/gpu.h"
#include "modules/module.h"
#include "modules/private.h"

static void module_states(void **state)
{
	struct np_kmods list;
	struct np_kmod one;

	(void)state;
	need_namespace();
	put("live", "module/mlx5_core/initstate");
	put("5.8-1.0.1", "module/mlx5_core/version");
	put("3", "module/mlx5_core/refcnt");
	put("coming", "module/gdrdrv/initstate");
	put("going", "module/nvidia_uvm/initstate");
	put("strange", "module/nvidia/initstate");
	put("-1", "module/nvidia/refcnt");
	put("Y", "module/ib_core/parameters/x"); /* built in: no initstate */
	lay_over("module");
	assert_int_equal(np_kmods_observe(true, &list, NULL), 0);
	for (size_t i = 0; np_kmod_known[i].name; i++)
		assert_string_equal(list.v[i].name, np_kmod_known[i].name);
	assert_int_equal(np_kmods_find(&list, "mlx5_core")->state, NP_KMOD_LIVE);
	assert_string_equal(np_kmods_find(&list, "mlx5_core")->version, "5.8-1.0.1");
	assert_int_equal(np_kmods_find(&list, "mlx5-core")->refcnt, 3);
	assert_int_equal(np_kmods_find(&list, "gdrdrv")->state, NP_KMOD_COMING);
	assert_string_equal(np_kmods_find(&list, "gdrdrv")->version, "");
	assert_int_equal(np_kmods_find(&list, "gdrdrv")->refcnt, -1);
	assert_int_equal(np_kmods_find(&list, "nvidia-uvm")->state, NP_KMOD_GOING);
	assert_int_equal(np_kmods_find(&list, "nvidia")->state, NP_KMOD_UNKNOWN);
	assert_int_equal(np_kmods_find(&list, "nvidia")->refcnt, -1);
	assert_int_equal(np_kmods_find(&list, "ib_core")->state, NP_KMOD_BUILTIN);
	assert_int_equal(np_kmods_find(&list, "ib_umad")->state, NP_KMOD_ABSENT);
	assert_null(np_kmods_find(&list, "e1000"));
	np_kmods_done(&list);

	np_kmod_observe("mlx5-core", &one);
	assert_int_equal(one.state, NP_KMOD_LIVE);
	assert_string_equal(one.name, "mlx5_core");
	np_kmod_observe("../module/mlx5_core", &one);
	assert_int_equal(one.state, NP_KMOD_ABSENT);
	np_kmod_observe("", &one);
	assert_int_equal(one.state, NP_KMOD_ABSENT);
	np_kmod_observe("..", &one);
	assert_int_equal(one.state, NP_KMOD_ABSENT);
}

static void state_words(void **state)
{
	(void)state;
	assert_string_equal(np_kmod_state_str(NP_KMOD_LIVE), "live");
	assert_string_equal(np_kmod_state_str(NP_KMOD_ABSENT), "absent");
	assert_string_equal(np_kmod_state_str((enum np_kmod_state)77), "unknown");
}

static void put_pci(const char *address, const char *vendor, const char *device, const char *class)
{
	put(vendor, "bus/pci/devices/%s/vendor", address);
	put(device, "bus/pci/devices/%s/device", address);
	put(class, "bus/pci/devices/%s/class", address);
	put("-1", "bus/pci/devices/%s/numa_node", address);
}

static void gpus(void **state)
{
	struct np_gpus list;

	(void)state;
	need_namespace();
	put_pci("0000:ab:00.0", "0x10de", "0x2330", "0x030200");
	put_pci("0000:17:00.0", "0x10de", "0x2330", "0x030000");
	put_pci("10000:03:00.0", "0x10de", "0x2331", "0x030200"); /* a long domain */
	put_pci("0000:17:00.1", "0x10de", "0x22ba", "0x040300");  /* its audio */
	put_pci("0000:c1:00.0", "0x10de", "0x22a3", "0x068000");  /* NVSwitch */
	put_pci("0000:03:00.0", "0x1a03", "0x2000", "0x030000");  /* the BMC's VGA */
	put_pci("0000:04:00.0", "0x15b3", "0x1021", "0x020700");
	put("", "bus/pci/devices/0000:05:00.0/empty"); /* no attributes at all */
	put_link("../../../../bus/pci/drivers/nvidia", "bus/pci/devices/0000:ab:00.0/driver");
	put("1", "bus/pci/devices/0000:ab:00.0/numa_node");
	lay_over("bus");
	assert_int_equal(np_gpus_observe(&list, NULL), 0);
	assert_int_equal(list.n, 3);
	assert_int_equal(list.n_nvswitches, 1);
	assert_string_equal(list.v[0].pci_address, "0000:17:00.0");
	assert_int_equal(list.v[0].device_id, 0x2330);
	assert_int_equal(list.v[0].numa_node, -1);
	assert_string_equal(list.v[0].driver, "");
	assert_string_equal(list.v[1].pci_address, "0000:ab:00.0");
	assert_int_equal(list.v[1].numa_node, 1);
	assert_string_equal(list.v[1].driver, "nvidia");
	assert_string_equal(list.v[2].pci_address, "10000:03:00.0");
	np_gpus_done(&list);
}

/* The list of the kernel and sysfs agree: nothing but what the list does not say
 * is read. Here every vendor file is a lie that must not be looked at. */
static void vendors_from_one_file(void **state)
{
	struct np_gpus list;
	char path[512], text[256];

	(void)state;
	need_namespace();
	put_pci("0000:17:00.0", "0xdead", "0x2330", "0x030200");
	put_pci("0000:18:00.0", "0x10de", "0x2330", "0x030200");
	put_pci("0000:19:00.0", "0x10de", "0x2330", "0x030200"); /* one of two at 1900 */
	put_pci("0001:19:00.0", "0x15b3", "0x1021", "0x020700");
	snprintf(text, sizeof(text),
		 "1700\t10de2330\t0\n1800\t15b31021\t0\n"
		 "1900\t10de2330\t0\n1900\t15b31021\t0");
	put(text, "pci_list");
	snprintf(path, sizeof(path), "%s/pci_list", tree);
	lay_over("bus");
	if (mount(path, "/proc/bus/pci/devices", NULL, MS_BIND, NULL) < 0) {
		fprintf(stderr, "SKIPPED: cannot lay over /proc/bus/pci/devices: %s\n",
			strerror(errno));
		skip();
	}
	assert_int_equal(np_gpus_observe(&list, NULL), 0);
	assert_int_equal(list.n, 2);
	assert_string_equal(list.v[0].pci_address, "0000:17:00.0");
	assert_string_equal(list.v[1].pci_address, "0000:19:00.0");
	np_gpus_done(&list);
	/* another bus than that of sysfs: not believed */
	put_pci("0000:20:00.0", "0x15b3", "0x1021", "0x020700");
	assert_int_equal(np_gpus_observe(&list, NULL), 0);
	assert_int_equal(list.n, 2);
	assert_string_equal(list.v[0].pci_address, "0000:18:00.0");
	np_gpus_done(&list);
	umount2("/proc/bus/pci/devices", MNT_DETACH);
}

static void no_pci(void **state)
{
	struct np_gpus list;

	(void)state;
	need_namespace();
	put(NULL, "bus");
	lay_over("bus");
	assert_int_equal(np_gpus_observe(&list, NULL), 0);
	assert_int_equal(list.n, 0);
	np_gpus_done(&list);
}

static void pci_texts(void **state)
{
	static const char *const bad[] = {
		"",	   "0000:17:00",    "0000:17:00.8", "0000:17:20.0", "0000:1g:00.0",
		"17:00.0", "0000:17:00.00", "0000:17.00:0"
	};
	uint16_t place = 0;
	struct np_pci_id id;

	(void)state;
	assert_int_equal(np_pci_address_parse("0000:17:1f.7", &place), 0);
	assert_int_equal(place, 0x17ff);
	for (size_t i = 0; i < NP_ARRAY_SIZE(bad); i++)
		assert_true(np_pci_address_parse(bad[i], &place) < 0);
	assert_int_equal(place, 0x17ff);
	assert_int_equal(np_pci_line_parse("17ff\t10de2330\t0\t", &id), 0);
	assert_int_equal(id.bus_devfn, 0x17ff);
	assert_int_equal(id.vendor, 0x10de);
	assert_true(np_pci_line_parse("", &id) < 0);
	assert_true(np_pci_line_parse("17ff", &id) < 0);
	assert_true(np_pci_line_parse("17ff 10de2330", &id) < 0);
	assert_true(np_pci_line_parse("17ff\t10", &id) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		CASE(module_states),	     CASE(gpus),
		CASE(vendors_from_one_file), CASE(no_pci),
		cmocka_unit_test(pci_texts), cmocka_unit_test(state_words),
	};

	int failed;

	enter_namespace();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	leave_namespace();
	return failed;
}
