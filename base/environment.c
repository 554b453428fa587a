/* SPDX-License-Identifier: MIT */
#include "base/environment.h"

#include <stdbool.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

static bool is_kept(const char *entry)
{
	static const char *const kept[] = {
		"SUDO_USER=",	 "TERM=",	   "NO_COLOR=",
#ifdef __SANITIZE_ADDRESS__
		"ASAN_OPTIONS=", "UBSAN_OPTIONS=", "LSAN_OPTIONS=",
#endif
	};

	for (size_t i = 0; i < NP_ARRAY_SIZE(kept); i++)
		if (np_starts_with(entry, kept[i]))
			return true;
	return false;
}

/* Works before main, so taking it away in main is too late. MALLOC_ and more are older names
 * of what GLIBC_TUNABLES sets (mallopt(3)). */
static bool is_early(const char *entry)
{
	return np_starts_with(entry, "LD_") || np_starts_with(entry, "GLIBC_TUNABLES=") ||
	       np_starts_with(entry, "MALLOC_") ||
	       np_starts_with(entry, "NLDBG=") || np_starts_with(entry, "NLCB=");
}

void np_environment_clean(char **argv)
{
	size_t n = 0;
	bool early = false;

	/* what the kernel says, not a library that plays root (fakeroot) */
	if (getauxval(AT_EUID) != 0)
		return;
	for (char **entry = environ; entry && *entry; entry++) {
		early |= is_early(*entry);
		if (is_kept(*entry))
			environ[n++] = *entry;
	}
	if (environ)
		environ[n] = NULL;
	/* without an interpreter beside it, the program that runs is the dynamic linker: it was
	 * started by hand, and would take the verb for the name of a program */
	if (early && getauxval(AT_BASE))
		execve("/proc/self/exe", argv, environ);
}
