/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define TEMP_MARK ".nodeprep-"

int np_file_read_fd(int fd, size_t max, struct np_buf *out)
{
	np_auto_buf struct np_buf buf = { 0 };
	char chunk[4096];
	ssize_t got;

	while ((got = read(fd, chunk, sizeof(chunk))) != 0) {
		if (got < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (buf.len + (size_t)got > max)
			return -EFBIG;
		np_buf_add(&buf, chunk, (size_t)got);
	}
	np_buf_add(&buf, "", 0);
	if (buf.failed)
		return -ENOMEM;
	np_buf_done(out);
	*out = buf;
	memset(&buf, 0, sizeof(buf));
	return 0;
}

int np_file_read_at(int dirfd, const char *path, size_t max, struct np_buf *out)
{
	/* a FIFO in its place is empty, and nobody waits for its writer */
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	return fd < 0 ? -errno : np_file_read_fd(fd, max, out);
}

const char *np_file_kind(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return "a directory";
	case S_IFIFO:
		return "a FIFO";
	case S_IFSOCK:
		return "a socket";
	case S_IFCHR:
		return "a character device";
	case S_IFBLK:
		return "a block device";
	default:
		return "not a regular file";
	}
}

int np_file_read_line_at(int dirfd, const char *path, char *out, size_t size)
{
	int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	ssize_t got;

	if (fd < 0)
		return -errno;
	got = read(fd, out, size - 1);
	if (got < 0)
		got = -errno;
	close(fd);
	if (got < 0)
		return (int)got;
	while (got > 0 && strchr(" \t\r\n", out[got - 1]))
		got--;
	out[got] = '\0';
	return (int)got;
}

int np_dir_each(int dirfd, const char *path,
		int (*each)(const char *name, unsigned char type, void *arg), void *arg)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_Alignas(struct dirent64) char entries[4096];
	ssize_t got;

	if (fd < 0)
		return -errno;
	while ((got = getdents64(fd, entries, sizeof(entries))) > 0) {
		for (ssize_t at = 0; at < got;) {
			const struct dirent64 *entry = (const void *)(entries + at);
			int r = 0;

			at += entry->d_reclen;
			if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
				r = each(entry->d_name, entry->d_type, arg);
			if (r != 0)
				return r;
		}
	}
	return got < 0 ? -errno : 0;
}

int np_file_write_attr_at(int dirfd, const char *path, const char *text)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t put;

	if (fd < 0)
		return -errno;
	put = write(fd, text, strlen(text));
	if (put < 0)
		return -errno;
	return (size_t)put == strlen(text) ? 0 : -EIO;
}

static int write_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t put = write(fd, data, len);

		if (put < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		data += put;
		len -= (size_t)put;
	}
	return 0;
}

/* Labels and ACLs; a file system without them is fine, losing one is not. */
static int copy_xattrs(int from, int to)
{
	char names[4096], value[8192];
	ssize_t len = flistxattr(from, names, sizeof(names));

	if (len < 0)
		return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
	for (const char *name = names; name < names + len; name += strlen(name) + 1) {
		ssize_t size = fgetxattr(from, name, value, sizeof(value));

		if (size < 0 || fsetxattr(to, name, value, (size_t)size, 0) < 0) {
			if (errno == EOPNOTSUPP || errno == ENODATA)
				continue;
			/* an unprivileged owner may not set trusted.* and the like */
			if (errno == EPERM && !np_starts_with(name, "system.posix_acl"))
				continue;
			return -errno;
		}
	}
	return 0;
}

static int open_temp(int dirfd, const char *name, char *temp, size_t size)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	unsigned char random[6];

	for (int tries = 0; tries < 16; tries++) {
		int fd, len;

		if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
			return -errno;
		len = snprintf(temp, size, ".%s" TEMP_MARK, name);
		if (len < 0 || (size_t)len + sizeof(random) >= size)
			return -ENAMETOOLONG;
		for (size_t i = 0; i < sizeof(random); i++)
			temp[(size_t)len + i] = letters[random[i] % (sizeof(letters) - 1)];
		temp[(size_t)len + sizeof(random)] = '\0';
		fd = openat(dirfd, temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* Fills the temporary file and gives it its final owner, labels and mode. */
static int finish_temp(int fd, int dirfd, const char *name, const void *data, size_t len,
		       const struct np_file_attr *attr, const struct np_file_meta *meta)
{
	_cleanup_close_ int old =
		openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat st;
	int r;

	r = write_all(fd, data, len);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	if ((st.st_uid != attr->uid || st.st_gid != attr->gid) &&
	    fchown(fd, attr->uid, attr->gid) < 0)
		return -errno;
	if (old >= 0)
		r = copy_xattrs(old, fd);
	else if (meta && meta->known)
		r = np_file_meta_give_xattrs(fd, meta);
	if (r == 0 && meta && meta->known)
		r = np_file_meta_give_times(fd, meta);
	if (r < 0)
		return r;
	if (fchmod(fd, attr->mode & 07777) < 0 || fsync(fd) < 0)
		return -errno;
	return 0;
}

int np_file_restore_at(int dirfd, const char *name, const void *data, size_t len,
		       const struct np_file_attr *attr, const struct np_file_meta *meta,
		       struct np_err *err)
{
	_cleanup_close_ int fd = -1;
	char temp[300];
	int r;

	if (!*name || strchr(name, '/'))
		return np_err_set(err, -EINVAL, "file.write", "%s: not a file name", name);
	fd = open_temp(dirfd, name, temp, sizeof(temp));
	if (fd < 0)
		return np_err_set(err, fd, "file.write", "cannot create a temporary file: %s",
				  strerror(-fd));
	r = finish_temp(fd, dirfd, name, data, len, attr, meta);
	if (r == 0 && renameat(dirfd, temp, dirfd, name) < 0)
		r = -errno;
	if (r < 0) {
		unlinkat(dirfd, temp, 0);
		return np_err_set(err, r, "file.write", "cannot be written: %s", strerror(-r));
	}
	/* the name is right already; a directory that cannot be synced (some network
	 * file systems) must not turn that into a failure */
	if (fsync(dirfd) < 0 && errno != EINVAL && errno != EBADF && errno != EROFS)
		return np_err_set(err, -errno, "file.write", "its directory cannot be synced: %s",
				  strerror(errno));
	return 0;
}

int np_file_replace_at(int dirfd, const char *name, const void *data, size_t len,
		       const struct np_file_attr *attr, struct np_err *err)
{
	return np_file_restore_at(dirfd, name, data, len, attr, NULL, err);
}

int np_file_mkdirs(const char *path, struct np_err *err)
{
	_cleanup_free_ char *copy = strdup(path);

	if (!copy)
		return np_err_nomem(err);
	for (char *slash = strchr(copy + 1, '/');; slash = strchr(slash + 1, '/')) {
		struct stat st;
		int r;

		if (slash)
			*slash = '\0';
		r = mkdir(copy, 0755) < 0 ? -errno : 0;
		if (r == -EEXIST)
			r = stat(copy, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
		if (r < 0)
			return np_err_set(err, r, "file.write",
					  "%s: cannot create the directory: %s", copy,
					  strerror(-r));
		if (!slash)
			return 0;
		*slash = '/';
	}
}

int np_file_sweep_temp(int dirfd, const char *name)
{
	int removed = 0, r = 0, fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_closedir_ DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	bool others = true;
	char prefix[300];
	struct dirent *entry;
	struct stat st;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	/* it was killed after it had given the file away, or before; where nobody else can make
	 * one, any of that name is ours */
	if (fstat(dirfd, &st) == 0)
		others = st.st_uid != geteuid() || (st.st_mode & 022);
	snprintf(prefix, sizeof(prefix), ".%s" TEMP_MARK, name);
	while ((entry = readdir(dir))) {
		if (!np_starts_with(entry->d_name, prefix) ||
		    strlen(entry->d_name) != strlen(prefix) + 6)
			continue;
		if (fstatat(dirfd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode) || (others && st.st_uid != geteuid()))
			continue;
		if (unlinkat(dirfd, entry->d_name, 0) == 0)
			removed++;
		else if (errno != ENOENT)
			r = -errno;
	}
	return r < 0 ? r : removed;
}
