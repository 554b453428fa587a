// SPDX-License-Identifier: GPL-2.0
/* Addresses and packets. A packet carries an IPv6 header in place of LRH and GRH, as rxe's
 * packets do: GIDs as its addresses, and in the last byte of the flow label whether the
 * sender used a GRH. Nothing leaves the machine, so nothing else has to be right in it. */
#include <linux/netdevice.h>
#include <linux/platform_device.h>
#include <net/ip6_checksum.h>
#include <rdma/ib_addr.h>

#include "rxe.h"
#include "rxe_loc.h"
#include "rxe_net.h"

static bool parent = true;
module_param(parent, bool, 0644);
MODULE_PARM_DESC(parent, "give HCAs a parent device, so that netdevs link to them (default: yes)");

/* dmac is free in rxe_av, since there is no Ethernet: it keeps what query_ah gives back. */
struct softib_dmac {
	__be16 dlid;
	u8 has_grh;
	u8 sl;
} __packed;

void softib_init_av(struct rxe_dev *rxe, struct rdma_ah_attr *attr, struct rxe_av *av)
{
	struct softib_dmac *mac = (struct softib_dmac *)av->dmac;
	u16 dlid = rdma_ah_get_dlid(attr);
	union ib_gid sgid, dgid = {};
	struct rxe_dev *to;

	memset(av, 0, sizeof(*av));
	mac->dlid = cpu_to_be16(dlid);
	mac->sl = rdma_ah_get_sl(attr);
	softib_gid_of(rxe->softib.slot, &sgid);
	if (rdma_ah_get_ah_flags(attr) & IB_AH_GRH) {
		const struct ib_global_route *grh = rdma_ah_read_grh(attr);

		mac->has_grh = 1;
		dgid = grh->dgid;
		av->grh.flow_label = grh->flow_label;
		av->grh.hop_limit = grh->hop_limit;
		av->grh.traffic_class = grh->traffic_class;
	} else if (dlid == rxe->softib.sm_lid) {
		softib_gid_of(SOFTIB_SM_SLOT, &dgid);
	} else {
		to = softib_get_lid(dlid);
		if (!to) {
			softib_gid_of(SOFTIB_NO_SLOT, &dgid);
		} else {
			softib_gid_of(to->softib.slot, &dgid);
			ib_device_put(&to->ib_dev);
		}
	}
	memcpy(av->grh.dgid.raw, dgid.raw, sizeof(dgid.raw));
	av->port_num = rdma_ah_get_port_num(attr);
	av->network_type = RXE_NETWORK_TYPE_IPV6;
	av->sgid_addr._sockaddr_in6.sin6_family = AF_INET6;
	av->dgid_addr._sockaddr_in6.sin6_family = AF_INET6;
	memcpy(&av->sgid_addr._sockaddr_in6.sin6_addr, sgid.raw, sizeof(sgid.raw));
	memcpy(&av->dgid_addr._sockaddr_in6.sin6_addr, dgid.raw, sizeof(dgid.raw));
}

int rxe_av_chk_attr(struct rxe_dev *rxe, struct rdma_ah_attr *attr)
{
	return 0;
}

void rxe_av_to_attr(struct rxe_av *av, struct rdma_ah_attr *attr)
{
	const struct softib_dmac *mac = (struct softib_dmac *)av->dmac;

	attr->type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_dlid(attr, be16_to_cpu(mac->dlid));
	rdma_ah_set_sl(attr, mac->sl);
	rdma_ah_set_port_num(attr, av->port_num);
	if (mac->has_grh) {
		struct ib_global_route *grh = rdma_ah_retrieve_grh(attr);

		memcpy(grh->dgid.raw, av->grh.dgid.raw, sizeof(grh->dgid.raw));
		grh->flow_label = av->grh.flow_label;
		grh->hop_limit = av->grh.hop_limit;
		grh->traffic_class = av->grh.traffic_class;
		rdma_ah_set_ah_flags(attr, IB_AH_GRH);
	}
}

struct rxe_av *rxe_get_av(struct rxe_pkt_info *pkt, struct rxe_ah **ahp)
{
	struct rxe_ah *ah;

	if (ahp)
		*ahp = NULL;
	if (!pkt || !pkt->qp)
		return NULL;
	if (qp_type(pkt->qp) == IB_QPT_RC || qp_type(pkt->qp) == IB_QPT_UC)
		return &pkt->qp->pri_av;
	/* A provider that is too old to number its AHs is older than this kernel's users. */
	if (!pkt->wqe || !pkt->wqe->wr.wr.ud.ah_num)
		return NULL;
	ah = rxe_pool_get_index(&pkt->rxe->ah_pool, pkt->wqe->wr.wr.ud.ah_num);
	if (!ah)
		return NULL;
	if (rxe_ah_pd(ah) != pkt->qp->pd) {
		rxe_put(ah);
		return NULL;
	}
	if (ahp)
		*ahp = ah;
	else
		rxe_put(ah);
	return &ah->av;
}

struct sk_buff *rxe_init_packet(struct rxe_dev *rxe, struct rxe_av *av, int paylen,
				struct rxe_pkt_info *pkt)
{
	unsigned int headroom = sizeof(struct udphdr) + sizeof(struct ipv6hdr) + ETH_HLEN;
	struct sk_buff *skb = alloc_skb(paylen + headroom, GFP_ATOMIC);

	if (!skb)
		return NULL;
	skb_reserve(skb, headroom);
	skb->dev = rxe->ndev;
	skb->protocol = htons(ETH_P_IPV6);
	pkt->rxe = rxe;
	pkt->port_num = 1;
	pkt->hdr = skb_put(skb, paylen);
	pkt->mask |= RXE_GRH_MASK;
	return skb;
}

int rxe_prepare(struct rxe_av *av, struct rxe_pkt_info *pkt, struct sk_buff *skb)
{
	const struct softib_dmac *mac = (struct softib_dmac *)av->dmac;
	struct udphdr *udp;
	struct ipv6hdr *ip;

	udp = __skb_push(skb, sizeof(*udp));
	skb_reset_transport_header(skb);
	memset(udp, 0, sizeof(*udp));
	udp->len = htons(skb->len);
	ip = __skb_push(skb, sizeof(*ip));
	skb_reset_network_header(skb);
	ip6_flow_hdr(ip, av->grh.traffic_class, 0);
	ip->flow_lbl[2] = mac->has_grh;
	ip->payload_len = htons(skb->len - sizeof(*ip));
	ip->nexthdr = 0x1b; /* IBTA 8.3.1: the next header of a GRH is a BTH */
	ip->hop_limit = av->grh.hop_limit;
	memcpy(&ip->saddr, &av->sgid_addr._sockaddr_in6.sin6_addr, sizeof(ip->saddr));
	memcpy(&ip->daddr, &av->dgid_addr._sockaddr_in6.sin6_addr, sizeof(ip->daddr));
	return 0;
}

int rxe_xmit_packet(struct rxe_qp *qp, struct rxe_pkt_info *pkt, struct sk_buff *skb)
{
	struct rxe_dev *rxe = to_rdev(qp->ibqp.device);
	bool is_request = pkt->mask & RXE_REQ_MASK;
	int err;

	if ((is_request && qp->req.state != QP_STATE_READY) ||
	    (!is_request && qp->resp.state != QP_STATE_READY)) {
		kfree_skb(skb);
		return 0;
	}
	err = softib_transmit(rxe, qp, skb, pkt);
	if (err) {
		rxe_counter_inc(rxe, RXE_CNT_SEND_ERR);
		return err;
	}
	if (qp_type(qp) != IB_QPT_RC && (pkt->mask & RXE_END_MASK)) {
		pkt->wqe->state = wqe_state_done;
		rxe_sched_task(&qp->comp.task);
	}
	rxe_counter_inc(rxe, RXE_CNT_SENT_PKTS);
	return 0;
}

/* No checksums: memory does not lose bits, and half the time of a transfer went into them. */
int rxe_icrc_init(struct rxe_dev *rxe)
{
	return 0;
}

int rxe_icrc_check(struct sk_buff *skb, struct rxe_pkt_info *pkt)
{
	return 0;
}

int softib_wc_flags(struct sk_buff *skb)
{
	return ipv6_hdr(skb)->flow_lbl[2] ? IB_WC_GRH : 0;
}

u16 softib_slid(struct sk_buff *skb)
{
	unsigned int slot = softib_slot_of(&ipv6_hdr(skb)->saddr);
	struct rxe_dev *from;
	u16 lid = 0;

	if (slot == SOFTIB_SM_SLOT)
		return SOFTIB_SM_LID;
	from = softib_get_slot(slot);
	if (from) {
		lid = from->softib.lid;
		ib_device_put(&from->ib_dev);
	}
	return lid;
}

const char *rxe_parent_name(struct rxe_dev *rxe, unsigned int port_num)
{
	return rxe->ndev->name;
}

/* "rdma link add NAME type softib netdev lo": the command wants a netdev, and lo is one
 * that stays. Nothing is sent over it. */
int rxe_net_add(const char *name, struct net_device *ndev)
{
	struct rxe_dev *rxe;
	int err;

	if (!net_eq(dev_net(ndev), &init_net) || !(ndev->flags & IFF_LOOPBACK))
		return -EINVAL;
	rxe = ib_alloc_device(rxe_dev, ib_dev);
	if (!rxe)
		return -ENOMEM;
	rxe->ndev = ndev;
	rxe->attr.fw_ver = 1ULL << 32; /* 1.0.0, as softib_fw_str says */
	err = softib_join(rxe);
	if (err)
		goto fail;
	if (parent) {
		rxe->softib.parent =
			platform_device_register_simple("softib", rxe->softib.slot, NULL, 0);
		if (IS_ERR(rxe->softib.parent)) {
			err = PTR_ERR(rxe->softib.parent);
			rxe->softib.parent = NULL;
			goto fail;
		}
		rxe->ib_dev.dev.parent = &rxe->softib.parent->dev;
	}
	softib_knobs_add(rxe, name);
	err = rxe_add(rxe, 4096 + RXE_MAX_HDR_LENGTH, name);
	if (err)
		goto fail;
	return 0;
fail:
	ib_dealloc_device(&rxe->ib_dev);
	return err;
}

int rxe_net_init(void)
{
	softib_knobs_init();
	return 0;
}

void rxe_net_exit(void)
{
	softib_knobs_exit();
}
