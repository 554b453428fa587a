/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/target_open.h"
#include "base/child.h"

/* A network file system whose server is gone answers never. */
#define TIMEOUT_MS 10000

/* What the child is to do, and what it sends back in front of the contents. */
struct job {
	const struct np_target_file *file;
	const char *name;
	const void *data;
	size_t len;
	const struct np_file_attr *attr;
};

struct answer {
	struct np_target_look look;
	bool network_fs;
	int write_num; /* negative errno of a write that was tried */
	bool has_meta; /* times here; the extended attributes follow the content */
	struct timespec atime, mtime;
	size_t content_len;
};

static const char *base_name(const char *path)
{
	return strrchr(path, '/') + 1;
}

/* The home may be reached through symlinks that the system has (/home -> /srv/home);
 * one that somebody else made is not followed. All of it happens with the owner's
 * rights, so a wrong turn leads nowhere that the owner could not go. */
static int open_home(const struct np_target_file *f, struct np_target_look *look)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (lstat(f->home, &st) == 0 && S_ISLNK(st.st_mode) && st.st_uid != 0 &&
	    st.st_uid != f->uid) {
		np_target_look_set(look, NP_TARGET_REFUSED, -EPERM, "check who made that link",
				   "the home directory is a symbolic link made by uid %u",
				   (unsigned int)st.st_uid);
		return -1;
	}
	fd = open(f->home, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) {
		np_target_look_set(look, NP_TARGET_REFUSED, -errno,
				   "create the home directory, or mount it",
				   errno == ENOENT ? "the home directory does not exist" :
						     "the home is not a directory");
		return -1;
	}
	if (fd < 0) {
		np_target_look_set(look, NP_TARGET_UNKNOWN, -errno,
				   "let the user read its own home directory",
				   "the home directory cannot be opened: %s", strerror(errno));
		return -1;
	}
	if (fstat(fd, &st) < 0 || st.st_uid != f->uid) {
		np_target_look_set(
			look, NP_TARGET_REFUSED, -EPERM, "give the home directory to the user",
			"the home directory is owned by uid %u, not by the user (uid %u)",
			(unsigned int)st.st_uid, (unsigned int)f->uid);
		return -1;
	}
	return np_steal_fd(&fd);
}

/* Name with its NUL, length, value; one after the other. */
static void pack_xattrs(const struct np_file_meta *meta, struct np_buf *out)
{
	for (size_t i = 0; i < meta->n_xattrs; i++) {
		const struct np_xattr *x = &meta->xattrs[i];

		np_buf_add(out, x->name, strlen(x->name) + 1);
		np_buf_add(out, &x->value.len, sizeof(x->value.len));
		np_buf_add(out, x->value.data, x->value.len);
	}
}

/* The answer of a process with the owner's rights is not trusted to be well made. */
static int unpack_xattrs(const char *data, size_t len, struct np_file_meta *meta)
{
	while (len > 0) {
		size_t name = strnlen(data, len) + 1, value;

		if (name > len || len - name < sizeof(value))
			return -EIO;
		memcpy(&value, data + name, sizeof(value));
		if (value > len - name - sizeof(value))
			return -EIO;
		if (np_file_meta_add(meta, data, data + name + sizeof(value), value) < 0)
			return -ENOMEM;
		data += name + sizeof(value) + value;
		len -= name + sizeof(value) + value;
	}
	return 0;
}

static int read_job(void *arg, struct np_buf *out)
{
	const struct job *job = arg;
	struct answer answer;
	np_auto_file_meta struct np_file_meta meta = { 0 };
	np_auto_buf struct np_buf content = { 0 };
	_cleanup_close_ int home = -1;
	struct statfs fs;

	memset(&answer, 0, sizeof(answer));
	home = open_home(job->file, &answer.look);
	if (home >= 0) {
		answer.network_fs =
			fstatfs(home, &fs) == 0 && np_target_fs_is_network((uint32_t)fs.f_type);
		np_target_look_at(home, job->name, &job->file->uid, &answer.look);
		if (answer.look.status == NP_TARGET_PRESENT)
			np_target_read_at(home, job->name, &answer.look, &content,
					  job->file->want_meta ? &meta : NULL);
	}
	answer.has_meta = meta.known;
	answer.atime = meta.atime;
	answer.mtime = meta.mtime;
	answer.content_len = content.len;
	np_buf_add(out, &answer, sizeof(answer));
	if (content.len)
		np_buf_add(out, content.data, content.len);
	pack_xattrs(&meta, out);
	return out->failed ? -ENOMEM : 0;
}

static bool in_group(gid_t gid)
{
	gid_t groups[1024];
	int n = getgroups(NP_ARRAY_SIZE(groups), groups);

	if (gid == getegid() || geteuid() == 0)
		return true;
	for (int i = 0; i < n; i++)
		if (groups[i] == gid)
			return true;
	return false;
}

static int write_home(const struct job *job, int home, const struct np_target_look *look)
{
	const struct np_target_file *f = job->file;
	struct np_file_attr attr = { .mode = 0644, .uid = f->uid, .gid = f->gid };

	if (!job->data) {
		if (look->status == NP_TARGET_ABSENT)
			return 0;
		return unlinkat(home, job->name, 0) < 0 ? -errno : 0;
	}
	if (look->status == NP_TARGET_PRESENT) {
		attr.mode = look->st.st_mode & 0777;
		attr.gid = look->st.st_gid;
	} else if (job->attr) {
		attr.mode = job->attr->mode & 0777;
		attr.gid = job->attr->gid;
	}
	/* a group that the owner is not in (any more) cannot be given by the owner */
	if (!in_group(attr.gid))
		attr.gid = f->gid;
	np_file_sweep_temp(home, job->name);
	return np_file_restore_at(home, job->name, job->data, job->len, &attr, f->give_meta, NULL);
}

static int write_job(void *arg, struct np_buf *out)
{
	const struct job *job = arg;
	struct answer answer;
	_cleanup_close_ int home = -1;

	memset(&answer, 0, sizeof(answer));
	home = open_home(job->file, &answer.look);
	if (home >= 0) {
		np_target_look_at(home, job->name, &job->file->uid, &answer.look);
		if (answer.look.status == NP_TARGET_PRESENT ||
		    answer.look.status == NP_TARGET_ABSENT)
			answer.write_num = write_home(job, home, &answer.look);
	}
	np_buf_add(out, &answer, sizeof(answer));
	return out->failed ? -ENOMEM : 0;
}

/* Runs @fn as the owner and takes its answer, which is not trusted to be whole. */
static int ask(const struct np_target_file *f, struct job *job, int (*fn)(void *, struct np_buf *),
	       struct answer *answer, struct np_buf *out, struct np_err *err)
{
	int r;

	r = np_as_user(f->user, f->uid, f->gid, TIMEOUT_MS, fn, job, out, err);
	if (r < 0) {
		/* the child failed before or after @fn, which never fails with a message */
		if (err->num == 0)
			np_err_set(err, r, "file.write", "cannot act as user %s: %s", f->user,
				   strerror(-r));
		if (r == -EPERM)
			np_err_hint(err, "run nodeprep as root, or as that user");
		else if (r == -ETIMEDOUT)
			np_err_hint(err, "check the server of the file system that holds %s",
				    f->home);
		return r;
	}
	if (out->len < sizeof(*answer))
		return np_err_set(err, -EIO, "internal.child",
				  "the process acting as user %s gave half an answer", f->user);
	memcpy(answer, out->data, sizeof(*answer));
	answer->look.reason[sizeof(answer->look.reason) - 1] = '\0';
	answer->look.hint[sizeof(answer->look.hint) - 1] = '\0';
	return 0;
}

/* Homes that no user has; needs no look at the disk. */
static bool impossible_home(const struct np_target_file *f, struct np_target_look *look)
{
	const char *why = NULL;

	if (f->home[0] != '/')
		why = "the password database names no home directory";
	else if (f->home[strspn(f->home, "/")] == '\0')
		why = "the home directory is the root directory";
	else if (np_streq(f->home, "/nonexistent"))
		why = "the user has no home directory (/nonexistent)";
	if (why)
		np_target_look_set(look, NP_TARGET_REFUSED, -ENOENT,
				   "choose a user with a home, or use /etc/nccl.conf", "%s", why);
	return why != NULL;
}

static int take_content(struct np_target_file *f, const struct answer *answer,
			const struct np_buf *out)
{
	size_t len = out->len - sizeof(*answer);

	if (answer->content_len > len)
		return -EIO;
	np_buf_add(&f->content, out->data + sizeof(*answer), answer->content_len);
	if (f->content.failed)
		return -ENOMEM;
	if (!answer->has_meta)
		return 0;
	f->meta.known = true;
	f->meta.atime = answer->atime;
	f->meta.mtime = answer->mtime;
	return unpack_xattrs(out->data + sizeof(*answer) + answer->content_len,
			     len - answer->content_len, &f->meta);
}

void np_target_home_read(struct np_target_file *f)
{
	struct job job = { .file = f, .name = base_name(f->path) };
	np_auto_buf struct np_buf out = { 0 };
	struct answer answer;
	struct np_err err;
	int r;

	np_err_clear(&err);
	memset(&answer, 0, sizeof(answer));
	if (!impossible_home(f, &answer.look) && ask(f, &job, read_job, &answer, &out, &err) < 0)
		np_target_look_set(&answer.look, NP_TARGET_UNKNOWN, err.num, err.hint, "%.*s",
				   (int)sizeof(f->reason) - 1, err.message);
	f->status = answer.look.status;
	f->num = answer.look.num;
	f->network_fs = answer.network_fs;
	np_strcpy(f->reason, sizeof(f->reason), answer.look.reason);
	np_strcpy(f->hint, sizeof(f->hint), answer.look.hint);
	if (f->status != NP_TARGET_PRESENT)
		return;
	f->attr = (struct np_file_attr){ .mode = answer.look.st.st_mode & 07777,
					 .uid = answer.look.st.st_uid,
					 .gid = answer.look.st.st_gid };
	r = take_content(f, &answer, &out);
	if (r < 0) {
		f->status = NP_TARGET_UNKNOWN;
		f->num = r;
		np_strcpy(f->reason, sizeof(f->reason),
			  r == -ENOMEM ? "out of memory" : "half an answer");
	}
}

int np_target_home_write(const struct np_target_file *f, const void *data, size_t len,
			 const struct np_file_attr *attr, struct np_err *err)
{
	struct job job = { f, base_name(f->path), data, len, attr };
	np_auto_buf struct np_buf out = { 0 };
	struct answer answer;
	struct np_err local;
	int r;

	np_err_clear(&local);
	memset(&answer, 0, sizeof(answer));
	if (!impossible_home(f, &answer.look)) {
		r = ask(f, &job, write_job, &answer, &out, &local);
		if (r < 0) {
			if (err)
				*err = local;
			np_err_context(err, "%s", f->path);
			return r;
		}
	}
	if (answer.look.status == NP_TARGET_REFUSED || answer.look.status == NP_TARGET_UNKNOWN) {
		r = answer.look.num < 0 ? answer.look.num : -EPERM;
		np_err_set(err, r, "file.refused", "%s: not touched: %s", f->path,
			   answer.look.reason);
		np_err_hint(err, "%s", answer.look.hint);
		return r;
	}
	r = answer.write_num;
	if (r == -EACCES || r == -EPERM || r == -EROFS) {
		np_err_set(err, r, "file.refused", "%s: user %s may not write there: %s", f->path,
			   f->user, strerror(-r));
		np_err_hint(err, "let the user write to its own home directory");
	} else if (r < 0) {
		np_err_set(err, r, "file.write", "%s: cannot be written: %s", f->path,
			   strerror(-r));
		if (r == -ENOSPC || r == -EDQUOT)
			np_err_hint(err, "free space in the home of user %s", f->user);
	}
	return r;
}

static int sweep_job(void *arg, struct np_buf *out)
{
	const struct job *job = arg;
	struct answer answer;
	_cleanup_close_ int home = -1;

	memset(&answer, 0, sizeof(answer));
	home = open_home(job->file, &answer.look);
	if (home >= 0)
		np_file_sweep_temp(home, job->name);
	np_buf_add(out, &answer, sizeof(answer));
	return out->failed ? -ENOMEM : 0;
}

void np_target_home_sweep(const struct np_target_file *f)
{
	struct job job = { .file = f, .name = base_name(f->path) };
	np_auto_buf struct np_buf out = { 0 };
	struct answer answer;
	struct np_err err;

	np_err_clear(&err);
	memset(&answer, 0, sizeof(answer));
	/* a home that cannot be entered has nothing of ours, or will be said elsewhere */
	if (!impossible_home(f, &answer.look))
		(void)!ask(f, &job, sweep_job, &answer, &out, &err);
}
