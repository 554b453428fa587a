/* SPDX-License-Identifier: MIT */
/*
 * FAKE processors (fake.h), for /etc/ld.so.preload of a simulated node: a process may run on
 * as many as FAKE_CPUS says in cpus=N, whatever the machine has.
 */
#include <errno.h>
#include <sched.h>

#include "fake.h"

FAKE_EXPORT int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	long n = fake_number("FAKE_CPUS", "cpus=", 1);

	(void)pid;
	if (n > (long)size * 8) {
		errno = EINVAL;
		return -1;
	}
	memset(set, 0, size);
	for (long i = 0; i < n; i++)
		CPU_SET_S((size_t)i, size, set);
	return 0;
}
