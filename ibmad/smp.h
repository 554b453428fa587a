/* SPDX-License-Identifier: MIT */
#ifndef NP_IBMAD_SMP_H
#define NP_IBMAD_SMP_H

#include "ibmad/ca.h"

/*
 * Subnet management packets: what a port itself says, over its umad device, and
 * not what the kernel remembers. Offsets and values are those of the InfiniBand
 * Architecture Specification volume 1, chapter 14; "IBA" below.
 */

/* LinkWidth*, IBA 14.2.5.6 (2X since release 1.3.1) */
enum np_link_width {
	NP_WIDTH_1X = 1 << 0,
	NP_WIDTH_4X = 1 << 1,
	NP_WIDTH_8X = 1 << 2,
	NP_WIDTH_12X = 1 << 3,
	NP_WIDTH_2X = 1 << 4,
};

/* LinkSpeed*, LinkSpeedExt* and LinkSpeedExt*2 in one mask, slowest first */
enum np_link_speed {
	NP_SPEED_SDR = 1 << 0,
	NP_SPEED_DDR = 1 << 1,
	NP_SPEED_QDR = 1 << 2,
	NP_SPEED_FDR = 1 << 3,
	NP_SPEED_EDR = 1 << 4,
	NP_SPEED_HDR = 1 << 5,
	NP_SPEED_NDR = 1 << 6,
	NP_SPEED_XDR = 1 << 7,
};

/* PortInfo, IBA 14.2.5.6 */
struct np_port_info {
	int num; /* LocalPortNum: the port that answered */
	enum np_port_state state;
	enum np_phys_state phys_state;
	uint32_t lid, sm_lid, sm_sl, lmc, cap_mask;
	/* Masks of the enums above. An active one has a bit at most, 0 = none that is
	 * known; an enabled one is limited to what is supported. */
	unsigned int width_supported, width_enabled, width_active;
	unsigned int speed_supported, speed_enabled, speed_active;
};

/* NodeInfo, IBA 14.2.5.3 */
struct np_node_info {
	enum np_node_type type;
	int n_ports;
	uint64_t sys_image_guid, node_guid, port_guid;
	uint32_t vendor_id, device_id; /* vendor: the 24-bit OUI */
};

enum np_sm_state {
	NP_SM_NOT_ACTIVE = 0,
	NP_SM_DISCOVERING = 1,
	NP_SM_STANDBY = 2,
	NP_SM_MASTER = 3,
};

/* SMInfo, IBA 14.2.5.13 */
struct np_sm_info {
	uint64_t guid;
	uint32_t activity; /* ActCount: grows while the subnet manager works */
	unsigned int priority;
	enum np_sm_state state;
};

#define NP_SMP_DATA 64 /* bytes of an attribute, IBA 14.2.1 */

void np_port_info_decode(const uint8_t data[NP_SMP_DATA], struct np_port_info *out);
void np_node_info_decode(const uint8_t data[NP_SMP_DATA], struct np_node_info *out);
void np_sm_info_decode(const uint8_t data[NP_SMP_DATA], struct np_sm_info *out);

/* Lanes of the widest in a mask, 0 for none. */
int np_width_lanes(unsigned int mask);
/* The fastest in a mask as sysfs names it, "EDR"; "" for none. */
const char *np_speed_str(unsigned int mask);
/* Bit of a name of np_speed_str, 0 for another one. FDR10 is a vendor's speed that
 * PortInfo shows as QDR. */
unsigned int np_speed_parse(const char *name);
const char *np_sm_state_str(enum np_sm_state state); /* "MASTER", ... */

/* A port's umad device. */
struct np_smp {
	char device[96];      /* "/dev/infiniband/umad0" */
	int fd;		      /* as libibumad gives it, -1 = closed */
	int directed, routed; /* agents */
	uint32_t sequence;
	void *umad; /* buffer */
};

/* Opens port @num of @ca. Returns 0, or a negative errno with message:
 *   -ENOENT  the kernel offers no umad device for it, or its node is missing
 *   -EACCES, -EPERM  no permission for the node
 *   -EOPNOTSUPP  the port has no queue pair 0: RoCE, a virtual function
 * and others of open(2). Codes: selftest.umad.no_device, .permission, .no_qp0 and
 * .open. np_smp_close closes. */
int np_smp_open(const char *ca, int num, struct np_smp *out, struct np_err *err) np_must_check;
void np_smp_close(struct np_smp *smp);
#define np_auto_smp np_auto(np_smp_close)

enum np_smp_attr {
	NP_SMP_NODE_INFO = 0x0011,
	NP_SMP_PORT_INFO = 0x0015,
	NP_SMP_SM_INFO = 0x0020,
};

/* Get(@attr) with @modifier: of the local port by a directed route without hops
 * (@lid 0), else of the port with @lid. One try of @timeout_ms. Returns 0 with
 * @data filled, or a negative errno with message:
 *   -ETIMEDOUT  no answer, code selftest.umad.no_answer
 *   -EPROTO     an answer with a status that is not 0, code selftest.umad.refused
 *   others      libibumad could not send or receive, code selftest.umad.io */
int np_smp_get(struct np_smp *smp, enum np_smp_attr attr, uint32_t modifier, uint32_t lid,
	       int timeout_ms, uint8_t data[NP_SMP_DATA], struct np_err *err) np_must_check;

#endif
