/* SPDX-License-Identifier: MIT */
#ifndef NP_IBMAD_CA_H
#define NP_IBMAD_CA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pci.h"
#include "base/str.h"

/*
 * Channel adapters and their ports, as libibumad reads them from sysfs. One
 * unreadable attribute fails a whole CA there, so then each attribute is read
 * by itself; the same where libibumad's value may be a guess. What cannot be
 * read is unknown, never a guess.
 */

/* PortState, IBA 14.2.5.6 table 146; as in sysfs `state` */
enum np_port_state {
	NP_PORT_UNKNOWN = 0,
	NP_PORT_DOWN = 1,
	NP_PORT_INIT = 2,
	NP_PORT_ARMED = 3,
	NP_PORT_ACTIVE = 4,
	NP_PORT_ACTIVE_DEFER = 5,
};

/* PortPhysicalState, same table; as in sysfs `phys_state` */
enum np_phys_state {
	NP_PHYS_UNKNOWN = 0,
	NP_PHYS_SLEEP = 1,
	NP_PHYS_POLLING = 2,
	NP_PHYS_DISABLED = 3,
	NP_PHYS_TRAINING = 4,
	NP_PHYS_LINKUP = 5,
	NP_PHYS_ERROR_RECOVERY = 6,
	NP_PHYS_TEST = 7,
};

/* Omni-Path (driver hfi1) says "InfiniBand" in sysfs, but no InfiniBand check holds for it. */
enum np_link_layer { NP_LL_UNKNOWN, NP_LL_INFINIBAND, NP_LL_ETHERNET, NP_LL_OMNIPATH };

/* sysfs `node_type` (RDMA_NODE_* of the kernel's rdma/ib_verbs.h) */
enum np_node_type {
	NP_NODE_UNKNOWN = 0,
	NP_NODE_CA = 1,
	NP_NODE_SWITCH = 2,
	NP_NODE_ROUTER = 3,
	NP_NODE_RNIC = 4, /* iWARP */
	NP_NODE_USNIC = 5,
	NP_NODE_USNIC_UDP = 6,
	NP_NODE_UNSPECIFIED = 7, /* e.g. efa */
};

struct np_counter {
	char name[40]; /* sysfs file name, e.g. port_rcv_data (units of 4 bytes) */
	bool known;    /* false: unreadable or not a number */
	uint64_t value;
};

struct np_port {
	int num; /* 1-based (0 on switches) */
	enum np_port_state state;
	enum np_phys_state phys_state;
	enum np_link_layer link_layer;
	char link_layer_raw[24];  /* as in sysfs; "" = unreadable */
	bool has_lid, has_sm_lid; /* false: unreadable */
	uint32_t lid, sm_lid;
	uint32_t sm_sl, lmc, cap_mask; /* with NP_CA_COUNTERS; 0 = unknown too */
	/* "100 Gb/sec (4X EDR)"; "" = unknown */
	char rate[40];
	double rate_gbps; /* 0 = unknown; 2.5 is 2.5 */
	int width;	  /* lanes: 1, 2, 4, 8, 12; 0 = unknown */
	char speed[8];	  /* "SDR".."XDR"; "" = unknown */
	char gid[48];	  /* default GID (index 0) as in sysfs, "" = unknown */
	uint64_t guid;	  /* lower half of that GID, host order; 0 = unknown */
	uint16_t *pkeys;  /* with NP_CA_COUNTERS: non-zero entries, table order */
	size_t n_pkeys;
	struct np_counter *counters; /* with NP_CA_COUNTERS */
	size_t n_counters;
	struct np_strv unreadable; /* attributes without a value, "rate: Invalid argument" */
};

struct np_ca {
	char name[64];
	enum np_node_type node_type;
	char ca_type[40], fw_ver[40], hw_rev[40], board_id[64], driver[40]; /* "" = unknown */
	uint64_t node_guid, sys_image_guid; /* host order; 0 = unknown */
	bool management_only;		    /* NVSwitch management HCA: its VPD carries SW_MNG */
	bool from_libibumad;		    /* false: attribute by attribute from sysfs */
	int numa_node;			    /* -1 = none or unknown */
	struct np_pci pci;		    /* by np_cas_read_pci alone */
	struct np_strv netdevs;		    /* device/net/, natural order */
	/* Ascending. When they cannot be listed: port 1 with everything unknown,
	 * so that nobody takes the CA for one without trouble. */
	struct np_port *ports;
	size_t n_ports;
};

struct np_cas {
	struct np_ca *v; /* natural order of names */
	size_t n;
};

enum np_ca_detail {
	NP_CA_BASIC = 0,
	NP_CA_COUNTERS = 1 << 0,   /* counters, pkeys, sm_sl, lmc, cap_mask too */
	NP_CA_SYSFS_ONLY = 1 << 1, /* without libibumad, which also reads every pkey */
	/* What judging and planning need: by sysfs, and without firmware, revision, board,
	 * GUIDs of the CA and NUMA node (np_cas_read_numa). */
	NP_CA_LEAN = 1 << 2,
};

/* All RDMA devices, iWARP and Omni-Path too. None at all is an empty list (the
 * ghost CA that libibumad reports then is left out); one that vanishes meanwhile
 * is left out. Returns 0 or a negative errno with message (code
 * "port.unreadable"). np_cas_done frees. */
int np_cas_observe(unsigned int detail, struct np_cas *out, struct np_err *err) np_must_check;
void np_cas_done(struct np_cas *list);

/* Adds the NUMA node of each, which NP_CA_LEAN leaves out. */
void np_cas_read_numa(struct np_cas *list);

/* Adds place and link of each on PCI (base/pci.h): a dozen small reads a CA. */
void np_cas_read_pci(struct np_cas *list);

const struct np_ca *np_cas_find(const struct np_cas *list, const char *ca);
const struct np_port *np_cas_find_port(const struct np_cas *list, const char *ca, int port);

/* Reads state, phys_state and link layer of one port again (for waiting); what
 * cannot be read now becomes unknown, `unreadable` is left as it was. Returns 0,
 * or a negative errno when the port is gone (then @port is untouched). */
int np_port_refresh(const char *ca, struct np_port *port) np_must_check;

/* Words of ibstat and ibstatus. */
const char *np_port_state_str(enum np_port_state s); /* "ACTIVE", "INIT", ..., "unknown" */
const char *np_phys_state_str(enum np_phys_state s); /* "LinkUp", "Polling", ..., "unknown" */
const char *
np_link_layer_str(enum np_link_layer l); /* "InfiniBand", "Ethernet", "Omni-Path", "unknown" */

/* Lanes and speed name of a sysfs rate text, "100 Gb/sec (4X EDR)"; unknown parts
 * are left 0 or "". No table: any rate is taken as it stands. Returns 0, or
 * -EINVAL when nothing could be made of it (outputs untouched). */
int np_rate_parse(const char *text, double *gbps, int *width, char speed[8]) np_must_check;

/* "CA" or "CA:PORT" (1..254); without a port *port is 0 (meaning: every port).
 * The name must look like an RDMA device name (letters, digits, '_', '-', '.',
 * the first a letter or digit; < 64). Returns 0 or -EINVAL with message (code
 * "usage.port_name"). */
int np_port_name_parse(const char *text, char ca[64], int *port, struct np_err *err) np_must_check;

#endif
