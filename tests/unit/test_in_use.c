/* SPDX-License-Identifier: MIT */
/* What a plan would cut, who uses that, and what the kernel's texts say. Pure. */
#include "facts_build.h"

#include "agent/in_use.h"

struct world {
	struct np_actions actions;
	struct np_netdevs netdevs;
	struct np_touched_list touched;
	struct np_usage usage;
	struct np_checks checks;
};

static int begin(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	w->usage.tcp.known = true;
	*state = w;
	return 0;
}

static int end(void **state)
{
	struct world *w = *state;

	np_actions_done(&w->actions);
	np_netdevs_done(&w->netdevs);
	np_touched_done(&w->touched);
	np_usage_done(&w->usage);
	np_checks_done(&w->checks);
	free(w);
	return 0;
}

static struct np_inet host(const char *text)
{
	struct np_inet inet = { 0 };

	assert_int_equal(np_inet_parse_host(text, &inet), 0);
	return inet;
}

static struct np_netdev *netdev(struct world *w, int ifindex, const char *name, const char *addr)
{
	struct np_netdev *dev = FB_ADD(w->netdevs.v, w->netdevs.n);

	dev->ifindex = ifindex;
	np_strcpy(dev->name, sizeof(dev->name), name);
	if (addr)
		FB_ADD(dev->addrs, dev->n_addrs)->inet = fb_inet(addr);
	return dev;
}

static struct np_action *action(struct world *w, enum np_action_kind kind, uint32_t from,
				uint32_t to)
{
	struct np_action *a = np_actions_add(&w->actions, kind);

	assert_non_null(a);
	a->ifindex = 5;
	np_strcpy(a->ifname, sizeof(a->ifname), "ib0");
	a->from_value = from;
	a->to_value = to;
	return a;
}

static void address(struct world *w, enum np_action_kind kind, const char *addr)
{
	action(w, kind, 0, 0)->addr.inet = fb_inet(addr);
}

/* ib0 of mlx5_0:2, and one that has nothing to do with it. */
static void node(struct world *w)
{
	struct np_netdev *ib0;

	netdev(w, 2, "eth0", "192.168.1.5/24");
	ib0 = netdev(w, 5, "ib0", "10.0.0.50/16");
	np_strcpy(ib0->ca, sizeof(ib0->ca), "mlx5_0");
	ib0->port = 2;
}

static void judge(struct world *w)
{
	np_checks_done(&w->checks);
	np_touched_done(&w->touched);
	assert_int_equal(np_touched_make(&w->actions, &w->netdevs, &w->touched), 0);
	np_in_use_judge(&w->touched, &w->usage, &w->checks);
	assert_false(w->checks.failed);
}

/* The only user, or none (NULL). */
static void says(struct world *w, const char *code, const char *message)
{
	judge(w);
	if (!code) {
		assert_int_equal(w->checks.n, 0);
		return;
	}
	assert_int_equal(w->checks.n, 1);
	assert_string_equal(w->checks.v[0].code, code);
	assert_string_equal(w->checks.v[0].message, message);
	assert_int_equal(w->checks.v[0].status, NP_CHECK_WARN);
	assert_true(w->checks.v[0].hint[0] != '\0');
}

static void tcp(struct world *w, const char *local, const char *remote, uint64_t inode)
{
	struct np_tcp *c = FB_ADD(w->usage.tcp.v, w->usage.tcp.n);

	c->local = host(local);
	c->remote = host(remote);
	c->local_port = 988;
	c->remote_port = 2049;
	c->inode = inode;
}

static void holder(struct world *w, uint64_t inode, const char *device, const char *command)
{
	struct np_holder *h = FB_ADD(w->usage.holders, w->usage.n_holders);

	h->inode = inode;
	np_strcpy(h->device, sizeof(h->device), device);
	h->pid = 4711;
	np_strcpy(h->command, sizeof(h->command), command);
}

static struct np_rdma_user *queue_pairs(struct world *w, const char *ca, uint64_t ports)
{
	struct np_rdma_user *u = FB_ADD(w->usage.rdma.v, w->usage.rdma.n);

	np_strcpy(u->ca, sizeof(u->ca), ca);
	np_strcpy(u->command, sizeof(u->command), "ib_write_lat");
	u->pid = 812;
	u->queue_pairs = 1;
	u->ports = ports;
	return u;
}

/* ---- what is touched ---- */

static void what_cuts(void **state)
{
	static const struct {
		enum np_action_kind kind;
		uint32_t to;
		bool had_old, cuts;
	} kinds[] = {
		{ NP_ACTION_MODE, 1, false, true },
		{ NP_ACTION_MTU, 2044, false, true },
		{ NP_ACTION_LINK, 1, false, false },
		{ NP_ACTION_LINK, 0, false, true },
		{ NP_ACTION_ADDR_ADD, 0, false, false },
		{ NP_ACTION_ADDR_DEL, 0, false, true },
		{ NP_ACTION_MODULE, 1, false, false },
		{ NP_ACTION_FILE, 0, true, false },
		{ NP_ACTION_GDRDRV_NODE, 508, false, false },
		{ NP_ACTION_GDRDRV_NODE, 508, true, true },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(kinds); i++) {
		struct np_action a = { .kind = kinds[i].kind,
				       .to_value = kinds[i].to,
				       .had_old = kinds[i].had_old };
		const struct np_actions one = { &a, 1 };

		assert_int_equal(np_any_may_cut(&one), kinds[i].cuts);
	}
}

static void an_address_alone(void **state)
{
	struct world *w = *state;

	node(w);
	address(w, NP_ACTION_ADDR_ADD, "10.0.0.50/24");
	address(w, NP_ACTION_ADDR_DEL, "10.0.0.50/16");
	judge(w);
	assert_int_equal(w->touched.n, 1);
	assert_false(w->touched.v[0].whole);
	assert_int_equal(w->touched.v[0].n_addrs, 1);
	assert_int_equal(w->touched.v[0].n_ports, 1);
	assert_string_equal(w->touched.v[0].ports[0].ca, "mlx5_0");
	tcp(w, "192.168.1.5", "192.168.1.9", 0);
	tcp(w, "10.0.0.51", "10.0.0.9", 0);
	says(w, NULL, NULL);
	tcp(w, "10.0.0.50", "10.0.0.9", 0);
	says(w, "netdev.in_use",
	     "ib0 is in use by the kernel, or a process that cannot be seen from here: TCP "
	     "connection from 10.0.0.50 port 988 to 10.0.0.9 port 2049");
}

/* A P_Key child, a VLAN on a bond of which ib0 is a part: a change of mode is theirs too. */
static void what_stands_on_it(void **state)
{
	struct world *w = *state;

	node(w);
	netdev(w, 6, "ib0.8001", "10.1.0.50/16")->parent_ifindex = 5;
	netdev(w, 7, "bond0", NULL);
	w->netdevs.v[1].master_ifindex = 7;
	netdev(w, 8, "bond0.5", "10.5.0.50/16")->parent_ifindex = 7;
	action(w, NP_ACTION_MODE, NP_IPOIB_DATAGRAM, NP_IPOIB_CONNECTED);
	judge(w);
	assert_true(w->touched.v[0].whole);
	assert_int_equal(w->touched.v[0].n_addrs, 3);
	tcp(w, "10.5.0.50", "10.5.0.9", 9);
	holder(w, 9, "", "solver");
	says(w, "netdev.in_use",
	     "ib0 is in use by process 4711 (solver): TCP connection from 10.5.0.50 port 988 to "
	     "10.5.0.9 port 2049");
}

/* The port of a bond is that of what it is made of. */
static void ports_below(void **state)
{
	struct world *w = *state;

	node(w);
	netdev(w, 7, "bond0", "10.5.0.50/16");
	w->netdevs.v[1].master_ifindex = 7;
	address(w, NP_ACTION_ADDR_DEL, "10.5.0.50/16");
	w->actions.v[0].ifindex = 7;
	judge(w);
	assert_int_equal(w->touched.v[0].n_ports, 1);
	assert_int_equal(w->touched.v[0].ports[0].port, 2);
}

static void a_circle_ends(void **state)
{
	struct world *w = *state;

	node(w);
	netdev(w, 6, "veth0", NULL)->parent_ifindex = 5;
	w->netdevs.v[1].parent_ifindex = 6;
	action(w, NP_ACTION_MTU, 2044, 4092);
	judge(w);
	assert_int_equal(w->touched.v[0].n_addrs, 1);
}

static void link_local_addresses_are_of_their_netdev(void **state)
{
	struct world *w = *state;
	struct np_inet addr = host("fe80::1");

	netdev(w, 5, "ib0", "fe80::1/64");
	action(w, NP_ACTION_MTU, 2044, 4092);
	judge(w);
	assert_true(np_touches_addr(&w->touched.v[0], &addr, 5));
	assert_true(np_touches_addr(&w->touched.v[0], &addr, 0));
	assert_false(np_touches_addr(&w->touched.v[0], &addr, 6));
}

/* ---- users ---- */

static void queue_pairs_of_the_port(void **state)
{
	struct world *w = *state;

	node(w);
	action(w, NP_ACTION_MTU, 2044, 4092);
	queue_pairs(w, "mlx5_1", 1u << 2);
	queue_pairs(w, "mlx5_0", 1u << 1);
	says(w, NULL, NULL);
	queue_pairs(w, "mlx5_0", 1u << 2);
	says(w, "netdev.in_use",
	     "ib0 is in use by process 812 (ib_write_lat): 1 queue pair on mlx5_0");
	w->usage.rdma.v[2].ports = NP_RDMA_NO_PORT_YET;
	w->usage.rdma.v[2].queue_pairs = 3;
	np_strcpy(w->usage.rdma.v[2].command, NP_COMM_SIZE, "a\nb\x1b");
	says(w, "netdev.in_use",
	     "ib0 is in use by process 812 (a\\x0ab\\x1b): 3 queue pairs on mlx5_0");
}

static struct np_rdma_kernel_user *kernel_user(struct world *w, const char *module, const char *src)
{
	struct np_rdma_kernel_user *u = FB_ADD(w->usage.rdma.kernel, w->usage.rdma.n_kernel);

	np_strcpy(u->ca, sizeof(u->ca), "mlx5_0");
	np_strcpy(u->module, sizeof(u->module), module);
	u->count = 1;
	u->ports = 1u << 2;
	if (src) {
		u->src = host(src);
		u->by_cm = true;
	}
	return u;
}

static void users_in_the_kernel(void **state)
{
	struct world *w = *state;

	node(w);
	address(w, NP_ACTION_ADDR_DEL, "10.0.0.50/16");
	kernel_user(w, "nvme_rdma", "10.0.0.51");
	says(w, NULL, NULL);
	kernel_user(w, "ib_srp", NULL);
	says(w, "netdev.in_use",
	     "ib0 is in use by the kernel (module ib_srp): 1 queue pair on mlx5_0");
	w->usage.rdma.n_kernel = 0;
	kernel_user(w, "rpcrdma", "10.0.0.50");
	says(w, "netdev.in_use_by_nfs",
	     "ib0 is in use by NFS over RDMA (module rpcrdma): 1 connection on mlx5_0");
	w->usage.rdma.n_kernel = 0;
	kernel_user(w, "ko2iblnd", "10.0.0.50")->count = 2;
	says(w, "netdev.in_use_by_lnet",
	     "ib0 is in use by LNET (module ko2iblnd): 2 connections on mlx5_0");
	/* named better by its NID */
	assert_int_equal(np_strv_add(&w->usage.lnet.nids, "10.0.0.50@o2ib"), 0);
	says(w, "netdev.in_use_by_lnet", "ib0 is in use by LNET: NID 10.0.0.50@o2ib");
}

static void lnet(void **state)
{
	static const char text[] =
		"nid                      status alive refs peer  rtr   max    tx   min\n"
		"0@lo                         up     0    2    0    0     0     0     0\n"
		"10.0.0.50@o2ib               up    -1    1    8    0   256   256   247\n"
		"fd00::50@tcp4                up    -1    1    8    0   256   256   247\n"
		"\n"
		"12345@gni down 1\n"
		"1.2.3@tcp up";
	struct world *w = *state;
	struct np_inet addr;

	assert_int_equal(np_lnet_parse(text, &w->usage.lnet.nids), 0);
	assert_int_equal(w->usage.lnet.nids.n, 2);
	assert_string_equal(w->usage.lnet.nids.v[0], "10.0.0.50@o2ib");
	assert_true(np_lnet_nid_addr(w->usage.lnet.nids.v[1], &addr));
	assert_int_equal(addr.family, AF_INET6);
	assert_int_equal(np_lnet_parse("", &w->usage.lnet.nids), 0);

	w->usage.lnet.known = w->usage.lnet.driver = true;
	node(w);
	address(w, NP_ACTION_ADDR_DEL, "10.0.0.50/16");
	says(w, "netdev.in_use_by_lnet", "ib0 is in use by LNET: NID 10.0.0.50@o2ib");
	w->actions.v[0].addr.inet = fb_inet("10.0.0.51/16");
	says(w, NULL, NULL);
	w->usage.lnet.known = false;
	np_strcpy(w->usage.lnet.reason, sizeof(w->usage.lnet.reason), "Permission denied");
	says(w, "netdev.in_use_by_lnet",
	     "ib0 may be in use by LNET: it is loaded, and its NIDs cannot be read (Permission denied)");
	w->usage.lnet.driver = false;
	says(w, NULL, NULL);
}

static void mounts(void **state)
{
	static const char text[] =
		"21 26 0:20 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
		"90 26 0:51 / /my\\040data rw shared:9 master:3 - nfs4 10.0.0.9:/vol rw,vers=4.2,"
		"proto=rdma,port=20049,clientaddr=10.0.0.50,addr=10.0.0.9\n"
		"91 26 0:52 / /home rw - nfs srv:/home rw,vers=3,proto=tcp,mountaddr=10.0.0.8,"
		"addr=10.0.0.8\n"
		"92 26 0:53 / /six rw - nfs4 [fd00::9]:/vol rw,proto=rdma6,addr=fd00::9\n"
		"93 26 0:54 / /bad\\033[31m rw - nfs4 x rw,proto=rdma,addr=nonsense\n"
		"94 26 0:55 /\n"
		"- - -\n";
	struct world *w = *state;
	struct np_nfs_mount *m;

	assert_int_equal(np_nfs_mounts_parse(text, &w->usage.nfs), 0);
	assert_int_equal(w->usage.nfs.n, 4);
	m = w->usage.nfs.v;
	assert_string_equal(m[0].where, "/my data");
	assert_string_equal(m[0].source, "10.0.0.9:/vol");
	assert_true(m[0].rdma && !m[1].rdma && m[2].rdma && m[3].rdma);
	assert_string_equal(m[3].where, "/bad\\x1b[31m");
	assert_int_equal(m[3].server.family, 0);

	node(w);
	address(w, NP_ACTION_ADDR_DEL, "10.0.0.50/16");
	says(w, "netdev.in_use_by_nfs",
	     "ib0 is in use by NFS over RDMA: /my data from 10.0.0.9:/vol");
	/* by the way that it goes */
	m[0].client.family = 0;
	says(w, NULL, NULL);
	m[0].src = host("10.0.0.50");
	says(w, "netdev.in_use_by_nfs",
	     "ib0 is in use by NFS over RDMA: /my data from 10.0.0.9:/vol");
	m[0].src = host("192.168.1.5");
	m[0].ifindex = 2;
	says(w, NULL, NULL);
	/* over TCP it is a connection that no process has */
	tcp(w, "10.0.0.50", "10.0.0.8", 0);
	says(w, "netdev.in_use",
	     "ib0 is in use by NFS (/home from srv:/home): TCP connection from 10.0.0.50 port 988 to "
	     "10.0.0.8 port 2049");
}

/* A process with a hundred connections is told once. */
static void many_connections(void **state)
{
	struct world *w = *state;

	node(w);
	action(w, NP_ACTION_MTU, 2044, 4092);
	for (uint64_t i = 1; i <= 100; i++) {
		tcp(w, "10.0.0.50", "10.0.0.9", i);
		holder(w, i, "", "solver");
	}
	judge(w);
	assert_int_equal(w->checks.n, 1);
	w->usage.holders[99].pid = 4712;
	judge(w);
	assert_int_equal(w->checks.n, 2);
}

static void connections_that_nobody_lists(void **state)
{
	struct world *w = *state;

	node(w);
	action(w, NP_ACTION_MTU, 2044, 4092);
	w->usage.tcp.known = false;
	judge(w);
	assert_int_equal(w->checks.n, 1);
	assert_int_equal(w->checks.v[0].status, NP_CHECK_UNKNOWN);
	assert_string_equal(w->checks.v[0].code, "plan.in_use_unknown");
}

/* The kernel's own table: words as a little-endian processor has them. */
static void table_of_connections(void **state)
{
	static const char table[] =
		"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "
		"timeout inode\n"
		"   0: 3200000A:03DC 0900000A:0801 01 00000000:00000000 00:00000000 00000000  1000   "
		"     0 4711 1 0000000000000000 20 4 30 10 -1\n"
		"   1: 3200000A:03DC 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0   "
		"     0 4712 1 0000000000000000 100 0 0 10 0\n"
		"   2: 0000000000000000FFFF00003200000A:03DC 0000000000000000FFFF00000900000A:0801 01 "
		"00000000:00000000 00:00000000 00000000 0 0 18446744073709551615 1\n"
		"   3: 000000FD000000000000000050000000:0016 000000FD000000000000000051000000:0017 01 "
		"00000000:00000000 00:00000000 00000000 0 0 5 1\n"
		"   4: 3200000A03DC 0900000A:0801 01 0:0 0:0 0 0 0 1\n"
		"   5: 3200:03DC 0900000A:0801 01 0:0 0:0 0 0 0 1\n"
		"   6:";
	struct world *w = *state;
	char text[sizeof(table)], shown[NP_INET_STRLEN];
	const struct np_tcp *v;

	memcpy(text, table, sizeof(table));
	assert_int_equal(np_tcp_parse(text, NULL, NULL, &w->usage.tcp), 0);
	assert_int_equal(w->usage.tcp.n, 3);
	v = w->usage.tcp.v;
	assert_string_equal(np_inet_str(&v[0].local, shown), "10.0.0.50/32");
	assert_string_equal(np_inet_str(&v[0].remote, shown), "10.0.0.9/32");
	assert_int_equal(v[0].local_port, 988);
	assert_int_equal(v[0].remote_port, 2049);
	assert_int_equal(v[0].inode, 4711);
	assert_true(np_inet_equal(&v[1].local, &v[0].local));
	assert_true(v[1].inode == UINT64_MAX);
	assert_string_equal(np_inet_str(&v[2].local, shown), "fd00::50/128");
}

static void gpu_memory(void **state)
{
	struct world *w = *state;
	struct np_action *a = action(w, NP_ACTION_GDRDRV_NODE, 508, 508);

	node(w);
	holder(w, 0, "/dev/nvidia-uvm", "python3");
	holder(w, 77, "", "solver");
	says(w, NULL, NULL);
	a->had_old = true;
	says(w, "gdrcopy.in_use",
	     "GPU memory is in use by process 4711 (python3), which has /dev/nvidia-uvm open");
	assert_string_equal(w->checks.v[0].target, "gdrdrv");
	/* it is not what a netdev carries */
	w->actions.v[0].kind = NP_ACTION_MTU;
	says(w, NULL, NULL);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_cuts),
		T(an_address_alone),
		T(what_stands_on_it),
		T(ports_below),
		T(a_circle_ends),
		T(link_local_addresses_are_of_their_netdev),
		T(queue_pairs_of_the_port),
		T(users_in_the_kernel),
		T(lnet),
		T(mounts),
		T(many_connections),
		T(connections_that_nobody_lists),
		T(table_of_connections),
		T(gpu_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
