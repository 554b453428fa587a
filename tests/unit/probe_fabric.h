/* SPDX-License-Identifier: MIT */
#ifndef NP_TEST_PROBE_FABRIC_H
#define NP_TEST_PROBE_FABRIC_H

/* ARP packets of IPoIB, and a TUN of link type 32 at whose other end a thread plays the
 * fabric. */
#include "test_netlink_help.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <poll.h>
#include <pthread.h>

/* flags, queue pair, subnet prefix, port GUID */
#define OWN   "\x80\x00\x00\x48\xfe\x80\0\0\0\0\0\0\x50\x6b\x4b\x03\x00\xf5\xce\x9c"
#define OTHER "\x80\x00\x01\x49\xfe\x80\0\0\0\0\0\0\x50\x6b\x4b\x03\x00\xf5\xce\x9d"
#define NO_HW "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define IP50  "\x0a\0\0\x32"
#define IP51  "\x0a\0\0\x33"
#define NO_IP "\0\0\0\0"
#define GROUP "\x00\xff\xff\xff\xff\x12\x40\x1b\x80\x01\0\0\0\0\0\0\xff\xff\xff\xff"

/* type 32, IPv4, 20 and 4 bytes */
#define HEAD	"\x00\x20\x08\x00\x14\x04"
#define REQUEST HEAD "\x00\x01"
#define REPLY	HEAD "\x00\x02"
#define LEN	56

#define OTHER_GUID 0x506b4b0300f5ce9d

/* What TUN puts before each packet. */
struct frame {
	struct tun_pi pi;
	char bytes[LEN];
};

struct fabric {
	int fd;
	struct np_netdev dev;
	const char *answer; /* sent after @after questions, NULL = silence */
	int after;
	int asked;	   /* probes seen */
	char last[2][LEN]; /* the newest of each address */
	bool stop;
	pthread_t thread;
};

static inline void see(struct fabric *f, const struct frame *frame)
{
	struct frame reply = { .pi.proto = htons(ETH_P_ARP) };

	if (frame->pi.proto != htons(ETH_P_ARP))
		return; /* IPv6 looks for routers by itself */
	__atomic_add_fetch(&f->asked, 1, __ATOMIC_SEQ_CST);
	memcpy(f->last[frame->bytes[LEN - 1] & 1], frame->bytes, LEN);
	if (!f->answer || f->asked < f->after)
		return;
	/* first what is not to be taken for an answer */
	memcpy(reply.bytes, REPLY OTHER IP51 OWN NO_IP, LEN);
	assert_int_equal(write(f->fd, &reply, sizeof(reply)), sizeof(reply));
	assert_int_equal(write(f->fd, &reply, sizeof(reply.pi) + 20), sizeof(reply.pi) + 20);
	memcpy(reply.bytes, f->answer, LEN);
	assert_int_equal(write(f->fd, &reply, sizeof(reply)), sizeof(reply));
}

static inline void *be_fabric(void *arg)
{
	struct fabric *f = arg;

	for (;;) {
		/* before poll: what was sent until then is still seen */
		bool stop = __atomic_load_n(&f->stop, __ATOMIC_SEQ_CST);
		struct pollfd pfd = { .fd = f->fd, .events = POLLIN };
		struct frame frame;

		if (poll(&pfd, 1, 20) == 1) {
			if (read(f->fd, &frame, sizeof(frame)) == sizeof(frame))
				see(f, &frame);
		} else if (stop) {
			break;
		}
	}
	return NULL;
}

static inline void begin_fabric(struct fabric *f)
{
	struct ifreq ifr = { .ifr_flags = IFF_TUN, .ifr_name = "ib0" };

	f->fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	assert_true(f->fd >= 0);
	assert_int_equal(ioctl(f->fd, TUNSETIFF, &ifr), 0);
	assert_int_equal(ioctl(f->fd, TUNSETLINK, 32), 0);
	f->dev = (struct np_netdev){ .ifindex = index_of("ib0"),
				     .name = "ib0",
				     .type = 32,
				     .flags = IFF_UP | IFF_RUNNING,
				     .hwaddr_len = 20,
				     .hwbroadcast_len = 20 };
	memcpy(f->dev.hwaddr, OWN, 20);
	memcpy(f->dev.hwbroadcast, GROUP, 20);
	assert_int_equal(np_netdev_set_up(nl, f->dev.ifindex, "ib0", true, &err), 0);
	assert_int_equal(pthread_create(&f->thread, NULL, be_fabric, f), 0);
}

static inline void end_fabric(struct fabric *f)
{
	__atomic_store_n(&f->stop, true, __ATOMIC_SEQ_CST);
	pthread_join(f->thread, NULL);
	close(f->fd);
}

#endif
