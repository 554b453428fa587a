/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/child.h"
#include "netlink/observe.h"

/* A signal between the look at its flag and poll is seen after this. */
#define SLICE_MS 200

/* 1 running, 0 not, negative errno. */
static int ask(struct np_netlink *nl, int ifindex, struct np_err *err)
{
	np_auto(np_netdev_done) struct np_netdev dev = { 0 };
	int rc = np_link_get(nl, ifindex, 0, NULL, &dev);

	if (rc < 0)
		return np_nl_fail(nl, rc, err, "netlink.query", "cannot read netdev number %d",
				  ifindex);
	return !!(dev.flags & IFF_RUNNING);
}

/* What one datagram of events says of @ifindex, last word first: 1 running, 0
 * not (or nothing), -ENODEV gone. */
static int read_events(struct np_netlink *events, int len, int ifindex)
{
	struct nlmsghdr *nlh = (struct nlmsghdr *)events->buf;
	int state = 0;

	for (; nlmsg_ok(nlh, len); nlh = nlmsg_next(nlh, &len)) {
		struct ifinfomsg info;

		if (nlh->nlmsg_len < NLMSG_LENGTH(sizeof(info)))
			continue;
		memcpy(&info, nlmsg_data(nlh), sizeof(info));
		/* A bridge speaks of its ports in messages of its own family. */
		if (info.ifi_family != AF_UNSPEC || info.ifi_index != ifindex)
			continue;
		if (nlh->nlmsg_type == RTM_DELLINK)
			return -ENODEV;
		if (nlh->nlmsg_type == RTM_NEWLINK)
			state = !!(info.ifi_flags & IFF_RUNNING);
	}
	return state;
}

/* Takes all that waits on @events. */
static int drain(struct np_netlink *nl, struct np_netlink *events, int ifindex, struct np_err *err)
{
	int state = 0;

	for (;;) {
		int rc = np_nl_recv(events, MSG_DONTWAIT);

		if (rc == -EAGAIN)
			return state;
		if (rc == -ENOBUFS || rc == -EMSGSIZE) {
			/* Events were lost: ask. */
			state = ask(nl, ifindex, err);
			if (state < 0)
				return state;
			continue;
		}
		if (rc >= 0)
			rc = state = read_events(events, rc, ifindex);
		if (rc < 0)
			return np_nl_fail(NULL, rc, err, "netlink.query",
					  "cannot wait for netdev number %d", ifindex);
	}
}

static int wait_events(struct np_netlink *nl, struct np_netlink *events, int ifindex,
		       int64_t deadline, struct np_err *err)
{
	struct pollfd pfd = { .fd = events->fd, .events = POLLIN };

	for (;;) {
		int64_t left = deadline - np_now_ms();
		int rc;

		if (left <= 0 || np_interrupted())
			return 0;
		rc = poll(&pfd, 1, left < SLICE_MS ? (int)left : SLICE_MS);
		if (rc < 0 && errno != EINTR)
			return np_err_set(err, -errno, "netlink.query",
					  "cannot wait for events: %s", strerror(errno));
		if (rc <= 0)
			continue;
		rc = drain(nl, events, ifindex, err);
		if (rc != 0)
			return rc;
	}
}

int np_netdev_wait_running(struct np_netlink *nl, int ifindex, int timeout_ms, struct np_err *err)
{
	np_auto_netlink struct np_netlink *events = NULL;
	int64_t deadline = np_now_ms() + timeout_ms;
	int rc = ask(nl, ifindex, err);

	if (rc != 0 || timeout_ms <= 0)
		return rc;
	rc = np_nl_subscribe(&events, RTNLGRP_LINK, err);
	if (rc < 0)
		return rc;
	/* It may have come up before we heard events. */
	rc = ask(nl, ifindex, err);
	if (rc != 0)
		return rc;
	return wait_events(nl, events, ifindex, deadline, err);
}
