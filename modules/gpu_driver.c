/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "modules/gpu.h"
#include "modules/lookup.h"
#include "modules/private.h"

#define VERSION_FILE "/proc/driver/nvidia/version"

const char *np_gpu_flavour_str(enum np_gpu_flavour f)
{
	switch (f) {
	case NP_GPU_FLAVOUR_OPEN:
		return "open";
	case NP_GPU_FLAVOUR_PROPRIETARY:
		return "proprietary";
	case NP_GPU_FLAVOUR_UNKNOWN:
		break;
	}
	return "unknown";
}

/* A word of digits and at least one dot: "580.65.06"; "x86_64" is none. */
static bool take_version(const char *word, char *out, size_t size)
{
	size_t len = strspn(word, "0123456789.");
	const char *dot = memchr(word, '.', len);

	if (len == 0 || len >= size || !dot || dot == word || !strchr(" \t\n", word[len]))
		return false;
	memcpy(out, word, len);
	out[len] = '\0';
	return true;
}

/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build ..."
 * "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 ..." */
void np_gpu_driver_parse(const char *text, struct np_gpu_driver *out)
{
	const char *line = strstr(text, "NVRM version:");
	const char *kind = line ? strstr(line, "Kernel Module") : NULL;
	const char *end = line ? line + strcspn(line, "\n") : NULL;
	const char *open;

	if (!line)
		return;
	out->loaded = true;
	open = strstr(line, "Open Kernel Module");
	if (open && open < end)
		out->flavour = NP_GPU_FLAVOUR_OPEN;
	else if (kind && kind < end)
		out->flavour = NP_GPU_FLAVOUR_PROPRIETARY;
	for (const char *word = line; word < end; word += strspn(word, " \t")) {
		if (take_version(word, out->version, sizeof(out->version)))
			return;
		word += strcspn(word, " \t\n");
	}
}

void np_gpu_driver_observe(struct np_gpu_driver *out)
{
	np_auto_buf struct np_buf text = { 0 };

	memset(out, 0, sizeof(*out));
	if (np_file_read_at(AT_FDCWD, VERSION_FILE, 1 << 16, &text) == 0 && text.data)
		np_gpu_driver_parse(text.data, out);
}

int np_gpu_driver_look_up(struct np_gpu_driver *driver, struct np_err *err)
{
	np_auto_kmod_lookup struct np_kmod_lookup lookup = { 0 };
	int r = np_kmod_look_up("nvidia", &lookup, err);

	if (r < 0)
		return r;
	driver->installed = lookup.available;
	np_strcpy(driver->installed_version, sizeof(driver->installed_version), lookup.version);
	/* "Dual MIT/GPL" is the open one, "NVIDIA" the proprietary */
	if (strstr(lookup.license, "GPL"))
		driver->installed_flavour = NP_GPU_FLAVOUR_OPEN;
	else if (strcmp(lookup.license, "NVIDIA") == 0)
		driver->installed_flavour = NP_GPU_FLAVOUR_PROPRIETARY;
	return 0;
}
