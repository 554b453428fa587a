/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/umad.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ibmad/private.h"

/* Opened when a CA is to be shown: an apply that has nothing to do starts without it.
 * Where it is missing, sysfs tells the same. */
#define SONAME "libibumad.so.3"

static struct umad_lib {
	int (*get_ca)(const char *name, umad_ca_t *ca);
	int (*release_ca)(umad_ca_t *ca);
} umad;

static bool open_umad(void)
{
	static bool tried;
	void *handle;

	if (tried)
		return umad.get_ca && umad.release_ca;
	tried = true;
	handle = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return false;
	*(void **)&umad.get_ca = dlsym(handle, "umad_get_ca");
	*(void **)&umad.release_ca = dlsym(handle, "umad_release_ca");
	return umad.get_ca && umad.release_ca;
}

static void take_gid(const umad_port_t *from, struct np_port *port)
{
	uint8_t gid[16];
	size_t at = 0;

	memcpy(gid, &from->gid_prefix, 8);
	memcpy(gid + 8, &from->port_guid, 8);
	for (int i = 0; i < 16; i += 2)
		at += (size_t)snprintf(port->gid + at, sizeof(port->gid) - at, "%s%02x%02x",
				       i ? ":" : "", gid[i], gid[i + 1]);
	port->guid = be64toh(from->port_guid);
}

/* Old libibumads leave an undefined value for a pkey that they cannot read, so each
 * that is there is read again: seldom more than two. */
static void take_pkeys(const umad_port_t *from, struct np_port_reader *reader)
{
	for (unsigned int i = 0; i < from->pkeys_size; i++) {
		char name[16];

		if (i > 0 && from->pkeys[i] == 0)
			continue;
		snprintf(name, sizeof(name), "%u", i);
		np_port_read_pkey(reader, name);
	}
}

/* libibumad makes 0 of a text that it does not understand, and "IB" of a link layer
 * that it cannot read: these it is not believed. */
static void take_port(const umad_port_t *from, struct np_port_reader *reader)
{
	struct np_port *port = reader->port;

	if (from->state > NP_PORT_UNKNOWN && from->state <= NP_PORT_ACTIVE_DEFER)
		port->state = (enum np_port_state)from->state;
	else
		np_port_read_state(reader);
	if (from->phys_state > NP_PHYS_UNKNOWN && from->phys_state <= NP_PHYS_TEST)
		port->phys_state = (enum np_phys_state)from->phys_state;
	else
		np_port_read_phys_state(reader);
	port->link_layer = np_link_layer_parse(from->link_layer);
	if (port->link_layer != NP_LL_UNKNOWN)
		np_strcpy(port->link_layer_raw, sizeof(port->link_layer_raw), from->link_layer);
	else
		np_port_read_link_layer(reader);
	port->lid = from->base_lid;
	port->has_lid = from->base_lid != 0;
	if (!port->has_lid)
		np_port_read_lid(reader);
	port->sm_lid = from->sm_lid;
	port->has_sm_lid = from->sm_lid != 0;
	if (!port->has_sm_lid)
		np_port_read_sm_lid(reader);
	if (from->port_guid)
		take_gid(from, port);
	else
		np_port_read_gid(reader);
	np_port_read_rate(reader); /* libibumad drops ".5", width and speed */
}

static int take_ports(int ca_fd, const umad_ca_t *from, struct np_ca *ca, unsigned int detail)
{
	for (int num = 0; num < UMAD_CA_MAX_PORTS; num++) {
		const umad_port_t *port = from->ports[num];
		struct np_port_reader reader = { .fd = -1 };
		char path[32];

		if (!port)
			continue;
		reader.port = &ca->ports[ca->n_ports++];
		reader.port->num = num;
		snprintf(path, sizeof(path), "ports/%d", num);
		reader.fd = openat(ca_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		take_port(port, &reader); /* without a descriptor, reads fail: unknown */
		if (detail & NP_CA_COUNTERS) {
			reader.port->sm_sl = port->sm_sl;
			reader.port->lmc = port->lmc;
			reader.port->cap_mask = be32toh(port->capmask);
			take_pkeys(port, &reader);
			np_port_read_counters(&reader);
		}
		if (reader.fd >= 0)
			close(reader.fd);
		if (reader.err)
			return reader.err;
	}
	return 0;
}

/* libibumad's own buffer may have been too short. */
static void take_text(int ca_fd, const char *attr, const char *from, size_t from_size, char *out,
		      size_t size)
{
	if (strnlen(from, from_size) + 1 < from_size)
		np_strcpy(out, size, from);
	else
		np_ca_read_text(ca_fd, attr, out, size);
}

int np_ca_read_umad(int ca_fd, struct np_ca *ca, unsigned int detail)
{
	umad_ca_t from = { 0 };
	int r;

	if (strlen(ca->name) >= sizeof(from.ca_name))
		return -ENAMETOOLONG; /* it would cut the name */
	if (!open_umad())
		return -ELIBACC;
	r = umad.get_ca(ca->name, &from);
	if (r)
		return r < 0 ? r : -EIO;
	ca->ports = calloc(UMAD_CA_MAX_PORTS, sizeof(*ca->ports));
	if (!ca->ports) {
		umad.release_ca(&from);
		return -ENOMEM;
	}
	if (from.node_type <= NP_NODE_UNSPECIFIED)
		ca->node_type = (enum np_node_type)from.node_type;
	take_text(ca_fd, "hca_type", from.ca_type, sizeof(from.ca_type), ca->ca_type,
		  sizeof(ca->ca_type));
	take_text(ca_fd, "fw_ver", from.fw_ver, sizeof(from.fw_ver), ca->fw_ver,
		  sizeof(ca->fw_ver));
	take_text(ca_fd, "hw_rev", from.hw_ver, sizeof(from.hw_ver), ca->hw_rev,
		  sizeof(ca->hw_rev));
	ca->node_guid = be64toh(from.node_guid);
	ca->sys_image_guid = be64toh(from.system_guid);
	ca->from_libibumad = true;
	r = take_ports(ca_fd, &from, ca, detail);
	umad.release_ca(&from);
	return r;
}
