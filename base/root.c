/* SPDX-License-Identifier: MIT */
#include "base/root.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <nss.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/user.h"

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

int np_root_enter(const char *dir, struct np_err *err)
{
	_cleanup_close_ int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char shown[160];
	int num;

	if (fd >= 0)
		use_files_alone();
	if (fd >= 0 && fchdir(fd) == 0 && chroot(".") == 0 && chdir("/") == 0)
		return 0;
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
