/* SPDX-License-Identifier: MIT */
#include "base/file_meta.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define ACL \
	"system.posix_acl" \
	"_access"

int np_file_meta_add(struct np_file_meta *meta, const char *name, const void *value, size_t len)
{
	struct np_xattr *v, added = { .name = NULL };

	if (meta->n_xattrs >= NP_XATTRS_MAX)
		return -E2BIG;
	v = reallocarray(meta->xattrs, meta->n_xattrs + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	meta->xattrs = v;
	added.name = strdup(name);
	np_buf_add(&added.value, len ? value : "", len);
	if (!added.name || added.value.failed) {
		free(added.name);
		np_buf_done(&added.value);
		return -ENOMEM;
	}
	v[meta->n_xattrs++] = added;
	return 0;
}

static int read_xattrs(int fd, struct np_file_meta *out)
{
	char names[4096], value[65536]; /* XATTR_SIZE_MAX, linux/limits.h */
	ssize_t len = flistxattr(fd, names, sizeof(names));

	if (len < 0)
		return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
	for (const char *name = names; name < names + len; name += strlen(name) + 1) {
		ssize_t size = fgetxattr(fd, name, value, sizeof(value));
		int r;

		if (size < 0) {
			if (errno == ENODATA || errno == EOPNOTSUPP || errno == EPERM ||
			    errno == EACCES)
				continue;
			return -errno;
		}
		r = np_file_meta_add(out, name, value, (size_t)size);
		if (r < 0)
			return r;
	}
	return 0;
}

int np_file_meta_read(int fd, struct np_file_meta *out)
{
	np_auto_file_meta struct np_file_meta meta = { .known = true };
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	meta.atime = st.st_atim;
	meta.mtime = st.st_mtim;
	r = read_xattrs(fd, &meta);
	if (r < 0)
		return r;
	np_file_meta_done(out);
	*out = meta;
	memset(&meta, 0, sizeof(meta));
	return 0;
}

int np_file_meta_give_xattrs(int fd, const struct np_file_meta *meta)
{
	bool has_acl = false;

	for (size_t i = 0; i < meta->n_xattrs; i++) {
		const struct np_xattr *x = &meta->xattrs[i];
		bool acl = np_streq(x->name, ACL);

		has_acl |= acl;
		if (fsetxattr(fd, x->name, x->value.data, x->value.len, 0) == 0)
			continue;
		if (errno == EOPNOTSUPP || (!acl && (errno == EPERM || errno == EACCES)))
			continue;
		return -errno;
	}
	if (!has_acl && fremovexattr(fd, ACL) < 0 && errno != ENODATA && errno != EOPNOTSUPP &&
	    errno != ENOSYS)
		return -errno;
	return 0;
}

int np_file_meta_give_times(int fd, const struct np_file_meta *meta)
{
	const struct timespec times[2] = { meta->atime, meta->mtime };

	return futimens(fd, times) < 0 ? -errno : 0;
}

int np_file_meta_copy(struct np_file_meta *to, const struct np_file_meta *from)
{
	np_auto_file_meta struct np_file_meta copy = { .known = from->known,
						       .atime = from->atime,
						       .mtime = from->mtime };

	for (size_t i = 0; i < from->n_xattrs; i++)
		if (np_file_meta_add(&copy, from->xattrs[i].name, from->xattrs[i].value.data,
				     from->xattrs[i].value.len) < 0)
			return -ENOMEM;
	np_file_meta_done(to);
	*to = copy;
	memset(&copy, 0, sizeof(copy));
	return 0;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool np_file_meta_equal(const struct np_file_meta *a, const struct np_file_meta *b)
{
	if (a->known != b->known || !same_time(&a->mtime, &b->mtime) ||
	    !same_time(&a->atime, &b->atime) || a->n_xattrs != b->n_xattrs)
		return false;
	for (size_t i = 0; i < a->n_xattrs; i++)
		if (!np_streq(a->xattrs[i].name, b->xattrs[i].name) ||
		    !np_buf_equal(&a->xattrs[i].value, &b->xattrs[i].value))
			return false;
	return true;
}

void np_file_meta_done(struct np_file_meta *meta)
{
	if (!meta)
		return;
	for (size_t i = 0; i < meta->n_xattrs; i++) {
		free(meta->xattrs[i].name);
		np_buf_done(&meta->xattrs[i].value);
	}
	free(meta->xattrs);
	memset(meta, 0, sizeof(*meta));
}
