/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
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
	bool changed;  /* not as it has to be: not written */
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
	int num;

	if (lstat(f->home, &st) == 0 && S_ISLNK(st.st_mode) && st.st_uid != 0 &&
	    st.st_uid != f->uid) {
		np_target_look_set(look, NP_TARGET_REFUSED, -EPERM, "check who made that link",
				   "the home directory is a symbolic link made by uid %u",
				   (unsigned int)st.st_uid);
		return -1;
	}
	num = np_target_open_dir(f->home);
	if (num == -ENOENT || num == -ENOTDIR || num == -ELOOP) {
		np_target_look_set(look, NP_TARGET_REFUSED, num,
				   "create the home directory, or mount it",
				   num == -ENOENT ? "the home directory does not exist" :
						    "the home is not a directory");
		return -1;
	}
	if (num < 0) {
		np_target_look_set(look, NP_TARGET_UNKNOWN, num,
				   "let the user read its own home directory",
				   "the home directory cannot be opened: %s", strerror(-num));
		return -1;
	}
	fd = num;
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

	memset(&answer, 0, sizeof(answer));
	home = open_home(job->file, &answer.look);
	if (home >= 0) {
		answer.network_fs = np_target_is_network(home);
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
		if (job->file->before && (answer.look.status == NP_TARGET_PRESENT ||
					  answer.look.status == NP_TARGET_ABSENT))
			answer.changed = !np_target_is_still(home, job->name, &answer.look,
							     job->file->before);
		if (!answer.changed && (answer.look.status == NP_TARGET_PRESENT ||
					answer.look.status == NP_TARGET_ABSENT))
			answer.write_num = write_home(job, home, &answer.look);
	}
	np_buf_add(out, &answer, sizeof(answer));
	return out->failed ? -ENOMEM : 0;
}

/* Takes the answer of the owner's process, which is not trusted to be whole. */
static int take_answer(const struct np_target_file *f, struct np_user_call *call,
		       struct answer *answer)
{
	struct np_err *err = &call->err;
	int r = call->result;

	if (r < 0) {
		/* the child failed before or after its function, which never fails with a
		 * message */
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
	if (call->out.len < sizeof(*answer))
		return np_err_set(err, -EIO, "internal.child",
				  "the process acting as user %s gave half an answer", f->user);
	memcpy(answer, call->out.data, sizeof(*answer));
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

/* Jobs for many homes, and the calls that do them. */
struct batch {
	struct job *jobs;
	struct np_user_call *calls;
	size_t n;
};

static int batch_init(struct batch *b, size_t room)
{
	b->jobs = calloc(room, sizeof(*b->jobs));
	b->calls = calloc(room, sizeof(*b->calls));
	return b->jobs && b->calls ? 0 : -ENOMEM;
}

static void batch_done(struct batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		np_buf_done(&b->calls[i].out);
	free(b->jobs);
	free(b->calls);
}

static void batch_add(struct batch *b, const struct job *job)
{
	const struct np_target_file *f = job->file;

	b->jobs[b->n] = *job;
	b->calls[b->n] = (struct np_user_call){
		.user = f->user, .uid = f->uid, .gid = f->gid, .arg = &b->jobs[b->n]
	};
	b->n++;
}

static void batch_run(struct batch *b, int (*fn)(void *, struct np_buf *), bool stop_on_signal)
{
	const struct np_user_calls calls = { .v = b->calls,
					     .n = b->n,
					     .fn = fn,
					     .timeout_ms = TIMEOUT_MS,
					     .stop_on_signal = stop_on_signal };

	np_as_users(&calls);
}

static void take_look(struct np_target_file *f, const struct answer *answer)
{
	f->status = answer->look.status;
	f->num = answer->look.num;
	f->network_fs = answer->network_fs;
	np_strcpy(f->reason, sizeof(f->reason), answer->look.reason);
	np_strcpy(f->hint, sizeof(f->hint), answer->look.hint);
}

static void take_read(struct np_target_file *f, struct np_user_call *call)
{
	struct answer answer;
	int r;

	memset(&answer, 0, sizeof(answer));
	if (take_answer(f, call, &answer) < 0)
		np_target_look_set(&answer.look, NP_TARGET_UNKNOWN, call->err.num, call->err.hint,
				   "%.*s", (int)sizeof(f->reason) - 1, call->err.message);
	take_look(f, &answer);
	if (f->status != NP_TARGET_PRESENT)
		return;
	f->attr = (struct np_file_attr){ .mode = answer.look.st.st_mode & 07777,
					 .uid = answer.look.st.st_uid,
					 .gid = answer.look.st.st_gid };
	r = take_content(f, &answer, &call->out);
	if (r < 0) {
		f->status = NP_TARGET_UNKNOWN;
		f->num = r;
		np_strcpy(f->reason, sizeof(f->reason),
			  r == -ENOMEM ? "out of memory" : "half an answer");
	}
}

int np_target_homes_read(struct np_target_file *const *files, size_t n, bool stop_on_signal)
{
	np_auto(batch_done) struct batch b = { 0 };

	if (batch_init(&b, n) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct job job = { .file = files[i], .name = base_name(files[i]->path) };
		struct answer answer;

		memset(&answer, 0, sizeof(answer));
		if (impossible_home(files[i], &answer.look))
			take_look(files[i], &answer);
		else
			batch_add(&b, &job);
	}
	batch_run(&b, read_job, stop_on_signal);
	/* the jobs are a subsequence of the files */
	for (size_t i = 0, k = 0; k < b.n; i++)
		if (b.jobs[k].file == files[i])
			take_read(files[i], &b.calls[k++]);
	return 0;
}

static int take_write(const struct np_target_file *f, const struct answer *answer,
		      struct np_err *err)
{
	int r;

	if (answer->look.status == NP_TARGET_REFUSED || answer->look.status == NP_TARGET_UNKNOWN) {
		r = answer->look.num < 0 ? answer->look.num : -EPERM;
		np_err_set(err, r, "file.refused", "%s: not touched: %s", f->path,
			   answer->look.reason);
		np_err_hint(err, "%s", answer->look.hint);
		return r;
	}
	if (answer->changed)
		return np_target_changed(f, err);
	r = answer->write_num;
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

int np_target_homes_write(struct np_target_write *writes, size_t n, bool stop_on_signal)
{
	np_auto(batch_done) struct batch b = { 0 };

	if (batch_init(&b, n) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct np_target_write *w = &writes[i];
		const struct job job = { w->file, base_name(w->file->path), w->data, w->len,
					 w->attr };
		struct answer answer;

		np_err_clear(&w->err);
		memset(&answer, 0, sizeof(answer));
		if (impossible_home(w->file, &answer.look))
			w->result = take_write(w->file, &answer, &w->err);
		else
			batch_add(&b, &job);
	}
	batch_run(&b, write_job, stop_on_signal);
	for (size_t i = 0, k = 0; k < b.n; i++) {
		struct np_target_write *w = &writes[i];
		struct answer answer;

		if (b.jobs[k].file != w->file)
			continue;
		memset(&answer, 0, sizeof(answer));
		w->result = take_answer(w->file, &b.calls[k], &answer);
		if (w->result == 0) {
			w->result = take_write(w->file, &answer, &w->err);
		} else {
			w->err = b.calls[k].err;
			np_err_context(&w->err, "%s", w->file->path);
		}
		k++;
	}
	return 0;
}

static int sweep_job(void *arg, struct np_buf *out)
{
	const struct job *job = arg;
	struct np_target_look look;
	_cleanup_close_ int home = -1;

	(void)out;
	memset(&look, 0, sizeof(look));
	home = open_home(job->file, &look);
	if (home >= 0)
		np_file_sweep_temp(home, job->name);
	return 0;
}

void np_target_home_sweep(const struct np_target_file *f)
{
	const struct job job = { .file = f, .name = base_name(f->path) };
	np_auto(batch_done) struct batch b = { 0 };
	struct np_target_look look;

	/* a home that cannot be entered has nothing of ours, or will be said elsewhere */
	memset(&look, 0, sizeof(look));
	if (impossible_home(f, &look) || batch_init(&b, 1) < 0)
		return;
	batch_add(&b, &job);
	batch_run(&b, sweep_job, false);
}
