/* SPDX-License-Identifier: MIT */
#include "base/pci.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

/* ---- paths ---- */

static bool is_hex(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isxdigit((unsigned char)s[i]))
			return false;
	return len > 0;
}

/* "DDDD:BB", a domain may have more digits. */
static bool is_bus(const char *s, size_t len)
{
	return len >= strlen("0000:00") && s[len - 3] == ':' && is_hex(s, len - 3) &&
	       is_hex(s + len - 2, 2);
}

static bool is_host_bridge(const char *s, size_t len)
{
	return len > 3 && strncmp(s, "pci", 3) == 0 && is_bus(s + 3, len - 3);
}

/* "DDDD:BB:DD.F" */
static bool is_address(const char *s, size_t len)
{
	return len >= strlen("0000:00:00.0") && is_bus(s, len - strlen(":00.0")) &&
	       s[len - 5] == ':' && is_hex(s + len - 4, 2) && s[len - 2] == '.' &&
	       is_hex(s + len - 1, 1);
}

/* Behind a "pciDDDD:BB" another one may stand (Hyper-V, volume management devices):
 * the innermost is the one that routes. */
bool np_pci_path_parse(const char *resolved, char *out, size_t size)
{
	const char *start = NULL, *end = NULL, *part = resolved;

	out[0] = '\0';
	while (*part) {
		size_t len = strcspn(part, "/");

		if (is_host_bridge(part, len)) {
			start = part;
			end = NULL;
		} else if (start && is_address(part, len)) {
			end = part + len;
		} else if (start && end) {
			break; /* what hangs below the function */
		}
		part += len;
		part += strspn(part, "/");
	}
	if (!start || !end || (size_t)(end - start) >= size)
		return false;
	memcpy(out, start, (size_t)(end - start));
	out[end - start] = '\0';
	return true;
}

const char *np_pci_address(const struct np_pci *pci)
{
	const char *slash = strrchr(pci->path, '/');

	return slash ? slash + 1 : "";
}

/* ---- attributes ---- */

unsigned int np_pci_speed_parse(const char *text)
{
	char number[16];
	uint64_t whole, tenth = 0;
	char *dot;

	np_strcpy(number, sizeof(number), text);
	number[strcspn(number, " ")] = '\0';
	dot = strchr(number, '.');
	if (dot) {
		*dot = '\0';
		if (np_parse_u64(dot + 1, 10, 9, &tenth) < 0)
			return 0;
	}
	if (!strstr(text, "GT/s") || np_parse_u64(number, 10, 10000, &whole) < 0)
		return 0;
	return (unsigned int)(whole * 1000 + tenth * 100);
}

double np_pci_link_MBps(const struct np_pci_link *link)
{
	double code = link->speed <= 5000  ? 8.0 / 10 :
		      link->speed <= 32000 ? 128.0 / 130 :
					     236.0 / 256;

	return (double)link->speed * link->width / 8 * code;
}

static void read_link(int dirfd, const char *width, const char *speed, struct np_pci_link *out)
{
	char text[64];
	uint64_t lanes;

	/* a virtual function says 0 and "Unknown", a broken link 255 */
	if (np_file_read_line_at(dirfd, width, text, sizeof(text)) > 0 &&
	    np_parse_u64(text, 10, 32, &lanes) == 0)
		out->width = (unsigned int)lanes;
	if (np_file_read_line_at(dirfd, speed, text, sizeof(text)) > 0)
		out->speed = np_pci_speed_parse(text);
}

int np_pci_numa_node(int dirfd, const char *path)
{
	char text[16];
	uint64_t node;

	/* the file says -1 for none */
	if (np_file_read_line_at(dirfd, path, text, sizeof(text)) > 0 &&
	    np_parse_u64(text, 10, INT_MAX, &node) == 0)
		return (int)node;
	return -1;
}

void np_pci_read(const char *dir, struct np_pci *out)
{
	_cleanup_free_ char *resolved = realpath(dir, NULL);
	_cleanup_close_ int fd = -1;
	struct np_pci pci = { .numa_node = -1 };
	char *end;
	int len;

	if (resolved && np_pci_path_parse(resolved, pci.path, sizeof(pci.path))) {
		end = strstr(resolved, pci.path) + strlen(pci.path);
		*end = '\0';
		fd = open(resolved, O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd >= 0) {
		pci.numa_node = np_pci_numa_node(fd, "numa_node");
		len = np_file_read_line_at(fd, "local_cpulist", pci.cpus, sizeof(pci.cpus));
		if (len < 0 || (size_t)len + 1 >= sizeof(pci.cpus))
			pci.cpus[0] = '\0'; /* cut short it would name other CPUs */
		read_link(fd, "current_link_width", "current_link_speed", &pci.now);
		read_link(fd, "max_link_width", "max_link_speed", &pci.max);
		/* a host bridge has no such files */
		read_link(fd, "../max_link_width", "../max_link_speed", &pci.slot);
	}
	*out = pci;
}

bool np_one_numa_node(void)
{
	char text[64];

	return np_file_read_line_at(AT_FDCWD, "/sys/devices/system/node/online", text,
				    sizeof(text)) <= 0 ||
	       !strpbrk(text, ",-");
}
