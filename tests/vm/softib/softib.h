/* SPDX-License-Identifier: GPL-2.0 */
/* softib: a software InfiniBand HCA for tests. One port a device, all devices on one
 * fabric in memory; the transport is rxe's. Included by rxe_verbs.h, before struct rxe_dev. */
#ifndef SOFTIB_H
#define SOFTIB_H

#include <linux/skbuff.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>

struct rxe_dev;
struct rxe_av;
struct rxe_qp;
struct rxe_pkt_info;
struct platform_device;

/* What a device is beyond rxe. Slots are its place on the fabric and stand in its GUID;
 * lids are what the subnet manager would have given it, and can change. */
struct softib {
	int slot; /* -1: not on the fabric */
	__be64 guid;
	u16 lid;
	u16 sm_lid;
	u16 width;     /* enum ib_port_width */
	u16 speed;     /* enum ib_port_speed */
	u8 phys_state; /* 0: as the state implies */
	u32 smi_index; /* of queue pair 0; 0: none */
	u16 corrupt;   /* each so many large packets that are sent lose a bit; 0: none */
	atomic_t large_packets;
	struct platform_device *parent;
	struct dentry *dir;
	atomic64_t xmit_packets, rcv_packets, xmit_bytes, rcv_bytes;
};

#define SOFTIB_SLOTS   64
#define SOFTIB_SM_SLOT 0xffff /* stands for the subnet manager in an address */
#define SOFTIB_NO_SLOT 0xfffe /* for a lid that nobody has */
#define SOFTIB_SM_LID  1
#define SOFTIB_PKEYS   16
#define SOFTIB_LARGE   1024 /* bytes of a packet that may be corrupted */

/* softib_fabric.c: who is where. _get gives a reference on the ib_device, or NULL. */
int softib_join(struct rxe_dev *rxe);
void softib_leave(struct rxe_dev *rxe);
void softib_unregister_all(void);
struct rxe_dev *softib_get_slot(unsigned int slot);
struct rxe_dev *softib_get_lid(u16 lid);
bool softib_is_active(struct rxe_dev *rxe);
void softib_gid_of(unsigned int slot, union ib_gid *gid);
unsigned int softib_slot_of(const void *gid);
int softib_transmit(struct rxe_dev *rxe, struct rxe_qp *qp, struct sk_buff *skb,
		    struct rxe_pkt_info *pkt);

/* softib_sa.c: answers the subnet administration MAD @mad of 256 bytes in place. */
void softib_sa_answer(struct rxe_dev *from, u8 *mad);
bool softib_sa_is_on(void);

/* softib_port.c */
int softib_query_port(struct ib_device *dev, u32 port_num, struct ib_port_attr *attr);
int softib_query_gid(struct ib_device *dev, u32 port_num, int index, union ib_gid *gid);
int softib_query_pkey(struct ib_device *dev, u32 port_num, u16 index, u16 *pkey);
void softib_fw_str(struct ib_device *dev, char *str);
void softib_disassociate(struct ib_ucontext *context);
u8 softib_phys_state(struct rxe_dev *rxe);
void softib_event(struct rxe_dev *rxe, enum ib_event_type type);
void softib_set_state(struct rxe_dev *rxe, enum ib_port_state state);
void softib_retrain(struct rxe_dev *rxe);
extern struct device_attribute softib_attr_hca_type, softib_attr_board_id;

/* softib_knobs.c: /sys/kernel/debug/softib/DEVICE/ */
void softib_knobs_add(struct rxe_dev *rxe, const char *name);
void softib_knobs_remove(struct rxe_dev *rxe);
void softib_knobs_init(void);
void softib_knobs_exit(void);

/* softib_sma.c: subnet management by queue pair 0 */
u32 softib_core_caps(void);
int softib_sma_answer(struct rxe_dev *rxe, const struct ib_mad *in, struct ib_mad *out);
bool softib_sm_answer(u8 *mad);

/* softib_pma.c: the performance counters of the port, and the way of a MAD to its agent */
int softib_process_mad(struct ib_device *dev, int flags, u32 port_num, const struct ib_wc *wc,
		       const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
		       size_t *out_size, u16 *out_pkey_index);

/* softib_wire.c: what rxe_net.c, rxe_av.c and rxe_icrc.c are in rxe */
void softib_init_av(struct rxe_dev *rxe, struct rdma_ah_attr *attr, struct rxe_av *av);
int softib_wc_flags(struct sk_buff *skb);
u16 softib_slid(struct sk_buff *skb);

#define SOFTIB_ATTRS &softib_attr_hca_type.attr, &softib_attr_board_id.attr
#define SOFTIB_OPS \
	.query_pkey = softib_query_pkey, .query_port = softib_query_port, \
	.query_gid = softib_query_gid, .process_mad = softib_process_mad, \
	.get_dev_fw_str = softib_fw_str, .disassociate_ucontext = softib_disassociate

#endif
