/* SPDX-License-Identifier: MIT */
#ifndef NP_TEST_KERNEL_ADDR_H
#define NP_TEST_KERNEL_ADDR_H

/*
 * A model of the kernel's own rules for the addresses of one netdev (Linux
 * net/ipv4/devinet.c __inet_insert_ifa, __inet_del_ifa; net/ipv6/addrconf.c): the
 * first IPv4 address of a subnet is primary, deleting it takes its secondaries
 * along unless promote_secondaries is set, an address with its length is there once,
 * and IPv6 has an address once whatever its length.
 */
#include "facts_build.h"

#include "agent/action.h"

#define MAX_ADDRS 32

struct kernel {
	struct np_netdev_addr v[MAX_ADDRS];
	size_t n;
	bool promote;
};

FB_UNUSED static bool is_secondary(const struct np_netdev_addr *a)
{
	return a->inet.family == AF_INET && (a->flags & IFA_F_SECONDARY);
}

FB_UNUSED static int kernel_add(struct kernel *k, const struct np_netdev_addr *addr)
{
	struct np_netdev_addr new = *addr;
	size_t at = 0;

	if (new.inet.family == AF_INET)
		new.flags &= ~(uint32_t)IFA_F_SECONDARY;
	for (size_t i = 0; i < k->n; i++) {
		const struct np_netdev_addr *old = &k->v[i];

		if (new.inet.family == AF_INET6) {
			if (np_inet_same_addr(&old->inet, &new.inet))
				return -EEXIST;
			continue;
		}
		if (old->inet.family == AF_INET && !is_secondary(old) && new.scope <= old->scope)
			at = i + 1;
		if (!np_inet_same_subnet(&old->inet, &new.inet))
			continue;
		if (np_inet_equal(&old->inet, &new.inet))
			return -EEXIST;
		if (old->scope != new.scope)
			return -EINVAL;
		new.flags |= IFA_F_SECONDARY;
	}
	if (is_secondary(&new) || new.inet.family == AF_INET6)
		at = k->n;
	assert_true(k->n < MAX_ADDRS);
	memmove(&k->v[at + 1], &k->v[at], (k->n - at) * sizeof(new));
	k->v[at] = new;
	k->n++;
	return 0;
}

FB_UNUSED static void kernel_unlink(struct kernel *k, size_t i)
{
	memmove(&k->v[i], &k->v[i + 1], (--k->n - i) * sizeof(k->v[0]));
}

FB_UNUSED static void kernel_promote(struct kernel *k, const struct np_inet *gone)
{
	for (size_t i = 0; i < k->n; i++) {
		struct np_netdev_addr promoted = k->v[i];

		if (!is_secondary(&promoted) || !np_inet_same_subnet(&promoted.inet, gone))
			continue;
		promoted.flags &= ~(uint32_t)IFA_F_SECONDARY;
		kernel_unlink(k, i);
		/* behind the last primary */
		for (i = k->n;
		     i > 0 && (is_secondary(&k->v[i - 1]) || k->v[i - 1].inet.family == AF_INET6);)
			i--;
		memmove(&k->v[i + 1], &k->v[i], (k->n - i) * sizeof(promoted));
		k->v[i] = promoted;
		k->n++;
		return;
	}
}

FB_UNUSED static int kernel_del(struct kernel *k, const struct np_inet *which)
{
	const struct np_inet copy = *which, *inet = &copy; /* it may be one of the list */
	size_t i = 0;
	bool primary;

	while (i < k->n && !np_inet_equal(&k->v[i].inet, inet))
		i++;
	if (i == k->n)
		return -EADDRNOTAVAIL;
	primary = inet->family == AF_INET && !is_secondary(&k->v[i]);
	kernel_unlink(k, i);
	if (primary && k->promote)
		kernel_promote(k, inet);
	for (i = k->n; primary && !k->promote && i-- > 0;)
		if (is_secondary(&k->v[i]) && np_inet_same_subnet(&k->v[i].inet, inet))
			kernel_unlink(k, i);
	return 0;
}

FB_UNUSED static int kernel_run(struct kernel *k, const struct np_action *a)
{
	if (a->kind == NP_ACTION_ADDR_ADD)
		return kernel_add(k, &a->addr);
	assert_int_equal(a->kind, NP_ACTION_ADDR_DEL);
	return kernel_del(k, &a->addr.inet);
}

FB_UNUSED static bool kernel_has(const struct kernel *k, const struct np_inet *inet)
{
	for (size_t i = 0; i < k->n; i++)
		if (np_inet_equal(&k->v[i].inet, inet))
			return true;
	return false;
}

FB_UNUSED static bool kernel_has_any_length(const struct kernel *k, const struct np_inet *inet)
{
	for (size_t i = 0; i < k->n; i++)
		if (np_inet_same_addr(&k->v[i].inet, inet))
			return true;
	return false;
}

FB_UNUSED static bool kernel_is_primary(const struct kernel *k, const char *text)
{
	struct np_inet inet = fb_inet(text);

	for (size_t i = 0; i < k->n; i++)
		if (np_inet_equal(&k->v[i].inet, &inet))
			return !is_secondary(&k->v[i]);
	return false;
}

#endif
