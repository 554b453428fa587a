/* SPDX-License-Identifier: MIT */
/*
 * The addresses of one netdev. The kernel has two rules that bite: the first IPv4
 * address of a subnet is the primary one and later ones are its secondaries, and
 * deleting a primary deletes its secondaries, or with promote_secondaries makes one
 * of them the primary, which an undo could not take back. So what is wanted is added
 * first, what is wrong is taken away after, and where a primary has to make room the
 * others of its subnet are taken away before and put back after. A wanted IPv4 address
 * is never absent in between: where its entry has to go for a moment, a /32 of it
 * stands in.
 */
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "agent/plan.h"

/* Addresses that are still there, as the plan grows; within a subnet in kernel order. */
struct state {
	const struct np_netdev *dev;
	const struct np_selected_netdev *sel; /* NULL: nothing is wanted, nothing has to go */
	struct np_netdev_addr *v;
	size_t n;
	struct np_actions *out;
};

/* The bit means "temporary" for IPv6. */
static bool is_secondary(const struct np_netdev_addr *addr)
{
	return addr->inet.family == AF_INET && (addr->flags & IFA_F_SECONDARY);
}

static bool same_subnet4(const struct np_netdev_addr *addr, const struct np_inet *inet)
{
	return inet->family == AF_INET && np_inet_same_subnet(&addr->inet, inet);
}

static struct np_action *add_action(struct state *st, enum np_action_kind kind,
				    const struct np_netdev_addr *addr)
{
	struct np_action *a = np_actions_add(st->out, kind);

	if (!a)
		return NULL;
	a->ifindex = st->dev->ifindex;
	memcpy(a->ifname, st->dev->name, sizeof(a->ifname));
	a->addr = *addr;
	return a;
}

static int add(struct state *st, const struct np_netdev_addr *addr)
{
	struct np_netdev_addr *v = reallocarray(st->v, st->n + 1, sizeof(*v)), added = *addr;

	if (!v)
		return -ENOMEM;
	st->v = v;
	if (added.inet.family == AF_INET)
		added.flags &= ~(uint32_t)IFA_F_SECONDARY;
	if (!add_action(st, NP_ACTION_ADDR_ADD, &added))
		return -ENOMEM;
	for (size_t i = 0; i < st->n; i++)
		if (same_subnet4(&v[i], &added.inet))
			added.flags |= IFA_F_SECONDARY;
	v[st->n++] = added;
	return 0;
}

static int del(struct state *st, size_t index)
{
	struct np_netdev_addr gone = st->v[index];

	if (!add_action(st, NP_ACTION_ADDR_DEL, &gone))
		return -ENOMEM;
	memmove(&st->v[index], &st->v[index + 1], (--st->n - index) * sizeof(*st->v));
	/* what is left of its subnet now has the first of them as its primary */
	for (size_t i = 0; i < st->n && !is_secondary(&gone); i++) {
		if (same_subnet4(&st->v[i], &gone.inet)) {
			st->v[i].flags &= ~(uint32_t)IFA_F_SECONDARY;
			break;
		}
	}
	return 0;
}

static size_t count_lengths(const struct state *st, const struct np_inet *inet)
{
	size_t n = 0;

	for (size_t i = 0; i < st->n; i++)
		n += np_inet_same_addr(&st->v[i].inet, inet);
	return n;
}

static bool is_wanted(const struct state *st, const struct np_inet *inet)
{
	for (size_t i = 0; st->sel && i < st->sel->n_addrs; i++)
		if (np_inet_equal(&st->sel->addrs[i], inet))
			return true;
	return false;
}

static bool is_wanted_addr(const struct state *st, const struct np_inet *inet)
{
	for (size_t i = 0; st->sel && i < st->sel->n_addrs; i++)
		if (np_inet_same_addr(&st->sel->addrs[i], inet))
			return true;
	return false;
}

/* Will be gone at the end: a wanted address with another length, or, with exclusive,
 * a foreign one; link-local addresses are the kernel's own. */
static bool must_go(const struct state *st, const struct np_netdev_addr *addr)
{
	if (is_wanted_addr(st, &addr->inet))
		return !is_wanted(st, &addr->inet);
	return st->sel && st->sel->want->exclusive && addr->scope != RT_SCOPE_LINK;
}

/* A wanted address whose only entry is about to go gets a /32, which must_go later. */
static int stand_in(struct state *st, const struct np_inet *inet)
{
	struct np_netdev_addr addr = { .inet = *inet, .scope = RT_SCOPE_UNIVERSE };

	if (!is_wanted_addr(st, inet) || count_lengths(st, inet) > 1)
		return 0;
	addr.inet.prefix_len = 32;
	return add(st, &addr);
}

/* Takes the IPv4 addresses of a subnet away, last first, but for the one at @keep
 * (an address, or NULL); they go to @saved. */
static int set_aside(struct state *st, const struct np_inet *subnet, const struct np_inet *keep,
		     struct np_netdev_addr *saved, size_t *n_saved)
{
	for (size_t i = st->n; i-- > 0;)
		if (same_subnet4(&st->v[i], subnet) &&
		    !(keep && np_inet_equal(&st->v[i].inet, keep)) &&
		    stand_in(st, &st->v[i].inet) < 0)
			return -ENOMEM;
	for (size_t i = st->n; i-- > 0;) {
		if (!same_subnet4(&st->v[i], subnet) ||
		    (keep && np_inet_equal(&st->v[i].inet, keep)))
			continue;
		saved[(*n_saved)++] = st->v[i];
		if (del(st, i) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int put_back(struct state *st, const struct np_netdev_addr *saved, size_t n_saved)
{
	while (n_saved-- > 0)
		if ((is_wanted_addr(st, &saved[n_saved].inet) || !must_go(st, &saved[n_saved])) &&
		    add(st, &saved[n_saved]) < 0)
			return -ENOMEM;
	return 0;
}

static size_t find(const struct state *st, const struct np_inet *inet)
{
	size_t i = 0;

	while (i < st->n && !np_inet_equal(&st->v[i].inet, inet))
		i++;
	return i;
}

/* Deletes the address at @index, but not the secondaries that the kernel would take
 * with it. */
static int del_keeping_others(struct state *st, size_t index)
{
	struct np_netdev_addr victim = st->v[index], *saved;
	size_t n_saved = 0;
	int r;

	if (victim.inet.family == AF_INET6 || is_secondary(&victim))
		return del(st, index);
	saved = calloc(st->n, sizeof(*saved));
	if (!saved)
		return -ENOMEM;
	r = set_aside(st, &victim.inet, &victim.inet, saved, &n_saved);
	if (r == 0)
		r = del(st, find(st, &victim.inet));
	if (r == 0)
		r = put_back(st, saved, n_saved);
	free(saved);
	return r;
}

/* An IPv4 address that corrects an old one shall be the primary of its subnet, unless
 * another wanted one is that already. */
static int insert_as_primary(struct state *st, const struct np_netdev_addr *addr)
{
	struct np_netdev_addr *saved;
	size_t n_saved = 0;
	int r;

	for (size_t i = 0; i < st->n; i++)
		if (same_subnet4(&st->v[i], &addr->inet) && !is_secondary(&st->v[i]) &&
		    is_wanted(st, &st->v[i].inet))
			return add(st, addr);
	saved = calloc(st->n + 1, sizeof(*saved));
	if (!saved)
		return -ENOMEM;
	r = set_aside(st, &addr->inet, NULL, saved, &n_saved);
	if (r == 0)
		r = add(st, addr);
	if (r == 0)
		r = put_back(st, saved, n_saved);
	free(saved);
	return r;
}

/* The kernel cannot change a broadcast address in place: the entry of @addr is
 * made anew, in its old place within the subnet. */
static int renew_broadcast(struct state *st, const struct np_netdev_addr *addr)
{
	struct np_netdev_addr *saved = calloc(st->n + 1, sizeof(*saved));
	size_t n_saved = 0;
	int r;

	if (!saved)
		return -ENOMEM;
	r = set_aside(st, &addr->inet, NULL, saved, &n_saved);
	for (size_t i = 0; i < n_saved; i++) {
		if (!np_inet_equal(&saved[i].inet, &addr->inet))
			continue;
		saved[i].has_broadcast = true;
		memcpy(saved[i].broadcast, addr->broadcast, sizeof(addr->broadcast));
	}
	if (r == 0)
		r = put_back(st, saved, n_saved);
	free(saved);
	return r;
}

bool np_broadcast_is_right(const struct np_netdev_addr *addr)
{
	uint8_t right[4];

	return !np_inet_broadcast(&addr->inet, right) ||
	       (addr->has_broadcast && memcmp(right, addr->broadcast, sizeof(right)) == 0);
}

static int want_address(struct state *st, const struct np_inet *want)
{
	struct np_netdev_addr addr = { .inet = *want, .scope = RT_SCOPE_UNIVERSE };
	size_t index = find(st, want);

	addr.has_broadcast = np_inet_broadcast(want, addr.broadcast);
	if (index < st->n)
		return np_broadcast_is_right(&st->v[index]) || st->sel->keep_broadcast ?
			       0 :
			       renew_broadcast(st, &addr);
	if (count_lengths(st, want) == 0)
		return add(st, &addr);
	if (want->family == AF_INET)
		return insert_as_primary(st, &addr);
	/* IPv6 knows an address once, whatever its length: it has to go first */
	for (size_t i = st->n; i-- > 0;)
		if (np_inet_same_addr(&st->v[i].inet, want) && del(st, i) < 0)
			return -ENOMEM;
	return add(st, &addr);
}

/* @foreign_only: not the stand-ins and wrong lengths of wanted addresses. */
static int drop(struct state *st, bool foreign_only)
{
	for (size_t i = st->n; i-- > 0;) {
		if (!must_go(st, &st->v[i]) || (foreign_only && is_wanted_addr(st, &st->v[i].inet)))
			continue;
		if (del_keeping_others(st, i) < 0)
			return -ENOMEM;
		/* entries may have moved */
		i = st->n;
	}
	return 0;
}

static int start(struct state *st)
{
	st->n = st->dev->n_addrs;
	st->v = calloc(st->n + 1, sizeof(*st->v));
	if (!st->v)
		return -ENOMEM;
	if (st->n)
		memcpy(st->v, st->dev->addrs, st->n * sizeof(*st->v));
	return 0;
}

/* An IPv4 address comes before others go, so that it is never absent; one that is there with
 * another length or broadcast address (IPv6: with any length) has to wait. */
static int swap_in(struct state *st, const struct np_netdev_addr *back, size_t n_back, bool late)
{
	for (size_t i = 0; i < n_back; i++) {
		bool there = find(st, &back[i].inet) < st->n;
		bool waits = there || (back[i].inet.family == AF_INET6 &&
				       count_lengths(st, &back[i].inet) > 0);

		if (!there && (late || !waits) && add(st, &back[i]) < 0)
			return -ENOMEM;
	}
	return 0;
}

int np_plan_address_swap(const struct np_netdev *dev, const struct np_netdev_addr *gone,
			 size_t n_gone, const struct np_netdev_addr *back, size_t n_back,
			 struct np_actions *out, struct np_err *err)
{
	struct state st = { .dev = dev, .out = out };
	int r = start(&st);

	if (r == 0)
		r = swap_in(&st, back, n_back, false);
	for (size_t i = 0; i < n_gone && r == 0; i++) {
		size_t index = find(&st, &gone[i].inet);

		if (index < st.n)
			r = del_keeping_others(&st, index);
	}
	if (r == 0)
		r = swap_in(&st, back, n_back, true);
	free(st.v);
	return r < 0 ? np_err_nomem(err) : 0;
}

int np_plan_addresses(const struct np_selected_netdev *sel, struct np_actions *out,
		      struct np_err *err)
{
	struct state st = { .dev = sel->dev, .sel = sel, .out = out };
	int r;

	if (sel->n_addrs == 0)
		return 0;
	r = start(&st);
	if (r < 0)
		return np_err_nomem(err);
	r = drop(&st, true);
	for (size_t i = 0; i < sel->n_addrs && r == 0; i++)
		r = want_address(&st, &sel->addrs[i]);
	if (r == 0)
		r = drop(&st, false);
	free(st.v);
	return r < 0 ? np_err_nomem(err) : 0;
}
