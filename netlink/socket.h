/* SPDX-License-Identifier: MIT */
#ifndef NP_NETLINK_SOCKET_H
#define NP_NETLINK_SOCKET_H

/* Private to netlink/: one request, its answer, and the kernel's reason. */

#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <stdint.h>

#include "netlink/netdev.h"

struct np_netlink {
	struct nl_sock *sk;
	int fd;	      /* @sk's */
	int protocol; /* NETLINK_* */
	int groups;   /* RTNLGRP_* subscribed to, 0 = none */
	bool strict;  /* the kernel checks and filters dump requests */
	char *buf;
	size_t buf_size;
	char reason[256]; /* extended ACK text of the last answer, "" = none */
};

/* Takes the messages of an answer one by one. */
struct np_nl_reader {
	/* 0 or a negative errno; after a failure the rest is read and dropped. */
	int (*each)(const struct nlmsghdr *nlh, void *arg);
	/* The answer starts again from its first message: forget what was taken. */
	void (*restart)(void *arg);
	void *arg;
};

/* Each sends @msg (not consumed) and returns 0 or a negative errno, the kernel's
 * own or -EAGAIN: the answer was interrupted too often. Set no message. */
int np_nl_get(struct np_netlink *nl, struct nl_msg *msg,
	      const struct np_nl_reader *reader) np_must_check;
int np_nl_dump(struct np_netlink *nl, struct nl_msg *msg,
	       const struct np_nl_reader *reader) np_must_check;
int np_nl_change(struct np_netlink *nl, struct nl_msg *msg) np_must_check;

/* A socket of another netlink family (NETLINK_RDMA). np_netlink_close ends it. Returns 0
 * or a negative errno, the kernel's own; sets no message. */
int np_nl_open_protocol(struct np_netlink **out, int protocol) np_must_check;

/* A second socket that hears @group (RTNLGRP_*), for waiting. */
int np_nl_subscribe(struct np_netlink **out, int group, struct np_err *err) np_must_check;

/* One datagram from the kernel into nl->buf. Returns its length or a negative
 * errno: -ENOBUFS messages were lost, -EMSGSIZE it did not fit (it is gone, the
 * buffer has grown). @flags: MSG_*. */
int np_nl_recv(struct np_netlink *nl, int flags) np_must_check;

/* Sets "WHAT: REASON (strerror)" with a hint for the common errors. Returns @num. */
int np_nl_fail(const struct np_netlink *nl, int num, struct np_err *err, const char *code,
	       const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* A message of @type whose header is @len bytes at @header. NULL = out of memory. */
struct nl_msg *np_nl_msg(int type, int flags, const void *header, size_t len);

/* Name of netdev @ifindex, "" when there is none. */
void np_nl_ifname(struct np_netlink *nl, int ifindex, char out[IFNAMSIZ]);

static inline void np_nl_msg_done(struct nl_msg **msg)
{
	if (*msg)
		nlmsg_free(*msg);
}

#define np_auto_nl_msg np_auto(np_nl_msg_done)

#endif
