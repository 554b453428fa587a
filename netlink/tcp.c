/* SPDX-License-Identifier: MIT */
#include "netlink/tcp.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "netlink/socket.h"

struct collect {
	bool (*wanted)(const struct np_tcp *tcp, void *arg);
	void *arg;
	int family;    /* of the dump that runs */
	size_t before; /* entries of the dump before it */
	struct np_tcp_list *list;
};

void np_tcp_unmap(struct np_inet *addr)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (addr->family == AF_INET6 && memcmp(addr->bytes, mapped, sizeof(mapped)) == 0) {
		memmove(addr->bytes, addr->bytes + sizeof(mapped), 4);
		memset(addr->bytes + 4, 0, sizeof(mapped));
		addr->family = AF_INET;
	}
	addr->prefix_len = addr->family == AF_INET ? 32 : 128;
}

static void take_address(struct np_inet *out, int family, const void *bytes)
{
	out->family = family;
	memcpy(out->bytes, bytes, family == AF_INET ? 4 : 16);
	np_tcp_unmap(out);
}

static int take_connection(const struct nlmsghdr *nlh, void *arg)
{
	struct collect *c = arg;
	struct np_tcp found = { 0 }, *v;
	struct inet_diag_msg msg;

	if (nlh->nlmsg_type != SOCK_DIAG_BY_FAMILY || nlh->nlmsg_len < NLMSG_HDRLEN + sizeof(msg))
		return -EBADMSG;
	memcpy(&msg, nlmsg_data(nlh), sizeof(msg));
	if (msg.idiag_state != TCP_ESTABLISHED || msg.idiag_family != c->family)
		return 0;
	take_address(&found.local, c->family, msg.id.idiag_src);
	take_address(&found.remote, c->family, msg.id.idiag_dst);
	found.local_port = ntohs(msg.id.idiag_sport);
	found.remote_port = ntohs(msg.id.idiag_dport);
	found.ifindex = (int)msg.id.idiag_if;
	found.inode = msg.idiag_inode;
	if (c->wanted && !c->wanted(&found, c->arg))
		return 0;
	v = reallocarray(c->list->v, c->list->n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	c->list->v = v;
	v[c->list->n++] = found;
	return 0;
}

static void forget(void *arg)
{
	struct collect *c = arg;

	c->list->n = c->before;
}

static int dump(struct np_netlink *nl, struct collect *c, int family)
{
	const struct inet_diag_req_v2 request = { .sdiag_family = (uint8_t)family,
						  .sdiag_protocol = IPPROTO_TCP,
						  .idiag_states = 1u << TCP_ESTABLISHED };
	const struct np_nl_reader reader = { take_connection, forget, c };
	np_auto_nl_msg struct nl_msg *msg =
		np_nl_msg(SOCK_DIAG_BY_FAMILY, 0, &request, sizeof(request));

	if (!msg)
		return -ENOMEM;
	c->family = family;
	c->before = c->list->n;
	return np_nl_dump(nl, msg, &reader);
}

/* What a kernel says that cannot tell, and a container that keeps it from us. */
static bool is_unsupported(int r)
{
	return r == -ENOENT || r == -EPROTONOSUPPORT || r == -EOPNOTSUPP || r == -EINVAL ||
	       r == -EAFNOSUPPORT || r == -EPERM || r == -EACCES;
}

int np_tcp_observe(bool (*wanted)(const struct np_tcp *tcp, void *arg), void *arg,
		   struct np_tcp_list *out, struct np_err *err)
{
	np_auto_netlink struct np_netlink *nl = NULL;
	np_auto_tcp_list struct np_tcp_list list = { 0 };
	struct collect c = { .wanted = wanted, .arg = arg, .list = &list };
	int r = np_nl_open_protocol(&nl, NETLINK_SOCK_DIAG), r6;

	if (r == 0)
		r = dump(nl, &c, AF_INET);
	if (r == 0) {
		r6 = dump(nl, &c, AF_INET6);
		/* a kernel without IPv6 */
		r = is_unsupported(r6) ? 0 : r6;
	}
	if (is_unsupported(r)) {
		list.n = 0;
		r = np_tcp_read_proc(wanted, arg, &list);
		if (r < 0 && r != -ENOMEM)
			r = -ENOENT;
	}
	if (r == -ENOMEM)
		return np_err_nomem(err);
	memset(out, 0, sizeof(*out));
	if (is_unsupported(r))
		return 0;
	if (r < 0)
		return np_nl_fail(nl, r, err, "netlink.query", "cannot list the TCP connections");
	*out = list;
	out->known = true;
	memset(&list, 0, sizeof(list));
	return 0;
}

void np_tcp_list_done(struct np_tcp_list *list)
{
	if (!list)
		return;
	free(list->v);
	memset(list, 0, sizeof(*list));
}
