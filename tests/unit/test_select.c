/* SPDX-License-Identifier: MIT */
#include "facts_build.h"

#include "agent/select.h"

/* Fills both; the test frees them by end(). */
struct scene {
	struct np_facts facts;
	struct np_config cfg;
	struct np_selection sel;
	struct np_err err;
};

static void begin(struct scene *s, const char *const *ips)
{
	memset(s, 0, sizeof(*s));
	fb_config(&s->cfg, ips);
}

static void end(struct scene *s)
{
	np_selection_done(&s->sel);
	np_facts_done(&s->facts);
	np_config_done(&s->cfg);
}

static void set(struct scene *s, const char *section, const char *key, const char *value)
{
	if (np_config_set(&s->cfg, section, key, value, "x:1", &s->err) < 0)
		fail_msg("%s", s->err.message);
}

static void selects(struct scene *s)
{
	if (np_config_finish(&s->cfg, &s->err) < 0 ||
	    np_select(&s->cfg, &s->facts, &s->sel, &s->err) < 0)
		fail_msg("%s", s->err.message);
}

static void refuses(struct scene *s, int error, const char *code, const char *part)
{
	struct np_selection untouched = { .n_netdevs = 77 };

	if (np_config_finish(&s->cfg, &s->err) < 0)
		fail_msg("%s", s->err.message);
	assert_int_equal(np_select(&s->cfg, &s->facts, &untouched, &s->err), error);
	assert_int_equal(untouched.n_netdevs, 77);
	assert_string_equal(s->err.code, code);
	assert_true(s->err.hint[0]);
	if (!strstr(s->err.message, part))
		fail_msg("\"%s\" does not say \"%s\"", s->err.message, part);
	assert_int_equal(np_select(&s->cfg, &s->facts, &untouched, NULL), error);
}

/* C3 */
static void test_no_such_interface(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	fb_netdev(&s.facts, "ib0", 3, "mlx5_0");
	fb_netdev(&s.facts, "ib1", 4, "mlx5_1");
	strcpy(s.cfg.ifname, "eth2");
	refuses(&s, -ENODEV, "netdev.no_such_interface",
		"no interface \"eth2\"; the IPoIB interfaces here are: ib0 (mlx5_0:1, GUID "
		"506b:4b03:00f5:ce03), ib1 (mlx5_1:1");
	end(&s);
	begin(&s, FB_LIST("eth2=10.0.0.50/24"));
	refuses(&s, -ENODEV, "netdev.no_such_interface", "has no IPoIB interface");
	end(&s);
}

static void test_not_ipoib(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("eth0=10.0.0.50/24"));
	fb_netdev(&s.facts, "eth0", 2, "")->type = 1;
	fb_netdev(&s.facts, "ib0", 3, "mlx5_0");
	refuses(&s, -EINVAL, "netdev.not_ipoib", "eth0 is no IPoIB interface");
	end(&s);
}

/* C4 */
static void test_renamed(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	fb_netdev(&s.facts, "eth0", 2, "")->type = 1;
	fb_netdev(&s.facts, "ibp65s0", 3, "mlx5_0");
	selects(&s);
	assert_int_equal(s.sel.n_netdevs, 1);
	assert_string_equal(s.sel.primary->name, "ibp65s0");
	assert_true(s.sel.netdevs[0].renamed);
	assert_int_equal(s.sel.netdevs[0].n_addrs, 1);
	np_selection_done(&s.sel);
	/* a child does not make it ambiguous, nor is it ever taken by itself */
	fb_netdev(&s.facts, "ibp65s0.8001", 5, "mlx5_0");		 /* by its name, */
	fb_netdev(&s.facts, "storage", 6, "mlx5_0")->parent_ifindex = 3; /* or by its parent */
	selects(&s);
	assert_string_equal(s.sel.primary->name, "ibp65s0");
	end(&s);

	begin(&s, FB_LIST("10.0.0.50/24"));
	fb_netdev(&s.facts, "ibs1", 3, "mlx5_0");
	fb_netdev(&s.facts, "ibs2", 4, "mlx5_1");
	refuses(&s, -ENOTUNIQ, "netdev.ambiguous",
		"2 IPoIB interfaces could be meant: ibs1 (mlx5_0:1, GUID 506b:4b03:00f5:ce03), ibs2");
	end(&s);

	/* one that is called ib0 is meant, however many there are */
	begin(&s, FB_LIST("10.0.0.50/24"));
	fb_netdev(&s.facts, "ibs1", 3, "mlx5_0");
	fb_netdev(&s.facts, "ib0", 4, "mlx5_1");
	selects(&s);
	assert_string_equal(s.sel.primary->name, "ib0");
	assert_false(s.sel.netdevs[0].renamed);
	end(&s);
}

/* An Ethernet netdev that is called ib0 is not it. */
static void test_ib0_is_ethernet(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("10.0.0.50/24"));
	fb_netdev(&s.facts, "ib0", 2, "")->type = 1;
	fb_netdev(&s.facts, "ibs1", 3, "mlx5_0");
	selects(&s);
	assert_string_equal(s.sel.primary->name, "ibs1");
	assert_true(s.sel.netdevs[0].renamed);
	end(&s);
}

static void test_altname(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, FB_LIST("ibs22f0=10.0.0.50/24"));
	assert_int_equal(np_strv_add(&fb_netdev(&s.facts, "ib3", 3, "mlx5_0")->altnames, "ibs22f0"),
			 0);
	selects(&s);
	assert_string_equal(s.sel.primary->name, "ib3");
	end(&s);
}

static void test_nothing_asked(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, NULL);
	selects(&s);
	assert_int_equal(s.sel.n_netdevs, 0);
	assert_null(s.sel.primary);
	fb_netdev(&s.facts, "ib0", 3, "mlx5_0");
	selects(&s);
	assert_int_equal(s.sel.n_netdevs, 1);
	assert_null(s.sel.netdevs[0].want);
	np_selection_done(&s.sel);
	end(&s);
	/* two that could be meant: consumers are given none, but that is no error */
	begin(&s, NULL);
	fb_netdev(&s.facts, "ibs1", 3, "mlx5_0");
	fb_netdev(&s.facts, "ibs2", 4, "mlx5_1");
	selects(&s);
	assert_int_equal(s.sel.n_netdevs, 0);
	end(&s);
}

static void test_match(void **state)
{
	static const struct {
		const char *match, *name;
	} cases[] = { { "mlx5_1:1", "ibs2" },
		      { "mlx5_1", "ibs2" },
		      { "506b:4b03:00f5:ce04", "ibs2" },
		      { "0x506b4b0300f5ce03", "ibs1" } };
	struct scene s;

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		begin(&s, NULL);
		fb_netdev(&s.facts, "ibs1", 3, "mlx5_0");
		fb_netdev(&s.facts, "ibs1.8001", 9, "mlx5_1")->parent_ifindex = 3;
		fb_netdev(&s.facts, "ibs2", 4, "mlx5_1");
		set(&s, "netdev ib0", "address", "10.0.0.50/24");
		set(&s, "netdev ib0", "match", cases[i].match);
		selects(&s);
		assert_string_equal(s.sel.primary->name, cases[i].name);
		assert_int_equal(s.sel.netdevs[0].n_addrs, 1);
		end(&s);
	}
	begin(&s, NULL);
	fb_netdev(&s.facts, "ibs1", 3, "mlx5_0");
	set(&s, "netdev ib0", "match", "mlx5_7:1");
	refuses(&s, -ENODEV, "netdev.no_such_interface", "belongs to that port; here are: ibs1");
	end(&s);
	/* both ports of one adapter */
	begin(&s, NULL);
	fb_netdev(&s.facts, "ibs1", 3, "mlx5_0");
	fb_netdev(&s.facts, "ibs2", 4, "mlx5_0")->port = 2;
	set(&s, "netdev ib0", "match", "mlx5_0");
	refuses(&s, -ENOTUNIQ, "netdev.ambiguous", "2 IPoIB interfaces belong");
	set(&s, "netdev ib0", "match", "mlx5_0:2");
	selects(&s);
	assert_string_equal(s.sel.primary->name, "ibs2");
	end(&s);
}

static void test_match_auto(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, NULL);
	fb_netdev(&s.facts, "ibs1", 3, "mlx5_0");
	set(&s, "netdev ib0", "match", "auto");
	selects(&s);
	assert_string_equal(s.sel.primary->name, "ibs1");
	end(&s);
	/* without it a name means that name */
	begin(&s, NULL);
	fb_netdev(&s.facts, "ibs1", 3, "mlx5_0");
	set(&s, "netdev ib0", "address", "10.0.0.50/24");
	refuses(&s, -ENODEV, "netdev.no_such_interface", "no interface \"ib0\"");
	end(&s);
}

/* --ip without a name over [netdev ib0]: one netdev, its other keys hold. */
static void test_flags_merge(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, NULL);
	fb_netdev(&s.facts, "ib0", 3, "mlx5_0");
	fb_netdev(&s.facts, "ib1", 4, "mlx5_1");
	set(&s, "netdev ib1", "address", "10.0.1.1/24");
	set(&s, "netdev ib0", "address", "10.0.0.1/24 10.0.0.50/24");
	set(&s, "netdev ib0", "mtu", "4092");
	assert_int_equal(np_config_add_ip(&s.cfg, "10.0.0.50/24", NULL), 0);
	selects(&s);
	assert_int_equal(s.sel.n_netdevs, 2);
	assert_string_equal(s.sel.netdevs[1].dev->name, "ib0");
	assert_int_equal(s.sel.netdevs[1].n_addrs, 1);
	assert_int_equal(s.sel.netdevs[1].addrs[0].bytes[3], 50);
	assert_int_equal(s.sel.netdevs[1].want->mtu, 4092);
	assert_string_equal(s.sel.primary->name, "ib1"); /* the first of the file */
	end(&s);
}

static void test_ifname_is_primary(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, NULL);
	fb_netdev(&s.facts, "ib0", 3, "mlx5_0");
	fb_netdev(&s.facts, "ib1", 4, "mlx5_1");
	set(&s, "netdev ib0", "address", "10.0.0.1/24");
	strcpy(s.cfg.ifname, "ib1");
	selects(&s);
	assert_int_equal(s.sel.n_netdevs, 2);
	assert_string_equal(s.sel.primary->name, "ib1");
	end(&s);
}

static void test_asked_twice(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, NULL);
	fb_netdev(&s.facts, "ib0", 3, "mlx5_0");
	set(&s, "netdev ib0", "address", "10.0.0.1/24");
	set(&s, "netdev ib9", "match", "mlx5_0:1");
	refuses(&s, -EINVAL, "netdev.asked_twice", "(\"ib0\" and \"ib9\")");
	end(&s);
	/* one address on two netdevs, which shows only when the default one is known */
	begin(&s, NULL);
	fb_netdev(&s.facts, "ib0", 3, "mlx5_0");
	fb_netdev(&s.facts, "ib1", 4, "mlx5_1");
	set(&s, "netdev ib1", "address", "10.0.9.9/24 10.0.0.50/16");
	assert_int_equal(np_config_add_ip(&s.cfg, "10.0.0.50/24", NULL), 0);
	refuses(&s, -EINVAL, "netdev.asked_twice", "10.0.0.50 is asked for on both");
	end(&s);
}

/* ---- ports ---- */

static void test_port_lists(void **state)
{
	static const char *const texts[] = { "mlx5_1", "mlx5_10:2" };
	struct np_strv list = { .v = (char **)texts, .n = 2 };

	(void)state;
	assert_true(np_port_listed(&list, "mlx5_1", 1));
	assert_true(np_port_listed(&list, "mlx5_1", 2));
	assert_false(np_port_listed(&list, "mlx5_10", 1));
	assert_true(np_port_listed(&list, "mlx5_10", 2));
	assert_false(np_port_listed(&list, "mlx5_", 1));
	assert_false(np_port_listed(&list, "mlx5_11", 1));
}

static enum np_port_role role(const struct scene *s, const char *name)
{
	const struct np_ca *ca = np_cas_find(&s->facts.cas, name);

	return np_port_role(&s->cfg, ca, &ca->ports[0]);
}

static void test_port_roles(void **state)
{
	struct scene s;

	(void)state;
	begin(&s, NULL);
	fb_active(&s.facts, "mlx5_0");
	fb_active(&s.facts, "mlx5_1")->link_layer = NP_LL_ETHERNET;
	fb_active(&s.facts, "irdma0");
	s.facts.cas.v[2].node_type = NP_NODE_RNIC;
	fb_active(&s.facts, "hfi1_0")->link_layer = NP_LL_OMNIPATH;
	fb_active(&s.facts, "mlx5_8");
	s.facts.cas.v[4].management_only = true;
	fb_active(&s.facts, "mlx5_3");
	fb_active(&s.facts, "odd")->link_layer = NP_LL_UNKNOWN;
	s.facts.cas.v[6].node_type = NP_NODE_UNKNOWN;
	set(&s, "ports", "ignore", "mlx5_3:1");
	assert_int_equal(role(&s, "mlx5_0"), NP_PORT_WANTED);
	assert_int_equal(role(&s, "mlx5_1"), NP_PORT_NOT_INFINIBAND);
	assert_int_equal(role(&s, "irdma0"), NP_PORT_NOT_INFINIBAND);
	assert_int_equal(role(&s, "hfi1_0"), NP_PORT_NOT_INFINIBAND);
	assert_int_equal(role(&s, "mlx5_8"), NP_PORT_MANAGEMENT);
	assert_int_equal(role(&s, "mlx5_3"), NP_PORT_IGNORED);
	assert_int_equal(role(&s, "odd"), NP_PORT_WANTED); /* unknown is not fine */
	/* C10 */
	set(&s, "ports", "devices", "mlx5_1, mlx5_3, mlx5_8:1");
	assert_int_equal(role(&s, "mlx5_0"), NP_PORT_NOT_LISTED);
	assert_int_equal(role(&s, "mlx5_1"), NP_PORT_WANTED);
	assert_int_equal(role(&s, "mlx5_3"), NP_PORT_IGNORED);
	assert_int_equal(role(&s, "mlx5_8"), NP_PORT_MANAGEMENT);
	end(&s);
}

static void test_usable_ports(void **state)
{
	np_auto_strv struct np_strv ports = { 0 };
	struct np_port *port;
	struct scene s;

	(void)state;
	begin(&s, NULL);
	fb_active(&s.facts, "mlx5_10");
	fb_active(&s.facts, "mlx5_2");
	fb_port(&s.facts.cas.v[1], 2, NP_PORT_ACTIVE, NP_PHYS_LINKUP, FB_EDR);
	fb_active(&s.facts, "mlx5_3")->lid = 0;
	fb_active(&s.facts, "mlx5_4")->has_lid = false;
	fb_active(&s.facts, "mlx5_5")->state = NP_PORT_INIT;
	fb_active(&s.facts, "mlx5_6")->phys_state = NP_PHYS_UNKNOWN;
	port = fb_active(&s.facts, "mlx5_7");
	port->link_layer = NP_LL_UNKNOWN;
	fb_active(&s.facts, "mlx5_8");
	s.facts.cas.v[7].management_only = true;
	set(&s, "ports", "ignore", "mlx5_2:2");
	assert_int_equal(np_usable_ports(&s.cfg, &s.facts, &ports), 0);
	assert_int_equal(ports.n, 2);
	assert_string_equal(ports.v[0], "mlx5_2:1");
	assert_string_equal(ports.v[1], "mlx5_10:1");
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_such_interface),
		cmocka_unit_test(test_not_ipoib),
		cmocka_unit_test(test_renamed),
		cmocka_unit_test(test_ib0_is_ethernet),
		cmocka_unit_test(test_altname),
		cmocka_unit_test(test_nothing_asked),
		cmocka_unit_test(test_match),
		cmocka_unit_test(test_match_auto),
		cmocka_unit_test(test_flags_merge),
		cmocka_unit_test(test_ifname_is_primary),
		cmocka_unit_test(test_asked_twice),
		cmocka_unit_test(test_port_lists),
		cmocka_unit_test(test_port_roles),
		cmocka_unit_test(test_usable_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
