/* SPDX-License-Identifier: MIT */
/* Distances on PCIe, the ports nearest to a GPU, and the judgement of links and services. */
#include "judge_scene.h"

#include "agent/topology.h"

static struct np_pci place(const char *path, int numa_node)
{
	struct np_pci pci = { .numa_node = numa_node };

	np_strcpy(pci.path, sizeof(pci.path), path);
	return pci;
}

/* ---- distances ---- */

#define SWITCH "pci0000:15/0000:15:01.0/0000:16:00.0/" /* root port, upstream port */

static void test_distances(void **state)
{
	static const struct {
		const char *a;
		int node_a;
		const char *b;
		int node_b;
		enum np_distance want;
	} cases[] = {
		/* one switch between them */
		{ SWITCH "0000:17:00.0/0000:18:00.0", 0, SWITCH "0000:17:02.0/0000:1b:00.0", 0,
		  NP_DISTANCE_PIX },
		/* two functions of one device, a virtual one among them; two subfunctions */
		{ SWITCH "0000:17:00.0/0000:18:00.0", 0, SWITCH "0000:17:00.0/0000:18:00.1", 0,
		  NP_DISTANCE_PIX },
		{ "pci0000:15/0000:15:01.0/0000:18:00.0", 0, "pci0000:15/0000:15:01.0/0000:18:01.3",
		  0, NP_DISTANCE_PIX },
		{ SWITCH "0000:17:00.0/0000:18:00.0", 0, SWITCH "0000:17:00.0/0000:18:00.0", 0,
		  NP_DISTANCE_PIX },
		/* an endpoint of the switch itself, beside its downstream ports */
		{ SWITCH "0000:17:1f.0", 0, SWITCH "0000:17:02.0/0000:1b:00.0", 0,
		  NP_DISTANCE_PIX },
		/* a switch behind a switch, from either side; two of them */
		{ SWITCH "0000:17:00.0/0000:18:00.0", 0,
		  SWITCH "0000:17:04.0/0000:27:00.0/0000:28:00.0/0000:29:00.0", 0,
		  NP_DISTANCE_PXB },
		{ SWITCH "0000:17:04.0/0000:27:00.0/0000:28:00.0/0000:29:00.0", 0,
		  SWITCH "0000:17:04.0/0000:27:00.0/0000:28:01.0/0000:30:00.0", 0,
		  NP_DISTANCE_PIX },
		{ SWITCH "0000:17:04.0/0000:27:00.0/0000:28:00.0/0000:29:00.0", 0,
		  SWITCH "0000:17:05.0/0000:37:00.0/0000:38:00.0/0000:39:00.0", 0,
		  NP_DISTANCE_PXB },
		/* two root ports; a virtual machine where all hangs at one bus */
		{ "pci0000:15/0000:15:01.0/0000:18:00.0", 0, "pci0000:15/0000:15:03.0/0000:1b:00.0",
		  0, NP_DISTANCE_PHB },
		{ "pci0000:00/0000:00:05.0", -1, "pci0000:00/0000:00:06.0", -1, NP_DISTANCE_PHB },
		/* names that begin alike are not the same bridge */
		{ "pci0000:15/0000:15:01.0/0000:18:00.0", 0,
		  "pci0000:15/0000:15:01.00/0000:18:00.0", 0, NP_DISTANCE_PHB },
		/* two host bridges */
		{ "pci0000:15/0000:15:01.0/0000:18:00.0", 0, "pci0000:3d/0000:3d:01.0/0000:40:00.0",
		  0, NP_DISTANCE_NODE },
		{ "pci0000:15/0000:15:01.0/0000:18:00.0", 0, "pci0000:97/0000:97:01.0/0000:9a:00.0",
		  1, NP_DISTANCE_SYS },
		{ "pci0001:00/0001:00:00.0", -1, "pci0002:00/0002:00:00.0", -1,
		  NP_DISTANCE_UNKNOWN },
		{ "pci0001:00/0001:00:00.0", 1, "pci0002:00/0002:00:00.0", -1,
		  NP_DISTANCE_UNKNOWN },
		/* software HCAs are on no bus */
		{ "", -1, "pci0000:15/0000:15:01.0/0000:18:00.0", 0, NP_DISTANCE_UNKNOWN },
		{ "", -1, "", -1, NP_DISTANCE_UNKNOWN },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct np_pci a = place(cases[i].a, cases[i].node_a);
		struct np_pci b = place(cases[i].b, cases[i].node_b);

		if (np_distance(&a, &b, false) != cases[i].want ||
		    np_distance(&b, &a, false) != cases[i].want)
			fail_msg("%s to %s is %s", cases[i].a, cases[i].b,
				 np_distance_str(np_distance(&a, &b, false)));
	}
}

/* Without a node of its own a device is on the only one there is. */
static void test_one_numa_node(void **state)
{
	struct np_pci a = place("pci0001:00/0001:00:00.0", -1);
	struct np_pci b = place("pci0002:00/0002:00:00.0", 0), none = place("", -1);

	(void)state;
	assert_int_equal(np_distance(&a, &b, true), NP_DISTANCE_NODE);
	assert_int_equal(np_distance(&a, &none, true), NP_DISTANCE_UNKNOWN);
}

static void test_words(void **state)
{
	(void)state;
	assert_string_equal(np_distance_str(NP_DISTANCE_PIX), "PIX");
	assert_string_equal(np_distance_str(NP_DISTANCE_PXB), "PXB");
	assert_string_equal(np_distance_str(NP_DISTANCE_PHB), "PHB");
	assert_string_equal(np_distance_str(NP_DISTANCE_NODE), "NODE");
	assert_string_equal(np_distance_str(NP_DISTANCE_SYS), "SYS");
	assert_string_equal(np_distance_str(NP_DISTANCE_UNKNOWN), "unknown");
	assert_string_equal(np_distance_str((enum np_distance)77), "unknown");
}

/* ---- the ports nearest to a GPU ---- */

static void begin_near(struct scene *s, const char *gpu_path)
{
	begin_guide(s, NULL);
	s->facts.cas.v[0].pci = place("pci0000:97/0000:97:01.0/0000:9a:00.0", 1);
	s->facts.cas.v[1].pci = place(SWITCH "0000:17:00.0/0000:18:00.0", 0);
	s->facts.cas.v[2].pci = place("pci0000:3d/0000:3d:01.0/0000:40:00.0", 0);
	s->facts.cas.v[3].pci = place(SWITCH "0000:17:01.0/0000:19:00.0", 0);
	fb_gpu(&s->facts);
	s->facts.gpus.v[0].pci = place(gpu_path, 0);
}

static void nearest(struct scene *s, const char *want)
{
	np_auto_topology struct np_topology t = { 0 };
	np_auto_strv struct np_strv list = { 0 };
	np_auto_buf struct np_buf got = { 0 };

	assert_int_equal(np_topology_make(&s->facts, &t), 0);
	assert_string_equal(t.v[0].name, "GPU0");
	assert_int_equal(np_topology_nearest(&s->cfg, &t, &t.v[0], &list), 0);
	for (size_t i = 0; i < list.n; i++)
		np_buf_printf(&got, "%s%s", i ? "," : "", list.v[i]);
	assert_string_equal(got.data ? got.data : "", want);
}

static void test_nearest(void **state)
{
	struct scene s;

	(void)state;
	begin_near(&s, SWITCH "0000:17:02.0/0000:1b:00.0");
	nearest(&s, "mlx5_1:1,mlx5_3:1");
	/* what cannot be used does not count, and what is farther takes its place */
	s.facts.cas.v[1].ports[0].state = NP_PORT_INIT;
	nearest(&s, "mlx5_3:1");
	set(&s, "ports", "ignore", "mlx5_3:1");
	nearest(&s, "mlx5_2:1");
	s.facts.cas.v[2].ports[0].link_layer = NP_LL_ETHERNET;
	nearest(&s, "mlx5_0:1");
	s.facts.cas.v[0].management_only = true;
	nearest(&s, "");
	end(&s);
}

/* Nothing is known of any: none is better than the others. */
static void test_nearest_unknown(void **state)
{
	struct scene s;

	(void)state;
	begin_near(&s, "");
	nearest(&s, "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1");
	end(&s);
}

static void test_who_is_in_it(void **state)
{
	np_auto_topology struct np_topology t = { 0 };
	struct scene s;

	(void)state;
	begin_near(&s, "");
	fb_gpu(&s.facts);
	np_strcpy(s.facts.gpus.v[0].driver, sizeof(s.facts.gpus.v[0].driver), "vfio-pci");
	np_strcpy(s.facts.gpus.v[1].driver, sizeof(s.facts.gpus.v[1].driver), "nvidia");
	s.facts.cas.v[2].management_only = true;
	assert_int_equal(np_topology_make(&s.facts, &t), 0);
	assert_int_equal(t.n, 4);
	assert_string_equal(t.v[0].name, "GPU0");
	assert_ptr_equal(t.v[0].gpu, &s.facts.gpus.v[1]);
	assert_string_equal(t.v[1].name, "mlx5_0");
	assert_string_equal(t.v[2].name, "mlx5_1");
	assert_string_equal(t.v[3].name, "mlx5_3");
	end(&s);
}

/* ---- links ---- */

static void link_is(struct np_pci *pci, unsigned int width, unsigned int speed)
{
	*pci = place("pci0000:15/0000:15:01.0/0000:18:00.0", 0);
	pci->now = (struct np_pci_link){ width, speed };
	pci->max = (struct np_pci_link){ 16, 32000 };
}

static void test_links(void **state)
{
	struct scene s;
	struct np_pci *pci;

	(void)state;
	begin_guide(&s, NULL);
	judge(&s); /* nobody looked */
	assert_int_equal(count_of(&s, "pcie"), 0);
	pci = &s.facts.cas.v[1].pci;
	link_is(pci, 16, 32000);
	judge(&s);
	assert_int_equal(count_of(&s, "pcie"), 0);
	link_is(pci, 8, 32000);
	judge(&s);
	assert_int_equal(count_of(&s, "pcie"), 1);
	says(has(&s, "mlx5_1", "pcie.width_degraded", NP_CHECK_WARN), "8 lanes where 16");
	link_is(pci, 16, 2500);
	judge(&s);
	assert_int_equal(count_of(&s, "pcie"), 1);
	says(has(&s, "mlx5_1", "pcie.speed_degraded", NP_CHECK_WARN), "2.5 GT/s where 32.0");
	/* the slot can do no more; a slot that says less than what runs is no measure */
	link_is(pci, 8, 16000);
	pci->slot = (struct np_pci_link){ 8, 16000 };
	judge(&s);
	assert_int_equal(count_of(&s, "pcie"), 0);
	pci->slot = (struct np_pci_link){ 1, 2500 };
	judge(&s);
	assert_int_equal(count_of(&s, "pcie"), 0);
	/* a wider slot makes no wider device */
	link_is(pci, 16, 32000);
	pci->slot = (struct np_pci_link){ 32, 64000 };
	judge(&s);
	assert_int_equal(count_of(&s, "pcie"), 0);
	/* a virtual function has no link of its own */
	link_is(pci, 0, 0);
	judge(&s);
	assert_int_equal(count_of(&s, "pcie"), 0);
	end(&s);
}

static void test_links_that_do_not_matter(void **state)
{
	struct scene s;

	(void)state;
	begin_guide(&s, NULL);
	link_is(&s.facts.cas.v[0].pci, 8, 16000);
	link_is(&s.facts.cas.v[1].pci, 8, 16000);
	s.facts.cas.v[0].management_only = true;
	set(&s, "ports", "ignore", "mlx5_1");
	judge(&s);
	assert_int_equal(count_of(&s, "pcie"), 0);
	end(&s);
}

static void test_idle_gpu(void **state)
{
	struct scene s;

	(void)state;
	begin_guide(&s, NULL);
	fb_gpu(&s.facts);
	link_is(&s.facts.gpus.v[0].pci, 16, 2500);
	judge(&s);
	assert_int_equal(count_of(&s, "pcie"), 0);
	link_is(&s.facts.gpus.v[0].pci, 4, 2500);
	judge(&s);
	assert_int_equal(count_of(&s, "pcie"), 1);
	has(&s, "0000:17:00.0", "pcie.width_degraded", NP_CHECK_WARN);
	end(&s);
}

/* ---- services ---- */

static void test_services(void **state)
{
	static const struct {
		struct np_gpu_services is;
		const char *target, *code; /* NULL: nothing is said */
		enum np_check_status status;
	} cases[] = {
		{ { .fabricmanager = NP_SERVICE_DOWN, .imex = NP_SERVICE_DOWN }, NULL, NULL, 0 },
		{ { .nvswitch = true, .fabricmanager = NP_SERVICE_RUNNING },
		  "nvidia-fabricmanager",
		  "gpu.fabricmanager_running",
		  NP_CHECK_OK },
		{ { .nvswitch = true, .fabricmanager = NP_SERVICE_DOWN },
		  "nvidia-fabricmanager",
		  "gpu.fabricmanager_down",
		  NP_CHECK_WARN },
		{ { .nvswitch = true },
		  "nvidia-fabricmanager",
		  "gpu.service_unknown",
		  NP_CHECK_UNKNOWN },
		{ { .imex_domain = true, .imex = NP_SERVICE_RUNNING },
		  "nvidia-imex",
		  "gpu.imex_running",
		  NP_CHECK_OK },
		{ { .imex_domain = true, .imex = NP_SERVICE_DOWN },
		  "nvidia-imex",
		  "gpu.imex_down",
		  NP_CHECK_WARN },
		{ { .imex_channels = true, .imex = NP_SERVICE_DOWN },
		  "nvidia-imex",
		  "gpu.imex_idle",
		  NP_CHECK_OK },
		{ { .imex_channels = true },
		  "nvidia-imex",
		  "gpu.service_unknown",
		  NP_CHECK_UNKNOWN },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct scene s;

		begin_guide(&s, NULL);
		s.facts.gpu_services = cases[i].is;
		judge(&s);
		assert_int_equal(count_of(&s, "gpu"), cases[i].code != NULL);
		if (cases[i].code)
			has(&s, cases[i].target, cases[i].code, cases[i].status);
		end(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distances),
		cmocka_unit_test(test_one_numa_node),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_nearest_unknown),
		cmocka_unit_test(test_who_is_in_it),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_links_that_do_not_matter),
		cmocka_unit_test(test_idle_gpu),
		cmocka_unit_test(test_services),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
