/* SPDX-License-Identifier: MIT */
#include "base/bytes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static const struct {
	const char *unit;
	int shift;
} units[] = { { "GiB", 30 }, { "MiB", 20 }, { "KiB", 10 } };

int np_parse_bytes(const char *s, uint64_t *bytes)
{
	char number[24];
	size_t digits = strspn(s, "0123456789");
	const char *unit = s + digits + strspn(s + digits, " \t");
	uint64_t n;

	if (digits >= sizeof(number))
		return -EINVAL;
	snprintf(number, sizeof(number), "%.*s", (int)digits, s);
	for (size_t i = 0; i < NP_ARRAY_SIZE(units); i++) {
		if (strcmp(unit, units[i].unit) != 0)
			continue;
		if (np_parse_u64(number, 10, (UINT64_MAX - 1) >> units[i].shift, &n) < 0 || n == 0)
			return -EINVAL;
		*bytes = n << units[i].shift;
		return 0;
	}
	return -EINVAL;
}

const char *np_bytes_str(uint64_t bytes, char out[NP_BYTES_STRLEN])
{
	for (size_t i = 0; i < NP_ARRAY_SIZE(units); i++) {
		uint64_t one = UINT64_C(1) << units[i].shift;

		if (bytes == 0 || bytes % one != 0)
			continue;
		snprintf(out, NP_BYTES_STRLEN, "%" PRIu64 " %s", bytes / one, units[i].unit);
		return out;
	}
	snprintf(out, NP_BYTES_STRLEN, "%" PRIu64 " bytes", bytes);
	return out;
}
