/* SPDX-License-Identifier: MIT */
/* Is a home on a network file system? */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "agent/target_open.h"

#define MOUNTINFO_MAX (8 << 20)

bool np_target_fs_is_network(uint32_t type)
{
	static const uint32_t kinds[] = {
		0x6969,	    /* NFS (linux/magic.h) */
		0x0bd00bd0, /* Lustre (lustre_user.h) */
		0x47504653, /* GPFS, Storage Scale */
		0xff534d42, /* CIFS (linux/magic.h) */
		0xfe534d42, /* SMB2 (linux/magic.h) */
		0x517b,	    /* SMB (linux/magic.h) */
		0x19830326, /* BeeGFS */
		0x00c36400, /* Ceph (linux/magic.h) */
		0x01021997, /* 9p (linux/magic.h) */
		0x5346414f, /* AFS (linux/magic.h) */
		0x6b414653, /* kAFS (linux/magic.h) */
		0x20030528, /* OrangeFS */
		0x013111a8, /* IBRIX */
		0xaad7aaea, /* PanFS */
		0x7461636f, /* OCFS2 */
		0x01161970, /* GFS2 */
		0x73757245, /* Coda (linux/magic.h) */
	};

	for (size_t i = 0; i < NP_ARRAY_SIZE(kinds); i++)
		if (type == kinds[i])
			return true;
	return false;
}

/* Of those that statfs(2) does not tell: 9p passes the type on that its server's disk has,
 * and of FUSE the kernel knows no more than that it is FUSE. */
static bool name_is_network(const char *name, size_t len)
{
	static const char *const names[] = { "9p", "glusterfs", "sshfs", "nfs", "nfs4" };
	static const char fuse[] = "fuse.";
	size_t prefix = len >= strlen(fuse) && np_starts_with(name, fuse) ? strlen(fuse) : 0;

	for (size_t i = 0; i < NP_ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == len - prefix &&
		    memcmp(name + prefix, names[i], len - prefix) == 0)
			return true;
	return false;
}

bool np_target_mount_is_network(const char *mountinfo, unsigned int major, unsigned int minor)
{
	char device[32];
	size_t len = (size_t)snprintf(device, sizeof(device), " %u:%u ", major, minor);

	for (const char *line = mountinfo; *line;) {
		const char *end = strchrnul(line, '\n'), *at, *dash;

		/* proc(5): ID, parent's ID, MAJOR:MINOR, paths and options, " - ", type */
		at = memchr(line, ' ', (size_t)(end - line));
		at = at ? memchr(at + 1, ' ', (size_t)(end - at - 1)) : NULL;
		dash = at ? memmem(at, (size_t)(end - at), " - ", 3) : NULL;
		if (dash && (size_t)(end - at) > len && memcmp(at, device, len) == 0)
			return name_is_network(dash + 3, strcspn(dash + 3, " \n"));
		line = *end ? end + 1 : end;
	}
	return false;
}

bool np_target_is_network(int fd)
{
	np_auto_buf struct np_buf mounts = { 0 };
	struct statfs fs;
	struct stat st;

	if (fstatfs(fd, &fs) < 0 || fstat(fd, &st) < 0)
		return false;
	if (np_target_fs_is_network((uint32_t)fs.f_type))
		return true;
	/* a disk of this node has a device number of its own */
	if (major(st.st_dev) != 0 ||
	    np_file_read_at(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MAX, &mounts) < 0)
		return false;
	return np_target_mount_is_network(mounts.data, major(st.st_dev), minor(st.st_dev));
}
