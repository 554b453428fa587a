// SPDX-License-Identifier: GPL-2.0
/* The subnet management agent behind queue pair 0: what the port says of itself, for the
 * same state that softib_query_port tells the kernel. It answers Get; nothing is set by
 * management packets here, the knobs do that. IBTA 14.2.5. */
#include <asm/unaligned.h>
#include <rdma/ib_smi.h>

#include "rxe.h"
#include "rxe_loc.h"

static bool smi = true;
module_param(smi, bool, 0644);
MODULE_PARM_DESC(smi, "new HCAs have queue pair 0; N: none, as a virtual function (default: yes)");

/* What the port can do; a knob may set more, which it then can do as well. */
#define WIDTHS	   (IB_WIDTH_1X | IB_WIDTH_4X)
#define SPEEDS	   (IB_SPEED_SDR | IB_SPEED_DDR | IB_SPEED_QDR)
#define EXT_SPEEDS 3 /* FDR, EDR */
#define SM_MASTER  3
#define SM_PRIO	   (14 << 4)

/* All of InfiniBand, or all but QP0. */
u32 softib_core_caps(void)
{
	return smi ? RDMA_CORE_PORT_IBA_IB : RDMA_CORE_PORT_IBA_IB & ~RDMA_CORE_CAP_IB_SMI;
}

static void node_info(struct rxe_dev *rxe, u8 *data)
{
	struct ib_node_info *info = (struct ib_node_info *)data;

	info->base_version = 1;
	info->class_version = 1;
	info->node_type = RDMA_NODE_IB_CA;
	info->num_ports = 1;
	info->sys_guid = rxe->attr.sys_image_guid;
	info->node_guid = rxe->ib_dev.node_guid;
	info->port_guid = rxe->softib.guid;
	info->partition_cap = cpu_to_be16(SOFTIB_PKEYS);
	info->local_port_num = 1;
	info->vendor_id[0] = rxe->attr.vendor_id >> 16;
	info->vendor_id[1] = rxe->attr.vendor_id >> 8;
	info->vendor_id[2] = rxe->attr.vendor_id;
}

/* The speeds from FDR on are in fields of their own, 4 bits in the order of speed; the old
 * fields then say QDR. FDR10 is a vendor's, which PortInfo shows as QDR. */
static void put_speed(const struct ib_port_attr *attr, struct ib_port_info *info, u8 *data)
{
	u8 active = 0, ext = 0, supported = SPEEDS, ext_supported = EXT_SPEEDS;

	switch (attr->active_speed) {
	case IB_SPEED_SDR:
	case IB_SPEED_DDR:
	case IB_SPEED_QDR:
		active = attr->active_speed;
		break;
	case IB_SPEED_FDR:
		ext = 1;
		break;
	case IB_SPEED_EDR:
		ext = 2;
		break;
	case IB_SPEED_HDR:
		ext = 4;
		break;
	case IB_SPEED_NDR:
		ext = 8;
		break;
	}
	if (!active)
		active = IB_SPEED_QDR;
	if (ext)
		ext_supported |= 2 * ext - 1;
	info->linkspeed_portstate = supported << 4 | attr->state;
	info->linkspeedactive_enabled = active << 4 | supported;
	data[62] = ext << 4 | ext_supported;
	data[63] = ext_supported;
}

static void port_info(struct rxe_dev *rxe, u8 *data)
{
	struct ib_port_info *info = (struct ib_port_info *)data;
	struct ib_port_attr attr;
	union ib_gid gid;

	softib_query_port(&rxe->ib_dev, 1, &attr);
	softib_gid_of(rxe->softib.slot, &gid);
	info->gid_prefix = gid.global.subnet_prefix;
	info->lid = cpu_to_be16(attr.lid);
	info->sm_lid = cpu_to_be16(attr.sm_lid);
	info->cap_mask = cpu_to_be32(attr.port_cap_flags | IB_PORT_EXTENDED_SPEEDS_SUP);
	info->local_port_num = 1;
	info->link_width_active = attr.active_width;
	info->link_width_supported = WIDTHS | attr.active_width;
	info->link_width_enabled = info->link_width_supported;
	info->portphysstate_linkdown = attr.phys_state << 4 | IB_PORT_PHYS_STATE_POLLING;
	info->mkeyprot_resv_lmc = attr.lmc;
	info->neighbormtu_mastersmsl = attr.active_mtu << 4 | attr.sm_sl;
	info->vlcap_inittype = 1 << 4; /* VL0 */
	info->inittypereply_mtucap = attr.max_mtu;
	info->operationalvl_pei_peo_fpi_fpo = 1 << 4;
	info->pkey_violations = cpu_to_be16(attr.bad_pkey_cntr);
	info->qkey_violations = cpu_to_be16(attr.qkey_viol_cntr);
	info->guid_cap = 1;
	info->clientrereg_resv_subnetto = attr.subnet_timeout;
	put_speed(&attr, info, data);
}

static void pkey_table(struct rxe_dev *rxe, u8 *data)
{
	unsigned int i;

	for (i = 0; i < SOFTIB_PKEYS; i++) {
		u16 pkey = 0;

		softib_query_pkey(&rxe->ib_dev, 1, i, &pkey);
		put_unaligned_be16(pkey, data + 2 * i);
	}
}

static u16 get(struct rxe_dev *rxe, const struct ib_smp *smp, u8 *data)
{
	u32 mod = be32_to_cpu(smp->attr_mod);

	switch (smp->attr_id) {
	case IB_SMP_ATTR_NODE_DESC:
		memcpy(data, rxe->ib_dev.node_desc, IB_DEVICE_NODE_DESC_MAX);
		return 0;
	case IB_SMP_ATTR_NODE_INFO:
		node_info(rxe, data);
		return 0;
	case IB_SMP_ATTR_GUID_INFO:
		if (!mod)
			put_unaligned(rxe->softib.guid, (__be64 *)data);
		return 0;
	case IB_SMP_ATTR_PORT_INFO:
		/* 0: the port that the packet came in by */
		if (mod > 1)
			return IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE;
		port_info(rxe, data);
		return 0;
	case IB_SMP_ATTR_PKEY_TABLE:
		if (!(mod & 0xffff))
			pkey_table(rxe, data);
		return 0;
	}
	return IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB;
}

int softib_sma_answer(struct rxe_dev *rxe, const struct ib_mad *in, struct ib_mad *out)
{
	const struct ib_smp *smp = (const struct ib_smp *)in;
	struct ib_smp *answer = (struct ib_smp *)out;
	u16 status = IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD;

	if (smp->method != IB_MGMT_METHOD_GET && smp->method != IB_MGMT_METHOD_SET)
		return IB_MAD_RESULT_SUCCESS; /* an answer, for whoever asked */
	*out = *in;
	if (smp->method == IB_MGMT_METHOD_GET) {
		memset(answer->data, 0, sizeof(answer->data));
		status = get(rxe, smp, answer->data);
	}
	answer->method = IB_MGMT_METHOD_GET_RESP;
	answer->status = cpu_to_be16(status);
	if (answer->mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		answer->status |= IB_SMP_DIRECTION;
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

/* SMInfo, IBTA 14.2.5.13, in the asker's packet of 256 bytes. Other attributes of the subnet
 * manager's own port get no answer: false. */
bool softib_sm_answer(u8 *mad)
{
	static atomic_t activity = ATOMIC_INIT(0);
	struct ib_smp *smp = (struct ib_smp *)mad;
	union ib_gid gid;

	if (smp->mgmt_class != IB_MGMT_CLASS_SUBN_LID_ROUTED ||
	    smp->method != IB_MGMT_METHOD_GET || smp->attr_id != IB_SMP_ATTR_SM_INFO)
		return false;
	softib_gid_of(SOFTIB_SM_SLOT, &gid);
	memset(smp->data, 0, sizeof(smp->data));
	put_unaligned(gid.global.interface_id, (__be64 *)smp->data);
	put_unaligned_be32(atomic_inc_return(&activity), smp->data + 16);
	smp->data[20] = SM_PRIO | SM_MASTER;
	smp->method = IB_MGMT_METHOD_GET_RESP;
	smp->status = 0;
	return true;
}
