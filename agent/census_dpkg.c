/* SPDX-License-Identifier: MIT */
/* The version of a file's Debian package, for a library that does not tell its own. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "agent/census_read.h"
#include "base/file.h"

#define INFO	   "/var/lib/dpkg/info"
#define STATUS	   "/var/lib/dpkg/status"
#define LIST_MAX   (256 * 1024)
#define STATUS_MAX (64 << 20)

#if defined(__x86_64__)
#define ARCH "amd64"
#elif defined(__aarch64__)
#define ARCH "arm64"
#else
#define ARCH "all"
#endif

/* Up to the end of the line at @s. */
static size_t line_len(const char *s, const char *end)
{
	const char *stop = memchr(s, '\n', (size_t)(end - s));

	return (size_t)((stop ? stop : end) - s);
}

static bool is_line(const char *s, size_t len, const char *start, const char *value)
{
	size_t n = strlen(start);

	return len == n + strlen(value) && strncmp(s, start, n) == 0 &&
	       strncmp(s + n, value, len - n) == 0;
}

bool np_dpkg_version_in(const char *status, size_t len, const char *package, char *out, size_t size)
{
	const char *s = status, *end = status + len;
	bool here = false;

	while (s < end) {
		size_t n = line_len(s, end);

		if (n > 8 && strncmp(s, "Package:", 8) == 0)
			here = is_line(s, n, "Package: ", package);
		if (here && n > 9 && strncmp(s, "Version: ", 9) == 0) {
			const char *v = s + 9, *stop = s + n, *colon;
			size_t digits = 0;

			/* [epoch:]upstream[-revision] */
			colon = memchr(v, ':', (size_t)(stop - v));
			v = colon ? colon + 1 : v;
			while (v + digits < stop && digits < size - 1 &&
			       (v[digits] == '.' || (v[digits] >= '0' && v[digits] <= '9')))
				digits++;
			while (digits > 0 && v[digits - 1] == '.')
				digits--;
			memcpy(out, v, digits);
			out[digits] = '\0';
			return digits > 0;
		}
		s += n + 1;
	}
	return false;
}

/* Does the package's list of files have it? What lies in /usr/lib may stand there as /lib. */
static bool owns(const char *package, const char *path)
{
	static const char *const arches[] = { "", ":" ARCH };
	np_auto_buf struct np_buf list = { 0 };
	char file[128];

	for (size_t i = 0; i < NP_ARRAY_SIZE(arches) && !list.len; i++) {
		snprintf(file, sizeof(file), INFO "/%s%s.list", package, arches[i]);
		(void)!np_file_read_at(AT_FDCWD, file, LIST_MAX, &list);
	}
	for (const char *s = list.data, *end = s + list.len; s && s < end;) {
		size_t n = line_len(s, end);

		if (is_line(s, n, "", path) || is_line(s, n, "/usr", path) ||
		    (np_starts_with(path, "/usr") && is_line(s, n, "", path + 4)))
			return true;
		s += n + 1;
	}
	return false;
}

bool np_dpkg_version(const char *path, enum np_library_kind kind, char *out, size_t size)
{
	static const struct {
		enum np_library_kind kind;
		const char *package;
	} packages[] = {
		{ NP_LIBRARY_NCCL, "libnccl2" },
		{ NP_LIBRARY_NCCL_STATIC, "libnccl-dev" },
		{ NP_LIBRARY_NCCL_HEADER, "libnccl-dev" },
		{ NP_LIBRARY_UCP, "libucx0" },
		{ NP_LIBRARY_UCP, "ucx" },
		{ NP_LIBRARY_UCT, "libucx0" },
		{ NP_LIBRARY_UCT, "ucx" },
		{ NP_LIBRARY_GDRAPI, "libgdrapi" },
	};
	np_auto_buf struct np_buf status = { 0 };

	for (size_t i = 0; i < NP_ARRAY_SIZE(packages); i++) {
		if (packages[i].kind != kind || !owns(packages[i].package, path))
			continue;
		return np_file_read_at(AT_FDCWD, STATUS, STATUS_MAX, &status) == 0 &&
		       np_dpkg_version_in(status.data, status.len, packages[i].package, out, size);
	}
	return false;
}
