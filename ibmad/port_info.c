/* SPDX-License-Identifier: MIT */
/* Attributes of subnet management, decoded; pure. */
#include <endian.h>
#include <string.h>

#include "ibmad/smp.h"

/* CapabilityMask, IBA 14.2.5.6 */
#define IS_EXTENDED_SPEEDS_SUPPORTED (1u << 14)

/* "Set to the supported value" and "extended speeds disabled" */
#define WIDTH_ALL	   255u
#define SPEED_ALL	   15u
#define SPEED_EXT_ALL	   31u
#define SPEED_EXT_DISABLED 30u

#define EXT_SHIFT  3 /* FDR follows QDR */
#define EXT2_SHIFT 7

static uint32_t be16_at(const uint8_t *data)
{
	return (uint32_t)data[0] << 8 | data[1];
}

static uint32_t be32_at(const uint8_t *data)
{
	return be16_at(data) << 16 | be16_at(data + 2);
}

static uint64_t be64_at(const uint8_t *data)
{
	return (uint64_t)be32_at(data) << 32 | be32_at(data + 4);
}

static void decode_width(const uint8_t *data, struct np_port_info *out)
{
	out->width_enabled = data[29];
	out->width_supported = data[30];
	out->width_active = data[31];
	if (out->width_enabled == WIDTH_ALL)
		out->width_enabled = out->width_supported;
	out->width_enabled &= out->width_supported;
}

/* The extended fields count where the port says that it has them. Those of XDR (byte
 * 56, release 1.7) were reserved before, and so 0. */
static void decode_speed(const uint8_t *data, struct np_port_info *out)
{
	unsigned int supported = data[32] >> 4, active = data[35] >> 4, enabled = data[35] & 15;
	unsigned int ext_enabled = data[63] & 31, ext_supported = data[62] & 15,
		     ext_active = data[62] >> 4;

	out->speed_supported = supported & 7;
	out->speed_active = active & 7;
	out->speed_enabled = enabled == SPEED_ALL ? out->speed_supported : enabled & 7;
	if (out->cap_mask & IS_EXTENDED_SPEEDS_SUPPORTED) {
		unsigned int supported2 = data[56] & 1, active2 = data[56] >> 3 & 1,
			     enabled2 = data[56] >> 5 & 1;

		if (ext_enabled == SPEED_EXT_ALL)
			ext_enabled = ext_supported;
		else if (ext_enabled == SPEED_EXT_DISABLED)
			ext_enabled = enabled2 = 0;
		out->speed_supported |= ext_supported << EXT_SHIFT | supported2 << EXT2_SHIFT;
		out->speed_enabled |= (ext_enabled & 15) << EXT_SHIFT | enabled2 << EXT2_SHIFT;
		/* with an extended speed the old field still holds QDR, or 0 */
		if (ext_active || active2)
			out->speed_active = ext_active << EXT_SHIFT | active2 << EXT2_SHIFT;
	}
	out->speed_enabled &= out->speed_supported;
}

void np_port_info_decode(const uint8_t data[NP_SMP_DATA], struct np_port_info *out)
{
	memset(out, 0, sizeof(*out));
	out->lid = be16_at(data + 16);
	out->sm_lid = be16_at(data + 18);
	out->cap_mask = be32_at(data + 20);
	out->num = data[28];
	out->state = (data[32] & 15) <= NP_PORT_ACTIVE ? (enum np_port_state)(data[32] & 15) :
							 NP_PORT_UNKNOWN;
	out->phys_state = (data[33] >> 4) <= NP_PHYS_TEST ? (enum np_phys_state)(data[33] >> 4) :
							    NP_PHYS_UNKNOWN;
	out->lmc = data[34] & 7;
	out->sm_sl = data[36] & 15;
	decode_width(data, out);
	decode_speed(data, out);
}

void np_node_info_decode(const uint8_t data[NP_SMP_DATA], struct np_node_info *out)
{
	memset(out, 0, sizeof(*out));
	if (data[2] >= NP_NODE_CA && data[2] <= NP_NODE_ROUTER)
		out->type = (enum np_node_type)data[2];
	out->n_ports = data[3];
	out->sys_image_guid = be64_at(data + 4);
	out->node_guid = be64_at(data + 12);
	out->port_guid = be64_at(data + 20);
	out->device_id = be16_at(data + 30);
	out->vendor_id = be32_at(data + 36) & 0xffffff;
}

void np_sm_info_decode(const uint8_t data[NP_SMP_DATA], struct np_sm_info *out)
{
	memset(out, 0, sizeof(*out));
	out->guid = be64_at(data);
	out->activity = be32_at(data + 16);
	out->priority = data[20] >> 4;
	out->state = (enum np_sm_state)(data[20] & 15);
}

int np_width_lanes(unsigned int mask)
{
	static const struct {
		unsigned int bit;
		int lanes;
	} widest_first[] = { { NP_WIDTH_12X, 12 },
			     { NP_WIDTH_8X, 8 },
			     { NP_WIDTH_4X, 4 },
			     { NP_WIDTH_2X, 2 },
			     { NP_WIDTH_1X, 1 } };

	for (size_t i = 0; i < NP_ARRAY_SIZE(widest_first); i++)
		if (mask & widest_first[i].bit)
			return widest_first[i].lanes;
	return 0;
}

static const char *const speeds[] = { "SDR", "DDR", "QDR", "FDR", "EDR", "HDR", "NDR", "XDR" };

const char *np_speed_str(unsigned int mask)
{
	for (size_t i = NP_ARRAY_SIZE(speeds); i-- > 0;)
		if (mask & 1u << i)
			return speeds[i];
	return "";
}

unsigned int np_speed_parse(const char *name)
{
	if (np_streq(name, "FDR10"))
		return NP_SPEED_QDR;
	for (size_t i = 0; i < NP_ARRAY_SIZE(speeds); i++)
		if (np_streq(name, speeds[i]))
			return 1u << i;
	return 0;
}

const char *np_sm_state_str(enum np_sm_state state)
{
	switch (state) {
	case NP_SM_NOT_ACTIVE:
		return "NOTACTIVE";
	case NP_SM_DISCOVERING:
		return "DISCOVERING";
	case NP_SM_STANDBY:
		return "STANDBY";
	case NP_SM_MASTER:
		return "MASTER";
	}
	return "unknown";
}
