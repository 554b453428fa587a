/* SPDX-License-Identifier: MIT */
#include "agent/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const folders[] = { NP_STATE_DIR_RUN, NP_STATE_DIR };

static int unsafe(const char *path, const char *why, struct np_err *err)
{
	np_err_set(err, -EPERM, "state.unsafe", "%s %s", path, why);
	np_err_hint(err, "look at what is in it, then make it a folder of root with mode 700");
	return -EPERM;
}

static int unwritable(const char *path, int num, struct np_err *err)
{
	np_err_set(err, num, "state.unwritable", "cannot record the undo in %s: %s", path,
		   strerror(-num));
	np_err_hint(err, "make " NP_STATE_DIR " writable");
	return num;
}

/* Opens a folder that is there, and nothing that somebody else could have put there. */
static int open_folder(const char *path, struct np_err *err)
{
	_cleanup_close_ int fd =
		open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR)) {
		/* O_DIRECTORY|O_NOFOLLOW says ENOTDIR for a symlink, too */
		return unsafe(path, "is not a folder", err);
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid())
		return unsafe(path, "is not root's", err);
	if (st.st_mode & 022)
		return unsafe(path, "can be written by others than root", err);
	return np_steal_fd(&fd);
}

/* The name of a new folder is on the disk before what is in it counts. */
static int sync_folder(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && (fsync(fd) == 0 || errno == EINVAL) ? 0 : -errno;
}

/* Returns a descriptor, -EROFS, or another negative errno with message. */
static int make_folder(const char *path, struct np_err *err)
{
	struct np_err local = { 0 };
	struct stat st;
	int fd = open_folder(path, err), r;

	if (fd == -ENOENT) {
		char parent[64];

		snprintf(parent, sizeof(parent), "%.*s", (int)(strrchr(path, '/') - path), path);
		r = np_file_mkdirs(parent, &local);
		if (r == 0 && mkdir(path, 0700) < 0 && errno != EEXIST)
			r = -errno;
		if (r == 0)
			r = sync_folder(parent);
		if (r < 0)
			return r == -EROFS ? r : unwritable(path, r, err);
		fd = open_folder(path, err);
	}
	if (fd < 0)
		return fd == -EPERM || fd == -EROFS ? fd : unwritable(path, fd, err);
	/* root passes every test but that of a read-only file system */
	r = faccessat(fd, ".", W_OK, AT_EACCESS) < 0 ? -errno : 0;
	/* earlier versions made it 0755 */
	if (r == 0 && (fstat(fd, &st) < 0 || ((st.st_mode & 077) && fchmod(fd, 0700) < 0)))
		r = -errno;
	if (r < 0) {
		close(fd);
		return r == -EROFS ? r : unwritable(path, r, err);
	}
	return fd;
}

static bool has_files(const char *path)
{
	_cleanup_close_ int fd = open_folder(path, NULL);

	return fd >= 0 && (faccessat(fd, NP_STATE_RECORD, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
			   faccessat(fd, NP_STATE_JOURNAL, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
}

int np_state_open(struct np_state *st, struct np_err *err)
{
	int fd = -EROFS;

	if (st->dirfd >= 0)
		return 0;
	if (!has_files(NP_STATE_DIR_RUN))
		fd = make_folder(NP_STATE_DIR, err);
	if (fd == -EROFS) {
		st->in_run = true;
		fd = make_folder(NP_STATE_DIR_RUN, err);
		if (fd == -EROFS)
			return unwritable(NP_STATE_DIR " nor in " NP_STATE_DIR_RUN, fd, err);
	}
	if (fd < 0)
		return fd;
	st->dirfd = fd;
	return 0;
}

void np_state_close(struct np_state *st)
{
	if (st && st->dirfd >= 0)
		close(st->dirfd);
	if (st)
		st->dirfd = -1;
}

const char *np_state_path(const struct np_state *st)
{
	return st->in_run ? NP_STATE_DIR_RUN : NP_STATE_DIR;
}

static int unreadable(const char *folder, const char *name, int num, struct np_err *err)
{
	np_err_set(err, num, "state.unreadable", "%s/%s: %s", folder, name, strerror(-num));
	np_err_hint(err, "move that file away; what it would undo stays as it is");
	return num;
}

static int read_file(int dirfd, const char *name, struct np_buf *out)
{
	_cleanup_close_ int fd =
		openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
		return -EPERM;
	return np_file_read_fd(fd, NP_STATE_MAX, out);
}

int np_state_read(const char *name, struct np_buf *out, bool *in_run, struct np_err *err)
{
	for (size_t i = 0; i < NP_ARRAY_SIZE(folders); i++) {
		_cleanup_close_ int fd = -1;
		char path[96];
		int r;

		/* one call where there is nothing, as in every run that finds nothing to do */
		snprintf(path, sizeof(path), "%s/%s", folders[i], name);
		if (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
		    (errno == ENOENT || errno == ENOTDIR))
			continue;
		fd = open_folder(folders[i], err);
		if (fd < 0)
			return fd == -EPERM ? fd : unreadable(folders[i], name, fd, err);
		r = read_file(fd, name, out);
		if (r == -ENOENT)
			continue;
		if (r < 0)
			return unreadable(folders[i], name, r, err);
		if (in_run)
			*in_run = i == 0;
		return 0;
	}
	return -ENOENT;
}

int np_state_write(const struct np_state *st, const char *name, const char *text, size_t len,
		   struct np_err *err)
{
	struct np_file_attr attr = { .mode = 0600, .uid = geteuid(), .gid = getegid() };
	int r;

	/* what could not be read back is no undo */
	if (len > NP_STATE_MAX)
		return unwritable(np_state_path(st), -EFBIG, err);
	np_file_sweep_temp(st->dirfd, name);
	r = np_file_replace_at(st->dirfd, name, text, len, &attr, err);
	return r < 0 ? unwritable(np_state_path(st), r, err) : 0;
}

void np_state_remove(const char *name)
{
	for (size_t i = 0; i < NP_ARRAY_SIZE(folders); i++) {
		_cleanup_close_ int fd = open_folder(folders[i], NULL);

		if (fd >= 0 && unlinkat(fd, name, 0) == 0)
			fsync(fd);
	}
}

void np_state_sweep(void)
{
	for (size_t i = 0; i < NP_ARRAY_SIZE(folders); i++) {
		_cleanup_close_ int fd = open_folder(folders[i], NULL);

		if (fd < 0)
			continue;
		np_file_sweep_temp(fd, NP_STATE_JOURNAL);
		np_file_sweep_temp(fd, NP_STATE_RECORD);
		np_file_sweep_temp(fd, NP_STATE_LIBRARIES);
	}
}

void np_state_set_aside(const char *name, const char *why, char *as, size_t size)
{
	as[0] = '\0';
	for (size_t i = 0; i < NP_ARRAY_SIZE(folders); i++) {
		_cleanup_close_ int fd = open_folder(folders[i], NULL);

		for (int n = 1; fd >= 0 && n < 100; n++) {
			char to[96];

			snprintf(to, sizeof(to), "%.*s.%s-%d.json", (int)strcspn(name, "."), name,
				 why, n);
			if (renameat2(fd, name, fd, to, RENAME_NOREPLACE) == 0) {
				snprintf(as, size, "%s/%s", folders[i], to);
				return;
			}
			if (errno != EEXIST)
				break;
		}
	}
}

/* A word: letters, digits and '-'; anything else is no id. */
static void read_word(const char *path, char *out, size_t size)
{
	int len = np_file_read_line_at(AT_FDCWD, path, out, size);

	if (len <= 0 || strspn(out, "0123456789abcdefABCDEF-") != (size_t)len)
		out[0] = '\0';
}

void np_state_identify(struct np_state_id *id)
{
	read_word("/etc/machine-id", id->machine, sizeof(id->machine));
	read_word("/proc/sys/kernel/random/boot_id", id->boot, sizeof(id->boot));
}
