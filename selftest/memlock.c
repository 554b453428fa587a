/* SPDX-License-Identifier: MIT */
#include "selftest/memlock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "selftest/rung.h"

bool np_memlock_limit(uint64_t *bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return false;
	*bytes = limit.rlim_cur;
	return true;
}

uint64_t np_memlock_pinned(void)
{
	_cleanup_fclose_ FILE *status = fopen("/proc/self/status", "re");
	uint64_t kib;
	char line[128];

	while (status && fgets(line, sizeof(line), status)) {
		char *value = line + strlen("VmPin:");

		if (!np_starts_with(line, "VmPin:"))
			continue;
		value += strspn(value, " \t");
		value[strcspn(value, " ")] = '\0';
		return np_parse_u64(value, 10, UINT64_MAX / 1024, &kib) < 0 ? 0 : kib * 1024;
	}
	return 0;
}

int np_memlock_error(const char *rung, const char *doing, uint64_t limit, struct np_err *err)
{
	uint64_t pinned = np_memlock_pinned();
	char code[48], text[32], also[80] = "";

	snprintf(code, sizeof(code), "selftest.%s.memlock", rung);
	if (pinned)
		snprintf(also, sizeof(also), ", and %s are pinned already",
			 np_size_str(pinned, text));
	np_err_set(err, -ENOMEM, code,
		   "memory cannot be pinned for the HCA (%s): the memlock limit is %llu KiB%s",
		   doing, (unsigned long long)limit / 1024, also);
	np_err_hint(err, "raise the memlock limit to unlimited (ulimit -l; "
			 "/etc/security/limits.d, LimitMEMLOCK= in units)");
	return -ENOMEM;
}
