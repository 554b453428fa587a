/* SPDX-License-Identifier: MIT */
#include "netlink/probe.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/child.h"
#include "base/cleanup.h"
#include "netlink/probe_arp.h"

/* One look at a socket takes no more, lest a storm of ARP outlasts the deadline. */
#define MAX_PACKETS 256

/* sockaddr_ll has room for 8 bytes of hardware address; the kernel takes more
 * (packet_snd: as many as sll_halen says, within msg_namelen). */
struct ib_sockaddr {
	struct sockaddr_ll ll;
	uint8_t more[NP_IB_HWADDR_LEN - 8];
};

bool np_probe_has_hwaddr(const struct np_netdev *dev)
{
	return np_netdev_is_ipoib(dev) && dev->hwaddr_len == NP_IB_HWADDR_LEN &&
	       dev->hwbroadcast_len == NP_IB_HWADDR_LEN;
}

static void not_possible(struct np_probe *p, const char *what, int num)
{
	p->outcome = NP_PROBE_NOT_POSSIBLE;
	snprintf(p->why, sizeof(p->why), "%s%s%s", what, num ? ": " : "",
		 num ? strerror(-num) : "");
}

static bool can_probe(struct np_probe *p)
{
	if (p->inet.family != AF_INET)
		not_possible(p, "it is not an IPv4 address", 0);
	else if (!np_probe_has_hwaddr(p->dev))
		not_possible(p, "it has no hardware address", 0);
	else if (!(p->dev->flags & IFF_UP))
		not_possible(p, "it is down", 0);
	else if (!(p->dev->flags & IFF_RUNNING))
		not_possible(p, "it has no carrier", 0);
	else
		return true;
	return false;
}

/* Hears ARP of that netdev alone: before bind a socket of protocol 0 hears nothing. */
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

static int send_probe(int fd, const struct np_probe *p)
{
	struct ib_sockaddr to = { .ll = { .sll_family = AF_PACKET,
					  .sll_protocol = htons(ETH_P_ARP),
					  .sll_ifindex = p->dev->ifindex,
					  .sll_halen = NP_IB_HWADDR_LEN } };
	struct np_ib_arp arp;

	memcpy((uint8_t *)&to + offsetof(struct sockaddr_ll, sll_addr), p->dev->hwbroadcast,
	       NP_IB_HWADDR_LEN);
	np_ib_arp_build(p->dev->hwaddr, p->inet.bytes, &arp);
	if (sendto(fd, &arp, sizeof(arp), 0, (struct sockaddr *)&to, sizeof(to)) < 0)
		return -errno;
	return 0;
}

static void start(struct np_probe *p, int *fd)
{
	int r;

	p->owner_guid = 0;
	p->why[0] = '\0';
	if (!can_probe(p))
		return;
	r = *fd = open_socket(p->dev);
	if (r >= 0)
		r = send_probe(*fd, p);
	if (r < 0)
		not_possible(p, "it cannot send", r);
	else
		p->outcome = NP_PROBE_FREE;
}

static void take_packets(int fd, struct np_probe *p)
{
	struct np_ib_arp arp;

	for (int i = 0; i < MAX_PACKETS && p->outcome == NP_PROBE_FREE; i++) {
		ssize_t len = recv(fd, &arp, sizeof(arp), 0);

		if (len < 0) {
			/* such as ENETDOWN: whatever is sent now, nobody hears it */
			if (errno != EAGAIN && errno != EINTR)
				not_possible(p, "it cannot receive", -errno);
			return;
		}
		if (!np_ib_arp_conflicts(&arp, (size_t)len, p->dev->hwaddr, p->inet.bytes))
			continue;
		p->outcome = NP_PROBE_IN_USE;
		p->owner_guid = np_ib_hwaddr_guid(arp.sender_hw);
	}
}

/* Those still open, and their sockets for poll. */
static bool any_open(const struct np_probe *probes, struct pollfd *fds, size_t n)
{
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		/* poll leaves out what is negative */
		if (probes[i].outcome != NP_PROBE_FREE && fds[i].fd >= 0) {
			close(fds[i].fd);
			fds[i].fd = -1;
		}
		any |= fds[i].fd >= 0;
	}
	return any;
}

static int listen_until(struct np_probe *probes, struct pollfd *fds, size_t n, int64_t until,
			struct np_err *err)
{
	while (any_open(probes, fds, n)) {
		int64_t left = until - np_now_ms();

		if (np_interrupted()) {
			np_err_set(err, -EINTR, "internal.interrupted",
				   "interrupted while asking whether an address is free");
			np_err_hint(err, "run it again; what was done has been undone");
			return -EINTR;
		}
		if (left <= 0)
			return 0;
		if (poll(fds, n, (int)left) <= 0)
			continue;
		for (size_t i = 0; i < n; i++)
			if (fds[i].fd >= 0 && fds[i].revents)
				take_packets(fds[i].fd, &probes[i]);
	}
	return 0;
}

int np_arp_probe(struct np_probe *probes, size_t n, int timeout_ms, struct np_err *err)
{
	struct pollfd *fds = calloc(n + 1, sizeof(*fds));
	int64_t begin = np_now_ms();
	int r;

	if (!fds)
		return np_err_nomem(err);
	for (size_t i = 0; i < n; i++) {
		fds[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
		start(&probes[i], &fds[i].fd);
	}
	r = listen_until(probes, fds, n, begin + timeout_ms / 2, err);
	/* a second probe, in case the first was lost; one that went out is enough */
	for (size_t i = 0; i < n && r == 0; i++)
		if (fds[i].fd >= 0)
			(void)send_probe(fds[i].fd, &probes[i]);
	if (r == 0)
		r = listen_until(probes, fds, n, begin + timeout_ms, err);
	for (size_t i = 0; i < n; i++)
		if (fds[i].fd >= 0)
			close(fds[i].fd);
	free(fds);
	return r;
}
