/* SPDX-License-Identifier: MIT */
#ifndef NP_MODULES_PRIVATE_H
#define NP_MODULES_PRIVATE_H

#include <stdint.h>

#include "base/cleanup.h"

/* Major of character device @name in the text of /proc/devices, or -1. */
int np_char_major(const char *proc_devices, const char *name);

/* The device file @path and all rungs above it, for a driver with major @major
 * (-1 = not registered). */
struct np_gdrdrv;
void np_gdrdrv_observe_node(const char *path, int major, struct np_gdrdrv *out);

/* A PCI function as /proc/bus/pci/devices names it: without its domain. */
struct np_pci_id {
	uint16_t bus_devfn;
	uint16_t vendor; /* 0 = not known */
};

/* "0000:17:00.0" -> 0x1700. Returns 0 or -EINVAL. */
int np_pci_address_parse(const char *address, uint16_t *bus_devfn) np_must_check;
/* One line of /proc/bus/pci/devices. Returns 0 or -EINVAL. */
int np_pci_line_parse(const char *line, struct np_pci_id *out) np_must_check;

#endif
