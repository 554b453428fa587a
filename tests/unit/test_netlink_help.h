/* SPDX-License-Identifier: MIT */
#ifndef NP_TEST_NETLINK_HELP_H
#define NP_TEST_NETLINK_HELP_H

/* A fresh network namespace for each test, and netdevs in it. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cmocka.h>

#include "netlink/netdev.h"

#include <linux/if.h>
#include <linux/if_tun.h>

#define TEST_SKIPPED 77

static inline int put_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)strlen(text) ? 0 : -1;
}

/* Private user (unless root), mount and network namespaces for the whole program;
 * ends it loudly where that cannot be had. */
static inline void need_namespaces(const char *program)
{
	char map[64];
	unsigned int uid = geteuid(), gid = getegid();
	int flags = CLONE_NEWNS | CLONE_NEWNET | (uid ? CLONE_NEWUSER : 0);

	if (unshare(flags) < 0) {
		fprintf(stderr, "SKIP %s: no network namespace to be had here: %s\n", program,
			strerror(errno));
		exit(TEST_SKIPPED);
	}
	if (uid) {
		put_file("/proc/self/setgroups", "deny");
		snprintf(map, sizeof(map), "0 %u 1", uid);
		put_file("/proc/self/uid_map", map);
		snprintf(map, sizeof(map), "0 %u 1", gid);
		put_file("/proc/self/gid_map", map);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("sysfs", "/sys", "sysfs", 0, NULL) < 0) {
		fprintf(stderr, "SKIP %s: /sys of a network namespace cannot be mounted: %s\n",
			program, strerror(errno));
		exit(TEST_SKIPPED);
	}
}

static inline int run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static inline int run(const char *fmt, ...)
{
	char command[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	return system(command);
}

static struct np_netlink *nl;
static struct np_err err;

/* cmocka set-up: an empty network namespace with its own /sys, and @nl in it. */
static inline int fresh_net(void **state)
{
	(void)state;
	if (unshare(CLONE_NEWNET) < 0 || umount2("/sys", MNT_DETACH) < 0 ||
	    mount("sysfs", "/sys", "sysfs", 0, NULL) < 0)
		return -1;
	np_err_clear(&err);
	return np_netlink_open(&nl, &err);
}

static inline int close_net(void **state)
{
	(void)state;
	np_netlink_close(&nl);
	return 0;
}

/* A TAP of link type 32, as near as a bare kernel comes to IPoIB; gone with its fd. */
static inline int make_ib(const char *name)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	assert_int_equal(ioctl(fd, TUNSETIFF, &ifr), 0);
	assert_int_equal(ioctl(fd, TUNSETLINK, 32), 0);
	return fd;
}

static inline void set_carrier(int fd, int on)
{
	assert_int_equal(ioctl(fd, TUNSETCARRIER, &on), 0);
}

static inline int index_of(const char *name)
{
	unsigned int ifindex = if_nametoindex(name);

	assert_true(ifindex > 0);
	return (int)ifindex;
}

/* The netdev of that name alone, by np_netdevs_observe_named; caller frees. */
static inline struct np_netdevs observe(const char *name, unsigned int detail)
{
	np_auto_strv struct np_strv names = { 0 };
	struct np_netdevs list = { 0 };

	assert_int_equal(np_strv_add(&names, name), 0);
	assert_int_equal(np_netdevs_observe_named(nl, &names, detail, &list, &err), 0);
	return list;
}

static inline struct np_netdev_addr address(const char *text)
{
	struct np_netdev_addr addr = { 0 };

	assert_int_equal(np_inet_parse(text, &addr.inet, &err), 0);
	addr.has_broadcast = np_inet_broadcast(&addr.inet, addr.broadcast);
	return addr;
}

static inline int add(const char *ifname, const char *text)
{
	struct np_netdev_addr addr = address(text);

	return np_addr_add(nl, index_of(ifname), ifname, &addr, &err);
}

/* "10.0.0.50/24 10.0.0.51/24 " of @dev in kernel order, IPv6 link-local left out. */
static inline const char *addr_list(const struct np_netdev *dev, char *out, size_t size)
{
	size_t n = 0;

	out[0] = '\0';
	for (size_t i = 0; i < dev->n_addrs && n < size; i++) {
		char text[NP_INET_STRLEN];

		if (dev->addrs[i].inet.family == AF_INET6 && dev->addrs[i].inet.bytes[0] == 0xfe)
			continue;
		n += (size_t)snprintf(out + n, size - n, "%s ",
				      np_inet_str(&dev->addrs[i].inet, text));
	}
	return out;
}

#define np_auto_netdevs np_auto(np_netdevs_done)

#endif
