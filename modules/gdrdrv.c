/* SPDX-License-Identifier: MIT */
#include "modules/gdrdrv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "modules/private.h"

#define NODE "/dev/gdrdrv"

/* Interface of gdrcopy's kernel driver (src/gdrdrv/gdrdrv.h there, 2.0 and newer).
 * The request's size is that of a pointer: so it was declared, and so it stays. */
struct gdrdrv_version {
	uint32_t driver;
	uint32_t min_library;
};
#define GDRDRV_GET_VERSION _IOWR(0xDA, 255, void *)
#define GDRDRV_OLDEST	   (2u << 16)

int np_char_major(const char *proc_devices, const char *name)
{
	const char *line = strstr(proc_devices, "Character devices:");

	if (!line)
		return -1;
	while ((line = strchr(line, '\n'))) {
		char entry[64], number[16];
		size_t len = strcspn(++line, "\n"), digits;
		uint64_t value;
		char *text;

		if (np_starts_with(line, "Block devices:"))
			return -1;
		if (len >= sizeof(entry))
			continue;
		memcpy(entry, line, len);
		entry[len] = '\0';
		text = np_strip(entry);
		digits = strspn(text, "0123456789");
		if (digits == 0 || digits >= sizeof(number) || text[digits] != ' ' ||
		    strcmp(text + digits + 1, name) != 0)
			continue;
		memcpy(number, text, digits);
		number[digits] = '\0';
		if (np_parse_u64(number, 10, INT_MAX, &value) == 0)
			return (int)value;
	}
	return -1;
}

static int read_major(void)
{
	np_auto_buf struct np_buf text = { 0 };

	if (np_file_read_at(AT_FDCWD, "/proc/devices", 1 << 20, &text) < 0 || !text.data)
		return -1;
	return np_char_major(text.data, "gdrdrv");
}

static void handshake(int fd, struct np_gdrdrv *out)
{
	struct gdrdrv_version version = { 0 };

	if (ioctl(fd, GDRDRV_GET_VERSION, &version) < 0) {
		out->handshake_errno = errno;
		return;
	}
	out->handshake_errno = 0;
	out->driver_version = version.driver;
	out->min_library_version = version.min_library;
	out->usable = version.driver >= GDRDRV_OLDEST;
}

void np_gdrdrv_observe_node(const char *path, int major_wanted, struct np_gdrdrv *out)
{
	/* O_PATH touches no driver: look at what it is, then open just that inode */
	_cleanup_close_ int node = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_close_ int fd = -1;
	char reopen[64];
	struct stat st;

	out->major = major_wanted;
	out->open_errno = out->handshake_errno = -1;
	if (node < 0) {
		out->open_errno = errno;
		return;
	}
	out->node_exists = true;
	if (major_wanted < 0 || fstat(node, &st) < 0 || !S_ISCHR(st.st_mode) ||
	    major(st.st_rdev) != (unsigned int)major_wanted)
		return;
	out->node_matches = true;
	snprintf(reopen, sizeof(reopen), "/proc/self/fd/%d", node);
	fd = open(reopen, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0) {
		out->open_errno = errno;
		return;
	}
	out->open_errno = 0;
	handshake(fd, out);
}

void np_gdrdrv_observe(struct np_gdrdrv *out)
{
	memset(out, 0, sizeof(*out));
	np_gdrdrv_observe_node(NODE, read_major(), out);
}
