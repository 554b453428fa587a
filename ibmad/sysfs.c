/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "ibmad/private.h"

static int add_name(const char *name, unsigned char type, void *arg)
{
	(void)type;
	return *name == '.' ? 0 : np_strv_add(arg, name);
}

int np_dir_list(int dirfd, const char *path, struct np_strv *out)
{
	np_auto_strv struct np_strv list = { 0 };
	int r = np_dir_each(dirfd, path, add_name, &list);

	if (r < 0)
		return r;
	np_strv_sort_natural(&list);
	np_strv_done(out);
	*out = list;
	memset(&list, 0, sizeof(list));
	return 0;
}

/* ---- one attribute of a port ---- */

/* -EBADMSG: there is a text, but not one that makes sense here. */
static void note(struct np_port_reader *reader, const char *attr, int err)
{
	char line[128];

	snprintf(line, sizeof(line), "%s: %s", attr,
		 err == -EBADMSG ? "not understood" : strerror(-err));
	if (np_strv_add(&reader->port->unreadable, line) < 0)
		reader->err = -ENOMEM;
}

static bool read_text(struct np_port_reader *reader, const char *attr, char *out, size_t size)
{
	int len = np_file_read_line_at(reader->fd, attr, out, size);

	if (len < 0)
		note(reader, attr, len);
	return len >= 0;
}

/* Number at the start of the text, up to ':' or the end: "4: ACTIVE", "0x1f". */
static bool read_number(struct np_port_reader *reader, const char *attr, uint64_t max,
			uint64_t *out)
{
	char text[64];

	if (!read_text(reader, attr, text, sizeof(text)))
		return false;
	text[strcspn(text, ":")] = '\0';
	if (np_parse_u64(text, 0, max, out) < 0) {
		note(reader, attr, -EBADMSG);
		return false;
	}
	return true;
}

void np_port_read_state(struct np_port_reader *reader)
{
	uint64_t value = NP_PORT_UNKNOWN;

	read_number(reader, "state", NP_PORT_ACTIVE_DEFER, &value);
	reader->port->state = (enum np_port_state)value;
}

void np_port_read_phys_state(struct np_port_reader *reader)
{
	uint64_t value = NP_PHYS_UNKNOWN;

	read_number(reader, "phys_state", NP_PHYS_TEST, &value);
	reader->port->phys_state = (enum np_phys_state)value;
}

enum np_link_layer np_link_layer_parse(const char *raw)
{
	if (strcmp(raw, "InfiniBand") == 0)
		return NP_LL_INFINIBAND;
	if (strcmp(raw, "Ethernet") == 0)
		return NP_LL_ETHERNET;
	return NP_LL_UNKNOWN;
}

void np_port_read_link_layer(struct np_port_reader *reader)
{
	struct np_port *port = reader->port;

	port->link_layer_raw[0] = '\0';
	read_text(reader, "link_layer", port->link_layer_raw, sizeof(port->link_layer_raw));
	port->link_layer = np_link_layer_parse(port->link_layer_raw);
}

void np_port_read_lid(struct np_port_reader *reader)
{
	uint64_t value = 0;

	reader->port->has_lid = read_number(reader, "lid", UINT32_MAX, &value);
	reader->port->lid = (uint32_t)value;
}

void np_port_read_sm_lid(struct np_port_reader *reader)
{
	uint64_t value = 0;

	reader->port->has_sm_lid = read_number(reader, "sm_lid", UINT32_MAX, &value);
	reader->port->sm_lid = (uint32_t)value;
}

void np_port_read_rate(struct np_port_reader *reader)
{
	struct np_port *port = reader->port;

	port->rate[0] = '\0';
	if (read_text(reader, "rate", port->rate, sizeof(port->rate)) &&
	    np_rate_parse(port->rate, &port->rate_gbps, &port->width, port->speed) < 0) {
		note(reader, "rate", -EBADMSG);
		port->rate[0] = '\0';
	}
}

void np_port_read_gid(struct np_port_reader *reader)
{
	struct np_port *port = reader->port;
	struct in6_addr gid;

	if (!read_text(reader, "gids/0", port->gid, sizeof(port->gid)))
		return;
	if (inet_pton(AF_INET6, port->gid, &gid) != 1) {
		note(reader, "gids/0", -EBADMSG);
		port->gid[0] = '\0';
		return;
	}
	for (int i = 8; i < 16; i++)
		port->guid = port->guid << 8 | gid.s6_addr[i];
}

/* ---- tables of a port ---- */

void np_port_read_pkey(struct np_port_reader *reader, const char *name)
{
	struct np_port *port = reader->port;
	char attr[300];
	uint64_t value;
	uint16_t *pkeys;

	snprintf(attr, sizeof(attr), "pkeys/%s", name);
	if (!read_number(reader, attr, UINT16_MAX, &value) || value == 0)
		return;
	pkeys = reallocarray(port->pkeys, port->n_pkeys + 1, sizeof(*pkeys));
	if (!pkeys) {
		reader->err = -ENOMEM;
		return;
	}
	port->pkeys = pkeys;
	pkeys[port->n_pkeys++] = (uint16_t)value;
}

static void read_pkeys(struct np_port_reader *reader)
{
	np_auto_strv struct np_strv names = { 0 };
	int r = np_dir_list(reader->fd, "pkeys", &names);

	if (r < 0 && r != -ENOENT) /* iWARP has none */
		note(reader, "pkeys", r);
	for (size_t i = 0; i < names.n; i++)
		np_port_read_pkey(reader, names.v[i]);
}

void np_port_read_counters(struct np_port_reader *reader)
{
	struct np_port *port = reader->port;
	np_auto_strv struct np_strv names = { 0 };
	int r = np_dir_list(reader->fd, "counters", &names);

	if (r < 0 && r != -ENOENT)
		note(reader, "counters", r);
	if (names.n == 0)
		return;
	port->counters = calloc(names.n, sizeof(*port->counters));
	if (!port->counters) {
		reader->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < names.n; i++) {
		struct np_counter *counter = &port->counters[port->n_counters];
		char path[300], text[64];

		if (!np_strcpy(counter->name, sizeof(counter->name), names.v[i]))
			continue;
		port->n_counters++;
		snprintf(path, sizeof(path), "counters/%s", names.v[i]);
		/* "N/A (no PMA)" is a text, too */
		counter->known = np_file_read_line_at(reader->fd, path, text, sizeof(text)) >= 0 &&
				 np_parse_u64(text, 10, UINT64_MAX, &counter->value) == 0;
	}
}

void np_port_read_sysfs(struct np_port_reader *reader, unsigned int detail)
{
	uint64_t value;

	np_port_read_state(reader);
	np_port_read_phys_state(reader);
	np_port_read_link_layer(reader);
	np_port_read_lid(reader);
	np_port_read_sm_lid(reader);
	np_port_read_rate(reader);
	np_port_read_gid(reader);
	if (!(detail & NP_CA_COUNTERS))
		return;
	if (read_number(reader, "sm_sl", UINT32_MAX, &value))
		reader->port->sm_sl = (uint32_t)value;
	if (read_number(reader, "lid_mask_count", UINT32_MAX, &value))
		reader->port->lmc = (uint32_t)value;
	if (read_number(reader, "cap_mask", UINT32_MAX, &value))
		reader->port->cap_mask = (uint32_t)value;
	read_pkeys(reader);
	np_port_read_counters(reader);
}

/* ---- the CA itself ---- */

void np_ca_read_text(int ca_fd, const char *attr, char *out, size_t size)
{
	if (np_file_read_line_at(ca_fd, attr, out, size) < 0)
		out[0] = '\0';
}

/* "506b:4b03:00f5:ce9c"; 0 = unknown */
static uint64_t read_guid(int ca_fd, const char *attr)
{
	char text[40], digits[40];
	size_t n = 0;
	uint64_t guid = 0;

	if (np_file_read_line_at(ca_fd, attr, text, sizeof(text)) < 0)
		return 0;
	for (const char *c = text; *c; c++)
		if (*c != ':')
			digits[n++] = *c;
	digits[n] = '\0';
	if (n != 16 || np_parse_u64(digits, 16, UINT64_MAX, &guid) < 0)
		return 0;
	return guid;
}

void np_ca_read_sysfs(int ca_fd, struct np_ca *ca, unsigned int detail)
{
	char text[32];
	uint64_t type;

	if (np_file_read_line_at(ca_fd, "node_type", text, sizeof(text)) >= 0) {
		text[strcspn(text, ":")] = '\0';
		if (np_parse_u64(text, 10, NP_NODE_UNSPECIFIED, &type) == 0)
			ca->node_type = (enum np_node_type)type;
	}
	np_ca_read_text(ca_fd, "hca_type", ca->ca_type, sizeof(ca->ca_type));
	if (detail & NP_CA_LEAN)
		return;
	np_ca_read_text(ca_fd, "fw_ver", ca->fw_ver, sizeof(ca->fw_ver));
	np_ca_read_text(ca_fd, "hw_rev", ca->hw_rev, sizeof(ca->hw_rev));
	ca->node_guid = read_guid(ca_fd, "node_guid");
	ca->sys_image_guid = read_guid(ca_fd, "sys_image_guid");
}
