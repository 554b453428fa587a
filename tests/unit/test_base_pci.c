/* SPDX-License-Identifier: MIT */
/* PCI paths, speeds, and links read from a made-up tree. */
#include "tests/unit/fake_sys.h"

#include "base/pci.h"

static void paths(void **state)
{
	static const struct {
		const char *resolved, *path;
	} cases[] = {
		{ "/sys/devices/pci0000:15/0000:15:01.0/0000:18:00.0",
		  "pci0000:15/0000:15:01.0/0000:18:00.0" },
		{ "/sys/devices/pci0000:00/0000:00:05.0", "pci0000:00/0000:00:05.0" },
		/* what hangs below the function: a subfunction, a netdev */
		{ "/sys/devices/pci0000:15/0000:18:00.0/mlx5_core.sf.2",
		  "pci0000:15/0000:18:00.0" },
		{ "/sys/devices/pci0000:15/0000:18:00.0/net/ib0/0000:19:00.0",
		  "pci0000:15/0000:18:00.0" },
		/* Hyper-V, Arm, a volume management device */
		{ "/sys/devices/LNXSYSTM:00/VMBUS:00/47505500-0001/pci0001:00/0001:00:00.0",
		  "pci0001:00/0001:00:00.0" },
		{ "/sys/devices/platform/14160000.pcie/pci0005:00/0005:00:00.0/0005:01:00.0",
		  "pci0005:00/0005:00:00.0/0005:01:00.0" },
		{ "/sys/devices/pci0000:64/0000:64:05.5/pci10000:00/10000:00:02.0/10000:01:00.0",
		  "pci10000:00/10000:00:02.0/10000:01:00.0" },
		/* no PCI device at all */
		{ "/sys/devices/virtual/infiniband/rxe0", "" },
		{ "/sys/devices/pci0000:15", "" },
		{ "/sys/devices/pci0000:15/", "" },
		{ "/sys/devices/0000:18:00.0", "" },
		{ "/sys/devices/pci0000:1g/0000:18:00.0", "" },
		{ "/sys/devices/pci0000:15/0000:18:00.x", "" },
		{ "", "" },
	};
	char path[64];

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		assert_int_equal(np_pci_path_parse(cases[i].resolved, path, sizeof(path)),
				 cases[i].path[0] != '\0');
		assert_string_equal(path, cases[i].path);
	}
	/* one that does not fit is none, not half of one */
	assert_false(np_pci_path_parse(cases[0].resolved, path, strlen(cases[0].path)));
	assert_string_equal(path, "");
	assert_true(np_pci_path_parse(cases[0].resolved, path, strlen(cases[0].path) + 1));
}

static void speeds(void **state)
{
	(void)state;
	assert_int_equal(np_pci_speed_parse("2.5 GT/s PCIe"), 2500);
	assert_int_equal(np_pci_speed_parse("8 GT/s"), 8000);
	assert_int_equal(np_pci_speed_parse("64.0 GT/s PCIe"), 64000);
	assert_int_equal(np_pci_speed_parse("Unknown"), 0);
	assert_int_equal(np_pci_speed_parse("Unknown speed"), 0);
	assert_int_equal(np_pci_speed_parse(""), 0);
	assert_int_equal(np_pci_speed_parse("32.0"), 0);
	assert_int_equal(np_pci_speed_parse("x.0 GT/s"), 0);
	assert_int_equal(np_pci_speed_parse("8.25 GT/s"), 0);
	assert_int_equal(np_pci_speed_parse("99999999999999999999 GT/s"), 0);
}

#define ROOT "devices/pci0000:15"
#define PORT ROOT "/0000:15:01.0"
#define ADDR "0000:18:00.0"
#define HCA  PORT "/" ADDR

static void put_link_state(const char *now, const char *max)
{
	put("16.0 GT/s PCIe", HCA "/current_link_speed");
	put("32.0 GT/s PCIe", HCA "/max_link_speed");
	put(now, HCA "/current_link_width");
	put(max, HCA "/max_link_width");
}

static void read_at(const char *name, struct np_pci *pci)
{
	char dir[512];

	snprintf(dir, sizeof(dir), "%s/%s", tree, name);
	memset(pci, 0xff, sizeof(*pci));
	np_pci_read(dir, pci);
}

static void a_device(void **state)
{
	struct np_pci pci;

	(void)state;
	need_namespace();
	put_link_state("8", "16");
	put("1", HCA "/numa_node");
	put("0-55,112-167", HCA "/local_cpulist");
	put("8", PORT "/max_link_width");
	put("32.0 GT/s PCIe", PORT "/max_link_speed");
	put_link("../../devices/pci0000:15/0000:15:01.0/0000:18:00.0", "class/mlx5_0/device");
	put(NULL, "class/rxe0");
	read_at(HCA, &pci);
	assert_string_equal(pci.path, "pci0000:15/0000:15:01.0/0000:18:00.0");
	assert_string_equal(np_pci_address(&pci), ADDR);
	assert_string_equal(pci.cpus, "0-55,112-167");
	assert_int_equal(pci.numa_node, 1);
	assert_int_equal(pci.now.width, 8);
	assert_int_equal(pci.now.speed, 16000);
	assert_int_equal(pci.max.width, 16);
	assert_int_equal(pci.max.speed, 32000);
	assert_int_equal(pci.slot.width, 8);
	assert_int_equal(pci.slot.speed, 32000);
	/* a software HCA has no `device` */
	read_at("class/rxe0/device", &pci);
	assert_string_equal(pci.path, "");
	assert_string_equal(np_pci_address(&pci), "");
	assert_int_equal(pci.numa_node, -1);
	assert_int_equal(pci.now.width | pci.max.width | pci.slot.width, 0);
}

/* A subfunction of a device that hangs at no bridge; a width that the kernel makes of a
 * device that does not answer; a CPU list that does not fit. */
static void odd_devices(void **state)
{
	char cpus[400];
	struct np_pci pci;

	(void)state;
	need_namespace();
	memset(cpus, '1', sizeof(cpus) - 1);
	cpus[sizeof(cpus) - 1] = '\0';
	put("255", ROOT "/0000:15:02.0/current_link_width");
	put("16", ROOT "/0000:15:02.0/max_link_width");
	put("Unknown", ROOT "/0000:15:02.0/current_link_speed");
	put("-1", ROOT "/0000:15:02.0/numa_node");
	put(cpus, ROOT "/0000:15:02.0/local_cpulist");
	put(NULL, ROOT "/0000:15:02.0/mlx5_core.sf.2");
	put_link("../devices/pci0000:15/0000:15:02.0/mlx5_core.sf.2", "class/device");
	read_at("class/device", &pci);
	assert_string_equal(pci.path, "pci0000:15/0000:15:02.0");
	assert_int_equal(pci.numa_node, -1);
	assert_string_equal(pci.cpus, "");
	assert_int_equal(pci.now.width, 0);
	assert_int_equal(pci.now.speed, 0);
	assert_int_equal(pci.max.width, 16);
	assert_int_equal(pci.slot.width, 0);
}

static void rates(void **state)
{
	static const struct {
		struct np_pci_link link;
		int MBps;
	} cases[] = {
		{ { 16, 32000 }, 63015 }, { { 16, 16000 }, 31507 },  { { 16, 8000 }, 15753 },
		{ { 8, 5000 }, 4000 },	  { { 16, 64000 }, 118000 }, { { 0, 32000 }, 0 },
		{ { 16, 0 }, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal((int)np_pci_link_MBps(&cases[i].link), cases[i].MBps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		cmocka_unit_test(paths), cmocka_unit_test(speeds), cmocka_unit_test(rates),
		CASE(a_device),		 CASE(odd_devices),
	};
	int failed;

	enter_namespace();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	leave_namespace();
	return failed;
}
