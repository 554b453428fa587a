/* SPDX-License-Identifier: MIT */
#include "netlink/socket.h"

#include <errno.h>
#include <linux/netlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/child.h"
#include "base/log.h"
#include "netlink/attr.h"

#define RECV_SIZE      ((size_t)64 * 1024) /* a dump's datagrams are at most 32 KiB */
#define RECV_SIZE_MAX  (4 * 1024 * 1024)
#define RECV_TIMEOUT_S 30 /* the kernel answers before send returns; never hang */
#define TRIES	       10

enum kind { GET, DUMP, CHANGE };

/* Inside this file, beside 0 and negative errnos. */
enum again { AGAIN = 1, AGAIN_ON_NEW_SOCKET };

static int set_option(int fd, int option)
{
	int on = 1;

	return setsockopt(fd, SOL_NETLINK, option, &on, sizeof(on)) < 0 ? -errno : 0;
}

static int connect_socket(struct np_netlink *nl)
{
	const struct timeval timeout = { .tv_sec = RECV_TIMEOUT_S };
	int rc;

	errno = 0;
	rc = nl_connect(nl->sk, nl->protocol);
	if (rc < 0)
		return errno ? -errno : -EIO;
	nl->fd = nl_socket_get_fd(nl->sk);
	/* Both are younger than the kernels we may meet; all works without them. */
	(void)set_option(nl->fd, NETLINK_EXT_ACK);
	nl->strict = set_option(nl->fd, NETLINK_GET_STRICT_CHK) == 0;
	if (setsockopt(nl->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0)
		return -errno;
	if (nl->groups && nl_socket_add_membership(nl->sk, nl->groups) < 0)
		return errno ? -errno : -EIO;
	return 0;
}

static int open_socket(struct np_netlink **out, int protocol, int groups)
{
	np_auto_netlink struct np_netlink *nl = calloc(1, sizeof(*nl));
	int rc;

	if (!nl)
		return -ENOMEM;
	nl->fd = -1;
	nl->protocol = protocol;
	nl->groups = groups;
	nl->buf_size = RECV_SIZE;
	nl->buf = malloc(nl->buf_size);
	nl->sk = nl_socket_alloc();
	if (!nl->buf || !nl->sk)
		return -ENOMEM;
	nl_socket_disable_auto_ack(nl->sk);
	rc = connect_socket(nl);
	if (rc == 0)
		*out = np_steal_pointer(&nl);
	return rc;
}

static int open_route(struct np_netlink **out, int groups, struct np_err *err)
{
	int rc = open_socket(out, NETLINK_ROUTE, groups);

	if (rc == -ENOMEM)
		return np_err_nomem(err);
	return rc < 0 ?
		       np_nl_fail(NULL, rc, err, "netlink.open", "cannot open a rtnetlink socket") :
		       0;
}

int np_netlink_open(struct np_netlink **out, struct np_err *err)
{
	return open_route(out, 0, err);
}

int np_nl_open_protocol(struct np_netlink **out, int protocol)
{
	return open_socket(out, protocol, 0);
}

int np_nl_subscribe(struct np_netlink **out, int group, struct np_err *err)
{
	return open_route(out, group, err);
}

void np_netlink_close(struct np_netlink **nl)
{
	if (!nl || !*nl)
		return;
	nl_socket_free((*nl)->sk); /* closes it; takes NULL */
	free((*nl)->buf);
	free(*nl);
	*nl = NULL;
}

int np_nl_recv(struct np_netlink *nl, int flags)
{
	struct sockaddr_nl from = { 0 };
	struct iovec iov = { .iov_base = nl->buf, .iov_len = nl->buf_size };
	struct msghdr mh = {
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1
	};
	ssize_t len;

	do {
		iov.iov_len = nl->buf_size;
		mh.msg_namelen = sizeof(from);
		len = recvmsg(nl->fd, &mh, flags | MSG_TRUNC);
		/* Port 0 is the kernel: a privileged process could send here too. */
	} while ((len < 0 && errno == EINTR) || (len >= 0 && from.nl_pid != 0));
	if (len < 0)
		return errno == EAGAIN && !(flags & MSG_DONTWAIT) ? -ETIMEDOUT : -errno;
	if ((size_t)len > nl->buf_size) {
		char *bigger = len <= RECV_SIZE_MAX ? realloc(nl->buf, (size_t)len) : NULL;

		if (!bigger)
			return -ENOMEM;
		nl->buf = bigger;
		nl->buf_size = (size_t)len;
		return -EMSGSIZE;
	}
	return (int)len;
}

/* The text among the extended ACK's attributes, which follow @head bytes of payload. */
static void take_reason(struct np_netlink *nl, const struct nlmsghdr *nlh, size_t head)
{
	struct nlattr *text;

	head = NLMSG_ALIGN(head);
	if (!(nlh->nlmsg_flags & NLM_F_ACK_TLVS) || nlh->nlmsg_len < NLMSG_HDRLEN + head)
		return;
	text = nla_find((struct nlattr *)((char *)nlmsg_data(nlh) + head),
			(int)(nlh->nlmsg_len - NLMSG_HDRLEN - head), NLMSGERR_ATTR_MSG);
	if (text) {
		size_t len = strnlen(nla_data(text), (size_t)nla_len(text));

		snprintf(nl->reason, sizeof(nl->reason), "%.*s", (int)len, (char *)nla_data(text));
	}
}

/* NLMSG_ERROR (0 = acknowledged) or NLMSG_DONE: the number and the reason. */
static int take_verdict(struct np_netlink *nl, const struct nlmsghdr *nlh)
{
	size_t payload = nlh->nlmsg_len - NLMSG_HDRLEN;
	size_t head = sizeof(int);
	int num = 0;

	if (nlh->nlmsg_type == NLMSG_ERROR) {
		const struct nlmsgerr *e = nlmsg_data(nlh);

		if (payload < sizeof(*e))
			return -EBADMSG;
		num = e->error;
		head = sizeof(*e);
		/* An uncapped error carries the whole request, header included. */
		if (!(nlh->nlmsg_flags & NLM_F_CAPPED) && e->msg.nlmsg_len > NLMSG_HDRLEN)
			head += e->msg.nlmsg_len - NLMSG_HDRLEN;
	} else if (payload >= sizeof(num)) {
		memcpy(&num, nlmsg_data(nlh), sizeof(num));
	}
	take_reason(nl, nlh, head);
	if (num == 0 && nl->reason[0])
		np_debug("rtnetlink: %s", nl->reason);
	return num <= 0 ? num : -EBADMSG;
}

struct answer {
	uint32_t seq, port;
	enum kind kind;
	const struct np_nl_reader *reader;
	bool interrupted;
	bool ended;
	int rc;
};

/* One datagram's messages. */
static void take_messages(struct np_netlink *nl, int len, struct answer *a)
{
	struct nlmsghdr *nlh = (struct nlmsghdr *)nl->buf;

	for (; nlmsg_ok(nlh, len) && !a->ended; nlh = nlmsg_next(nlh, &len)) {
		if (nlh->nlmsg_seq != a->seq || nlh->nlmsg_pid != a->port)
			continue; /* left over from a request that was given up */
		if (nlh->nlmsg_flags & NLM_F_DUMP_INTR)
			a->interrupted = true;
		if (nlh->nlmsg_type == NLMSG_ERROR || nlh->nlmsg_type == NLMSG_DONE) {
			int verdict = take_verdict(nl, nlh);

			a->rc = a->rc < 0 ? a->rc : verdict;
			a->ended = true;
		} else if (nlh->nlmsg_type >= NLMSG_MIN_TYPE && a->reader) {
			/* After a failure a dump is still read to its end: the
			 * kernel runs one a socket. */
			if (a->rc == 0)
				a->rc = a->reader->each(nlh, a->reader->arg);
			a->ended = a->kind == GET;
		}
	}
}

static int transact_once(struct np_netlink *nl, struct nl_msg *msg, struct answer *a)
{
	struct nlmsghdr *nlh = nlmsg_hdr(msg);

	nl->reason[0] = '\0';
	nlh->nlmsg_seq = NL_AUTO_SEQ;
	nlh->nlmsg_pid = NL_AUTO_PORT;
	errno = 0;
	if (nl_send_auto(nl->sk, msg) < 0)
		return errno ? -errno : -EIO;
	a->seq = nlh->nlmsg_seq;
	a->port = nlh->nlmsg_pid;
	a->interrupted = a->ended = false;
	a->rc = 0;
	while (!a->ended) {
		int len = np_nl_recv(nl, 0);

		if (len == -ENOBUFS || len == -EMSGSIZE)
			return a->kind == CHANGE ? len : AGAIN_ON_NEW_SOCKET;
		if (len < 0)
			return len;
		take_messages(nl, len, a);
	}
	return a->interrupted ? AGAIN : a->rc;
}

static int transact(struct np_netlink *nl, struct nl_msg *msg, struct answer *a)
{
	for (int try = 0; try < TRIES; try++) {
		int rc = transact_once(nl, msg, a);

		if (rc <= 0)
			return rc;
		np_debug("rtnetlink: answer interrupted, asking again");
		if (a->reader && a->reader->restart)
			a->reader->restart(a->reader->arg);
		if (rc == AGAIN_ON_NEW_SOCKET) {
			nl_close(nl->sk);
			rc = connect_socket(nl);
			if (rc < 0)
				return rc;
		}
		np_sleep_ms(1 << (try < 5 ? try : 5));
	}
	snprintf(nl->reason, sizeof(nl->reason), "interrupted %d times by other changes", TRIES);
	return -EAGAIN;
}

int np_nl_get(struct np_netlink *nl, struct nl_msg *msg, const struct np_nl_reader *reader)
{
	struct answer a = { .kind = GET, .reader = reader };

	return transact(nl, msg, &a);
}

int np_nl_dump(struct np_netlink *nl, struct nl_msg *msg, const struct np_nl_reader *reader)
{
	struct answer a = { .kind = DUMP, .reader = reader };

	nlmsg_hdr(msg)->nlmsg_flags |= NLM_F_DUMP;
	return transact(nl, msg, &a);
}

int np_nl_change(struct np_netlink *nl, struct nl_msg *msg)
{
	struct answer a = { .kind = CHANGE };

	nlmsg_hdr(msg)->nlmsg_flags |= NLM_F_ACK;
	return transact(nl, msg, &a);
}

static const char *hint_for(int num)
{
	switch (-num) {
	case EPERM:
	case EACCES:
		return "run as root, or with CAP_NET_ADMIN in the network namespace of the interface";
	case ENODEV:
		return "check with `ip link` that the interface is still there";
	case EAGAIN:
		return "run again when the interfaces and addresses of this host have settled";
	case EPROTONOSUPPORT:
	case EAFNOSUPPORT:
		return "allow AF_NETLINK sockets to this process (container or service restrictions)";
	case EADDRNOTAVAIL:
		return "check with `ip addr` which addresses the interface has";
	}
	return NULL;
}

int np_nl_fail(const struct np_netlink *nl, int num, struct np_err *err, const char *code,
	       const char *fmt, ...)
{
	/* EACCES with a reason of the kernel's own is not about privilege */
	const char *hint = num == -EACCES && nl && nl->reason[0] ? NULL : hint_for(num);
	char what[256];
	va_list ap;

	if (num == -ENOMEM && (!nl || !nl->reason[0]))
		return np_err_nomem(err);
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (nl && nl->reason[0])
		np_err_set(err, num, code, "%s: %s (%s)", what, nl->reason, strerror(-num));
	else
		np_err_set(err, num, code, "%s: %s", what, strerror(-num));
	if (hint)
		np_err_hint(err, "%s", hint);
	return num;
}

struct nl_msg *np_nl_msg(int type, int flags, const void *header, size_t len)
{
	np_auto_nl_msg struct nl_msg *msg = nlmsg_alloc_simple(type, NLM_F_REQUEST | flags);

	/* libnl takes a pointer to non-const and only reads it. */
	if (!msg || nlmsg_append(msg, (void *)(uintptr_t)header, len, NLMSG_ALIGNTO) < 0)
		return NULL;
	return np_steal_pointer(&msg);
}

void np_nl_ifname(struct np_netlink *nl, int ifindex, char out[IFNAMSIZ])
{
	struct ifreq req = { .ifr_ifindex = ifindex };

	/* Any socket answers this; it takes neither a lock nor a message. */
	if (ioctl(nl->fd, SIOCGIFNAME, &req) < 0)
		req.ifr_name[0] = '\0';
	np_strcpy(out, IFNAMSIZ, req.ifr_name);
}
