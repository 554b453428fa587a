// SPDX-License-Identifier: GPL-2.0
/* The fabric: which HCAs there are, and the way of a packet from one port to another. */
#include <linux/platform_device.h>

#include "rxe.h"
#include "rxe_loc.h"

static struct rxe_dev __rcu *slots[SOFTIB_SLOTS];
static DEFINE_SPINLOCK(slots_lock);

/* The GUID reads like one of a real HCA; its last two bytes are the slot. */
#define GUID_BASE 0x506b4b0300f50000ULL

void softib_gid_of(unsigned int slot, union ib_gid *gid)
{
	gid->global.subnet_prefix = cpu_to_be64(RXE_PORT_SUBNET_PREFIX);
	gid->global.interface_id = cpu_to_be64(GUID_BASE | (slot & 0xffff));
}

unsigned int softib_slot_of(const void *gid)
{
	const u8 *raw = gid;

	return raw[14] << 8 | raw[15];
}

int softib_join(struct rxe_dev *rxe)
{
	struct softib *ib = &rxe->softib;
	int slot;

	spin_lock(&slots_lock);
	for (slot = 0; slot < SOFTIB_SLOTS; slot++)
		if (!rcu_access_pointer(slots[slot]))
			break;
	ib->slot = slot < SOFTIB_SLOTS ? slot : -1;
	if (ib->slot >= 0)
		rcu_assign_pointer(slots[slot], rxe);
	spin_unlock(&slots_lock);
	if (ib->slot < 0)
		return -ENOSPC;
	ib->guid = cpu_to_be64(GUID_BASE | slot);
	ib->lid = SOFTIB_SM_LID + 1 + slot;
	ib->sm_lid = SOFTIB_SM_LID;
	ib->width = IB_WIDTH_4X;
	ib->speed = IB_SPEED_EDR;
	return 0;
}

/* Takes the device off the fabric; called by the core when nobody uses it any more. */
void softib_leave(struct rxe_dev *rxe)
{
	struct softib *ib = &rxe->softib;

	spin_lock(&slots_lock);
	if (ib->slot >= 0 && rcu_access_pointer(slots[ib->slot]) == rxe)
		rcu_assign_pointer(slots[ib->slot], NULL);
	spin_unlock(&slots_lock);
	synchronize_rcu();
	softib_knobs_remove(rxe);
	platform_device_unregister(ib->parent);
	ib->parent = NULL;
}

struct rxe_dev *softib_get_slot(unsigned int slot)
{
	struct rxe_dev *rxe = NULL;

	rcu_read_lock();
	if (slot < SOFTIB_SLOTS)
		rxe = rcu_dereference(slots[slot]);
	if (rxe && !ib_device_try_get(&rxe->ib_dev))
		rxe = NULL;
	rcu_read_unlock();
	return rxe;
}

struct rxe_dev *softib_get_lid(u16 lid)
{
	unsigned int slot;

	for (slot = 0; slot < SOFTIB_SLOTS; slot++) {
		struct rxe_dev *rxe = softib_get_slot(slot);

		if (rxe && rxe->softib.lid == lid)
			return rxe;
		if (rxe)
			ib_device_put(&rxe->ib_dev);
	}
	return NULL;
}

/* For rmmod: ib_unregister_driver would also take the devices of the stock rdma_rxe. */
void softib_unregister_all(void)
{
	unsigned int slot;

	for (slot = 0; slot < SOFTIB_SLOTS; slot++) {
		struct rxe_dev *rxe = softib_get_slot(slot);

		if (rxe)
			ib_unregister_device_and_put(&rxe->ib_dev);
	}
}

bool softib_is_active(struct rxe_dev *rxe)
{
	return READ_ONCE(rxe->port.attr.state) == IB_PORT_ACTIVE;
}

/* Subnet management needs no more than a link (IBTA 7.2.7). */
static bool carries(struct rxe_dev *rxe, struct rxe_qp *qp)
{
	if (qp_type(qp) == IB_QPT_SMI)
		return READ_ONCE(rxe->port.attr.state) != IB_PORT_DOWN;
	return softib_is_active(rxe);
}

static void count(atomic64_t *packets, atomic64_t *bytes, struct rxe_pkt_info *pkt)
{
	atomic64_inc(packets);
	atomic64_add(pkt->paylen, bytes);
}

/* Breaks a bit of user data, in the middle of a packet and so behind all headers. Whoever sends
 * it again sends it whole: the packet is a copy of what is in memory. */
static void corrupt(struct rxe_dev *rxe, struct rxe_qp *qp, struct rxe_pkt_info *pkt)
{
	u16 each = READ_ONCE(rxe->softib.corrupt);

	if (!each || qp_type(qp) != IB_QPT_RC || pkt->paylen < SOFTIB_LARGE ||
	    atomic_inc_return(&rxe->softib.large_packets) % each)
		return;
	((u8 *)payload_addr(pkt))[payload_size(pkt) / 2] ^= 0x10;
}

/* Hands @skb to @to, whose reference goes with it. rxe_rcv expects what a UDP socket
 * would give: the packet without its IPv6 and UDP headers. */
static void deliver(struct rxe_dev *to, struct sk_buff *skb, const struct rxe_pkt_info *pkt)
{
	struct rxe_pkt_info *in = SKB_TO_PKT(skb);

	memcpy(in, pkt, sizeof(*in));
	in->rxe = to;
	in->qp = NULL; /* the sender's, whose reference is not ours to give back */
	in->mask |= RXE_GRH_MASK | RXE_LOOPBACK_MASK; /* the second: trust the destination GID */
	in->hdr = skb->data + sizeof(struct ipv6hdr) + sizeof(struct udphdr);
	skb_pull(skb, sizeof(struct ipv6hdr) + sizeof(struct udphdr));
	count(&to->softib.rcv_packets, &to->softib.rcv_bytes, in);
	rxe_rcv(skb);
}

/* To every other active port, as a switch does; a port that joined no such group drops it. */
static void multicast(struct rxe_dev *from, struct sk_buff *skb, struct rxe_pkt_info *pkt)
{
	unsigned int slot;

	for (slot = 0; slot < SOFTIB_SLOTS; slot++) {
		struct rxe_dev *to = softib_get_slot(slot);
		struct sk_buff *copy = NULL;

		if (to && to != from && softib_is_active(to))
			copy = skb_copy(skb, GFP_ATOMIC);
		if (copy)
			deliver(to, copy, pkt);
		else if (to)
			ib_device_put(&to->ib_dev);
	}
	kfree_skb(skb);
}

/* The subnet manager has no port of its own: it answers in the asker's packet. */
static bool ask_sm(struct rxe_dev *rxe, struct rxe_qp *qp, struct sk_buff *skb,
		   struct rxe_pkt_info *pkt)
{
	struct ipv6hdr *ip = ipv6_hdr(skb);
	u8 *mad = payload_addr(pkt);

	if (!softib_sa_is_on() || payload_size(pkt) < IB_MGMT_MAD_SIZE)
		return false;
	if (qp_type(qp) == IB_QPT_SMI) {
		if (!softib_sm_answer(mad))
			return false;
	} else if (qp_type(qp) != IB_QPT_GSI || mad[1] != IB_MGMT_CLASS_SUBN_ADM ||
		   (mad[3] & IB_MGMT_METHOD_RESP)) {
		return false;
	} else {
		softib_sa_answer(rxe, mad);
	}
	swap(ip->saddr, ip->daddr);
	return true;
}

/* Takes @skb in any case. A packet to nowhere is lost, as on a real fabric. */
int softib_transmit(struct rxe_dev *rxe, struct rxe_qp *qp, struct sk_buff *skb,
		    struct rxe_pkt_info *pkt)
{
	unsigned int slot = softib_slot_of(&ipv6_hdr(skb)->daddr);
	struct rxe_dev *to;

	if (!carries(rxe, qp))
		goto drop;
	count(&rxe->softib.xmit_packets, &rxe->softib.xmit_bytes, pkt);
	corrupt(rxe, qp, pkt);
	if (ipv6_hdr(skb)->daddr.s6_addr[0] == 0xff) {
		multicast(rxe, skb, pkt);
		return 0;
	}
	if (slot == SOFTIB_SM_SLOT) {
		if (!ask_sm(rxe, qp, skb, pkt))
			goto drop;
		slot = rxe->softib.slot;
	}
	to = softib_get_slot(slot);
	if (!to)
		goto drop;
	if (!carries(to, qp)) {
		ib_device_put(&to->ib_dev);
		goto drop;
	}
	deliver(to, skb, pkt);
	return 0;
drop:
	kfree_skb(skb);
	return 0;
}
