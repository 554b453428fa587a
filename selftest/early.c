/* SPDX-License-Identifier: MIT */
#include "selftest/early.h"

#include <fcntl.h>
#include <unistd.h>

/* No library is set up yet when this runs: plain loops and system calls only. */

static int saved_stdout = STDOUT_FILENO;

int np_early_stdout(void)
{
	return saved_stdout;
}

static int starts_with(const char *s, const char *prefix)
{
	while (*prefix)
		if (*s++ != *prefix++)
			return 0;
	return 1;
}

int np_early_dropped(const char *entry)
{
	return starts_with(entry, "UCX_") || starts_with(entry, "NCCL_") ||
	       starts_with(entry, "CUDA_") || starts_with(entry, "GDRCOPY_") ||
	       starts_with(entry, "HOME=");
}

int np_early_clean(char **envp)
{
	char **kept = envp;
	int dropped = 0;

	for (char **entry = envp; *entry; entry++) {
		if (np_early_dropped(*entry))
			dropped++;
		else
			*kept++ = *entry;
	}
	*kept = 0;
	return dropped;
}

void np_early(int argc, char **argv, char **envp)
{
	int fd;

	(void)argc;
	(void)argv;
	np_early_clean(envp);
	if (access("ucx.conf", F_OK) == 0 && chdir("/") < 0)
		return;
	fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (fd >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
		saved_stdout = fd;
}
