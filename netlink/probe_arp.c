/* SPDX-License-Identifier: MIT */
#include "netlink/probe_arp.h"

#include <arpa/inet.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <string.h>

#define GUID_OFFSET 12

void np_ib_arp_build(const uint8_t own[NP_IB_HWADDR_LEN], const uint8_t ip[4],
		     struct np_ib_arp *out)
{
	*out = (struct np_ib_arp){ .hw_type_be = htons(ARPHRD_INFINIBAND),
				   .proto_be = htons(ETH_P_IP),
				   .hw_len = NP_IB_HWADDR_LEN,
				   .proto_len = sizeof(out->sender_ip),
				   .op_be = htons(ARPOP_REQUEST) };
	memcpy(out->sender_hw, own, NP_IB_HWADDR_LEN);
	memcpy(out->target_ip, ip, sizeof(out->target_ip));
}

static bool is_well_formed(const struct np_ib_arp *arp, size_t len)
{
	return len >= sizeof(*arp) && arp->hw_type_be == htons(ARPHRD_INFINIBAND) &&
	       arp->proto_be == htons(ETH_P_IP) && arp->hw_len == NP_IB_HWADDR_LEN &&
	       arp->proto_len == sizeof(arp->sender_ip) &&
	       (arp->op_be == htons(ARPOP_REQUEST) || arp->op_be == htons(ARPOP_REPLY));
}

bool np_ib_arp_conflicts(const struct np_ib_arp *arp, size_t len,
			 const uint8_t own[NP_IB_HWADDR_LEN], const uint8_t ip[4])
{
	static const uint8_t none[4];
	bool owns, probes;

	if (!is_well_formed(arp, len))
		return false;
	owns = memcmp(arp->sender_ip, ip, 4) == 0;
	probes = arp->op_be == htons(ARPOP_REQUEST) && memcmp(arp->sender_ip, none, 4) == 0 &&
		 memcmp(arp->target_ip, ip, 4) == 0;
	/* The first byte holds flags, which change with the mode. The queue pair counts:
	 * a netdev in another network namespace can share the port and so the GID. */
	return (owns || probes) && memcmp(arp->sender_hw + 1, own + 1, NP_IB_HWADDR_LEN - 1) != 0;
}

uint64_t np_ib_hwaddr_guid(const uint8_t hwaddr[NP_IB_HWADDR_LEN])
{
	uint64_t guid = 0;

	for (int i = GUID_OFFSET; i < NP_IB_HWADDR_LEN; i++)
		guid = guid << 8 | hwaddr[i];
	return guid;
}
