/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "ibmad/private.h"

#define CLASS_DIR "/sys/class/infiniband"

static void port_done(struct np_port *port)
{
	free(port->pkeys);
	free(port->counters);
	np_strv_done(&port->unreadable);
}

void np_ca_done(struct np_ca *ca)
{
	np_strv_done(&ca->netdevs);
	for (size_t i = 0; i < ca->n_ports; i++)
		port_done(&ca->ports[i]);
	free(ca->ports);
	memset(ca, 0, sizeof(*ca));
}

void np_cas_done(struct np_cas *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->n; i++)
		np_ca_done(&list->v[i]);
	free(list->v);
	memset(list, 0, sizeof(*list));
}

const struct np_ca *np_cas_find(const struct np_cas *list, const char *ca)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i].name, ca) == 0)
			return &list->v[i];
	return NULL;
}

const struct np_port *np_cas_find_port(const struct np_cas *list, const char *ca, int port)
{
	const struct np_ca *found = np_cas_find(list, ca);

	for (size_t i = 0; found && i < found->n_ports; i++)
		if (found->ports[i].num == port)
			return &found->ports[i];
	return NULL;
}

/* The ports cannot be listed: one port, of which nothing is known. */
static int unknown_port(struct np_ca *ca, int err)
{
	char line[128];

	ca->ports = calloc(1, sizeof(*ca->ports));
	if (!ca->ports)
		return -ENOMEM;
	ca->n_ports = 1;
	ca->ports[0].num = 1;
	snprintf(line, sizeof(line), "ports: %s", strerror(-err));
	return np_strv_add(&ca->ports[0].unreadable, line);
}

static int read_ports_sysfs(int ca_fd, struct np_ca *ca, unsigned int detail)
{
	np_auto_strv struct np_strv names = { 0 };
	int r = np_dir_list(ca_fd, "ports", &names);

	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return unknown_port(ca, r);
	if (names.n == 0)
		return 0;
	ca->ports = calloc(names.n, sizeof(*ca->ports));
	if (!ca->ports)
		return -ENOMEM;
	for (size_t i = 0; i < names.n; i++) {
		struct np_port_reader reader = { .fd = -1 };
		char path[300];
		uint64_t num;

		if (np_parse_u64(names.v[i], 10, 255, &num) < 0)
			continue;
		reader.port = &ca->ports[ca->n_ports++];
		reader.port->num = (int)num;
		snprintf(path, sizeof(path), "ports/%s", names.v[i]);
		reader.fd = openat(ca_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		np_port_read_sysfs(&reader, detail);
		if (reader.fd >= 0)
			close(reader.fd);
		if (reader.err)
			return reader.err;
	}
	return 0;
}

static void read_driver(int ca_fd, struct np_ca *ca)
{
	char target[512];
	ssize_t len = readlinkat(ca_fd, "device/driver", target, sizeof(target) - 1);
	const char *slash;

	if (len < 0)
		return;
	target[len] = '\0';
	slash = strrchr(target, '/');
	np_strcpy(ca->driver, sizeof(ca->driver), slash ? slash + 1 : target);
}

/* Driver hfi1; its devices are hfi1_0 unless udev renamed them. */
static bool is_omnipath(const struct np_ca *ca)
{
	return strcmp(ca->driver, "hfi1") == 0 || np_starts_with(ca->name, "hfi1_");
}

static bool is_incomplete(const struct np_ca *ca)
{
	for (size_t i = 0; i < ca->n_ports; i++)
		if (ca->ports[i].unreadable.n)
			return true;
	return ca->node_type == NP_NODE_UNKNOWN;
}

/* Returns 0, -ENOMEM, or -ENOENT when the CA is gone. */
static int read_ca(int class_fd, const char *name, unsigned int detail, struct np_ca *ca)
{
	_cleanup_close_ int ca_fd = openat(class_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = -EOPNOTSUPP;
	struct stat st;

	if (ca_fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return -ENOENT;
	if (!np_strcpy(ca->name, sizeof(ca->name), name))
		return -ENOENT; /* longer than the kernel's names: not a CA */
	if (ca_fd < 0)
		return unknown_port(ca, -errno);
	if (!(detail & (NP_CA_SYSFS_ONLY | NP_CA_LEAN)))
		r = np_ca_read_umad(ca_fd, ca, detail);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		np_ca_read_sysfs(ca_fd, ca, detail);
		r = read_ports_sysfs(ca_fd, ca, detail);
		if (r < 0)
			return r;
		if (is_incomplete(ca) && fstatat(class_fd, name, &st, 0) < 0 && errno == ENOENT)
			return -ENOENT;
	}
	read_driver(ca_fd, ca);
	ca->numa_node = -1;
	if (!(detail & NP_CA_LEAN)) {
		np_ca_read_text(ca_fd, "board_id", ca->board_id, sizeof(ca->board_id));
		ca->numa_node = np_pci_numa_node(ca_fd, "device/numa_node");
	}
	r = np_dir_list(ca_fd, "device/net", &ca->netdevs);
	for (size_t i = 0; is_omnipath(ca) && i < ca->n_ports; i++)
		ca->ports[i].link_layer = NP_LL_OMNIPATH;
	return r == -ENOMEM ? r : 0;
}

static int read_all(int class_fd, const struct np_strv *names, unsigned int detail,
		    struct np_cas *list)
{
	list->v = calloc(names->n + 1, sizeof(*list->v));
	if (!list->v)
		return -ENOMEM;
	for (size_t i = 0; i < names->n; i++) {
		struct np_ca *ca = &list->v[list->n];
		int r = read_ca(class_fd, names->v[i], detail, ca);

		if (r == 0)
			list->n++;
		else
			np_ca_done(ca);
		if (r == -ENOMEM)
			return r;
	}
	return 0;
}

static void read_vpd(int class_fd, struct np_cas *list)
{
	if (!np_vpd_wanted(list->n))
		return;
	for (size_t i = 0; i < list->n; i++) {
		_cleanup_close_ int ca_fd =
			openat(class_fd, list->v[i].name, O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (ca_fd >= 0)
			list->v[i].management_only = np_vpd_is_management(ca_fd);
	}
}

int np_cas_observe(unsigned int detail, struct np_cas *out, struct np_err *err)
{
	_cleanup_close_ int class_fd = open(CLASS_DIR, O_PATH | O_DIRECTORY | O_CLOEXEC);
	np_auto_strv struct np_strv names = { 0 };
	struct np_cas list = { 0 };
	int r = class_fd < 0 ? -errno : np_dir_list(class_fd, ".", &names);

	if (r == 0)
		r = read_all(class_fd, &names, detail, &list);
	else if (r == -ENOENT)
		r = 0; /* no InfiniBand here; libibumad would name a ghost */
	else if (r != -ENOMEM)
		return np_err_set(err, r, "port.unreadable", "cannot list %s: %s", CLASS_DIR,
				  strerror(-r));
	if (r < 0) {
		np_cas_done(&list);
		return np_err_nomem(err);
	}
	read_vpd(class_fd, &list);
	*out = list;
	return 0;
}

void np_cas_read_numa(struct np_cas *list)
{
	for (size_t i = 0; i < list->n; i++) {
		char path[sizeof(CLASS_DIR) + sizeof(list->v[i].name) + 24];

		snprintf(path, sizeof(path), "%s/%s/device/numa_node", CLASS_DIR, list->v[i].name);
		list->v[i].numa_node = np_pci_numa_node(AT_FDCWD, path);
	}
}

void np_cas_read_pci(struct np_cas *list)
{
	for (size_t i = 0; i < list->n; i++) {
		char dir[sizeof(CLASS_DIR) + sizeof(list->v[i].name) + 8];

		snprintf(dir, sizeof(dir), "%s/%s/device", CLASS_DIR, list->v[i].name);
		np_pci_read(dir, &list->v[i].pci);
	}
}

int np_port_refresh(const char *ca, struct np_port *port)
{
	char path[sizeof(CLASS_DIR) + 96];
	struct np_port now = { 0 };
	struct np_port_reader reader = { .port = &now };

	snprintf(path, sizeof(path), "%s/%s/ports/%d", CLASS_DIR, ca, port->num);
	reader.fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (reader.fd < 0)
		return -errno;
	np_port_read_state(&reader);
	np_port_read_phys_state(&reader);
	np_port_read_link_layer(&reader);
	close(reader.fd);
	port->state = now.state;
	port->phys_state = now.phys_state;
	if (port->link_layer != NP_LL_OMNIPATH) /* known by its driver, not by sysfs */
		port->link_layer = now.link_layer;
	memcpy(port->link_layer_raw, now.link_layer_raw, sizeof(now.link_layer_raw));
	port_done(&now);
	return 0;
}
