/* SPDX-License-Identifier: MIT */
/* /dev/gdrdrv: the driver only registers a character major, nobody makes its node. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "modules/gdrdrv.h"
#include "modules/private.h"

#define DEV_DIR	     "/dev"
#define NAME	     "gdrdrv"
#define TEMP	     ".gdrdrv.nodeprep-" /* and six letters */
#define TEMP_LEN     (sizeof(TEMP) - 1 + 6)
#define TRIES	     8
#define RETURN_TRIES 256 /* one who swaps all the time can fall into step with us */

void np_gdrdrv_default_attr(struct np_file_attr *out)
{
	struct stat st;

	*out = (struct np_file_attr){ .mode = 0666 };
	if (lstat(DEV_DIR "/nvidiactl", &st) == 0 && S_ISCHR(st.st_mode))
		*out = (struct np_file_attr){ .mode = st.st_mode & 0777,
					      .uid = st.st_uid,
					      .gid = st.st_gid };
}

static int failed(struct np_err *err, int num, const char *what)
{
	const char *code = num == -EPERM && strcmp(what, "make") == 0 ? "privilege.mknod" :
									"gdrdrv.node_failed";

	np_err_set(err, num, code, "cannot %s " DEV_DIR "/" NAME ": %s", what, strerror(-num));
	if (num == -EPERM)
		np_err_hint(err, "run as root outside of containers");
	return num;
}

static int unsafe(struct np_err *err, const char *what)
{
	np_err_set(err, -EPERM, "gdrdrv.node_unsafe", "%s: left as it is", what);
	np_err_hint(err, "find out who made it, and remove " DEV_DIR "/" NAME);
	return -EPERM;
}

/* In a directory that others may write to, no name is ours. */
static int open_dev(struct np_err *err)
{
	_cleanup_close_ int fd = open(DEV_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return failed(err, -errno, "reach");
	if (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return unsafe(err, DEV_DIR " is not writable for root alone");
	return np_steal_fd(&fd);
}

static bool is_node(const struct stat *st, int node_major)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev((unsigned int)node_major, 0);
}

static bool same_inode(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool has_attr(const struct stat *st, const struct np_file_attr *attr)
{
	return (st->st_mode & 07777) == (attr->mode & 0777) && st->st_uid == attr->uid &&
	       st->st_gid == attr->gid;
}

/* Through a descriptor: the very inode, whatever its name leads to by now. Owner
 * first, so that the mode never serves the wrong one. */
static int set_attr(int fd, const struct np_file_attr *attr)
{
	char self[64];
	struct stat st;

	if (fchownat(fd, "", attr->uid, attr->gid, AT_EMPTY_PATH) < 0)
		return -errno;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd); /* fchmod takes no O_PATH */
	if (chmod(self, attr->mode & 0777) < 0 || fstat(fd, &st) < 0)
		return -errno;
	return has_attr(&st, attr) ? 0 : -EIO;
}

/* Leftovers of a killed run: a node, or what it had just replaced by one. Nobody but root makes
 * names here. */
static int sweep(int dev_fd)
{
	int r = 0;
	int fd = openat(dev_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (entry = readdir(dir))) {
		struct stat st;

		if (np_starts_with(entry->d_name, TEMP) && strlen(entry->d_name) == TEMP_LEN &&
		    fstatat(dev_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    !S_ISDIR(st.st_mode) && st.st_uid == 0 &&
		    unlinkat(dev_fd, entry->d_name, 0) < 0 && errno != ENOENT)
			r = -errno;
	}
	return r;
}

/* A node under a name of its own, mode 0. Returns an O_PATH descriptor. */
static int make_temp(int dev_fd, int node_major, char temp[TEMP_LEN + 1])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";

	for (int i = 0; i < TRIES; i++) {
		unsigned char random[6];
		struct stat st;
		int fd;

		if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
			return -errno;
		memcpy(temp, TEMP, sizeof(TEMP));
		for (size_t k = 0; k < sizeof(random); k++)
			temp[sizeof(TEMP) - 1 + k] = letters[random[k] % 32];
		temp[TEMP_LEN] = '\0';
		if (mknodat(dev_fd, temp, S_IFCHR, makedev((unsigned int)node_major, 0)) < 0) {
			if (errno == EEXIST)
				continue;
			return -errno;
		}
		fd = openat(dev_fd, temp, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && fstat(fd, &st) == 0 && is_node(&st, node_major))
			return fd;
		if (fd >= 0)
			close(fd);
		return -EIO;
	}
	return -EEXIST;
}

/* What is at the name may be given up: root's, and no directory. */
static int check_old(const struct stat *st, struct np_err *err)
{
	if (S_ISDIR(st->st_mode))
		return unsafe(err, DEV_DIR "/" NAME " is a directory");
	if (st->st_uid != 0 && !S_ISCHR(st->st_mode))
		return unsafe(err, DEV_DIR "/" NAME " belongs to another user");
	return 0;
}

/* @temp holds what somebody put at the name after we looked: it gets the name back,
 * be that taken or free by now; at the end @temp is our own node (@fd), or nothing. */
static void give_back(int dev_fd, const char *temp, int fd)
{
	struct stat ours, st;

	if (fstat(fd, &ours) < 0)
		return;
	for (int i = 0; i < RETURN_TRIES; i++) {
		if (renameat2(dev_fd, temp, dev_fd, NAME, RENAME_EXCHANGE) < 0)
			renameat2(dev_fd, temp, dev_fd, NAME, RENAME_NOREPLACE);
		if (fstatat(dev_fd, temp, &st, AT_SYMLINK_NOFOLLOW) < 0 || same_inode(&st, &ours))
			return;
	}
}

/* Swaps the new node with the old thing and removes the latter, if it still is what
 * was looked at; else all goes back. -EAGAIN: it was not. */
static int swap_in(int dev_fd, const char *temp, int fd, const struct stat *old)
{
	struct stat st;

	if (renameat2(dev_fd, temp, dev_fd, NAME, RENAME_EXCHANGE) < 0) {
		if (errno == ENOENT)
			return -EAGAIN; /* gone: start again */
		/* a file system without exchange (ramfs before 5.17): rename does not replace a
		 * directory */
		if ((errno == EINVAL || errno == ENOSYS) &&
		    renameat(dev_fd, temp, dev_fd, NAME) == 0)
			return 0;
		return -errno;
	}
	if (fstatat(dev_fd, temp, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!same_inode(&st, old)) { /* not what was looked at */
		give_back(dev_fd, temp, fd);
		return -EAGAIN;
	}
	return unlinkat(dev_fd, temp, 0) < 0 ? -errno : 0;
}

/* The name leads to the inode of @fd, with all it shall have. */
static int verify(int dev_fd, int fd, int node_major, const struct np_file_attr *attr)
{
	struct stat made, named;

	if (fstat(fd, &made) < 0 || fstatat(dev_fd, NAME, &named, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	if (!same_inode(&made, &named) || !is_node(&made, node_major) || !has_attr(&made, attr))
		return -EAGAIN;
	return 0;
}

/* One try: a new node in the place of @old (NULL = nothing). */
static int place_new(int dev_fd, int node_major, const struct np_file_attr *attr,
		     const struct stat *old)
{
	char temp[TEMP_LEN + 1];
	_cleanup_close_ int fd = make_temp(dev_fd, node_major, temp);
	int r;

	if (fd < 0)
		return fd;
	r = set_attr(fd, attr);
	if (r == 0 && old)
		r = swap_in(dev_fd, temp, fd, old);
	else if (r == 0 && renameat2(dev_fd, temp, dev_fd, NAME, RENAME_NOREPLACE) < 0)
		r = errno == EEXIST ? -EAGAIN : -errno;
	if (r < 0) {
		unlinkat(dev_fd, temp, 0);
		return r;
	}
	return verify(dev_fd, fd, node_major, attr);
}

/* One try. Returns 0, -EAGAIN, or a negative errno with message. */
static int try_make(int dev_fd, int node_major, const struct np_file_attr *attr,
		    enum np_gdrdrv_made *made, struct np_err *err)
{
	_cleanup_close_ int fd = openat(dev_fd, NAME, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat old;
	int r;

	if (fd < 0 && errno != ENOENT)
		return failed(err, -errno, "look at");
	*made = NP_GDRDRV_CREATED;
	if (fd >= 0) {
		if (fstat(fd, &old) < 0)
			return failed(err, -errno, "look at");
		/* another's own node may be open in his hands with a mode of his choice */
		if (is_node(&old, node_major) && (old.st_uid == 0 || has_attr(&old, attr))) {
			bool right = has_attr(&old, attr);

			*made = right ? NP_GDRDRV_UNCHANGED : NP_GDRDRV_ADJUSTED;
			r = right ? 0 : set_attr(fd, attr);
			if (r == 0)
				r = verify(dev_fd, fd, node_major, attr);
			return r < 0 && r != -EAGAIN ? failed(err, r, "set mode and owner of") : r;
		}
		*made = NP_GDRDRV_REPLACED;
		r = check_old(&old, err);
		if (r < 0)
			return r;
	}
	r = place_new(dev_fd, node_major, attr, fd >= 0 ? &old : NULL);
	if (r == -EBUSY)
		return unsafe(err, DEV_DIR "/" NAME " is a mount point");
	return r < 0 && r != -EAGAIN ? failed(err, r, "make") : r;
}

int np_gdrdrv_make_node(int node_major, const struct np_file_attr *attr, enum np_gdrdrv_made *made,
			struct np_err *err)
{
	_cleanup_close_ int dev_fd = -1;
	enum np_gdrdrv_made did = NP_GDRDRV_UNCHANGED;

	if (node_major < 0 || node_major > 0xfff) /* the kernel's dev_t has 12 bits for it */
		return failed(err, -EINVAL, "make");
	dev_fd = open_dev(err);
	if (dev_fd < 0)
		return dev_fd;
	sweep(dev_fd);
	for (int i = 0; i < TRIES; i++) {
		int r = try_make(dev_fd, node_major, attr, &did, err);

		if (r == -EAGAIN)
			continue;
		if (r == 0 && made)
			*made = did;
		return r;
	}
	np_err_set(err, -EAGAIN, "gdrdrv.node_busy", DEV_DIR "/" NAME " changes while it is made");
	np_err_hint(err, "find out what else makes " DEV_DIR "/" NAME ", and try again");
	return -EAGAIN;
}

int np_gdrdrv_sweep(void)
{
	_cleanup_close_ int dev_fd = open_dev(NULL);

	return dev_fd >= 0 ? sweep(dev_fd) : 0;
}

int np_gdrdrv_remove_node(int node_major, struct np_err *err)
{
	_cleanup_close_ int dev_fd = open_dev(err);
	struct stat st;

	if (dev_fd < 0)
		return dev_fd;
	if (fstatat(dev_fd, NAME, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : failed(err, -errno, "look at");
	if (!is_node(&st, node_major))
		return 0;
	return unlinkat(dev_fd, NAME, 0) < 0 && errno != ENOENT ? failed(err, -errno, "remove") : 0;
}
