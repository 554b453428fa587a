/* SPDX-License-Identifier: MIT */
#include "ibmad/smp.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/umad.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

#define CLASS "/sys/class/infiniband_mad"

/* Management classes and methods, IBA 13.4.4 and 13.4.5 */
#define CLASS_LID_ROUTED     0x01
#define CLASS_DIRECTED_ROUTE 0x81
#define METHOD_GET	     0x01
#define METHOD_GET_RESP	     0x81
#define MAD_SIZE	     256
#define PERMISSIVE_LID	     0xffff

/* A directed-route SMP, IBA 14.2.1.2; a LID-routed one (14.2.1.1) has nothing between
 * M_Key and data. */
struct smp {
	uint8_t base_version, mgmt_class, class_version, method;
	uint16_t status_be;
	uint8_t hop_pointer, hop_count;
	uint64_t tid_be;
	uint16_t attr_id_be, reserved;
	uint32_t attr_mod_be;
	uint64_t m_key_be;
	uint16_t dr_slid_be, dr_dlid_be;
	uint8_t reserved2[28];
	uint8_t data[NP_SMP_DATA];
	uint8_t initial_path[64], return_path[64];
} __attribute__((packed));

_Static_assert(sizeof(struct smp) == MAD_SIZE, "a MAD has 256 bytes");

#define STATUS_DIRECTION 0x8000 /* D bit of a directed-route SMP, not part of the status */

/* The node of port @num of @ca: "/dev/infiniband/umad0", from sysfs. */
static int find_device(const char *ca, int num, char *path, size_t size)
{
	_cleanup_closedir_ DIR *dir = opendir(CLASS);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char attr[320], text[64];
		uint64_t port;

		if (!np_starts_with(entry->d_name, "umad"))
			continue;
		snprintf(attr, sizeof(attr), "%s/ibdev", entry->d_name);
		if (np_file_read_line_at(dirfd(dir), attr, text, sizeof(text)) < 0 ||
		    !np_streq(text, ca))
			continue;
		snprintf(attr, sizeof(attr), "%s/port", entry->d_name);
		if (np_file_read_line_at(dirfd(dir), attr, text, sizeof(text)) < 0 ||
		    np_parse_u64(text, 10, 255, &port) < 0 || (int)port != num)
			continue;
		snprintf(path, size, "/dev/infiniband/%.60s", entry->d_name);
		return 0;
	}
	return -ENOENT;
}

static int no_device(const char *ca, int num, struct np_err *err)
{
	np_err_set(err, -ENOENT, "selftest.umad.no_device",
		   "there is no management device (umad) for port %s:%d", ca, num);
	np_err_hint(err, "load ib_umad: modprobe ib_umad");
	return -ENOENT;
}

/* libibumad says no more than that it failed. */
static int why_not_open(struct np_smp *smp, const char *ca, int num, struct np_err *err)
{
	_cleanup_close_ int fd = open(smp->device, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	int error = errno;

	if (fd < 0 && (error == EACCES || error == EPERM)) {
		np_err_set(err, -error, "selftest.umad.permission",
			   "cannot open %s of port %s:%d: %s", smp->device, ca, num,
			   strerror(error));
		np_err_hint(err, "run it as root, or give the device to this "
				 "container or cgroup");
		return -error;
	}
	if (fd < 0 && error == ENOENT) {
		np_err_set(err, -ENOENT, "selftest.umad.no_device",
			   "the kernel has a management device for port %s:%d, but %s is missing",
			   ca, num, smp->device);
		np_err_hint(err, "make the node: udevadm trigger, or add the device to this "
				 "container");
		return -ENOENT;
	}
	if (fd >= 0)
		error = EIO;
	np_err_set(err, -error, "selftest.umad.open", "cannot open %s of port %s:%d: %s",
		   smp->device, ca, num, fd >= 0 ? "libibumad refuses it" : strerror(error));
	np_err_hint(err, "reload the HCA's driver and ib_umad, and read the kernel log");
	return -error;
}

static int register_agents(struct np_smp *smp, const char *ca, int num, struct np_err *err)
{
	smp->directed = umad_register(smp->fd, CLASS_DIRECTED_ROUTE, 1, 0, NULL);
	smp->routed = smp->directed < 0 ? -1 : umad_register(smp->fd, CLASS_LID_ROUTED, 1, 0, NULL);
	if (smp->routed >= 0)
		return 0;
	np_err_set(err, -EOPNOTSUPP, "selftest.umad.no_qp0",
		   "port %s:%d has no queue pair 0, so it takes no subnet management packets", ca,
		   num);
	np_err_hint(err, "nothing is wrong where it is a virtual function or RoCE; ask the "
			 "physical function");
	return -EOPNOTSUPP;
}

int np_smp_open(const char *ca, int num, struct np_smp *out, struct np_err *err)
{
	np_auto_smp struct np_smp smp = { .fd = -1, .directed = -1, .routed = -1 };
	int ret;

	if (find_device(ca, num, smp.device, sizeof(smp.device)) < 0)
		return no_device(ca, num, err);
	umad_init();
	smp.fd = umad_open_port(ca, num);
	if (smp.fd < 0) {
		smp.fd = -1;
		return why_not_open(&smp, ca, num, err);
	}
	ret = register_agents(&smp, ca, num, err);
	if (ret < 0)
		return ret;
	smp.umad = umad_alloc(1, umad_size() + MAD_SIZE);
	if (!smp.umad)
		return np_err_nomem(err);
	*out = smp;
	smp = (struct np_smp){ .fd = -1 };
	return 0;
}

void np_smp_close(struct np_smp *smp)
{
	if (!smp)
		return;
	umad_free(smp->umad);
	if (smp->fd >= 0)
		umad_close_port(smp->fd);
	*smp = (struct np_smp){ .fd = -1 };
}

static const char *attr_str(enum np_smp_attr attr)
{
	switch (attr) {
	case NP_SMP_NODE_INFO:
		return "NodeInfo";
	case NP_SMP_PORT_INFO:
		return "PortInfo";
	case NP_SMP_SM_INFO:
		return "SMInfo";
	}
	return "attribute";
}

static int io_failed(const struct np_smp *smp, enum np_smp_attr attr, const char *what, int error,
		     struct np_err *err)
{
	np_err_set(err, -error, "selftest.umad.io", "cannot %s %s over %s: %s", what,
		   attr_str(attr), smp->device, strerror(error));
	np_err_hint(err, "read the kernel log for messages of the HCA's driver");
	return -error;
}

static int no_answer(const struct np_smp *smp, enum np_smp_attr attr, uint32_t lid, int timeout_ms,
		     struct np_err *err)
{
	char whom[48] = "the port itself";

	if (lid)
		snprintf(whom, sizeof(whom), "lid 0x%x", lid);
	np_err_set(err, -ETIMEDOUT, "selftest.umad.no_answer",
		   "%s did not answer %s within %d ms (over %s)", whom, attr_str(attr), timeout_ms,
		   smp->device);
	np_err_hint(err, "read the kernel log for messages of the HCA's driver; its firmware "
			 "may hang, or an M_Key may protect the port");
	return -ETIMEDOUT;
}

/* What arrived, as 0 (it is the answer), 1 (something else) or a negative errno. */
static int judge(const struct np_smp *smp, const struct smp *mad, enum np_smp_attr attr,
		 uint32_t lid, struct np_err *err)
{
	unsigned int status = be16toh(mad->status_be) & ~(lid ? 0u : STATUS_DIRECTION);

	/* the upper half of the transaction id is the kernel's */
	if ((uint32_t)be64toh(mad->tid_be) != smp->sequence || mad->method != METHOD_GET_RESP ||
	    be16toh(mad->attr_id_be) != attr)
		return 1;
	if (!status)
		return 0;
	np_err_set(err, -EPROTO, "selftest.umad.refused", "%s was refused with status 0x%04x",
		   attr_str(attr), status);
	np_err_hint(err, "see the status in the InfiniBand specification, 13.4.7; update the "
			 "HCA's firmware");
	return -EPROTO;
}

static void fill(struct np_smp *smp, enum np_smp_attr attr, uint32_t modifier, uint32_t lid)
{
	struct smp *mad = umad_get_mad(smp->umad);

	memset(smp->umad, 0, umad_size() + MAD_SIZE);
	umad_set_addr(smp->umad, lid ? (int)lid : PERMISSIVE_LID, 0, 0, 0);
	mad->base_version = mad->class_version = 1;
	mad->mgmt_class = lid ? CLASS_LID_ROUTED : CLASS_DIRECTED_ROUTE;
	mad->method = METHOD_GET;
	mad->tid_be = htobe64(++smp->sequence);
	mad->attr_id_be = htobe16((uint16_t)attr);
	mad->attr_mod_be = htobe32(modifier);
	if (!lid)
		mad->dr_slid_be = mad->dr_dlid_be = htobe16(PERMISSIVE_LID);
}

int np_smp_get(struct np_smp *smp, enum np_smp_attr attr, uint32_t modifier, uint32_t lid,
	       int timeout_ms, uint8_t data[NP_SMP_DATA], struct np_err *err)
{
	const struct smp *mad = umad_get_mad(smp->umad);
	int ret, length;

	fill(smp, attr, modifier, lid);
	ret = umad_send(smp->fd, lid ? smp->routed : smp->directed, smp->umad, MAD_SIZE, timeout_ms,
			0);
	if (ret < 0)
		return io_failed(smp, attr, "send", ret == -EIO && errno ? errno : -ret, err);
	do {
		length = MAD_SIZE;
		/* the kernel gives the request back when its time is over */
		ret = umad_recv(smp->fd, smp->umad, &length, timeout_ms + 100);
		if (ret == -ETIMEDOUT || ret == -EWOULDBLOCK)
			return no_answer(smp, attr, lid, timeout_ms, err);
		if (ret < 0)
			return io_failed(smp, attr, "receive", ret == -EIO && errno ? errno : -ret,
					 err);
		ret = umad_status(smp->umad);
		if (ret && (uint32_t)be64toh(mad->tid_be) == smp->sequence)
			return ret == ETIMEDOUT ? no_answer(smp, attr, lid, timeout_ms, err) :
						  io_failed(smp, attr, "send", ret, err);
		ret = ret ? 1 : judge(smp, mad, attr, lid, err);
	} while (ret > 0);
	if (ret == 0)
		memcpy(data, mad->data, NP_SMP_DATA);
	return ret;
}
