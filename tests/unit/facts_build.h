/* SPDX-License-Identifier: MIT */
#ifndef NP_TEST_FACTS_BUILD_H
#define NP_TEST_FACTS_BUILD_H

/*
 * Made-up facts for tests of pure code: every piece is allocated as np_observe
 * would, so np_facts_done frees it. Pointers returned hold until the next piece of
 * the same kind is added.
 */
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/facts.h"

#define FB_UNUSED __attribute__((unused))

/* Grows an array by one zeroed element and gives it. */
#define FB_ADD(array, n) \
	(assert_non_null((array) = reallocarray((array), (n) + 1, sizeof(*(array)))), \
	 memset(&(array)[n], 0, sizeof(*(array))), &(array)[(n)++])

/* The same numbers in every run. */
FB_UNUSED static uint32_t fb_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 32);
}

FB_UNUSED static struct np_inet fb_inet(const char *text)
{
	struct np_inet inet = { 0 };

	assert_int_equal(np_inet_parse_any(text, &inet), 0);
	return inet;
}

FB_UNUSED static struct np_ca *fb_ca(struct np_facts *facts, const char *name)
{
	struct np_ca *ca = FB_ADD(facts->cas.v, facts->cas.n);

	np_strcpy(ca->name, sizeof(ca->name), name);
	np_strcpy(ca->ca_type, sizeof(ca->ca_type), "MT4115");
	ca->node_type = NP_NODE_CA;
	return ca;
}

/* An InfiniBand port; @rate is as in sysfs, "" = unreadable. */
FB_UNUSED static struct np_port *fb_port(struct np_ca *ca, int num, enum np_port_state state,
					 enum np_phys_state phys, const char *rate)
{
	struct np_port *port = FB_ADD(ca->ports, ca->n_ports);

	port->num = num;
	port->state = state;
	port->phys_state = phys;
	port->link_layer = NP_LL_INFINIBAND;
	np_strcpy(port->link_layer_raw, sizeof(port->link_layer_raw), "InfiniBand");
	np_strcpy(port->rate, sizeof(port->rate), rate);
	if (*rate)
		assert_int_equal(np_rate_parse(rate, &port->rate_gbps, &port->width, port->speed),
				 0);
	port->has_lid = port->has_sm_lid = true;
	port->lid = 0xf;
	port->sm_lid = 1;
	return port;
}

#define FB_EDR "100 Gb/sec (4X EDR)"

FB_UNUSED static struct np_port *fb_active(struct np_facts *facts, const char *ca)
{
	return fb_port(fb_ca(facts, ca), 1, NP_PORT_ACTIVE, NP_PHYS_LINKUP, FB_EDR);
}

/* An IPoIB netdev of port 1 of @ca, up and running. */
FB_UNUSED static struct np_netdev *fb_netdev(struct np_facts *facts, const char *name, int ifindex,
					     const char *ca)
{
	struct np_netdev *dev = FB_ADD(facts->netdevs.v, facts->netdevs.n);

	np_strcpy(dev->name, sizeof(dev->name), name);
	dev->ifindex = ifindex;
	dev->type = 32;
	dev->flags = IFF_UP | IFF_RUNNING | IFF_BROADCAST | IFF_MULTICAST;
	dev->carrier = NP_TRI_YES;
	dev->mtu = 2044;
	dev->mode = NP_IPOIB_DATAGRAM;
	dev->promote_secondaries = NP_TRI_NO;
	np_strcpy(dev->ca, sizeof(dev->ca), ca);
	dev->port = 1;
	dev->port_guid = 0x506b4b0300f5ce00 + (uint64_t)ifindex;
	assert_int_equal(np_strv_add(&facts->netdev_names, name), 0);
	return dev;
}

FB_UNUSED static struct np_netdev_addr *fb_addr(struct np_netdev *dev, const char *text,
						uint32_t flags)
{
	struct np_netdev_addr *addr = FB_ADD(dev->addrs, dev->n_addrs);

	addr->inet = fb_inet(text);
	addr->has_broadcast = np_inet_broadcast(&addr->inet, addr->broadcast);
	addr->flags = flags;
	addr->scope = RT_SCOPE_UNIVERSE;
	return addr;
}

/* @dst NULL: the default route. */
FB_UNUSED static void fb_route(struct np_facts *facts, const char *dst, int ifindex,
			       const char *ifname)
{
	struct np_route *route = FB_ADD(facts->routes.v, facts->routes.n);

	route->family = AF_INET;
	route->is_default = !dst;
	if (dst)
		route->dst = fb_inet(dst);
	route->ifindex = ifindex;
	np_strcpy(route->ifname, sizeof(route->ifname), ifname);
}

/* @ifname NULL: nobody here has the address. */
FB_UNUSED static void fb_owner(struct np_facts *facts, const char *inet, const char *ifname)
{
	struct np_addr_fact *fact = FB_ADD(facts->addrs, facts->n_addrs);

	fact->inet = fb_inet(inet);
	fact->owner.local = ifname != NULL;
	if (ifname)
		np_strcpy(fact->owner.ifname, sizeof(fact->owner.ifname), ifname);
}

FB_UNUSED static struct np_kmod *fb_kmod(struct np_facts *facts, const char *name,
					 enum np_kmod_state state)
{
	struct np_kmod *mod = FB_ADD(facts->kmods.v, facts->kmods.n);

	np_strcpy(mod->name, sizeof(mod->name), name);
	mod->state = state;
	mod->refcnt = -1;
	return mod;
}

FB_UNUSED static void fb_gpu(struct np_facts *facts)
{
	struct np_gpu *gpu = FB_ADD(facts->gpus.v, facts->gpus.n);

	np_strcpy(gpu->pci_address, sizeof(gpu->pci_address), "0000:17:00.0");
	gpu->numa_node = -1;
}

/* A file in /etc, or with @user in a home; @content NULL: absent. */
FB_UNUSED static struct np_target_file *fb_file(struct np_facts *facts, enum np_file_role role,
						const char *path, const char *user,
						const char *content)
{
	struct np_file_fact *fact = FB_ADD(facts->files, facts->n_files);
	struct np_target_file *f = &fact->file;

	fact->role = role;
	f->path = strdup(path);
	f->status = content ? NP_TARGET_PRESENT : NP_TARGET_ABSENT;
	if (user) {
		f->in_home = true;
		np_strcpy(f->user, sizeof(f->user), user);
		f->home = strdup("/home/someone");
		f->uid = f->gid = 1000;
	}
	if (content) {
		np_buf_str(&f->content, content);
		f->attr = (struct np_file_attr){ .mode = 0640, .uid = f->uid, .gid = f->gid };
	}
	return f;
}

FB_UNUSED static void fb_all_files(struct np_facts *facts)
{
	fb_file(facts, NP_ROLE_NCCL_HOME, "/home/someone/.nccl.conf", "someone", NULL);
	fb_file(facts, NP_ROLE_NCCL_ETC, "/etc/nccl.conf", NULL, NULL);
	fb_file(facts, NP_ROLE_PROFILE_SH, "/etc/profile.d/nodeprep-ucx.sh", NULL, NULL);
	fb_file(facts, NP_ROLE_PROFILE_CSH, "/etc/profile.d/nodeprep-ucx.csh", NULL, NULL);
	fb_file(facts, NP_ROLE_UCX_ENV, "/etc/nodeprep/ucx.env", NULL, NULL);
	fb_file(facts, NP_ROLE_LIMITS, NP_LIMITS_OURS, NULL, NULL);
	fb_file(facts, NP_ROLE_DASK_YAML, "/etc/dask/nodeprep.yaml", NULL, NULL);
	fb_file(facts, NP_ROLE_DASK_ENV, "/etc/nodeprep/dask.env", NULL, NULL);
}

/* The node of the guide before anything was done: four EDR HCAs, ib0 up on mlx5_0,
 * modules loaded, no address, no file. */
FB_UNUSED static void fb_guide(struct np_facts *facts)
{
	static const char *const cas[] = { "mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3" };
	static const uint32_t lids[] = { 0xf, 0x6, 0x2, 0x11 };

	memset(facts, 0, sizeof(*facts));
	for (size_t i = 0; i < NP_ARRAY_SIZE(cas); i++)
		fb_active(facts, cas[i])->lid = lids[i];
	fb_netdev(facts, "ib0", 3, "mlx5_0");
	fb_kmod(facts, "ib_umad", NP_KMOD_LIVE);
	fb_kmod(facts, "ib_uverbs", NP_KMOD_LIVE);
	fb_kmod(facts, "ib_ipoib", NP_KMOD_LIVE);
	fb_kmod(facts, "rdma_ucm", NP_KMOD_BUILTIN);
	fb_all_files(facts);
}

FB_UNUSED static void fb_config(struct np_config *cfg, const char *const *ips)
{
	struct np_err err;

	np_config_init(cfg);
	np_err_clear(&err);
	for (; ips && *ips; ips++)
		assert_int_equal(np_config_add_ip(cfg, *ips, &err), 0);
}

#define FB_LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

#endif
