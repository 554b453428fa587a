/* SPDX-License-Identifier: MIT */
#include "selftest/ranks_netdev.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <linux/if_packet.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/file.h"
#include "base/str.h"

#define CLASS "/sys/class/infiniband"

/* How much it is wanted; 0 = not at all. */
static int worth(const struct ifaddrs *entry, const struct np_strv *wanted)
{
	const struct sockaddr_ll *link = (const void *)entry->ifa_addr;

	if (!link || link->sll_family != AF_PACKET || (entry->ifa_flags & IFF_LOOPBACK))
		return 0;
	if (np_strv_has(wanted, entry->ifa_name))
		return 3;
	if (!(entry->ifa_flags & IFF_UP))
		return 0;
	return link->sll_hatype == ARPHRD_INFINIBAND ? 2 : 1;
}

static int mtu_of(const char *ifname)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request;

	memset(&request, 0, sizeof(request));
	np_strcpy(request.ifr_name, sizeof(request.ifr_name), ifname);
	return fd >= 0 && ioctl(fd, SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
}

/* Every interface has IPv6's link-local address: it says nothing. */
static bool has_address(const struct ifaddrs *list, const char *ifname, int family)
{
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		const struct sockaddr_in6 *in6 = (const void *)i->ifa_addr;

		if (!i->ifa_addr || i->ifa_addr->sa_family != family ||
		    !np_streq(i->ifa_name, ifname))
			continue;
		if (family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
			return true;
	}
	return false;
}

static void find_netdev(const struct np_strv *wanted, struct np_ranks_netdev *out)
{
	struct ifaddrs *list = NULL;
	bool four, six;
	int best = 0;

	if (getifaddrs(&list) < 0)
		return;
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		int now = worth(i, wanted);

		if (now > best) {
			best = now;
			np_strcpy(out->ifname, sizeof(out->ifname), i->ifa_name);
		}
	}
	four = best && has_address(list, out->ifname, AF_INET);
	six = best && has_address(list, out->ifname, AF_INET6);
	snprintf(out->family, sizeof(out->family), "%s%s%s", four ? "IPv4" : "",
		 four && six ? "+" : "", six ? "IPv6" : "");
	freeifaddrs(list);
	if (best)
		out->mtu = mtu_of(out->ifname);
}

static int add_name(const char *name, unsigned char type, void *arg)
{
	(void)type;
	return np_strv_add(arg, name);
}

/* The HCAs of the list ("mlx5_0:1"), or all. */
static void find_hcas(const struct np_strv *wanted, struct np_ranks_netdev *out)
{
	np_auto_strv struct np_strv all = { 0 }, seen = { 0 };
	bool chosen = false;

	if (np_dir_each(AT_FDCWD, CLASS, add_name, &all) < 0)
		return;
	np_strv_sort_natural(&all);
	for (int pass = 0; pass < 2 && !chosen; pass++) {
		for (size_t i = 0; i < all.n; i++) {
			char path[300], text[64], port[80] = "";
			size_t len = strlen(all.v[i]);

			for (size_t w = 0; w < wanted->n && pass == 0; w++)
				if (strncmp(wanted->v[w], all.v[i], len) == 0 &&
				    wanted->v[w][len] == ':' && !port[0])
					np_strcpy(port, sizeof(port), wanted->v[w]);
			if (pass == 1)
				snprintf(port, sizeof(port), "%.64s:1", all.v[i]);
			if (!port[0])
				continue;
			chosen = true;
			if (!out->port[0])
				np_strcpy(out->port, sizeof(out->port), port);
			snprintf(path, sizeof(path), CLASS "/%s/fw_ver", all.v[i]);
			if (np_file_read_line_at(AT_FDCWD, path, text, sizeof(text)) < 0 ||
			    np_strv_has(&seen, text) || np_strv_add(&seen, text) < 0)
				continue;
			len = strlen(out->firmware);
			snprintf(out->firmware + len, sizeof(out->firmware) - len, "%s%s",
				 len ? "," : "", text);
		}
	}
}

void np_ranks_netdev_find(const char *net_devices, struct np_ranks_netdev *out)
{
	np_auto_strv struct np_strv wanted = { 0 };

	memset(out, 0, sizeof(*out));
	if (net_devices && np_strv_split(&wanted, net_devices, ",") < 0)
		return;
	find_netdev(&wanted, out);
	/* where only netdevs are listed, UCX uses no HCA */
	if (!net_devices || np_streq(net_devices, "all") || strchr(net_devices, ':'))
		find_hcas(&wanted, out);
	if (!out->port[0])
		np_strcpy(out->port, sizeof(out->port), out->ifname);
}
