/* SPDX-License-Identifier: MIT */
#include "base/inet.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static int family_bytes(int family)
{
	return family == AF_INET6 ? 16 : 4;
}

/* Every host bit is @bit. */
static bool host_part_is(const struct np_inet *a, int bit)
{
	for (int i = a->prefix_len; i < 8 * family_bytes(a->family); i++)
		if (((a->bytes[i / 8] >> (7 - i % 8)) & 1) != bit)
			return false;
	return true;
}

static const char *refuse_ipv4(const struct np_inet *a)
{
	const uint8_t *b = a->bytes;

	if (b[0] == 0)
		return "is in 0.0.0.0/8, which names no host";
	if (b[0] == 127)
		return "is a loopback address";
	if (b[0] >= 224 && b[0] < 240)
		return "is a multicast address";
	if (b[0] >= 240)
		return "is in the reserved range 240.0.0.0/4";
	if (a->prefix_len == 0)
		return "has prefix length 0, which would be the whole Internet";
	if (a->prefix_len < 31 && host_part_is(a, 0))
		return "is the network address of its prefix, not a host";
	if (a->prefix_len < 31 && host_part_is(a, 1))
		return "is the broadcast address of its prefix, not a host";
	return NULL;
}

static const char *refuse_ipv6(const struct np_inet *a)
{
	static const uint8_t zero[16], mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (memcmp(a->bytes, zero, 16) == 0)
		return "is the unspecified address";
	if (memcmp(a->bytes, zero, 15) == 0 && a->bytes[15] == 1)
		return "is the loopback address";
	if (a->bytes[0] == 0xff)
		return "is a multicast address";
	if (memcmp(a->bytes, mapped, 12) == 0)
		return "is an IPv4-mapped address; write the IPv4 address itself";
	if (a->prefix_len == 0)
		return "has prefix length 0, which would be the whole Internet";
	if (a->prefix_len < 127 && host_part_is(a, 0))
		return "is the subnet-router anycast address of its prefix, not a host";
	return NULL;
}

int np_inet_parse(const char *s, struct np_inet *out, struct np_err *err)
{
	char shown[80], addr[INET6_ADDRSTRLEN];
	struct np_inet a = { 0 };
	const char *slash, *why;
	uint64_t len;
	size_t addr_len;

	np_printable(s, shown, sizeof(shown));
	if (!*s)
		goto usage;
	slash = strchr(s, '/');
	addr_len = slash ? (size_t)(slash - s) : strlen(s);
	if (addr_len >= sizeof(addr))
		goto usage;
	memcpy(addr, s, addr_len);
	addr[addr_len] = '\0';
	a.family = strchr(addr, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(a.family, addr, a.bytes) != 1)
		goto usage;
	if (!slash) {
		np_err_set(err, -EINVAL, "usage.address", "address \"%s\" has no prefix length",
			   shown);
		np_err_hint(err, "write ADDR/LEN, for example %s/%d", addr,
			    a.family == AF_INET6 ? 64 : 24);
		return -EINVAL;
	}
	if (np_parse_u64(slash + 1, 10, a.family == AF_INET6 ? 128 : 32, &len) < 0) {
		np_err_set(err, -EINVAL, "usage.address",
			   "address \"%s\": the prefix length must be a number from 1 to %d", shown,
			   a.family == AF_INET6 ? 128 : 32);
		np_err_hint(err, "write ADDR/LEN, for example 10.0.0.50/24");
		return -EINVAL;
	}
	a.prefix_len = (uint8_t)len;
	why = a.family == AF_INET6 ? refuse_ipv6(&a) : refuse_ipv4(&a);
	if (why) {
		np_err_set(err, -EINVAL, "usage.address", "address \"%s\" %s", shown, why);
		np_err_hint(err, "give an address that this node alone can own");
		return -EINVAL;
	}
	*out = a;
	return 0;
usage:
	np_err_set(err, -EINVAL, "usage.address", "\"%s%s\" is not an IPv4 or IPv6 address", shown,
		   strlen(s) >= sizeof(shown) ? "..." : "");
	np_err_hint(err, "write ADDR/LEN, for example 10.0.0.50/24");
	return -EINVAL;
}

int np_inet_parse_any(const char *s, struct np_inet *out)
{
	const char *slash = strchr(s, '/');
	char addr[INET6_ADDRSTRLEN];
	struct np_inet a = { 0 };
	uint64_t len;

	if (!slash || (size_t)(slash - s) >= sizeof(addr))
		return -EINVAL;
	memcpy(addr, s, (size_t)(slash - s));
	addr[slash - s] = '\0';
	a.family = strchr(addr, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(a.family, addr, a.bytes) != 1 ||
	    np_parse_u64(slash + 1, 10, a.family == AF_INET6 ? 128 : 32, &len) < 0)
		return -EINVAL;
	a.prefix_len = (uint8_t)len;
	*out = a;
	return 0;
}

const char *np_inet_addr_str(const struct np_inet *a, char out[NP_INET_STRLEN])
{
	if (!inet_ntop(a->family, a->bytes, out, NP_INET_STRLEN))
		out[0] = '\0';
	return out;
}

int np_inet_parse_host(const char *s, struct np_inet *out)
{
	struct np_inet a = { .family = strchr(s, ':') ? AF_INET6 : AF_INET };

	if (inet_pton(a.family, s, a.bytes) != 1)
		return -EINVAL;
	a.prefix_len = a.family == AF_INET6 ? 128 : 32;
	*out = a;
	return 0;
}

const char *np_inet_str(const struct np_inet *a, char out[NP_INET_STRLEN])
{
	size_t len;

	np_inet_addr_str(a, out);
	len = strlen(out);
	snprintf(out + len, NP_INET_STRLEN - len, "/%u", a->prefix_len);
	return out;
}

bool np_inet_same_addr(const struct np_inet *a, const struct np_inet *b)
{
	return a->family == b->family &&
	       memcmp(a->bytes, b->bytes, (size_t)family_bytes(a->family)) == 0;
}

bool np_inet_equal(const struct np_inet *a, const struct np_inet *b)
{
	return np_inet_same_addr(a, b) && a->prefix_len == b->prefix_len;
}

static bool same_network(const struct np_inet *a, const struct np_inet *b, uint8_t len)
{
	size_t whole = len / 8;

	if (a->family != b->family || memcmp(a->bytes, b->bytes, whole) != 0)
		return false;
	return len % 8 == 0 || (a->bytes[whole] ^ b->bytes[whole]) >> (8 - len % 8) == 0;
}

bool np_inet_same_subnet(const struct np_inet *a, const struct np_inet *b)
{
	return a->prefix_len == b->prefix_len && same_network(a, b, a->prefix_len);
}

bool np_inet_overlap(const struct np_inet *a, const struct np_inet *b)
{
	return same_network(a, b, a->prefix_len < b->prefix_len ? a->prefix_len : b->prefix_len);
}

bool np_inet_contains(const struct np_inet *net, const struct np_inet *addr)
{
	return same_network(net, addr, net->prefix_len);
}

bool np_inet_broadcast(const struct np_inet *a, uint8_t out[4])
{
	if (a->family != AF_INET || a->prefix_len >= 31)
		return false;
	for (int i = 0; i < 4; i++) {
		int bits = a->prefix_len - 8 * i;
		uint8_t host = bits >= 8 ? 0 : bits <= 0 ? 0xff : (uint8_t)(0xff >> bits);

		out[i] = a->bytes[i] | host;
	}
	return true;
}
