/* SPDX-License-Identifier: MIT */
#ifndef NP_BASE_PCI_H
#define NP_BASE_PCI_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

/* Where a device sits on PCI and how its link runs, by sysfs alone
 * (Documentation/ABI/testing/sysfs-bus-pci). */

struct np_pci_link {
	unsigned int width; /* lanes; 0 = unknown */
	unsigned int speed; /* MT/s a lane: 32000 is "32.0 GT/s PCIe"; 0 = unknown */
};

struct np_pci {
	/* "pci0000:15/0000:15:01.0/0000:18:00.0": host bridge, bridges, function;
	 * "" = not a PCI device (software HCAs), or unknown */
	char path[256];
	int numa_node;	/* -1 = none or unknown */
	char cpus[256]; /* its local CPUs, "0-55,112-167"; "" = unknown */
	struct np_pci_link now, max;
	struct np_pci_link slot; /* what the bridge above can do; unknown without one (VMs) */
};

/* Fills @out for the device whose directory, or a symlink to it, is @dir; an auxiliary
 * device (a subfunction) is its PCI parent. Never fails: what cannot be read is unknown.
 * A dozen small reads, so for callers that were asked. */
void np_pci_read(const char *dir, struct np_pci *out);

/* sysfs `numa_node` below @dirfd. -1 = none, unknown or unreadable. */
int np_pci_numa_node(int dirfd, const char *path);

/* The PCI part of a resolved sysfs path: from its last "pciDDDD:BB" to the last PCI
 * address that follows. Returns false (nothing there, or it does not fit) with @out "". */
bool np_pci_path_parse(const char *resolved, char *out, size_t size);

/* The last part of np_pci.path, "0000:18:00.0"; "" where that is empty. */
const char *np_pci_address(const struct np_pci *pci);

/* "32.0 GT/s PCIe", "8 GT/s" (older kernels). 0 = "Unknown" or no such text. */
unsigned int np_pci_speed_parse(const char *text);

/* What @link carries each way in 10^6 bytes a second after its line code, before packet
 * headers: 8b/10b up to 5 GT/s, 128b/130b up to 32, at 64 the 236 of 256 bytes of a FLIT
 * (PCI Express Base Specification 6.0, sections 4.2.1 to 4.2.3). 0 = unknown. */
double np_pci_link_MBps(const struct np_pci_link *link);

/* The machine has one NUMA node, or its kernel knows of none: a device without a node
 * is on that one. */
bool np_one_numa_node(void);

#endif
