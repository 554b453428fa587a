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
#include "modules/lookup.h"
#include "modules/private.h"

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
	out->node = (struct np_file_attr){ .mode = st.st_mode & 07777,
					   .uid = st.st_uid,
					   .gid = st.st_gid };
	snprintf(reopen, sizeof(reopen), "/proc/self/fd/%d", node);
	fd = open(reopen, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0) {
		out->open_errno = errno;
		return;
	}
	out->open_errno = 0;
	handshake(fd, out);
}

/* ---- what it was built for, and how it maps ---- */

/* The driver's own words (src/gdrdrv/gdrdrv.c there) for NVIDIA's flavours. */
static enum np_gpu_flavour flavour_in(const char *text)
{
	if (np_starts_with(text, "opensource"))
		return NP_GPU_FLAVOUR_OPEN;
	if (np_starts_with(text, "proprietary"))
		return NP_GPU_FLAVOUR_PROPRIETARY;
	return NP_GPU_FLAVOUR_UNKNOWN;
}

static const char *after(const char *text, const char *words)
{
	const char *at = strstr(text, words);

	return at ? at + strlen(words) : "";
}

void np_gdrdrv_parse_params(const char *text, struct np_gdrdrv *out)
{
	const char *persistent = after(text, "Use persistent mapping: ");

	out->built_for = flavour_in(after(text, "Built for NVIDIA driver flavor: "));
	if (np_starts_with(persistent, "yes"))
		out->persistent_mapping = 1;
	else if (np_starts_with(persistent, "no"))
		out->persistent_mapping = 0;
}

enum np_gpu_flavour np_gdrdrv_built_for(const struct np_kmod_lookup *lookup)
{
	return flavour_in(after(lookup->description, "built for "));
}

/* /proc says what is in effect; the parameter of sysfs, what was asked for (gdrcopy's
 * own has none there, others' may). */
static void read_params(struct np_gdrdrv *out)
{
	np_auto_buf struct np_buf text = { 0 };
	char line[16];
	bool on;

	if (np_file_read_at(AT_FDCWD, "/proc/driver/gdrdrv/params", 1 << 16, &text) == 0 &&
	    text.data)
		np_gdrdrv_parse_params(text.data, out);
	if (out->persistent_mapping < 0 &&
	    np_file_read_line_at(AT_FDCWD, "/sys/module/gdrdrv/parameters/use_persistent_mapping",
				 line, sizeof(line)) > 0) {
		if (np_parse_bool(line, &on) == 0)
			out->persistent_mapping = on;
		else if (strcmp(line, "Y") == 0 || strcmp(line, "N") == 0) /* a bool parameter */
			out->persistent_mapping = *line == 'Y';
	}
}

void np_gdrdrv_observe(struct np_gdrdrv *out)
{
	memset(out, 0, sizeof(*out));
	out->persistent_mapping = -1;
	np_gdrdrv_observe_node(NP_GDRDRV_NODE, read_major(), out);
	if (out->major >= 0)
		read_params(out);
}

bool np_gdr_dmabuf_backend(uint32_t library, int cuda)
{
	return library >= NP_GDR_DMABUF_LIBRARY && cuda >= NP_GDR_DMABUF_CUDA;
}
