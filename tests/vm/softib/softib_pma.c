// SPDX-License-Identifier: GPL-2.0
/* Performance management: the counters that sysfs shows under ports/1/counters, so that a
 * test can see that its bytes crossed the port. IBTA 16.1.3.5; data counts in words of 4. */
#include <rdma/ib_pma.h>

#include "rxe.h"
#include "rxe_loc.h"

static __be32 low32(u64 value)
{
	return cpu_to_be32(min_t(u64, value, U32_MAX));
}

static void counters(struct softib *ib, struct rxe_dev *rxe, struct ib_pma_portcounters *out)
{
	u64 downed = atomic64_read(&rxe->stats_counters[RXE_CNT_LINK_DOWNED]);

	out->port_select = 1;
	out->link_downed_counter = min_t(u64, downed, U8_MAX);
	out->port_xmit_data = low32(atomic64_read(&ib->xmit_bytes) / 4);
	out->port_rcv_data = low32(atomic64_read(&ib->rcv_bytes) / 4);
	out->port_xmit_packets = low32(atomic64_read(&ib->xmit_packets));
	out->port_rcv_packets = low32(atomic64_read(&ib->rcv_packets));
}

static void counters_ext(struct softib *ib, struct ib_pma_portcounters_ext *out)
{
	out->port_select = 1;
	out->port_xmit_data = cpu_to_be64(atomic64_read(&ib->xmit_bytes) / 4);
	out->port_rcv_data = cpu_to_be64(atomic64_read(&ib->rcv_bytes) / 4);
	out->port_xmit_packets = cpu_to_be64(atomic64_read(&ib->xmit_packets));
	out->port_rcv_packets = cpu_to_be64(atomic64_read(&ib->rcv_packets));
}

int softib_process_mad(struct ib_device *dev, int flags, u32 port_num, const struct ib_wc *wc,
		       const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
		       size_t *out_size, u16 *out_pkey_index)
{
	struct rxe_dev *rxe = to_rdev(dev);
	u8 *data = (u8 *)out + 64; /* where PMA attributes start */

	if (in->mad_hdr.mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE ||
	    in->mad_hdr.mgmt_class == IB_MGMT_CLASS_SUBN_LID_ROUTED)
		return softib_sma_answer(rxe, in, out);
	if (in->mad_hdr.mgmt_class != IB_MGMT_CLASS_PERF_MGMT ||
	    in->mad_hdr.method != IB_MGMT_METHOD_GET)
		return IB_MAD_RESULT_SUCCESS;
	*out = *in;
	out->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	memset(data, 0, sizeof(*out) - 64);
	switch (in->mad_hdr.attr_id) {
	case IB_PMA_CLASS_PORT_INFO: {
		struct ib_class_port_info *info = (struct ib_class_port_info *)data;

		info->base_version = 1;
		info->class_version = 1;
		info->capability_mask = IB_PMA_CLASS_CAP_EXT_WIDTH;
		break;
	}
	case IB_PMA_PORT_COUNTERS:
		counters(&rxe->softib, rxe, (struct ib_pma_portcounters *)data);
		break;
	case IB_PMA_PORT_COUNTERS_EXT:
		counters_ext(&rxe->softib, (struct ib_pma_portcounters_ext *)data);
		break;
	default:
		out->mad_hdr.status = cpu_to_be16(IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB);
	}
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
