/* SPDX-License-Identifier: MIT */
#include "agent/ucx_prefix.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/trust.h"

#define LIBRARY	     "libucp.so.0" /* its soname since UCX 1.0 */
#define LINKER_SIGNS ":;$"

static int bad(struct np_err *err, const char *dir, const char *why)
{
	char shown[200];

	np_err_set(err, -EINVAL, "usage.ucx_prefix", "--ucx-prefix %s: %s",
		   np_printable(dir, shown, sizeof(shown)), why);
	np_err_hint(err, "name the directory whose lib holds " LIBRARY
			 ", such as $CONDA_PREFIX or HPC-X's ucx");
	return -EINVAL;
}

static int unsafe(struct np_err *err, const char *path)
{
	char shown[200];

	np_err_set(err, -EACCES, "selftest.prefix_unsafe",
		   "--ucx-prefix: %s can be changed by others than root, and the rungs would run "
		   "it as root",
		   np_printable(path, shown, sizeof(shown)));
	np_err_hint(err, "run the rungs as an ordinary user, or use a UCX that is root's alone");
	return -EACCES;
}

/* @path and every folder above it; @path itself may not be sticky either. */
static int check_path(const char *path, struct np_err *err)
{
	char which[PATH_MAX];
	int r = np_path_trusted(path, which, sizeof(which));

	return r < 0 ? unsafe(err, r == -EPERM ? which : path) : 0;
}

/* Root runs what is in there: nobody else may put it there. */
static int check_folder(const char *folder, struct np_err *err)
{
	int r = check_path(folder, err);
	_cleanup_closedir_ DIR *dir = r == 0 ? opendir(folder) : NULL;
	const struct dirent *entry;

	if (r == 0 && !dir)
		r = unsafe(err, folder);
	while (r == 0 && (entry = readdir(dir))) {
		char path[PATH_MAX + NAME_MAX + 2];

		/* all that the linker and UCX look for; the rest of a lib is many files */
		if (!strstr(entry->d_name, ".so"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		/* a link to nothing is found by nobody, and only root could mend it */
		if (access(path, F_OK) == 0)
			r = check_path(path, err);
	}
	return r;
}

/* @lib and, where there is one, its folder of modules. */
static int check_trust(const char *lib, struct np_err *err)
{
	char modules[PATH_MAX + 8];
	int r = check_folder(lib, err);

	snprintf(modules, sizeof(modules), "%s/ucx", lib);
	if (r == 0 && access(modules, F_OK) == 0)
		r = check_folder(modules, err);
	return r;
}

int np_ucx_prefix_path(const char *dir, bool as_root, char *out, size_t size, struct np_err *err)
{
	static const char *const folders[] = { "lib", "lib64" };
	char real[PATH_MAX], lib[PATH_MAX], file[PATH_MAX + 32];

	if (*dir != '/')
		return bad(err, dir, "it must be an absolute path");
	if (!realpath(dir, real))
		return bad(err, dir, strerror(errno));
	/* the dynamic linker would take the rest for another directory, or for a variable */
	if (strpbrk(real, LINKER_SIGNS))
		return bad(err, dir, "the path may not hold a colon, semicolon or dollar sign");
	for (size_t i = 0; i < NP_ARRAY_SIZE(folders); i++) {
		int r = 0;

		snprintf(file, sizeof(file), "%s/%s/" LIBRARY, real, folders[i]);
		if (access(file, F_OK) < 0)
			continue;
		*strrchr(file, '/') = '\0';
		/* what was looked at is what is used: a folder that is a link is followed once */
		if (!realpath(file, lib))
			return bad(err, dir, strerror(errno));
		if (strpbrk(lib, LINKER_SIGNS))
			return bad(err, dir,
				   "its lib may not hold a colon, semicolon or dollar sign");
		if (as_root)
			r = check_trust(lib, err);
		if (r < 0)
			return r;
		if (snprintf(out, size, "%s:%s/ucx", lib, lib) >= (int)size)
			return bad(err, dir, "the path is too long");
		return 0;
	}
	return bad(err, dir, "there is no " LIBRARY " in its lib or lib64");
}

#define TRY_TIMEOUT_MS 20000

int np_ucx_prefix_try(const struct np_helper *helper, const char *library_path,
		      const struct np_strv *env, struct np_err *err)
{
	np_auto_child_result struct np_child_result result = { 0 };
	_cleanup_free_ char *lib = strndup(library_path, strcspn(library_path, ":"));
	const char *const argv[] = { NP_HELPER_PROGRAM, "--ucx-at", lib, NULL };
	const struct np_helper_job job = { .name = "looking at UCX",
					   .argv = argv,
					   .library_path = library_path,
					   .env = env,
					   .make_directory = true,
					   .timeout_ms = TRY_TIMEOUT_MS };
	char shown[200], stray[200], why[400];
	int r = lib ? np_helper_run(helper, &job, &result, err) : np_err_nomem(err);

	if (r < 0 || (result.exit_status == 0 && !result.timed_out))
		return r;
	np_printable(lib, shown, sizeof(shown));
	if (result.exit_status == 1 && result.out.len > 0) {
		snprintf(why, sizeof(why), "for user %s the dynamic linker takes %s instead",
			 helper->user,
			 np_printable(np_strip(result.out.data), stray, sizeof(stray)));
	} else {
		struct np_err failure;

		np_helper_failure(&result, NP_HELPER_PROGRAM, TRY_TIMEOUT_MS, &failure);
		np_strcpy(why, sizeof(why), failure.message);
	}
	np_err_set(err, -EINVAL, "usage.ucx_prefix",
		   "--ucx-prefix: the UCX in %s cannot be used: %s", shown, why);
	np_err_hint(err, "let that user read it (or choose one with --run-as); all of UCX's "
			 "libraries must be there, for this machine");
	return -EINVAL;
}
