// SPDX-License-Identifier: GPL-2.0
/* The subnet administrator: what ib_ipoib and the connection manager ask of it.
 * IBTA 15.2: records start at byte 56 of the MAD. */
#include <asm/unaligned.h>
#include <rdma/ib_sa.h>

#include "rxe.h"
#include "rxe_loc.h"

static bool sm = true;
module_param(sm, bool, 0644);
MODULE_PARM_DESC(sm, "answer queries to the subnet administrator (default: yes)");
static int group_mtu = IB_MTU_2048;
module_param(group_mtu, int, 0644);
MODULE_PARM_DESC(group_mtu, "MTU of the multicast groups: 4 for 2048 (default), 5 for 4096");

#define RECORD		    56
#define ATTR_CLASS_PORTINFO 0x0001
#define ATTR_PATH_RECORD    0x0035
#define ATTR_MCMEMBER	    0x0038
#define STATUS_NO_RECORDS   0x03
#define STATUS_UNSUPPORTED  0x0c     /* in the low byte: method and attribute do not go together */
#define EXACTLY		    (2 << 6) /* selector in front of MTU, rate and lifetime */
#define LIFETIME	    18
#define QKEY		    0x0b1b /* of IPoIB's default partition */
#define MLID_BASE	    0xc000

static union ib_gid groups[256];
static unsigned int group_count;
static DEFINE_SPINLOCK(groups_lock);

bool softib_sa_is_on(void)
{
	return sm;
}

/* One lid a group, given at its first member and kept; 0 when there are too many. */
static u16 mlid_of(const u8 *mgid)
{
	unsigned int i;
	u16 mlid = 0;

	spin_lock_bh(&groups_lock);
	for (i = 0; i < group_count; i++)
		if (!memcmp(&groups[i], mgid, sizeof(groups[i])))
			break;
	if (i == group_count && i < ARRAY_SIZE(groups))
		memcpy(&groups[group_count++], mgid, sizeof(groups[i]));
	if (i < group_count)
		mlid = MLID_BASE + i;
	spin_unlock_bh(&groups_lock);
	return mlid;
}

/* MCMemberRecord, IBTA 15.2.5.17 */
static u8 answer_mcmember(u8 *r, bool leave)
{
	u16 mlid = mlid_of(r);

	if (leave)
		return 0;
	if (!mlid)
		return STATUS_NO_RECORDS;
	if (!get_unaligned_be32(r + 32))
		put_unaligned_be32(QKEY, r + 32);
	put_unaligned_be16(mlid, r + 36);
	r[38] = EXACTLY | group_mtu;
	if (!get_unaligned_be16(r + 40))
		put_unaligned_be16(IB_DEFAULT_PKEY_FULL, r + 40);
	r[42] = EXACTLY | IB_RATE_100_GBPS;
	r[43] = EXACTLY | LIFETIME;
	if (!(r[48] >> 4))
		r[48] |= 2 << 4; /* link-local scope */
	return 0;
}

/* PathRecord, IBTA 15.2.5.16: by GID, or by lid where there is none */
static u8 answer_path(struct rxe_dev *from, u8 *r)
{
	bool by_gid = memchr_inv(r + 8, 0, 16);
	struct rxe_dev *to = by_gid ? softib_get_slot(softib_slot_of(r + 8)) :
				      softib_get_lid(get_unaligned_be16(r + 40));
	bool reachable = to && softib_is_active(to);

	if (reachable) {
		softib_gid_of(to->softib.slot, (union ib_gid *)(r + 8));
		softib_gid_of(from->softib.slot, (union ib_gid *)(r + 24));
		put_unaligned_be16(to->softib.lid, r + 40);
		put_unaligned_be16(from->softib.lid, r + 42);
		r[49] = 0x80 | 1; /* reversible, one path */
		if (!get_unaligned_be16(r + 50))
			put_unaligned_be16(IB_DEFAULT_PKEY_FULL, r + 50);
		put_unaligned_be16(0, r + 52);
		r[54] = EXACTLY | IB_MTU_2048;
		r[55] = EXACTLY | IB_RATE_100_GBPS;
		r[56] = EXACTLY | LIFETIME;
	}
	if (to)
		ib_device_put(&to->ib_dev);
	return reachable ? 0 : STATUS_NO_RECORDS;
}

void softib_sa_answer(struct rxe_dev *from, u8 *mad)
{
	bool leave = mad[3] == IB_SA_METHOD_DELETE;
	u8 *record = mad + RECORD;
	u8 status = 0;

	switch (get_unaligned_be16(mad + 16)) {
	case ATTR_CLASS_PORTINFO:
		memset(record, 0, IB_MGMT_SA_DATA);
		record[0] = 1; /* base version */
		record[1] = 2; /* class version */
		record[7] = LIFETIME;
		break;
	case ATTR_MCMEMBER:
		status = answer_mcmember(record, leave);
		break;
	case ATTR_PATH_RECORD:
		status = answer_path(from, record);
		break;
	default:
		mad[5] = STATUS_UNSUPPORTED;
	}
	mad[4] = status; /* class-specific byte of the status */
	mad[3] = leave ? IB_SA_METHOD_DELETE_RESP : IB_MGMT_METHOD_GET_RESP;
}
