/* SPDX-License-Identifier: MIT */
#include "base/root.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <nss.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/str.h"
#include "base/user.h"

#define DATABASE_MAX (64 << 20)

/* Lookups must not lead to modules of the tree's own name service, which would be loaded
 * from there and run by root. The one for files is part of libc since glibc 2.34; before, the
 * system's own is loaded by asking once. */
static void use_files_alone(void)
{
	static const char *const databases[] = { "passwd", "group", "initgroups" };

	for (size_t i = 0; i < NP_ARRAY_SIZE(databases); i++)
		__nss_configure_lookup(databases[i], "files");
	/* who was asked for before is somebody of another tree */
	np_users_forget();
	(void)!getpwuid(0);
	(void)!getgrgid(0);
	endpwent();
	endgrent();
}

static bool entered;

bool np_root_entered(void)
{
	return entered;
}

/* The root of a system that runs: what is done to it has a journal, and this has none. In a
 * container or chroot in which an image is built nothing was booted. The folder is that of
 * sd_booted(3). */
static bool is_live_root(int fd)
{
	struct stat dir, root;

	return fstat(fd, &dir) == 0 && stat("/", &root) == 0 && dir.st_dev == root.st_dev &&
	       dir.st_ino == root.st_ino && access("/run/systemd/system", F_OK) == 0;
}

/* libc reads them to their end, whatever they are: a FIFO has none, nor has a sparse one soon.
 * What is not there names nobody. */
static int check_database(const char *dir, const char *path, struct np_err *err)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
	struct statfs fs;
	struct stat st;
	char shown[160];

	if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= DATABASE_MAX &&
		       fstatfs(fd, &fs) == 0 && fs.f_type != PROC_SUPER_MAGIC))
		return 0;
	np_err_set(err, -EINVAL, "image.root",
		   "--root %s: its %s is not a regular file, or too large (the limit is %d bytes)",
		   np_printable(dir, shown, sizeof(shown)), path, DATABASE_MAX);
	np_err_hint(err, "put a regular file in its place");
	return -EINVAL;
}

int np_root_enter(const char *dir, struct np_err *err)
{
	_cleanup_close_ int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char shown[160];
	int num;

	if (fd >= 0 && is_live_root(fd)) {
		np_err_set(err, -EINVAL, "image.root",
			   "--root %s: that is the running system, not a tree",
			   np_printable(dir, shown, sizeof(shown)));
		np_err_hint(err, "leave --root out, or name the directory that the image's tree "
				 "begins with");
		return -EINVAL;
	}
	if (fd >= 0)
		use_files_alone();
	if (fd >= 0 && fchdir(fd) == 0 && chroot(".") == 0 && chdir("/") == 0) {
		entered = true;
		num = check_database(dir, "/etc/passwd", err);
		return num < 0 ? num : check_database(dir, "/etc/group", err);
	}
	num = -errno;
	np_printable(dir, shown, sizeof(shown));
	if (num == -EPERM) {
		np_err_set(err, num, "privilege.root", "--root %s needs root", shown);
		np_err_hint(err, "run it with sudo, or in a user namespace (unshare -r)");
	} else {
		np_err_set(err, num, "image.root", "--root %s: %s", shown, strerror(-num));
		np_err_hint(err, "name the directory that the image's tree begins with");
	}
	return num;
}
