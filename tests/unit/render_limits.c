/* SPDX-License-Identifier: MIT */
/*
 * render_limits USER: the memlock limit that USER gets at login on this system, as
 * "SOFT HARD SOURCE", limits in KiB as ulimit -l prints them. For tests that compare it
 * with pam_limits itself.
 */
#include <inttypes.h>
#include <stdio.h>

#include "agent/login_limits.h"

static void put(uint64_t bytes)
{
	if (bytes == NP_UNLIMITED)
		printf("unlimited ");
	else
		printf("%" PRIu64 " ", bytes / 1024);
}

int main(int argc, char **argv)
{
	struct np_user_limit limit;
	struct np_err err = { 0 };

	if (argc != 2)
		return 2;
	if (np_user_limit(argv[1], &limit, &err) < 0) {
		fprintf(stderr, "%s: %s\n", err.code, err.message);
		return 1;
	}
	put(limit.limit.soft);
	put(limit.limit.hard);
	printf("%s\n", limit.source);
	return 0;
}
