/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "ibmad/private.h"

#define VPD_MAX	  32768	   /* address space of VPD, PCI Local Bus 3.0 appendix I */
#define VPD_CHUNK 128	   /* each 4 bytes are a handshake with the device: stop early */
#define MARKER	  "SW_MNG" /* V field "SMDL=SW_MNG" of the bridges on HGX B200 and newer */

/* The driver of NVSwitches has at least one of them. */
static bool has_nvswitch(void)
{
	_cleanup_closedir_ DIR *dir = opendir("/sys/bus/pci/drivers/nvidia-nvswitch");
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (strchr(entry->d_name, ':')) /* a PCI address */
			return true;
	return false;
}

/* VPD comes through config space, tens of milliseconds a device, while only boards
 * with NVSwitches have such HCAs: beside those of the GPUs, so more than four. */
bool np_vpd_wanted(size_t n_cas)
{
	return n_cas > 4 || (n_cas > 0 && has_nvswitch());
}

bool np_vpd_is_management(int ca_fd)
{
	_cleanup_close_ int fd = openat(ca_fd, "device/vpd", O_RDONLY | O_CLOEXEC);
	char window[VPD_CHUNK + sizeof(MARKER)];
	size_t kept = 0;

	for (off_t at = 0; fd >= 0 && at < VPD_MAX;) {
		ssize_t got = pread(fd, window + kept, VPD_CHUNK, at);

		if (got <= 0)
			break;
		at += got;
		kept += (size_t)got;
		if (memmem(window, kept, MARKER, strlen(MARKER)))
			return true;
		/* the marker may straddle two chunks */
		if (kept >= sizeof(MARKER)) {
			memmove(window, window + kept - sizeof(MARKER), sizeof(MARKER));
			kept = sizeof(MARKER);
		}
	}
	return false;
}
