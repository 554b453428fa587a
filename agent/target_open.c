/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/target_open.h"
#include "base/root.h"

void np_target_look_set(struct np_target_look *look, enum np_target_status status, int num,
			const char *hint, const char *fmt, ...)
{
	va_list args;

	look->status = status;
	look->num = num;
	np_strcpy(look->hint, sizeof(look->hint), hint ? hint : "");
	va_start(args, fmt);
	vsnprintf(look->reason, sizeof(look->reason), fmt, args);
	va_end(args);
}

/* The same promise as openat2's, one step at a time: each step opens a name without
 * a slash, never "..", never through a symlink. */
static int open_by_steps(int dirfd, const char *path, int flags)
{
	_cleanup_close_ int at = -1;

	for (;;) {
		size_t len = strcspn(path, "/");
		const char *rest = path + len + strspn(path + len, "/");
		char name[256];
		int next;

		if (len == 0 || len >= sizeof(name))
			return len ? -ENAMETOOLONG : -EINVAL;
		memcpy(name, path, len);
		name[len] = '\0';
		if (np_streq(name, ".."))
			return -EXDEV;
		next = openat(at >= 0 ? at : dirfd, name,
			      (*rest ? O_PATH | O_DIRECTORY : flags) | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0) {
			struct stat st;
			int num = -errno;

			/* O_DIRECTORY|O_NOFOLLOW says ENOTDIR for a symlink */
			if (num == -ENOTDIR &&
			    fstatat(at >= 0 ? at : dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			    S_ISLNK(st.st_mode))
				num = -ELOOP;
			return num;
		}
		if (!*rest)
			return next;
		if (at >= 0)
			close(at);
		at = next;
		path = rest;
	}
}

int np_target_open_beneath(int dirfd, const char *path, int flags)
{
	/* O_NOFOLLOW with O_PATH gives the link itself, to be described; without O_PATH
	 * it would turn the ELOOP of a link into ENOTDIR where a directory is wanted */
	struct open_how how = {
		.flags = (unsigned int)(flags | O_CLOEXEC | ((flags & O_PATH) ? O_NOFOLLOW : 0)),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};
	long fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

	if (fd >= 0)
		return (int)fd;
	/* EPERM: an older container runtime's filter for calls that it does not know.
	 * EAGAIN: a rename somewhere raced with the walk. */
	if (errno == ENOSYS || errno == EPERM || errno == EAGAIN)
		return open_by_steps(dirfd, path, flags);
	return -errno;
}

int np_target_open_dir(const char *path)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK;
	struct open_how how = { .flags = (unsigned int)flags, .resolve = RESOLVE_NO_MAGICLINKS };
	long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EAGAIN))
		return fd >= 0 ? (int)fd : -errno;
	if (np_root_entered()) {
		_cleanup_close_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

		return root < 0 ? -errno : open_by_steps(root, path + strspn(path, "/"), flags);
	}
	fd = open(path, flags);
	return fd < 0 ? -errno : (int)fd;
}

static void describe_link(int dirfd, const char *name, struct np_target_look *look)
{
	char target[160], shown[150];
	ssize_t len = readlinkat(dirfd, name, target, sizeof(target) - 1);

	target[len > 0 ? len : 0] = '\0';
	np_target_look_set(look, NP_TARGET_REFUSED, -ELOOP,
			   "replace the link by a regular file, or remove it",
			   "a symbolic link to %s", np_printable(target, shown, sizeof(shown)));
}

static void judge(const struct stat *st, const uid_t *owner, struct np_target_look *look)
{
	if (!S_ISREG(st->st_mode))
		np_target_look_set(look, NP_TARGET_REFUSED, -EPERM,
				   "move it away, so that a regular file can take its place", "%s",
				   np_file_kind(st->st_mode));
	else if (owner && st->st_uid != *owner)
		np_target_look_set(look, NP_TARGET_REFUSED, -EPERM,
				   "give it to the owner of the home, or remove it",
				   "owned by uid %u, not by the owner of the home (uid %u)",
				   (unsigned int)st->st_uid, (unsigned int)*owner);
	else if (owner && st->st_nlink > 1)
		np_target_look_set(look, NP_TARGET_REFUSED, -EMLINK,
				   "replace it by a copy, so that it has one name only",
				   "a file with %lu hard links", (unsigned long)st->st_nlink);
	else if (st->st_size > NP_TARGET_MAX)
		np_target_look_set(look, NP_TARGET_REFUSED, -EFBIG,
				   "move it away: it cannot be a configuration file",
				   "too large (%lld bytes, the limit is %d)",
				   (long long)st->st_size, NP_TARGET_MAX);
	else
		look->status = NP_TARGET_PRESENT;
}

void np_target_look_at(int dirfd, const char *name, const uid_t *owner, struct np_target_look *look)
{
	/* a name without a slash: nothing to walk through, and nothing is opened */
	memset(look, 0, sizeof(*look));
	if (fstatat(dirfd, name, &look->st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			look->status = NP_TARGET_ABSENT;
		else
			np_target_look_set(look, NP_TARGET_UNKNOWN, -errno, NULL, "%s",
					   strerror(errno));
	} else if (S_ISLNK(look->st.st_mode)) {
		describe_link(dirfd, name, look);
	} else {
		judge(&look->st, owner, look);
	}
}

/* Reads a regular file to its end, but no more than NP_TARGET_MAX bytes. When all of its
 * @size is there and less came than there was room for, no other read asks whether that
 * is the end. Returns 0 or an errno. */
static int read_all(int fd, off_t size, struct np_buf *out)
{
	char chunk[4096]; /* more would be pages of the stack that nothing else touches */

	np_buf_add(out, "", 0);
	for (;;) {
		ssize_t got = read(fd, chunk, sizeof(chunk));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (out->len + (size_t)got > NP_TARGET_MAX)
			return -EFBIG;
		np_buf_add(out, chunk, (size_t)got);
		if (got == 0 || ((size_t)got < sizeof(chunk) && out->len == (size_t)size))
			return out->failed ? -ENOMEM : 0;
	}
}

void np_target_read_at(int dirfd, const char *name, struct np_target_look *look,
		       struct np_buf *content, struct np_file_meta *meta)
{
	/* O_NONBLOCK: should a FIFO have come in between, do not wait for its writer */
	_cleanup_close_ int fd =
		np_target_open_beneath(dirfd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	np_auto_buf struct np_buf text = { 0 };
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0) {
		int num = fd < 0 ? fd : -errno;

		np_target_look_set(look, NP_TARGET_UNKNOWN, num,
				   num == -EACCES ? "let its owner read it" : NULL,
				   "cannot be read: %s", strerror(-num));
		return;
	}
	if (!S_ISREG(st.st_mode) || st.st_dev != look->st.st_dev || st.st_ino != look->st.st_ino ||
	    st.st_uid != look->st.st_uid || st.st_nlink != look->st.st_nlink) {
		np_target_look_set(look, NP_TARGET_UNKNOWN, -ESTALE, "run nodeprep again",
				   "replaced by another file while it was read");
		return;
	}
	/* before the content: reading may change the time of access */
	r = meta ? np_file_meta_read(fd, meta) : 0;
	if (r == 0)
		r = read_all(fd, st.st_size, &text);
	if (r < 0) {
		np_target_look_set(look, NP_TARGET_UNKNOWN, r, NULL, "cannot be read: %s",
				   strerror(-r));
		return;
	}
	look->st = st;
	np_buf_done(content);
	*content = text;
	memset(&text, 0, sizeof(text));
}

bool np_target_is_still(int dirfd, const char *name, struct np_target_look *look,
			const struct np_target_before *before)
{
	np_auto_buf struct np_buf content = { 0 };

	if (look->status != NP_TARGET_PRESENT || !before->present)
		return look->status == NP_TARGET_ABSENT && !before->present;
	np_target_read_at(dirfd, name, look, &content, NULL);
	return look->status == NP_TARGET_PRESENT && np_buf_equal(&content, before->content);
}
