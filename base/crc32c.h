/* SPDX-License-Identifier: MIT */
#ifndef NP_BASE_CRC32C_H
#define NP_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli; RFC 3720 appendix B.4), as iSCSI, ext4 and Btrfs use it. Finds
 * what was cut or flipped by accident; it is no protection against a forger. */
uint32_t np_crc32c(const void *data, size_t len);

#endif
