/* SPDX-License-Identifier: MIT */
#ifndef NP_BASE_FILE_META_H
#define NP_BASE_FILE_META_H

#include <stdbool.h>
#include <time.h>

#include "base/str.h"

/* What a file is besides content, mode and owner: its times and extended attributes,
 * POSIX ACLs and the SELinux label among them. */

#define NP_XATTRS_MAX 64 /* of one file */

struct np_xattr {
	char *name;
	struct np_buf value;
};

struct np_file_meta {
	bool known;
	struct timespec atime, mtime;
	struct np_xattr *xattrs;
	size_t n_xattrs;
};

/* Reads times and extended attributes of an open file; @out is replaced. A file system
 * without extended attributes has none. Returns 0 or a negative errno (-E2BIG: more than
 * NP_XATTRS_MAX); @out is untouched then. */
int np_file_meta_read(int fd, struct np_file_meta *out) np_must_check;

/* Gives an open file the extended attributes of @meta, and takes away an ACL that it got
 * from its folder alone. What the caller may not set (trusted.*, a label) is left; an ACL
 * that cannot be set is an error. Returns 0 or a negative errno. */
int np_file_meta_give_xattrs(int fd, const struct np_file_meta *meta) np_must_check;
int np_file_meta_give_times(int fd, const struct np_file_meta *meta) np_must_check;

/* Adds one; @value may hold any bytes. Returns 0, -ENOMEM or -E2BIG. */
int np_file_meta_add(struct np_file_meta *meta, const char *name, const void *value,
		     size_t len) np_must_check;
/* A deep copy. Returns 0 or -ENOMEM. */
int np_file_meta_copy(struct np_file_meta *to, const struct np_file_meta *from) np_must_check;
bool np_file_meta_equal(const struct np_file_meta *a, const struct np_file_meta *b);
void np_file_meta_done(struct np_file_meta *meta);
#define np_auto_file_meta np_auto(np_file_meta_done)

#endif
