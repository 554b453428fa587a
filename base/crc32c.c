/* SPDX-License-Identifier: MIT */
#include "base/crc32c.h"

#define POLYNOMIAL 0x82f63b78u /* 0x1edc6f41, bits reversed */

uint32_t np_crc32c(const void *data, size_t len)
{
	const unsigned char *bytes = data;
	uint32_t crc = 0xffffffffu;

	while (len-- > 0) {
		crc ^= *bytes++;
		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (POLYNOMIAL & (0u - (crc & 1)));
	}
	return ~crc;
}
