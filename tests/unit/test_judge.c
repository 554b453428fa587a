/* SPDX-License-Identifier: MIT */
#include "judge_scene.h"

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

static void test_ipv6_alone(void **state)
{
	struct scene s;

	(void)state;
	begin_guide(&s, FB_LIST("fd00::50/64"));
	judge(&s);
	says(has(&s, "ib0", "netdev.no_ipv4", NP_CHECK_WARN), "NCCL_SOCKET_FAMILY");
	/* it has an IPv4 address, and keeps it */
	fb_addr(&s.facts.netdevs.v[0], "10.0.0.7/24", 0);
	judge(&s);
	assert_null(find(&s, "ib0", "netdev.no_ipv4"));
	s.cfg.netdevs[0].exclusive = true;
	judge(&s);
	has(&s, "ib0", "netdev.no_ipv4", NP_CHECK_WARN);
	/* nobody is told of the netdev */
	set(&s, "nccl", "scope", "off");
	judge(&s);
	has(&s, "ib0", "netdev.no_ipv4", NP_CHECK_WARN);
	set(&s, "ucx", "profile", "off");
	judge(&s);
	assert_null(find(&s, "ib0", "netdev.no_ipv4"));
	end(&s);

	/* it gets both */
	begin_guide(&s, FB_LIST("fd00::50/64", "10.0.0.50/24"));
	judge(&s);
	assert_null(find(&s, "ib0", "netdev.no_ipv4"));
	end(&s);

	/* nothing at all is netdev.no_address */
	begin_guide(&s, NULL);
	fb_addr(&s.facts.netdevs.v[0], "fe80::1/64", 0)->scope = RT_SCOPE_LINK;
	judge(&s);
	assert_null(find(&s, "ib0", "netdev.no_ipv4"));
	fb_addr(&s.facts.netdevs.v[0], "fd00::1/64", 0);
	judge(&s);
	has(&s, "ib0", "netdev.no_ipv4", NP_CHECK_WARN);
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
		{ { .major = 240, .open_errno = -1, .handshake_errno = -1 },
		  "gdrcopy.node_missing",
		  "nodeprep apply" },
		{ { .major = 240, .node_exists = true, .open_errno = -1, .handshake_errno = -1 },
		  "gdrcopy.node_wrong",
		  "major 240" },
		{ { .major = 240,
		    .node_exists = true,
		    .node_matches = true,
		    .open_errno = EACCES,
		    .handshake_errno = -1 },
		  "gdrcopy.open_failed",
		  "Permission denied" },
		{ { .major = 240,
		    .node_exists = true,
		    .node_matches = true,
		    .handshake_errno = ENOTTY },
		  "gdrcopy.handshake_failed",
		  "does not answer" },
		{ { .major = 240,
		    .node_exists = true,
		    .node_matches = true,
		    .driver_version = 0x10004,
		    .min_library_version = 0x10000 },
		  "gdrcopy.handshake_failed",
		  "driver 1.4 is too old" },
		{ { .major = 240,
		    .node_exists = true,
		    .node_matches = true,
		    .driver_version = 0x20005,
		    .min_library_version = 0x20000,
		    .usable = true },
		  "module.loaded",
		  "driver 2.5" },
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
	s.facts.files[2].file.status = s.facts.files[3].file.status = NP_TARGET_UNKNOWN;
	s.facts.files[2].file.num = -EACCES; /* not root: no fault of the node */
	s.facts.files[3].file.num = -EIO;
	strcpy(s.facts.files[3].file.hint, "look at the disk");
	judge(&s);
	has(&s, "/etc/profile.d/nodeprep-ucx.csh", "file.unreadable", NP_CHECK_FAIL);
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
	says(has(&s, "/home/someone/.nccl.conf", "nccl.shared_home", NP_CHECK_WARN),
	     "scope = system");
	has(&s, "/etc/nccl.conf:2", "nccl.line_leading_blank", NP_CHECK_WARN);
	assert_int_equal(count_of(&s, "file"), 3);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_carrier),		 cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_ipv6_alone),	 cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_manager_and_name), cmocka_unit_test(test_modules),
		cmocka_unit_test(test_gdrdrv),		 cmocka_unit_test(test_files),
		cmocka_unit_test(test_nccl_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
