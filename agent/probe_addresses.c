/* SPDX-License-Identifier: MIT */
#include "agent/probe_addresses.h"

#include <errno.h>
#include <string.h>

#include "base/child.h"
#include "netlink/probe.h"

#define PROBE_MS 200

/* The broadcast group is joined within milliseconds where a subnet manager is there; a
 * fabric that is still coming up is not waited for here, since nobody could answer. */
#define CARRIER_MS 2000

/* One question; the netdev is a copy whose flags are those of now. */
struct question {
	struct np_netdev dev;
	struct np_inet inet;
};

struct questions {
	struct question *v;
	size_t n;
};

static void questions_done(struct questions *q)
{
	free(q->v);
}

static const struct np_netdev *find_netdev(const struct np_facts *facts, int ifindex)
{
	for (size_t i = 0; i < facts->netdevs.n; i++)
		if (facts->netdevs.v[i].ifindex == ifindex)
			return &facts->netdevs.v[i];
	return NULL;
}

/* The netdev that gets a new address by @a; NULL when it does not. An entry that is made
 * anew, or with another length, is no new address. */
static const struct np_netdev *gets_new_address(const struct np_facts *facts,
						const struct np_action *a)
{
	const struct np_netdev *dev;

	if (a->kind != NP_ACTION_ADDR_ADD || a->addr.inet.family != AF_INET)
		return NULL;
	dev = find_netdev(facts, a->ifindex);
	for (size_t i = 0; dev && i < dev->n_addrs; i++)
		if (np_inet_same_addr(&dev->addrs[i].inet, &a->addr.inet))
			return NULL;
	return dev;
}

static int collect(const struct np_facts *facts, const struct np_actions *planned,
		   struct questions *out)
{
	out->v = calloc(planned->n + 1, sizeof(*out->v));
	if (!out->v)
		return -ENOMEM;
	for (size_t i = 0; i < planned->n; i++) {
		const struct np_netdev *dev = gets_new_address(facts, &planned->v[i]);

		if (dev)
			out->v[out->n++] = (struct question){ *dev, planned->v[i].addr.inet };
	}
	return 0;
}

/* Is @ifindex down, and will be asked on once it is up? Looks from @from on. */
static bool is_needed_up(const struct np_facts *facts, const struct np_actions *planned,
			 size_t from, int ifindex)
{
	for (size_t i = from; i < planned->n; i++) {
		const struct np_netdev *dev;

		if (planned->v[i].ifindex != ifindex)
			continue;
		dev = gets_new_address(facts, &planned->v[i]);
		if (dev && !(dev->flags & IFF_UP) && np_probe_has_hwaddr(dev))
			return true;
	}
	return false;
}

static bool is_link_action(const struct np_action *a)
{
	return a->kind == NP_ACTION_MODE || a->kind == NP_ACTION_MTU || a->kind == NP_ACTION_LINK;
}

/* A plan has the addresses of a netdev after its link. */
void np_probe_keep_links(const struct np_facts *facts, struct np_actions *planned)
{
	size_t kept = 0;

	for (size_t i = 0; i < planned->n; i++) {
		struct np_action *a = &planned->v[i];

		if (is_link_action(a) && is_needed_up(facts, planned, i, a->ifindex))
			planned->v[kept++] = *a;
		else
			np_action_done(a);
	}
	planned->n = kept;
}

static bool waits_for_carrier(const struct np_netdev *dev)
{
	return (dev->flags & IFF_UP) && !(dev->flags & IFF_RUNNING) && np_probe_has_hwaddr(dev);
}

/* A netdev that goes meanwhile has no carrier either. */
static void wait_for_carrier(const struct np_config *cfg, struct questions *q)
{
	int64_t most = (int64_t)cfg->wait_s * 1000,
		deadline = np_now_ms() + (most < CARRIER_MS ? most : CARRIER_MS);
	np_auto_netlink struct np_netlink *nl = NULL;

	for (size_t i = 0; i < q->n; i++) {
		struct np_netdev *dev = &q->v[i].dev;
		int64_t left = deadline - np_now_ms();

		if (!waits_for_carrier(dev) || (!nl && np_netlink_open(&nl, NULL) < 0))
			continue;
		if (np_netdev_wait_running(nl, dev->ifindex, left > 0 ? (int)left : 0, NULL) == 1)
			dev->flags |= IFF_RUNNING;
	}
}

/* "mlx5_0:1" when that port is this node's own; "" else. */
static const char *own_port(const struct np_facts *facts, uint64_t guid, struct np_buf *out)
{
	for (size_t i = 0; i < facts->cas.n; i++)
		for (size_t p = 0; p < facts->cas.v[i].n_ports; p++)
			if (facts->cas.v[i].ports[p].guid == guid)
				np_buf_printf(out, "%s:%d", facts->cas.v[i].name,
					      facts->cas.v[i].ports[p].num);
	return out->len ? out->data : "";
}

static int refuse(const struct np_facts *facts, const struct np_probe *probes, size_t n,
		  struct np_err *err)
{
	np_auto_buf struct np_buf text = { 0 }, port = { 0 };
	uint64_t first = 0;
	const char *own;

	for (size_t i = 0; i < n; i++) {
		uint64_t guid = probes[i].owner_guid;
		char address[NP_INET_STRLEN];

		if (probes[i].outcome != NP_PROBE_IN_USE)
			continue;
		first = first ? first : guid;
		np_buf_printf(
			&text,
			"%saddress %s is in use on the fabric: port GUID %04x:%04x:%04x:%04x answered on %s",
			text.len ? "; " : "", np_inet_addr_str(&probes[i].inet, address),
			(unsigned int)(guid >> 48) & 0xffff, (unsigned int)(guid >> 32) & 0xffff,
			(unsigned int)(guid >> 16) & 0xffff, (unsigned int)guid & 0xffff,
			probes[i].dev->name);
	}
	if (!text.len && !text.failed)
		return 0;
	own = own_port(facts, first, &port);
	np_err_set(err, -EADDRINUSE, "netdev.address_in_use", "%s", text.data ? text.data : "");
	if (*own)
		np_err_hint(
			err,
			"choose another address; that port is %s of this node, so look into its other network namespaces and VRFs",
			own);
	else
		np_err_hint(
			err,
			"choose another address, or free it there: smpquery -G nodedesc 0x%016llx names that node; --no-probe does not ask",
			(unsigned long long)first);
	return -EADDRINUSE;
}

static void tell(const struct np_probe *probes, size_t n, struct np_checks *checks)
{
	for (size_t i = 0; i < n; i++) {
		char address[NP_INET_STRLEN];

		if (probes[i].outcome == NP_PROBE_NOT_POSSIBLE)
			np_checks_add(checks, "netdev", probes[i].dev->name, NP_CHECK_SKIP,
				      "netdev.not_probed", NULL,
				      "whether another node has %s could not be asked here: %s",
				      np_inet_addr_str(&probes[i].inet, address), probes[i].why);
	}
}

static int ask(const struct np_facts *facts, const struct questions *q, struct np_checks *checks,
	       struct np_err *err)
{
	_cleanup_free_ struct np_probe *probes = calloc(q->n, sizeof(*probes));
	int r;

	if (!probes)
		return np_err_nomem(err);
	for (size_t i = 0; i < q->n; i++)
		probes[i] = (struct np_probe){ .dev = &q->v[i].dev, .inet = q->v[i].inet };
	r = np_arp_probe(probes, q->n, PROBE_MS, err);
	if (r == 0)
		r = refuse(facts, probes, q->n, err);
	if (r == 0)
		tell(probes, q->n, checks);
	return r;
}

int np_probe_planned(const struct np_config *cfg, const struct np_facts *facts,
		     const struct np_actions *planned, struct np_checks *checks, struct np_err *err)
{
	np_auto(questions_done) struct questions q = { 0 };

	if (collect(facts, planned, &q) < 0)
		return np_err_nomem(err);
	if (q.n == 0)
		return 0;
	wait_for_carrier(cfg, &q);
	return ask(facts, &q, checks, err);
}
