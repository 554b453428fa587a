/* SPDX-License-Identifier: MIT */
#include "netlink/rdma.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "netlink/socket.h"

#define NLDEV_TYPE(command) RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_##command)

struct device {
	uint32_t index;
	char name[64];
};

struct collect {
	struct device *devices;
	size_t n_devices;
	const struct device *device; /* whose queue pairs are being read */
	uint32_t but_pid;
	struct np_rdma_users *users;
};

static struct nlattr *find(const struct nlmsghdr *nlh, int type)
{
	return nla_find(nlmsg_attrdata(nlh, 0), nlmsg_attrlen(nlh, 0), type);
}

/* ---- devices ---- */

static int take_device(const struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *index = find(nlh, RDMA_NLDEV_ATTR_DEV_INDEX);
	struct nlattr *name = find(nlh, RDMA_NLDEV_ATTR_DEV_NAME);
	struct collect *c = arg;
	struct device *v;

	if (!index || nla_len(index) < (int)sizeof(uint32_t) || !name)
		return 0;
	v = reallocarray(c->devices, c->n_devices + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	c->devices = v;
	v += c->n_devices++;
	v->index = nla_get_u32(index);
	snprintf(v->name, sizeof(v->name), "%.*s", nla_len(name), (char *)nla_data(name));
	return 0;
}

static void forget_devices(void *arg)
{
	struct collect *c = arg;

	c->n_devices = 0;
}

/* ---- queue pairs ---- */

/* The port of an entry, as a bit. */
static uint64_t port_bit(struct nlattr *entry)
{
	struct nlattr *port = nla_find(nla_data(entry), nla_len(entry), RDMA_NLDEV_ATTR_PORT_INDEX);
	uint32_t number = port && nla_len(port) >= (int)sizeof(uint32_t) ? nla_get_u32(port) : 0;

	return number > 0 && number < 64 ? 1ull << number : NP_RDMA_NO_PORT_YET;
}

static int count_user(struct np_rdma_users *users, const char *ca, uint32_t pid, uint64_t port)
{
	struct np_rdma_user *v;

	for (size_t i = 0; i < users->n; i++) {
		if (users->v[i].pid == pid && strcmp(users->v[i].ca, ca) == 0) {
			users->v[i].queue_pairs++;
			users->v[i].ports |= port;
			return 0;
		}
	}
	v = reallocarray(users->v, users->n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	users->v = v;
	v += users->n++;
	memset(v, 0, sizeof(*v));
	np_strcpy(v->ca, sizeof(v->ca), ca);
	v->pid = pid;
	v->queue_pairs = 1;
	v->ports = port;
	np_process_comm((pid_t)pid, v->command);
	return 0;
}

/* What the stack makes for itself is no job. Queue pairs that the connection manager makes
 * bear its own name, and its connections tell whose they are. */
static bool is_stack(const char *module)
{
	static const char *const stack[] = { "ib_core",	  "ib_ipoib", "ib_cm",	   "rdma_cm",
					     "mlx5_ib",	  "mlx4_ib",  "mlx5_core", "ib_mthca",
					     "ib_uverbs", "ib_umad" };

	for (size_t i = 0; i < NP_ARRAY_SIZE(stack); i++)
		if (strcmp(stack[i], module) == 0)
			return true;
	return false;
}

static int count_kernel_user(struct np_rdma_users *users, const struct np_rdma_kernel_user *found)
{
	struct np_rdma_kernel_user *v;

	for (size_t i = 0; i < users->n_kernel; i++) {
		v = &users->kernel[i];
		if (v->by_cm != found->by_cm || strcmp(v->ca, found->ca) != 0 ||
		    strcmp(v->module, found->module) != 0 ||
		    !np_inet_same_addr(&v->src, &found->src))
			continue;
		v->count++;
		v->ports |= found->ports;
		return 0;
	}
	v = reallocarray(users->kernel, users->n_kernel + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	users->kernel = v;
	v[users->n_kernel++] = *found;
	return 0;
}

static void take_address(struct nlattr *entry, int type, struct np_inet *out)
{
	struct nlattr *attr = nla_find(nla_data(entry), nla_len(entry), type);
	struct sockaddr_in6 in6 = { 0 };
	struct sockaddr_in in = { 0 };
	sa_family_t family = 0;

	if (attr && nla_len(attr) >= (int)sizeof(family))
		memcpy(&family, nla_data(attr), sizeof(family));
	if (family == AF_INET && nla_len(attr) >= (int)sizeof(in)) {
		memcpy(&in, nla_data(attr), sizeof(in));
		memcpy(out->bytes, &in.sin_addr, 4);
		out->prefix_len = 32;
		out->family = AF_INET;
	} else if (family == AF_INET6 && nla_len(attr) >= (int)sizeof(in6)) {
		memcpy(&in6, nla_data(attr), sizeof(in6));
		memcpy(out->bytes, &in6.sin6_addr, 16);
		out->prefix_len = 128;
		out->family = AF_INET6;
	}
}

/* @by_cm: an entry of the connection manager's table. One that listens has neither a queue
 * pair nor a peer, and carries nothing. */
static int take_kernel_user(struct collect *c, struct nlattr *entry, bool by_cm)
{
	struct nlattr *name =
		nla_find(nla_data(entry), nla_len(entry), RDMA_NLDEV_ATTR_RES_KERN_NAME);
	struct np_rdma_kernel_user found = { .count = 1, .by_cm = by_cm, .ports = port_bit(entry) };

	if (!name)
		return 0;
	np_strcpy(found.ca, sizeof(found.ca), c->device->name);
	snprintf(found.module, sizeof(found.module), "%.*s", nla_len(name), (char *)nla_data(name));
	if (by_cm) {
		take_address(entry, RDMA_NLDEV_ATTR_RES_SRC_ADDR, &found.src);
		take_address(entry, RDMA_NLDEV_ATTR_RES_DST_ADDR, &found.peer);
		if (!found.peer.family ||
		    !nla_find(nla_data(entry), nla_len(entry), RDMA_NLDEV_ATTR_RES_LQPN))
			return 0;
	}
	return is_stack(found.module) ? 0 : count_kernel_user(c->users, &found);
}

/* An entry of a user has a PID, one of the kernel a name. */
static int take_queue_pairs(const struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *table = find(nlh, RDMA_NLDEV_ATTR_RES_QP), *entry;
	struct collect *c = arg;
	int left, r = 0;

	if (!table)
		return 0;
	nla_for_each_nested(entry, table, left)
	{
		struct nlattr *pid =
			nla_find(nla_data(entry), nla_len(entry), RDMA_NLDEV_ATTR_RES_PID);

		if (!pid || nla_len(pid) < (int)sizeof(uint32_t))
			r = take_kernel_user(c, entry, false);
		else if (nla_get_u32(pid) != c->but_pid || c->but_pid == 0)
			r = count_user(c->users, c->device->name, nla_get_u32(pid),
				       port_bit(entry));
		if (r < 0)
			return r;
	}
	return 0;
}

static int take_connections(const struct nlmsghdr *nlh, void *arg)
{
	struct nlattr *table = find(nlh, RDMA_NLDEV_ATTR_RES_CM_ID), *entry;
	struct collect *c = arg;
	int left, r = 0;

	if (!table)
		return 0;
	nla_for_each_nested(entry, table, left)
	{
		r = take_kernel_user(c, entry, true);
		if (r < 0)
			return r;
	}
	return 0;
}

static void forget_kernel_users(struct collect *c, bool by_cm)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->users->n_kernel; i++)
		if (c->users->kernel[i].by_cm != by_cm ||
		    strcmp(c->users->kernel[i].ca, c->device->name) != 0)
			c->users->kernel[kept++] = c->users->kernel[i];
	c->users->n_kernel = kept;
}

static void forget_queue_pairs(void *arg)
{
	struct collect *c = arg;
	size_t kept = 0;

	for (size_t i = 0; i < c->users->n; i++)
		if (strcmp(c->users->v[i].ca, c->device->name) != 0)
			c->users->v[kept++] = c->users->v[i];
	c->users->n = kept;
	forget_kernel_users(c, false);
}

static void forget_connections(void *arg)
{
	forget_kernel_users(arg, true);
}

static int dump_devices(struct np_netlink *nl, struct collect *c)
{
	const struct np_nl_reader reader = { take_device, forget_devices, c };
	np_auto_nl_msg struct nl_msg *msg = np_nl_msg(NLDEV_TYPE(GET), 0, NULL, 0);

	return msg ? np_nl_dump(nl, msg, &reader) : -ENOMEM;
}

static int dump_resources(struct np_netlink *nl, struct collect *c, int type,
			  const struct np_nl_reader *reader)
{
	np_auto_nl_msg struct nl_msg *msg = np_nl_msg(type, 0, NULL, 0);

	if (!msg || nla_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, c->device->index) < 0)
		return -ENOMEM;
	return np_nl_dump(nl, msg, reader);
}

static int by_ca(const void *a, const void *b)
{
	const struct np_rdma_user *x = a, *y = b;
	int order = np_natural_cmp(x->ca, y->ca);

	return order ? order : (x->pid > y->pid) - (x->pid < y->pid);
}

/* What a kernel says that has no RDMA, or no such command; and a container that keeps it
 * from us. */
static bool is_unsupported(int r)
{
	return r == -EPROTONOSUPPORT || r == -EOPNOTSUPP || r == -EINVAL || r == -ENOENT ||
	       r == -EPERM || r == -EACCES || r == -EAFNOSUPPORT || r == -ENOSYS;
}

static int observe(struct np_netlink *nl, struct collect *c)
{
	const struct np_nl_reader queue_pairs = { take_queue_pairs, forget_queue_pairs, c };
	const struct np_nl_reader connections = { take_connections, forget_connections, c };
	int r = dump_devices(nl, c);

	for (size_t i = 0; i < c->n_devices && r == 0; i++) {
		c->device = &c->devices[i];
		r = dump_resources(nl, c, NLDEV_TYPE(RES_QP_GET), &queue_pairs);
		if (r == 0)
			r = dump_resources(nl, c, NLDEV_TYPE(RES_CM_ID_GET), &connections);
		/* it went in the meantime */
		if (r == -ENODEV)
			r = 0;
	}
	return r;
}

int np_rdma_users_observe(uint32_t but_pid, struct np_rdma_users *out, struct np_err *err)
{
	np_auto_netlink struct np_netlink *nl = NULL;
	np_auto_rdma_users struct np_rdma_users users = { 0 };
	struct collect c = { .but_pid = but_pid, .users = &users };
	int r = np_nl_open_protocol(&nl, NETLINK_RDMA);

	if (r == 0)
		r = observe(nl, &c);
	free(c.devices);
	if (r == -ENOMEM)
		return np_err_nomem(err);
	memset(out, 0, sizeof(*out));
	if (is_unsupported(r))
		return 0;
	if (r < 0)
		return np_nl_fail(nl, r, err, "netlink.query", "cannot list users of the HCAs");
	if (users.n)
		qsort(users.v, users.n, sizeof(*users.v), by_ca);
	*out = users;
	out->known = true;
	memset(&users, 0, sizeof(users));
	return 0;
}

void np_rdma_users_done(struct np_rdma_users *list)
{
	if (!list)
		return;
	free(list->v);
	free(list->kernel);
	memset(list, 0, sizeof(*list));
}
