/* SPDX-License-Identifier: MIT */
#include "selftest/verbs_dev.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "selftest/memlock.h"
#include "selftest/uverbs.h"

static int refuse(int num, const char *ca, struct np_err *err)
{
	uint64_t limit;

	/* some driver libraries pin memory for the HCA when they open it */
	if (num == ENOMEM && np_memlock_limit(&limit))
		return np_memlock_error("verbs", "opening the HCA", limit, err);
	np_err_set(err, -num, "selftest.verbs.open", "libibverbs cannot open %s: %s", ca,
		   strerror(num));
	np_err_hint(err,
		    "see ibv_devinfo -d %s, and the kernel log; a cgroup's rdma limits "
		    "may be in the way",
		    ca);
	return -num;
}

static int open_device(const char *ca, struct ibv_context **out, struct np_err *err)
{
	int n = 0, found = -1, error;
	struct ibv_device **list = ibv_get_device_list(&n);

	for (int i = 0; list && i < n; i++)
		if (np_streq(ibv_get_device_name(list[i]), ca))
			found = i;
	if (found < 0) {
		if (list)
			ibv_free_device_list(list);
		np_err_set(err, -ENODEV, "selftest.verbs.no_provider",
			   "the kernel offers %s to user space, but libibverbs has no driver "
			   "library for it",
			   ca);
		np_err_hint(err, "install the driver libraries: ibverbs-providers (Debian), "
				 "libibverbs (RHEL), or those of the vendor's driver release");
		return -ENODEV;
	}
	errno = 0;
	*out = ibv_open_device(list[found]);
	error = errno ? errno : EIO;
	ibv_free_device_list(list);
	return *out ? 0 : refuse(error, ca, err);
}

static int cannot_ask(struct np_verbs_dev *dev, const char *what, int num, struct np_err *err)
{
	np_err_set(err, -num, "selftest.verbs.query", "cannot ask port %s for its %s: %s",
		   dev->port.name, what, strerror(num));
	np_err_hint(err, "read the kernel log for messages of the HCA's driver");
	return -num;
}

static enum np_gid_type gid_type(uint32_t type)
{
	switch (type) {
	case IBV_GID_TYPE_ROCE_V1:
		return NP_GID_ROCE_V1;
	case IBV_GID_TYPE_ROCE_V2:
		return NP_GID_ROCE_V2;
	default:
		return NP_GID_IB;
	}
}

static int read_gids(struct np_verbs_dev *dev, int table, struct np_err *err)
{
	struct np_verbs_port *port = &dev->port;

	port->gid_table = table;
	port->gids = calloc((size_t)table + 1, sizeof(*port->gids));
	if (!port->gids)
		return np_err_nomem(err);
	for (int i = 0; i < table; i++) {
		struct np_verbs_gid *gid = &port->gids[port->n_gids];
		struct ibv_gid_entry entry;
		int ret =
			ibv_query_gid_ex(dev->context, (uint32_t)dev->num, (uint32_t)i, &entry, 0);

		/* An empty one is an error to the kernel; an InfiniBand one without its lower
		 * half has no port behind it. */
		if (ret || !entry.gid.global.interface_id)
			continue;
		gid->index = i;
		gid->type = gid_type(entry.gid_type);
		memcpy(gid->raw, entry.gid.raw, sizeof(gid->raw));
		port->n_gids++;
	}
	return 0;
}

static int read_pkeys(struct np_verbs_dev *dev, int table, struct np_err *err)
{
	struct np_verbs_port *port = &dev->port;

	port->pkeys = calloc((size_t)table + 1, sizeof(*port->pkeys));
	if (!port->pkeys)
		return np_err_nomem(err);
	for (int i = 0; i < table; i++) {
		uint16_t pkey_be = 0;

		/* the place in the table is what a queue pair is told: keep it */
		if (ibv_query_pkey(dev->context, (uint8_t)dev->num, i, &pkey_be) == 0)
			port->pkeys[i] = be16toh(pkey_be);
	}
	port->n_pkeys = (size_t)table;
	return 0;
}

static int read_port(struct np_verbs_dev *dev, struct np_err *err)
{
	struct np_verbs_port *port = &dev->port;
	struct ibv_port_attr attr = { 0 };
	int ret = ibv_query_port(dev->context, (uint8_t)dev->num, &attr);

	if (ret)
		return cannot_ask(dev, "attributes", ret > 0 ? ret : EIO, err);
	port->ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	port->grh_required = attr.flags & IBV_QPF_GRH_REQUIRED;
	port->lid = attr.lid;
	port->mtu = attr.active_mtu;
	port->max_message = attr.max_msg_sz;
	ret = read_gids(dev, attr.gid_tbl_len, err);
	return ret < 0 ? ret : read_pkeys(dev, attr.pkey_tbl_len, err);
}

int np_verbs_dev_open(const char *ca, int num, struct np_verbs_dev *out, struct np_err *err)
{
	np_auto_verbs_dev struct np_verbs_dev dev = { .num = num };
	int ret = np_uverbs_check("verbs", ca, err);

	if (ret == -EACCES || ret == -EPERM)
		np_strcpy(err->code, sizeof(err->code), "selftest.verbs.permission");
	if (ret < 0)
		return ret;
	snprintf(dev.port.name, sizeof(dev.port.name), "%s:%d", ca, num);
	ret = open_device(ca, &dev.context, err);
	if (ret == 0)
		ret = read_port(&dev, err);
	if (ret < 0)
		return ret;
	*out = dev;
	memset(&dev, 0, sizeof(dev));
	return 0;
}

void np_verbs_dev_close(struct np_verbs_dev *dev)
{
	if (!dev)
		return;
	free(dev->port.gids);
	free(dev->port.pkeys);
	if (dev->context)
		ibv_close_device(dev->context);
	memset(dev, 0, sizeof(*dev));
}
