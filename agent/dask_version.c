/* SPDX-License-Identifier: MIT */
#include "agent/dask_version.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

/* "distributed_ucxx" and, of PyPI, "distributed_ucxx_cu12" */
static bool is_package(const char *name, size_t len, const char *wanted)
{
	size_t stem = strlen(wanted);

	return strncmp(name, wanted, stem) == 0 &&
	       (len == stem || (strncmp(name + stem, "_cu", 3) == 0 &&
				stem + 3 + strspn(name + stem + 3, "0123456789") == len));
}

bool np_dask_versions_take(const char *name, struct np_dask_versions *out)
{
	size_t stem = strcspn(name, "-"), len;
	const char *version = name + stem + 1;
	char *slot;

	if (!name[stem])
		return false;
	if (is_package(name, stem, "distributed_ucxx"))
		slot = out->ucxx;
	else if (is_package(name, stem, "ucx_py"))
		slot = out->ucx_py;
	else if (stem == strlen("distributed") && np_starts_with(name, "distributed-"))
		slot = out->distributed;
	else
		return false;
	/* up to "+ds.1", "-py3.11", ".dist-info" */
	len = strspn(version, "0123456789.");
	while (len > 0 && version[len - 1] == '.')
		len--;
	if (len == 0 || len >= sizeof(out->ucxx) ||
	    (!strstr(version, ".dist-info") && !strstr(version, ".egg-info")))
		return false;
	memcpy(slot, version, len);
	slot[len] = '\0';
	return true;
}

static void look_into(const char *folder, struct np_dask_versions *out)
{
	_cleanup_closedir_ DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (np_dask_versions_take(entry->d_name, out) &&
		    (!out->folder[0] || np_starts_with(entry->d_name, "distributed-")))
			np_strcpy(out->folder, sizeof(out->folder), folder);
}

/* BASE/lib/python3*: of Debian's own packages, and of everybody else's */
static void look_below(const char *base, struct np_dask_versions *out)
{
	static const char *const names[] = { "site-packages", "dist-packages" };
	char lib[200], folder[512];
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;

	snprintf(lib, sizeof(lib), "%s/lib", base);
	dir = opendir(lib);
	while (dir && (entry = readdir(dir))) {
		if (!np_starts_with(entry->d_name, "python3"))
			continue;
		for (size_t i = 0; i < NP_ARRAY_SIZE(names); i++) {
			snprintf(folder, sizeof(folder), "%s/%s/%s", lib, entry->d_name, names[i]);
			look_into(folder, out);
		}
	}
}

void np_dask_versions_observe(const char *prefix, struct np_dask_versions *out)
{
	memset(out, 0, sizeof(*out));
	out->looked = true;
	if (*prefix) {
		look_below(prefix, out);
		return;
	}
	look_below("/usr", out);
	/* found before the former by Python */
	look_below("/usr/local", out);
}
