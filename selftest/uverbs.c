/* SPDX-License-Identifier: MIT */
#include "selftest/uverbs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

#define CLASS "/sys/class/infiniband_verbs"

int np_uverbs_find(const char *ca, char *path, size_t size)
{
	_cleanup_closedir_ DIR *dir = opendir(CLASS);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char attr[320], ibdev[64];

		if (!np_starts_with(entry->d_name, "uverbs"))
			continue;
		snprintf(attr, sizeof(attr), "%s/ibdev", entry->d_name);
		if (np_file_read_line_at(dirfd(dir), attr, ibdev, sizeof(ibdev)) < 0 ||
		    !np_streq(ibdev, ca))
			continue;
		snprintf(path, size, "/dev/infiniband/%s", entry->d_name);
		return 0;
	}
	return -ENOENT;
}

static void open_hint(int error, const char *path, struct np_err *err)
{
	if (error == EACCES || error == EPERM)
		np_err_hint(err,
			    "let users read and write %s (rdma-core's udev rules do), or add "
			    "the device to this container or cgroup",
			    path);
	else
		np_err_hint(err, "reload the HCA's driver and ib_uverbs, and read the kernel log");
}

int np_uverbs_check(const char *rung, const char *ca, struct np_err *err)
{
	_cleanup_close_ int fd = -1;
	char path[96], code[48];
	int error;

	snprintf(code, sizeof(code), "selftest.%s.no_uverbs", rung);
	if (np_uverbs_find(ca, path, sizeof(path)) < 0) {
		np_err_set(err, -ENOENT, code,
			   "no user-space verbs device for %s: %s has no data path here", ca, rung);
		np_err_hint(err, "load ib_uverbs: modprobe ib_uverbs");
		return -ENOENT;
	}
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		return 0;
	error = errno;
	if (error == ENOENT) {
		np_err_set(err, -ENOENT, code,
			   "the kernel has a user-space verbs device for %s, but %s is missing: "
			   "%s has no data path here",
			   ca, path, rung);
		np_err_hint(err, "make the node: udevadm trigger, or add the device to this "
				 "container");
		return -ENOENT;
	}
	snprintf(code, sizeof(code), "selftest.%s.uverbs_open", rung);
	np_err_set(err, -error, code, "cannot open %s of %s: %s%s: %s has no data path here", path,
		   ca, strerror(error), error == ENXIO ? " (no driver behind it)" : "", rung);
	open_hint(error, path, err);
	return -error;
}
