/* SPDX-License-Identifier: MIT */
#include "agent/ucx_prefix.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

#define LIBRARY "libucp.so.0" /* its soname since UCX 1.0 */

static int bad(struct np_err *err, const char *dir, const char *why)
{
	char shown[200];

	np_err_set(err, -EINVAL, "usage.ucx_prefix", "--ucx-prefix %s: %s",
		   np_printable(dir, shown, sizeof(shown)), why);
	np_err_hint(err, "name the directory whose lib holds " LIBRARY
			 ", such as $CONDA_PREFIX or HPC-X's ucx");
	return -EINVAL;
}

/* Root runs what is in there: nobody else may put it there. */
static int check_trust(const char *path, struct np_err *err)
{
	char part[PATH_MAX];
	struct stat st;

	np_strcpy(part, sizeof(part), path);
	for (;;) {
		char *slash = strrchr(part, '/');

		if (stat(*part ? part : "/", &st) < 0 || st.st_uid != 0 ||
		    (st.st_mode & 022 && !(S_ISDIR(st.st_mode) && st.st_mode & S_ISVTX))) {
			np_err_set(err, -EACCES, "selftest.prefix_unsafe",
				   "--ucx-prefix: %s can be changed by others than root, and the "
				   "rungs would run it as root",
				   *part ? part : "/");
			np_err_hint(err, "leave --as-root out, or use a UCX that is root's alone");
			return -EACCES;
		}
		if (!slash)
			return 0;
		*slash = '\0';
	}
}

int np_ucx_prefix_path(const char *dir, bool as_root, char *out, size_t size, struct np_err *err)
{
	static const char *const folders[] = { "lib", "lib64" };
	char real[PATH_MAX], file[PATH_MAX + 32];

	if (*dir != '/')
		return bad(err, dir, "it must be an absolute path");
	if (!realpath(dir, real))
		return bad(err, dir, strerror(errno));
	/* the dynamic linker would take the rest for another directory, or for a variable */
	if (strpbrk(real, ":;$"))
		return bad(err, dir, "the path may not hold a colon, semicolon or dollar sign");
	for (size_t i = 0; i < NP_ARRAY_SIZE(folders); i++) {
		int r = 0;

		snprintf(file, sizeof(file), "%s/%s/" LIBRARY, real, folders[i]);
		if (access(file, F_OK) < 0)
			continue;
		if (as_root)
			r = check_trust(file, err);
		if (r < 0)
			return r;
		if (snprintf(out, size, "%s/%s:%s/%s/ucx", real, folders[i], real, folders[i]) >=
		    (int)size)
			return bad(err, dir, "the path is too long");
		return 0;
	}
	return bad(err, dir, "there is no " LIBRARY " in its lib or lib64");
}
