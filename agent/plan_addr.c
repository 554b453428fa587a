/* SPDX-License-Identifier: MIT */
/*
 * The addresses of one netdev. The kernel has two rules that bite: the first IPv4
 * address of a subnet is the primary one and later ones are its secondaries, and
 * deleting a primary deletes its secondaries (unless promote_secondaries). So a
 * wrong prefix length is corrected in this order: take away what would come before
 * the new address in its subnet, add the new address, take the wrong one away, put
 * the others back. The address itself is never absent in between.
 */
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "agent/plan.h"

/* Addresses that are still there, in kernel order, as the plan grows. */
struct state {
	const struct np_netdev *dev;
	struct np_netdev_addr *v;
	size_t n;
	struct np_actions *out;
};

static int add(struct state *st, const struct np_netdev_addr *addr)
{
	struct np_action *a = np_actions_add(st->out, NP_ACTION_ADDR_ADD);
	struct np_netdev_addr *v = reallocarray(st->v, st->n + 1, sizeof(*v));

	if (v)
		st->v = v;
	if (!a || !v)
		return -ENOMEM;
	a->ifindex = st->dev->ifindex;
	memcpy(a->ifname, st->dev->name, sizeof(a->ifname));
	a->addr = *addr;
	v[st->n++] = *addr;
	return 0;
}

static int del(struct state *st, size_t index)
{
	struct np_action *a = np_actions_add(st->out, NP_ACTION_ADDR_DEL);

	if (!a)
		return -ENOMEM;
	a->ifindex = st->dev->ifindex;
	memcpy(a->ifname, st->dev->name, sizeof(a->ifname));
	a->addr = st->v[index];
	memmove(&st->v[index], &st->v[index + 1], (--st->n - index) * sizeof(*st->v));
	return 0;
}

/* Deletes the address at @index; secondaries that the kernel would take with it
 * are deleted before and added again after. */
static int del_keeping_others(struct state *st, size_t index)
{
	struct np_netdev_addr victim = st->v[index];
	struct np_netdev_addr *saved;
	size_t n_saved = 0;
	int r = 0;

	if (victim.inet.family == AF_INET6 || (victim.flags & IFA_F_SECONDARY) ||
	    st->dev->promote_secondaries == NP_TRI_YES)
		return del(st, index);
	saved = calloc(st->n, sizeof(*saved));
	if (!saved)
		return -ENOMEM;
	for (size_t i = st->n; i-- > 0 && r == 0;) {
		if (i == index || !np_inet_same_subnet(&st->v[i].inet, &victim.inet))
			continue;
		saved[n_saved++] = st->v[i];
		r = del(st, i);
		if (i < index)
			index--;
	}
	if (r == 0)
		r = del(st, index);
	while (r == 0 && n_saved > 0)
		r = add(st, &saved[--n_saved]);
	free(saved);
	return r;
}

/* The other lengths of the same address, which the kernel takes as further entries. */
static int drop_wrong_lengths(struct state *st, const struct np_inet *want)
{
	for (size_t i = st->n; i-- > 0;) {
		if (!np_inet_same_addr(&st->v[i].inet, want) ||
		    np_inet_equal(&st->v[i].inet, want))
			continue;
		if (del_keeping_others(st, i) < 0)
			return -ENOMEM;
		/* entries may have moved */
		i = st->n;
	}
	return 0;
}

static bool has_other_length(const struct state *st, const struct np_inet *want)
{
	for (size_t i = 0; i < st->n; i++)
		if (np_inet_same_addr(&st->v[i].inet, want))
			return true;
	return false;
}

/* A new IPv4 address that corrects an old one shall be the primary of its subnet. */
static int insert_as_primary(struct state *st, const struct np_netdev_addr *addr)
{
	struct np_netdev_addr *saved = calloc(st->n + 1, sizeof(*saved));
	size_t n_saved = 0;
	int r = 0;

	if (!saved)
		return -ENOMEM;
	for (size_t i = st->n; i-- > 0 && r == 0;) {
		if (!np_inet_same_subnet(&st->v[i].inet, &addr->inet))
			continue;
		saved[n_saved++] = st->v[i];
		r = del(st, i);
	}
	if (r == 0)
		r = add(st, addr);
	if (r == 0)
		r = drop_wrong_lengths(st, &addr->inet);
	while (r == 0 && n_saved > 0)
		r = add(st, &saved[--n_saved]);
	free(saved);
	return r;
}

static int want_address(struct state *st, const struct np_inet *want)
{
	struct np_netdev_addr addr = { .inet = *want, .scope = RT_SCOPE_UNIVERSE };

	addr.has_broadcast = np_inet_broadcast(want, addr.broadcast);
	for (size_t i = 0; i < st->n; i++)
		if (np_inet_equal(&st->v[i].inet, want))
			return drop_wrong_lengths(st, want);
	if (!has_other_length(st, want))
		return add(st, &addr);
	/* IPv6 knows an address once, whatever its length: it has to go first */
	if (want->family == AF_INET6) {
		if (drop_wrong_lengths(st, want) < 0)
			return -ENOMEM;
		return add(st, &addr);
	}
	return insert_as_primary(st, &addr);
}

static bool is_wanted(const struct np_selected_netdev *sel, const struct np_inet *inet)
{
	for (size_t i = 0; i < sel->n_addrs; i++)
		if (np_inet_equal(&sel->addrs[i], inet))
			return true;
	return false;
}

/* exclusive: what is not wanted goes; link-local addresses are the kernel's own. */
static int drop_foreign(struct state *st, const struct np_selected_netdev *sel)
{
	for (size_t i = st->n; i-- > 0;) {
		if (is_wanted(sel, &st->v[i].inet) || st->v[i].scope == RT_SCOPE_LINK)
			continue;
		if (del_keeping_others(st, i) < 0)
			return -ENOMEM;
		i = st->n;
	}
	return 0;
}

int np_plan_addresses(const struct np_selected_netdev *sel, struct np_actions *out,
		      struct np_err *err)
{
	struct state st = { .dev = sel->dev, .out = out };
	int r = 0;

	if (sel->n_addrs == 0)
		return 0;
	st.n = sel->dev->n_addrs;
	st.v = calloc(st.n + 1, sizeof(*st.v));
	if (!st.v)
		return np_err_nomem(err);
	if (st.n)
		memcpy(st.v, sel->dev->addrs, st.n * sizeof(*st.v));
	for (size_t i = 0; i < sel->n_addrs && r == 0; i++)
		r = want_address(&st, &sel->addrs[i]);
	if (r == 0 && sel->want->exclusive)
		r = drop_foreign(&st, sel);
	free(st.v);
	return r < 0 ? np_err_nomem(err) : 0;
}
