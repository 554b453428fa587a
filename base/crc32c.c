/* SPDX-License-Identifier: MIT */
#include "base/crc32c.h"

#define POLYNOMIAL 0x82f63b78u /* 0x1edc6f41, bits reversed */

/* Of each byte; made where it is first asked for. */
static const uint32_t *table(void)
{
	static uint32_t of[256];

	for (uint32_t byte = 0; byte < 256 && !of[255]; byte++) {
		uint32_t crc = byte;

		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (POLYNOMIAL & (0u - (crc & 1)));
		of[byte] = crc;
	}
	return of;
}

uint32_t np_crc32c(const void *data, size_t len)
{
	const unsigned char *bytes = data;
	const uint32_t *of = table();
	uint32_t crc = 0xffffffffu;

	while (len-- > 0)
		crc = (crc >> 8) ^ of[(crc ^ *bytes++) & 255];
	return ~crc;
}
