/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "netlink/observe.h"

#define SYS_IB "/sys/class/infiniband"
#define SYSCTL "/proc/sys/net/ipv4/conf"

#define IPOIB_HWADDR_LEN 20 /* RFC 4391 section 9.1.1: flags and QPN, then the GID */
#define GUID_OFFSET	 12

static bool read_number(int dirfd, const char *path, int base, uint64_t max, uint64_t *out)
{
	char line[32];

	return np_file_read_line_at(dirfd, path, line, sizeof(line)) >= 0 &&
	       np_parse_u64(line, base, max, out) == 0;
}

static enum np_tri read_flag(int dirfd, const char *path)
{
	uint64_t value;

	if (!read_number(dirfd, path, 0, UINT32_MAX, &value))
		return NP_TRI_UNKNOWN;
	return value ? NP_TRI_YES : NP_TRI_NO;
}

/* "80:00:02:08:..." */
static void read_hwaddr(struct np_netdev *dev, int dirfd)
{
	char line[sizeof(dev->hwaddr) * 3 + 1];
	uint8_t bytes[sizeof(dev->hwaddr)];
	size_t n = 0;

	if (np_file_read_line_at(dirfd, "address", line, sizeof(line)) <= 0)
		return;
	for (char *rest = line, *part; (part = strsep(&rest, ":"));) {
		uint64_t value;

		if (n == sizeof(bytes) || strlen(part) != 2 ||
		    np_parse_u64(part, 16, 255, &value) < 0)
			return;
		bytes[n++] = (uint8_t)value;
	}
	memcpy(dev->hwaddr, bytes, n);
	dev->hwaddr_len = (uint8_t)n;
}

static void read_ipoib(struct np_netdev *dev, int dirfd)
{
	char line[32];
	uint64_t value;

	if (dev->hwaddr_len != IPOIB_HWADDR_LEN)
		read_hwaddr(dev, dirfd);
	if (dev->mode == NP_IPOIB_MODE_UNKNOWN &&
	    np_file_read_line_at(dirfd, "mode", line, sizeof(line)) > 0) {
		if (np_streq(line, "datagram"))
			dev->mode = NP_IPOIB_DATAGRAM;
		else if (np_streq(line, "connected"))
			dev->mode = NP_IPOIB_CONNECTED;
	}
	if (!dev->has_pkey && read_number(dirfd, "pkey", 0, UINT16_MAX, &value)) {
		dev->has_pkey = true;
		dev->pkey = (uint16_t)value;
	}
	if (dev->umcast == NP_TRI_UNKNOWN)
		dev->umcast = read_flag(dirfd, "umcast");
}

struct sole {
	char *out;
	size_t size;
	int n;
};

static int take_sole(const char *name, unsigned char type, void *arg)
{
	struct sole *sole = arg;

	(void)type;
	if (*name == '.')
		return 0;
	return sole->n++ || !np_strcpy(sole->out, sole->size, name);
}

/* The only entry of a directory; false when it has none or several. */
static bool sole_entry(int dirfd, const char *path, char *out, size_t size)
{
	struct sole sole = { out, size, 0 };

	return np_dir_each(dirfd, path, take_sole, &sole) == 0 && sole.n == 1;
}

static bool port_has_guid(int ib_fd, const char *ca, const char *port, const uint8_t guid[8])
{
	char path[320], line[INET6_ADDRSTRLEN];
	uint8_t gid[16];

	return snprintf(path, sizeof(path), "%s/ports/%s/gids/0", ca, port) < (int)sizeof(path) &&
	       np_file_read_line_at(ib_fd, path, line, sizeof(line)) > 0 &&
	       inet_pton(AF_INET6, line, gid) == 1 && memcmp(gid + 8, guid, 8) == 0;
}

/* Asks each port of @ca. */
static bool owner_in_ca(struct np_netdev *dev, int ib_fd, const char *ca)
{
	_cleanup_closedir_ DIR *ports = NULL;
	struct dirent *entry;
	char path[320];
	int fd;

	snprintf(path, sizeof(path), "%s/ports", ca);
	fd = openat(ib_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || !(ports = fdopendir(fd))) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while ((entry = readdir(ports))) {
		uint64_t port;

		if (np_parse_u64(entry->d_name, 10, 255, &port) < 0 || port == 0 ||
		    !port_has_guid(ib_fd, ca, entry->d_name, dev->hwaddr + GUID_OFFSET))
			continue;
		np_strcpy(dev->ca, sizeof(dev->ca), ca);
		dev->port = (int)port;
		return true;
	}
	return false;
}

/* A software HCA hangs on no device: its port is the one with our GUID. */
static void owner_by_guid(struct np_netdev *dev)
{
	_cleanup_closedir_ DIR *dir = opendir(SYS_IB);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && strlen(entry->d_name) < sizeof(dev->ca) &&
		    owner_in_ca(dev, dirfd(dir), entry->d_name))
			return;
}

static int ipoib_port(int dirfd)
{
	uint64_t dev_port = 0, dev_id = 0;
	bool known = read_number(dirfd, "dev_port", 0, 254, &dev_port);

	/* Kernels before 5.0 tell it by dev_id alone and leave dev_port at 0. */
	if (dev_port == 0)
		known |= read_number(dirfd, "dev_id", 0, 254, &dev_id);
	return known ? (int)(dev_port ? dev_port : dev_id) + 1 : 0;
}

/* Ethernet drivers give dev_port meanings of their own, so a CA's only port wins. */
static int ethernet_port(int dirfd, const char *ca)
{
	char path[128], name[8];
	uint64_t port;

	snprintf(path, sizeof(path), "device/infiniband/%s/ports", ca);
	if (sole_entry(dirfd, path, name, sizeof(name)) && np_parse_u64(name, 10, 255, &port) == 0)
		return (int)port;
	return read_number(dirfd, "dev_port", 0, 254, &port) ? (int)port + 1 : 0;
}

static void find_owner(struct np_netdev *dev, int dirfd)
{
	char ca[sizeof(dev->ca)];
	bool ipoib = np_netdev_is_ipoib(dev);

	if (dirfd >= 0 && sole_entry(dirfd, "device/infiniband", ca, sizeof(ca))) {
		int port = ipoib ? ipoib_port(dirfd) : ethernet_port(dirfd, ca);

		if (port > 0) {
			np_strcpy(dev->ca, sizeof(dev->ca), ca);
			dev->port = port;
			return;
		}
	}
	if (ipoib && dev->port_guid)
		owner_by_guid(dev);
}

/* The netdev's directory, or -1: also when /sys shows another network namespace
 * than the one that netlink speaks of. */
static int open_sysfs(const struct np_netdev *dev)
{
	char path[sizeof("/sys/class/net/") + IFNAMSIZ];
	uint64_t ifindex;
	int fd;

	snprintf(path, sizeof(path), "/sys/class/net/%s", dev->name);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (!read_number(fd, "ifindex", 10, INT32_MAX, &ifindex) || (int)ifindex != dev->ifindex) {
		close(fd);
		return -1;
	}
	return fd;
}

static void complete_sysfs(struct np_netdev *dev)
{
	_cleanup_close_ int fd = open_sysfs(dev);

	if (np_netdev_is_ipoib(dev)) {
		if (fd >= 0)
			read_ipoib(dev, fd);
		for (int i = 0; dev->hwaddr_len == IPOIB_HWADDR_LEN && i < 8; i++)
			dev->port_guid = dev->port_guid << 8 | dev->hwaddr[GUID_OFFSET + i];
	}
	find_owner(dev, fd);
}

/* In force is conf/all OR the netdev's own (IN_DEV_ORCONF). */
static void complete_promote(struct np_netdev *dev, enum np_tri *promote_all)
{
	char path[sizeof(SYSCTL "//promote_secondaries") + IFNAMSIZ];

	if (dev->promote_secondaries == NP_TRI_UNKNOWN) {
		snprintf(path, sizeof(path), SYSCTL "/%s/promote_secondaries", dev->name);
		dev->promote_secondaries = read_flag(AT_FDCWD, path);
	}
	if (dev->promote_secondaries == NP_TRI_YES)
		return;
	if (*promote_all == NP_TRI_UNKNOWN)
		*promote_all = read_flag(AT_FDCWD, SYSCTL "/all/promote_secondaries");
	if (*promote_all != NP_TRI_NO)
		dev->promote_secondaries = *promote_all;
}

void np_link_complete(struct np_netdev *dev, enum np_tri *promote_all)
{
	complete_promote(dev, promote_all);
	/* A container host has thousands of veths, none of which belongs to a CA. */
	if (!np_streq(dev->kind, "veth") && !(dev->flags & IFF_LOOPBACK))
		complete_sysfs(dev);
}
