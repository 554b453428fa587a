/* SPDX-License-Identifier: MIT */
#ifndef NP_NETLINK_PROBE_ARP_H
#define NP_NETLINK_PROBE_ARP_H

/* Private to netlink/: the ARP packets of a probe, as bytes. Pure. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NP_IB_HWADDR_LEN 20 /* INFINIBAND_ALEN, linux/if_infiniband.h */

/* The packet of RFC 826 (all numbers in wire order) with the lengths of RFC 4391
 * section 9.3. */
struct np_ib_arp {
	uint16_t hw_type_be, proto_be;
	uint8_t hw_len, proto_len;
	uint16_t op_be;
	uint8_t sender_hw[NP_IB_HWADDR_LEN]; /* flags, queue pair (3), GID (16) */
	uint8_t sender_ip[4];
	uint8_t target_hw[NP_IB_HWADDR_LEN];
	uint8_t target_ip[4];
} __attribute__((packed));

/* "Who has @ip?" from @own, naming no address of the sender (RFC 5227 section 2.1.1). */
void np_ib_arp_build(const uint8_t own[NP_IB_HWADDR_LEN], const uint8_t ip[4],
		     struct np_ib_arp *out);

/* Does the packet of @len bytes say that somebody other than @own has @ip, or is
 * about to take it (RFC 5227 section 2.1.1)? Its sender is in @arp->sender_hw then. */
bool np_ib_arp_conflicts(const struct np_ib_arp *arp, size_t len,
			 const uint8_t own[NP_IB_HWADDR_LEN], const uint8_t ip[4]);

/* Port GUID of an address: the lower half of its GID. */
uint64_t np_ib_hwaddr_guid(const uint8_t hwaddr[NP_IB_HWADDR_LEN]);

#endif
