/* SPDX-License-Identifier: MIT */
#ifndef NP_BASE_CONFINE_H
#define NP_BASE_CONFINE_H

#include <linux/capability.h>
#include <stdint.h>

/* What a process gives up, for itself and for what it starts, and never gets back. */

/* ---- capabilities, by the numbers of linux/capability.h ---- */

#define NP_CAP(name) (UINT64_C(1) << CAP_##name)

/* Of what the process has, keeps those in @mask, effective and permitted; none is handed on
 * beyond that (inheritable and ambient are emptied). What it has not is not given. Returns
 * 0 or a negative errno. */
int np_caps_keep(uint64_t mask);

/* No program that is started from here on gains rights by its set-uid bit or file
 * capabilities; filters need it too (seccomp(2)). Cannot fail since Linux 3.5. */
void np_no_new_privs(void);

/* ---- system calls ---- */

enum np_confine {
	/* everything is done: memory, and writing to what is open. All else is EPERM */
	NP_CONFINE_REPORT,
	/* may run any library, but what no data path and no name service needs is EPERM:
	 * tracing, kernel and modules, mounts, namespaces, clocks, keys. clone3 is ENOSYS, as
	 * its flags cannot be seen; the C library then uses clone */
	NP_CONFINE_CHILD,
	/* as CHILD, but loads modules */
	NP_CONFINE_LOADER,
	/* as CHILD, and starts no program, makes no socket, looks into no other process */
	NP_CONFINE_HOME,
};

/* Filters may be added, never taken away. A call that is refused fails with an errno and
 * kills nobody, so that a library that can do without it does. Returns 0, or a negative
 * errno: -EOPNOTSUPP on an architecture whose calls are not listed here (x86_64 and
 * little-endian aarch64 are), -EINVAL from a kernel without filters. Callers go on then:
 * this is one wall of several. With AddressSanitizer REPORT refuses what CHILD does, and
 * ptrace is let through, since its leak checker needs both at the end. */
int np_confine(enum np_confine kind);

#endif
