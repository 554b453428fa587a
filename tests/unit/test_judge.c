/* SPDX-License-Identifier: MIT */
#include "facts_build.h"

#include "agent/judge.h"

struct scene {
	struct np_facts facts;
	struct np_config cfg;
	struct np_selection sel;
	struct np_checks checks;
	struct np_err err;
};

static void begin(struct scene *s)
{
	memset(s, 0, sizeof(*s));
	np_config_init(&s->cfg);
}

static void begin_guide(struct scene *s, const char *const *ips)
{
	begin(s);
	fb_guide(&s->facts);
	fb_config(&s->cfg, ips);
}

static void end(struct scene *s)
{
	np_checks_done(&s->checks);
	np_selection_done(&s->sel);
	np_facts_done(&s->facts);
	np_config_done(&s->cfg);
}

static void set(struct scene *s, const char *section, const char *key, const char *value)
{
	if (np_config_set(&s->cfg, section, key, value, "x:1", &s->err) < 0)
		fail_msg("%s", s->err.message);
}

static void judge(struct scene *s)
{
	np_checks_done(&s->checks);
	np_selection_done(&s->sel);
	if (np_select(&s->cfg, &s->facts, &s->sel, &s->err) < 0)
		fail_msg("%s", s->err.message);
	np_judge(&s->cfg, &s->facts, &s->sel, &s->checks);
	assert_false(s->checks.failed);
	for (size_t i = 0; i < s->checks.n; i++) {
		const struct np_check *c = &s->checks.v[i];

		assert_true(c->id && c->target[0] && c->code[0] && c->message[0]);
		if (c->status == NP_CHECK_FAIL || c->status == NP_CHECK_WARN) /* names the fix */
			assert_true(c->hint[0]);
	}
}

/* The first check of that target with that code. */
static const struct np_check *find(const struct scene *s, const char *target, const char *code)
{
	for (size_t i = 0; i < s->checks.n; i++)
		if (strcmp(s->checks.v[i].target, target) == 0 &&
		    strcmp(s->checks.v[i].code, code) == 0)
			return &s->checks.v[i];
	return NULL;
}

static const struct np_check *has(const struct scene *s, const char *target, const char *code,
				  enum np_check_status status)
{
	const struct np_check *c = find(s, target, code);

	if (!c || c->status != status) {
		for (size_t i = 0; i < s->checks.n; i++)
			print_message("  %s %s %s: %s\n", s->checks.v[i].target,
				      np_check_status_str(s->checks.v[i].status),
				      s->checks.v[i].code, s->checks.v[i].message);
		fail_msg("no %s %s %s", target, np_check_status_str(status), code);
	}
	return c;
}

static void says(const struct np_check *c, const char *part)
{
	if (!strstr(c->message, part) && !strstr(c->hint, part))
		fail_msg("\"%s; %s\" does not say \"%s\"", c->message, c->hint, part);
}

static size_t count_status(const struct scene *s, enum np_check_status status)
{
	size_t n = 0;

	for (size_t i = 0; i < s->checks.n; i++)
		n += s->checks.v[i].status == status;
	return n;
}

static size_t count_of(const struct scene *s, const char *id)
{
	size_t n = 0;

	for (size_t i = 0; i < s->checks.n; i++)
		n += strcmp(s->checks.v[i].id, id) == 0;
	return n;
}

/* ---- ports ---- */

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

/* ---- netdevs ---- */

static void test_carrier(void **state)
{
	struct scene s;

	(void)state;
	begin_guide(&s, FB_LIST("10.0.0.50/24"));
	s.facts.netdevs.v[0].flags = IFF_UP;
	s.facts.cas.v[0].ports[0].state = NP_PORT_INIT;
	judge(&s);
	/* C5: one fault is one failure */
	has(&s, "mlx5_0:1", "port.no_sm", NP_CHECK_FAIL);
	says(has(&s, "ib0", "netdev.no_carrier", NP_CHECK_WARN), "its port mlx5_0 is not ACTIVE");
	s.facts.cas.v[0].ports[0].state = NP_PORT_ACTIVE;
	judge(&s);
	has(&s, "ib0", "netdev.no_carrier", NP_CHECK_FAIL);
	s.facts.netdevs.v[0].ca[0] = '\0';
	judge(&s);
	has(&s, "ib0", "netdev.no_carrier", NP_CHECK_FAIL);
	s.facts.netdevs.v[0].flags = 0;
	judge(&s);
	has(&s, "ib0", "netdev.down", NP_CHECK_WARN);
	end(&s);
}

static void test_addresses(void **state)
{
	struct scene s;

	(void)state;
	begin_guide(&s, NULL);
	fb_addr(&s.facts.netdevs.v[0], "fe80::1/64", 0)->scope = RT_SCOPE_LINK;
	judge(&s);
	has(&s, "ib0", "netdev.no_address", NP_CHECK_WARN);
	fb_addr(&s.facts.netdevs.v[0], "10.0.0.7/24", 0);
	judge(&s);
	assert_null(find(&s, "ib0", "netdev.no_address"));
	assert_null(find(&s, "ib0", "netdev.address_foreign")); /* nothing was asked */
	end(&s);

	begin_guide(&s, FB_LIST("10.0.0.50/24"));
	fb_addr(&s.facts.netdevs.v[0], "10.0.0.50/24", 0);
	fb_addr(&s.facts.netdevs.v[0], "10.0.0.7/24", 0);
	judge(&s);
	says(has(&s, "ib0", "netdev.address_foreign", NP_CHECK_OK), "left alone: 10.0.0.7/24");
	s.cfg.netdevs[0].exclusive = true;
	judge(&s);
	says(has(&s, "ib0", "netdev.address_foreign", NP_CHECK_OK), "to be removed");
	end(&s);
}

/* C7 */
static void test_overlap(void **state)
{
	struct scene s;

	(void)state;
	begin_guide(&s, FB_LIST("10.0.0.50/24"));
	fb_route(&s.facts, NULL, 2, "eth0");
	fb_route(&s.facts, "10.0.0.0/24", 3, "ib0");
	fb_route(&s.facts, "192.168.0.0/16", 2, "eth0");
	judge(&s);
	assert_null(find(&s, "ib0", "netdev.subnet_overlap"));
	fb_route(&s.facts, "10.0.0.0/20", 5, "eth1");
	judge(&s);
	says(has(&s, "ib0", "netdev.subnet_overlap", NP_CHECK_WARN),
	     "10.0.0.50/24 overlaps 10.0.0.0/20, which is reached over eth1");
	end(&s);
	/* an address that is there counts as one that is wanted */
	begin_guide(&s, NULL);
	fb_addr(&s.facts.netdevs.v[0], "10.0.0.50/24", 0);
	fb_route(&s.facts, "10.0.0.0/20", 5, "eth1");
	judge(&s);
	has(&s, "ib0", "netdev.subnet_overlap", NP_CHECK_WARN);
	end(&s);
}

static void test_manager_and_name(void **state)
{
	struct scene s;

	(void)state;
	begin_guide(&s, FB_LIST("10.0.0.50/24"));
	strcpy(s.facts.netdevs.v[0].manager, "none");
	judge(&s);
	assert_null(find(&s, "ib0", "netdev.managed"));
	strcpy(s.facts.netdevs.v[0].manager, "NetworkManager");
	strcpy(s.facts.netdevs.v[0].name, "ibs1");
	judge(&s);
	says(has(&s, "ibs1", "netdev.managed", NP_CHECK_WARN), "NetworkManager manages");
	says(has(&s, "ibs1", "netdev.only_ipoib", NP_CHECK_OK), "nothing is called ib0");
	end(&s);
}

/* ---- modules ---- */

/* C16, C38 */
static void test_modules(void **state)
{
	struct scene s;

	(void)state;
	begin_guide(&s, NULL);
	s.facts.kmods.v[0].state = NP_KMOD_ABSENT;
	s.facts.kmods.v[1].state = NP_KMOD_UNKNOWN;
	fb_kmod(&s.facts, "gdrdrv", NP_KMOD_ABSENT);
	fb_kmod(&s.facts, "nvidia_peermem", NP_KMOD_ABSENT);
	judge(&s);
	says(has(&s, "ib_umad", "module.missing", NP_CHECK_WARN), "modprobe ib_umad");
	has(&s, "ib_uverbs", "module.unknown", NP_CHECK_UNKNOWN);
	has(&s, "ib_ipoib", "module.loaded", NP_CHECK_OK);
	has(&s, "rdma_ucm", "module.loaded", NP_CHECK_OK);
	assert_null(find(&s, "gdrdrv", "module.missing")); /* no GPU here */
	assert_null(find(&s, "nvidia_peermem", "module.missing"));
	fb_gpu(&s.facts);
	judge(&s);
	has(&s, "gdrdrv", "module.missing", NP_CHECK_WARN);
	set(&s, "module gdrdrv", "require", "yes");
	set(&s, "module ib_uverbs", "require", "yes");
	set(&s, "module ib_umad", "require", "no");
	set(&s, "module nvidia_peermem", "require", "yes");
	judge(&s);
	has(&s, "gdrdrv", "module.missing", NP_CHECK_FAIL);
	has(&s, "ib_uverbs", "module.unknown", NP_CHECK_FAIL);
	has(&s, "nvidia_peermem", "module.missing", NP_CHECK_FAIL);
	assert_null(find(&s, "ib_umad", "module.missing"));
	end(&s);
}

/* C21: loaded is not usable; the first broken rung is named */
static void test_gdrdrv(void **state)
{
	static const struct {
		struct np_gdrdrv seen;
		const char *code, *part;
	} cases[] = {
		{ { 240, false, false, -1, -1, 0, 0, false }, "gdrcopy.node_missing", "mknod" },
		{ { 240, true, false, -1, -1, 0, 0, false }, "gdrcopy.node_wrong", "major 240" },
		{ { 240, true, true, EACCES, -1, 0, 0, false }, "gdrcopy.open_failed",
		  "Permission denied" },
		{ { 240, true, true, 0, ENOTTY, 0, 0, false }, "gdrcopy.handshake_failed",
		  "does not answer" },
		{ { 240, true, true, 0, 0, 0x10004, 0x10000, false }, "gdrcopy.handshake_failed",
		  "driver 1.4 is too old" },
		{ { 240, true, true, 0, 0, 0x20005, 0x20000, true }, "module.loaded", "driver 2.5" },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		bool fine = cases[i].seen.usable;
		struct scene s;

		begin_guide(&s, NULL);
		fb_gpu(&s.facts);
		fb_kmod(&s.facts, "gdrdrv", NP_KMOD_LIVE);
		s.facts.gdrdrv = cases[i].seen;
		judge(&s);
		says(has(&s, "gdrdrv", cases[i].code, fine ? NP_CHECK_OK : NP_CHECK_WARN),
		     cases[i].part);
		set(&s, "module gdrdrv", "require", "yes");
		judge(&s);
		has(&s, "gdrdrv", cases[i].code, fine ? NP_CHECK_OK : NP_CHECK_FAIL);
		end(&s);
	}
}

/* ---- files ---- */

static void test_files(void **state)
{
	struct np_target_file *home;
	struct scene s;

	(void)state;
	begin_guide(&s, NULL);
	home = &s.facts.files[0].file;
	home->status = NP_TARGET_REFUSED;
	strcpy(home->reason, "a symbolic link to /etc/shadow");
	strcpy(home->hint, "remove it");
	s.facts.files[1].file.status = NP_TARGET_REFUSED;
	strcpy(s.facts.files[1].file.hint, "remove it");
	s.facts.files[2].file.status = NP_TARGET_UNKNOWN;
	judge(&s);
	says(has(&s, "/home/someone/.nccl.conf", "file.home_refused", NP_CHECK_FAIL),
	     "a symbolic link to /etc/shadow");
	has(&s, "/etc/nccl.conf", "file.refused", NP_CHECK_FAIL);
	has(&s, "/etc/profile.d/nodeprep-ucx.sh", "file.unreadable", NP_CHECK_UNKNOWN);
	/* what nodeprep does not write cannot refuse it */
	set(&s, "nccl", "scope", "system");
	judge(&s);
	assert_null(find(&s, "/home/someone/.nccl.conf", "file.home_refused"));
	set(&s, "nccl", "scope", "home");
	judge(&s);
	assert_null(find(&s, "/etc/nccl.conf", "file.refused"));
	has(&s, "/home/someone/.nccl.conf", "file.home_refused", NP_CHECK_FAIL);
	end(&s);
}

/* C6, C8 */
static void test_nccl_file(void **state)
{
	struct scene s;

	(void)state;
	begin_guide(&s, NULL);
	s.facts.files[0].file.network_fs = true;
	np_buf_str(&s.facts.files[1].file.content, "NCCL_DEBUG=INFO\n NCCL_X=1\nexport NCCL_Y=1\n");
	s.facts.files[1].file.status = NP_TARGET_PRESENT;
	judge(&s);
	says(has(&s, "/home/someone/.nccl.conf", "nccl.shared_home", NP_CHECK_WARN), "scope = system");
	has(&s, "/etc/nccl.conf:2", "nccl.line_leading_blank", NP_CHECK_WARN);
	assert_int_equal(count_of(&s, "file"), 3);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_guide_is_fine),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_lid_zero),
		cmocka_unit_test(test_rate_unknown),
		cmocka_unit_test(test_width_degraded),
		cmocka_unit_test(test_rate_degraded),
		cmocka_unit_test(test_left_out),
		cmocka_unit_test(test_listed_ports),
		cmocka_unit_test(test_link_layer_unknown),
		cmocka_unit_test(test_no_port),
		cmocka_unit_test(test_carrier),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_manager_and_name),
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_gdrdrv),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_nccl_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
