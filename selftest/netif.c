/* SPDX-License-Identifier: MIT */
#include "selftest/netif.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static int add_address(struct np_netif *out, const struct sockaddr *address, int family)
{
	char text[INET6_ADDRSTRLEN];
	const void *bytes;

	if (!address || address->sa_family != family)
		return 0;
	if (family == AF_INET) {
		bytes = &((const struct sockaddr_in *)(const void *)address)->sin_addr;
	} else {
		const struct in6_addr *in6 =
			&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;

		if (IN6_IS_ADDR_LINKLOCAL(in6))
			return 0;
		bytes = in6;
	}
	if (!inet_ntop(family, bytes, text, sizeof(text)))
		return 0;
	return np_strv_add(&out->addresses, text);
}

int np_netif_observe(const char *name, struct np_netif *out, struct np_err *err)
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct np_netif seen = { 0 };
	struct ifaddrs *list = NULL;
	int ret = 0;

	if (getifaddrs(&list) < 0) {
		ret = -errno;
		np_err_set(err, ret, "internal.netdevs", "cannot list the netdevs: %s",
			   strerror(-ret));
		return ret;
	}
	for (size_t f = 0; f < NP_ARRAY_SIZE(families); f++) {
		for (const struct ifaddrs *ifa = list; ifa && ret == 0; ifa = ifa->ifa_next) {
			if (!np_streq(ifa->ifa_name, name))
				continue;
			seen.exists = true;
			seen.up = ifa->ifa_flags & IFF_UP;
			seen.running = ifa->ifa_flags & IFF_RUNNING;
			ret = add_address(&seen, ifa->ifa_addr, families[f]);
		}
	}
	freeifaddrs(list);
	if (ret < 0) {
		np_netif_done(&seen);
		return np_err_nomem(err);
	}
	*out = seen;
	return 0;
}

void np_netif_done(struct np_netif *netif)
{
	if (!netif)
		return;
	np_strv_done(&netif->addresses);
	memset(netif, 0, sizeof(*netif));
}

int np_netif_address(const char *text, char out[64], struct np_err *err)
{
	unsigned char bytes[sizeof(struct in6_addr)];
	char host[64];
	char *slash;
	int family;

	if (np_strcpy(host, sizeof(host), text)) {
		slash = strchr(host, '/');
		if (slash)
			*slash = '\0';
		family = strchr(host, ':') ? AF_INET6 : AF_INET;
		if (inet_pton(family, host, bytes) == 1 && inet_ntop(family, bytes, out, 64))
			return 0;
	}
	return np_err_set(err, -EINVAL, "usage.address", "\"%.64s\" is no IPv4 or IPv6 address",
			  text);
}
