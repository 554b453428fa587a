/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/target_file.h"
#include "agent/target_open.h"
#include "base/root.h"

static int init(struct np_target_file *f, char *path)
{
	memset(f, 0, sizeof(*f));
	f->path = path;
	return path ? 0 : -ENOMEM;
}

static bool ends_in_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return path[0] == '/' && slash[1] && !np_streq(slash, "/.") && !np_streq(slash, "/..");
}

int np_target_file_init_etc(struct np_target_file *f, const char *path)
{
	/* what was made the root of this process is an image all the same */
	if (np_root_entered())
		return np_target_file_init_image(f, "/", path);
	if (!ends_in_name(path))
		return -EINVAL;
	return init(f, strdup(path));
}

int np_target_file_init_image(struct np_target_file *f, const char *root, const char *path)
{
	int r;

	if (root[0] != '/' || !ends_in_name(path))
		return -EINVAL;
	r = init(f, np_asprintf("%s%s", root[1] ? root : "", path));
	if (r < 0)
		return r;
	f->root = strdup(root);
	if (!f->root) {
		np_target_file_done(f);
		return -ENOMEM;
	}
	return 0;
}

int np_target_file_init_home(struct np_target_file *f, const char *user, uid_t uid, gid_t gid,
			     const char *home, const char *name)
{
	int r;

	if (!*name || strchr(name, '/') || np_streq(name, ".") || np_streq(name, "..") ||
	    strlen(user) >= sizeof(f->user))
		return -EINVAL;
	r = init(f, np_asprintf("%s/%s", home, name));
	if (r < 0)
		return r;
	f->in_home = true;
	f->uid = uid;
	f->gid = gid;
	np_strcpy(f->user, sizeof(f->user), user);
	f->home = strdup(home);
	if (!f->home) {
		np_target_file_done(f);
		return -ENOMEM;
	}
	return 0;
}

void np_target_file_done(struct np_target_file *f)
{
	if (!f)
		return;
	free(f->path);
	free(f->home);
	free(f->root);
	np_buf_done(&f->content);
	np_file_meta_done(&f->meta);
	memset(f, 0, sizeof(*f));
}

static const char *base_name(const char *path)
{
	return strrchr(path, '/') + 1;
}

/* The part of the path below the image's root. */
static const char *inner_path(const struct np_target_file *f)
{
	return f->path + (f->root[1] ? strlen(f->root) : 0) + 1;
}

/* The directory part: "/etc", "etc", "/" or ".". Caller frees. */
static char *parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return strdup(".");
	return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* Opens the directory above a file in /etc. Its path is root's own; in an image
 * nothing may lead out of the tree, least of all an absolute symlink. */
static int open_parent(const struct np_target_file *f)
{
	_cleanup_free_ char *parent = parent_of(f->root ? inner_path(f) : f->path);
	_cleanup_close_ int root = -1;
	int fd;

	if (!parent)
		return -ENOMEM;
	if (!f->root) {
		fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	root = open(f->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	return np_target_open_beneath(root, parent, O_RDONLY | O_DIRECTORY);
}

/* Makes the missing directories of an image's path, without following a symlink. */
static int make_parents(const struct np_target_file *f, struct np_err *err)
{
	_cleanup_free_ char *path = parent_of(f->root ? inner_path(f) : f->path);
	_cleanup_close_ int at = -1;
	char *rest = path, *name;

	if (!path)
		return np_err_nomem(err);
	if (!f->root)
		return np_file_mkdirs(path, err);
	at = open(f->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (at >= 0 && (name = strsep(&rest, "/"))) {
		int next;

		if (!*name || np_streq(name, "."))
			continue;
		if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
			return np_err_set(err, -errno, "file.write",
					  "%s: cannot create the directory %s: %s", f->path, name,
					  strerror(errno));
		next = np_target_open_beneath(at, name, O_RDONLY | O_DIRECTORY);
		if (next < 0)
			return 0; /* open_parent meets it again and names it */
		close(at);
		at = next;
	}
	return 0;
}

/* An admin may point /etc/nccl.conf elsewhere: that is read, but never written,
 * since a write would replace the link. */
static void read_through_link(struct np_target_file *f, struct np_target_look *look)
{
	_cleanup_close_ int fd = open(f->path, O_PATH | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > NP_TARGET_MAX)
		return; /* stays refused */
	r = np_file_read_at(AT_FDCWD, f->path, NP_TARGET_MAX, &f->content);
	if (r < 0)
		return;
	look->status = NP_TARGET_PRESENT;
	look->num = 0;
	look->st = st;
}

static void etc_look(const struct np_target_file *f, int parent, struct np_target_look *look)
{
	memset(look, 0, sizeof(*look));
	if (parent == -ENOENT)
		look->status = NP_TARGET_ABSENT;
	else if (parent == -ELOOP)
		np_target_look_set(look, NP_TARGET_REFUSED, parent,
				   "replace the link by a directory",
				   "a symbolic link stands in its path");
	else if (parent < 0)
		np_target_look_set(look, NP_TARGET_UNKNOWN, parent, NULL, "%s", strerror(-parent));
	else
		np_target_look_at(parent, base_name(f->path), NULL, look);
}

static void etc_read(struct np_target_file *f)
{
	_cleanup_close_ int parent = open_parent(f);
	struct np_target_look look;

	etc_look(f, parent, &look);
	if (look.status == NP_TARGET_PRESENT)
		np_target_read_at(parent, base_name(f->path), &look, &f->content,
				  f->want_meta ? &f->meta : NULL);
	else if (look.status == NP_TARGET_REFUSED && S_ISLNK(look.st.st_mode) && !f->root)
		read_through_link(f, &look);
	f->status = look.status;
	f->num = look.num;
	np_strcpy(f->reason, sizeof(f->reason), look.reason);
	np_strcpy(f->hint, sizeof(f->hint), look.hint);
	if (f->status == NP_TARGET_PRESENT)
		f->attr = (struct np_file_attr){ .mode = look.st.st_mode & 07777,
						 .uid = look.st.st_uid,
						 .gid = look.st.st_gid };
}

/* Folders that were made for this file, lowest first; what is not empty stays. */
static void drop_dirs(const struct np_target_file *f)
{
	_cleanup_free_ char *dir = f->drop_dir && !f->root ? parent_of(f->path) : NULL;
	size_t top = dir ? strlen(f->drop_dir) : 0;

	while (dir && strlen(dir) >= top && np_starts_with(dir, f->drop_dir) &&
	       (dir[top] == '/' || !dir[top]) && rmdir(dir) == 0)
		*strrchr(dir, '/') = '\0';
}

char *np_target_file_missing_dir(const struct np_target_file *f)
{
	char *dir = f->in_home || f->root ? NULL : parent_of(f->path);

	if (!dir || access(dir, F_OK) == 0 || errno != ENOENT) {
		free(dir);
		return NULL;
	}
	for (;;) {
		char *slash = strrchr(dir, '/');
		bool missing;

		if (slash == dir)
			return dir;
		*slash = '\0';
		missing = access(dir, F_OK) < 0 && errno == ENOENT;
		if (!missing) {
			*slash = '/';
			return dir;
		}
	}
}

int np_target_changed(const struct np_target_file *f, struct np_err *err)
{
	np_err_set(err, -ESTALE, "file.changed",
		   "%s: somebody changed it while this ran: it is left as it is now", f->path);
	np_err_hint(err, "run it again");
	return -ESTALE;
}

static int etc_write(const struct np_target_file *f, const void *data, size_t len,
		     const struct np_file_attr *attr, struct np_err *err)
{
	struct np_file_attr new = { .mode = 0644, .uid = geteuid(), .gid = getegid() };
	const char *name = base_name(f->path);
	_cleanup_close_ int parent = -1;
	struct np_target_look look;
	int r = data ? make_parents(f, err) : 0;

	if (r < 0)
		return r;
	parent = open_parent(f);
	etc_look(f, parent, &look);
	if (look.status == NP_TARGET_REFUSED || look.status == NP_TARGET_UNKNOWN) {
		np_err_set(err, look.num,
			   look.status == NP_TARGET_REFUSED ? "file.refused" : "file.write",
			   "%s: not touched: %s", f->path, look.reason);
		np_err_hint(err, "%s", look.hint);
		return look.num;
	}
	if (f->before && !np_target_is_still(parent, name, &look, f->before))
		return np_target_changed(f, err);
	if (!data) {
		if (look.status != NP_TARGET_ABSENT && unlinkat(parent, name, 0) < 0)
			return np_err_set(err, -errno, "file.write", "%s: cannot be removed: %s",
					  f->path, strerror(errno));
		drop_dirs(f);
		return 0;
	}
	if (parent < 0)
		return np_err_set(err, parent, "file.write", "%s: %s", f->path, strerror(-parent));
	if (look.status == NP_TARGET_PRESENT)
		new = (struct np_file_attr){ look.st.st_mode & 07777, look.st.st_uid,
					     look.st.st_gid };
	else if (attr)
		new = *attr;
	np_file_sweep_temp(parent, name);
	r = np_file_restore_at(parent, name, data, len, &new, f->give_meta, err);
	if (r < 0)
		np_err_context(err, "%s", f->path);
	if (r == -EROFS || r == -EACCES || r == -EPERM)
		np_err_hint(err, "make that directory writable");
	else if (r == -ENOSPC || r == -EDQUOT)
		np_err_hint(err, "free space on that file system");
	return r;
}

void np_target_file_read(struct np_target_file *f)
{
	np_buf_done(&f->content);
	np_file_meta_done(&f->meta);
	f->status = NP_TARGET_UNKNOWN;
	f->num = 0;
	f->reason[0] = f->hint[0] = '\0';
	f->network_fs = false;
	memset(&f->attr, 0, sizeof(f->attr));
	if (!f->in_home)
		etc_read(f);
	else if (np_target_homes_read(&f, 1, false) < 0)
		f->num = -ENOMEM;
}

static int home_write(const struct np_target_file *f, const void *data, size_t len,
		      const struct np_file_attr *attr, struct np_err *err)
{
	struct np_target_write one = { .file = f, .data = data, .len = len, .attr = attr };

	if (np_target_homes_write(&one, 1, false) < 0)
		return np_err_nomem(err);
	if (one.result < 0 && err)
		*err = one.err;
	return one.result;
}

int np_target_file_write(const struct np_target_file *f, const void *data, size_t len,
			 const struct np_file_attr *attr_or_null, struct np_err *err)
{
	if (f->in_home)
		return home_write(f, data, len, attr_or_null, err);
	return etc_write(f, data, len, attr_or_null, err);
}

int np_target_file_sweep(const struct np_target_file *f)
{
	_cleanup_close_ int parent = -1;
	int r = 0;

	if (f->in_home) {
		np_target_home_sweep(f);
		return 0;
	}
	parent = open_parent(f);
	if (parent >= 0)
		r = np_file_sweep_temp(parent, base_name(f->path));
	if (f->status == NP_TARGET_ABSENT)
		drop_dirs(f);
	return r < 0 ? r : 0;
}
