// SPDX-License-Identifier: GPL-2.0
/* The port as the RDMA core asks for it, and its events. */
#include "rxe.h"
#include "rxe_loc.h"

static int state = IB_PORT_ACTIVE;
module_param(state, int, 0644);
MODULE_PARM_DESC(state, "state of a new port: 1 DOWN, 2 INIT, 3 ARMED, 4 ACTIVE (default)");

u8 softib_phys_state(struct rxe_dev *rxe)
{
	if (rxe->softib.phys_state)
		return rxe->softib.phys_state;
	return rxe->port.attr.state == IB_PORT_DOWN ? IB_PORT_PHYS_STATE_POLLING :
						      IB_PORT_PHYS_STATE_LINK_UP;
}

int softib_query_port(struct ib_device *dev, u32 port_num, struct ib_port_attr *attr)
{
	struct rxe_dev *rxe = to_rdev(dev);
	/* The subnet manager gives lids on the way from INIT to ARMED. */
	bool managed = rxe->port.attr.state >= IB_PORT_ARMED;

	*attr = rxe->port.attr;
	attr->phys_state = softib_phys_state(rxe);
	attr->active_width = rxe->softib.width;
	attr->active_speed = rxe->softib.speed;
	attr->lid = managed ? rxe->softib.lid : 0;
	attr->sm_lid = managed ? rxe->softib.sm_lid : 0;
	attr->gid_tbl_len = 1;
	attr->pkey_tbl_len = SOFTIB_PKEYS;
	attr->subnet_timeout = 18;
	return 0;
}

int softib_query_gid(struct ib_device *dev, u32 port_num, int index, union ib_gid *gid)
{
	if (index)
		return -EINVAL;
	softib_gid_of(to_rdev(dev)->softib.slot, gid);
	return 0;
}

/* The default partition, and one more for a child netdev (full member of 0x0001). */
int softib_query_pkey(struct ib_device *dev, u32 port_num, u16 index, u16 *pkey)
{
	if (index >= SOFTIB_PKEYS)
		return -EINVAL;
	*pkey = index == 0 ? IB_DEFAULT_PKEY_FULL : index == 1 ? 0x8001 : 0;
	return 0;
}

void softib_fw_str(struct ib_device *dev, char *str)
{
	strscpy(str, "1.0.0", IB_FW_VERSION_NAME_MAX);
}

/* Lets "rdma dev set DEVICE netns NAME" move a device that user space holds. */
void softib_disassociate(struct ib_ucontext *context)
{
}

static ssize_t hca_type_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "SOFTIB\n");
}

static ssize_t board_id_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "SOFTIB0001\n");
}

struct device_attribute softib_attr_hca_type = __ATTR_RO(hca_type);
struct device_attribute softib_attr_board_id = __ATTR_RO(board_id);

void softib_event(struct rxe_dev *rxe, enum ib_event_type type)
{
	struct ib_event event = { .device = &rxe->ib_dev, .element.port_num = 1, .event = type };

	ib_dispatch_event(&event);
}

/* As mlx5 does it: whatever is not ACTIVE is reported as an error of the port. */
void softib_set_state(struct rxe_dev *rxe, enum ib_port_state to)
{
	enum ib_port_state from = rxe->port.attr.state;

	rxe->softib.phys_state = 0;
	WRITE_ONCE(rxe->port.attr.state, to);
	if (to == IB_PORT_DOWN && from != IB_PORT_DOWN)
		rxe_counter_inc(rxe, RXE_CNT_LINK_DOWNED);
	if (to == IB_PORT_ACTIVE) {
		softib_event(rxe, IB_EVENT_LID_CHANGE);
		softib_event(rxe, IB_EVENT_PORT_ACTIVE);
	} else {
		softib_event(rxe, IB_EVENT_PORT_ERR);
	}
}

/* A link changes its width or speed only by going down and up again. */
void softib_retrain(struct rxe_dev *rxe)
{
	enum ib_port_state was = rxe->port.attr.state;

	if (was == IB_PORT_DOWN)
		return;
	softib_set_state(rxe, IB_PORT_DOWN);
	softib_set_state(rxe, was);
}

/* Called by rxe when the device is registered, before its clients see it. */
void rxe_set_port_state(struct rxe_dev *rxe)
{
	softib_set_state(rxe, clamp_t(int, state, IB_PORT_DOWN, IB_PORT_ACTIVE));
}
