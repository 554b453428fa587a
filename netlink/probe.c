/* SPDX-License-Identifier: MIT */
#include "netlink/probe.h"

#include <errno.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/child.h"
#include "base/cleanup.h"

#define IB_HWADDR_LEN 20 /* INFINIBAND_ALEN, linux/if_infiniband.h */

/* RFC 826, with the lengths of RFC 4391 */
struct ib_arp {
	uint16_t hw_type_be, proto_be;
	uint8_t hw_len, proto_len;
	uint16_t op_be;
	uint8_t sender_hw[IB_HWADDR_LEN];
	uint8_t sender_ip[4];
	uint8_t target_hw[IB_HWADDR_LEN];
	uint8_t target_ip[4];
} __attribute__((packed));

/* sockaddr_ll has room for 8 bytes of hardware address; the kernel takes more. */
struct ib_sockaddr {
	struct sockaddr_ll ll;
	uint8_t more[IB_HWADDR_LEN - 8];
};

static bool can_probe(const struct np_probe *p)
{
	return p->inet.family == AF_INET && np_netdev_is_ipoib(p->dev) &&
	       p->dev->hwaddr_len == IB_HWADDR_LEN && (p->dev->flags & IFF_UP) &&
	       (p->dev->flags & IFF_RUNNING);
}

static int open_socket(const struct np_netdev *dev)
{
	struct sockaddr_ll local = { .sll_family = AF_PACKET,
				     .sll_protocol = htons(ETH_P_ARP),
				     .sll_ifindex = dev->ifindex };
	_cleanup_close_ int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&local, sizeof(local)) < 0)
		return -errno;
	return np_steal_fd(&fd);
}

/* The IPoIB broadcast group, RFC 4391 section 4, with the partition key of this
 * netdev's own address family as the kernel wrote it. */
static void broadcast_address(const struct np_netdev *dev, uint8_t out[IB_HWADDR_LEN])
{
	static const uint8_t group[IB_HWADDR_LEN] = { 0x00, 0xff, 0xff, 0xff, 0xff, 0x12, 0x40,
						      0x1b, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00,
						      0x00, 0x00, 0xff, 0xff, 0xff, 0xff };

	memcpy(out, group, IB_HWADDR_LEN);
	if (dev->has_pkey) {
		out[8] = (uint8_t)((dev->pkey | 0x8000) >> 8);
		out[9] = (uint8_t)dev->pkey;
	}
}

static int send_probe(int fd, const struct np_probe *p)
{
	struct ib_sockaddr to = { .ll = { .sll_family = AF_PACKET,
					  .sll_protocol = htons(ETH_P_ARP),
					  .sll_ifindex = p->dev->ifindex,
					  .sll_halen = IB_HWADDR_LEN } };
	struct ib_arp arp = { .hw_type_be = htons(ARPHRD_INFINIBAND),
			      .proto_be = htons(ETH_P_IP),
			      .hw_len = IB_HWADDR_LEN,
			      .proto_len = 4,
			      .op_be = htons(ARPOP_REQUEST) };
	uint8_t broadcast[IB_HWADDR_LEN];

	broadcast_address(p->dev, broadcast);
	memcpy((uint8_t *)&to + offsetof(struct sockaddr_ll, sll_addr), broadcast, IB_HWADDR_LEN);
	memcpy(arp.sender_hw, p->dev->hwaddr, IB_HWADDR_LEN);
	memcpy(arp.target_ip, p->inet.bytes, 4);
	return sendto(fd, &arp, sizeof(arp), 0, (struct sockaddr *)&to, sizeof(to)) < 0 ? -errno :
											  0;
}

/* Does @arp say that somebody else has, or is about to take, the address? */
static bool is_conflict(const struct np_probe *p, const struct ib_arp *arp)
{
	static const uint8_t none[4];
	bool owns = memcmp(arp->sender_ip, p->inet.bytes, 4) == 0;
	bool probes = arp->op_be == htons(ARPOP_REQUEST) && memcmp(arp->sender_ip, none, 4) == 0 &&
		      memcmp(arp->target_ip, p->inet.bytes, 4) == 0;

	/* bytes 4..19 are the GID; the first 4 hold the queue pair */
	return (owns || probes) && memcmp(arp->sender_hw + 4, p->dev->hwaddr + 4, 16) != 0;
}

static void take_packets(int fd, int ifindex, struct np_probe *probes, size_t n)
{
	struct ib_arp arp;
	ssize_t got;

	while ((got = recv(fd, &arp, sizeof(arp), MSG_TRUNC)) >= 0) {
		if (got < (ssize_t)sizeof(arp) || arp.hw_type_be != htons(ARPHRD_INFINIBAND) ||
		    arp.hw_len != IB_HWADDR_LEN || arp.proto_len != 4)
			continue;
		for (size_t i = 0; i < n; i++) {
			struct np_probe *p = &probes[i];

			if (p->outcome != NP_PROBE_FREE || p->dev->ifindex != ifindex ||
			    !is_conflict(p, &arp))
				continue;
			p->outcome = NP_PROBE_IN_USE;
			memcpy(p->owner_hwaddr, arp.sender_hw, IB_HWADDR_LEN);
			p->owner_guid = 0;
			for (int b = 12; b < IB_HWADDR_LEN; b++)
				p->owner_guid = p->owner_guid << 8 | arp.sender_hw[b];
		}
	}
}

static void send_all(const struct pollfd *fds, struct np_probe *probes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (probes[i].outcome == NP_PROBE_FREE && send_probe(fds[i].fd, &probes[i]) < 0)
			probes[i].outcome = NP_PROBE_NOT_POSSIBLE;
}

static bool any_open(const struct np_probe *probes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (probes[i].outcome == NP_PROBE_FREE)
			return true;
	return false;
}

int np_arp_probe(struct np_probe *probes, size_t n, int timeout_ms, struct np_err *err)
{
	struct pollfd *fds = calloc(n + 1, sizeof(*fds));
	int64_t start = np_now_ms(), left;
	bool again = true;

	if (!fds)
		return np_err_nomem(err);
	for (size_t i = 0; i < n; i++) {
		probes[i].outcome = NP_PROBE_NOT_POSSIBLE;
		fds[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
		if (!can_probe(&probes[i]))
			continue;
		fds[i].fd = open_socket(probes[i].dev);
		if (fds[i].fd >= 0)
			probes[i].outcome = NP_PROBE_FREE;
	}
	send_all(fds, probes, n);
	while (any_open(probes, n) && (left = start + timeout_ms - np_now_ms()) > 0 &&
	       !np_interrupted()) {
		/* a second probe half way, in case the first was lost */
		if (again && left <= timeout_ms / 2) {
			again = false;
			send_all(fds, probes, n);
		}
		if (again)
			left -= timeout_ms / 2;
		if (poll(fds, n, left > 0 ? (int)left : 1) <= 0)
			continue;
		for (size_t i = 0; i < n; i++)
			if (fds[i].fd >= 0 && fds[i].revents)
				take_packets(fds[i].fd, probes[i].dev->ifindex, probes, n);
	}
	for (size_t i = 0; i < n; i++)
		if (fds[i].fd >= 0)
			close(fds[i].fd);
	free(fds);
	return 0;
}
