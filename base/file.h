/* SPDX-License-Identifier: MIT */
#ifndef NP_BASE_FILE_H
#define NP_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/file_meta.h"
#include "base/str.h"

/* Reads a whole file of at most @max bytes below @dirfd (AT_FDCWD allowed) into
 * @out (contents replaced). Follows symlinks; for trusted trees such as /sys,
 * /proc and /etc only. A FIFO is not waited for. Returns 0 or a negative errno (-EFBIG above @max);
 * sets no message, since most callers treat an unreadable attribute as unknown. */
int np_file_read_at(int dirfd, const char *path, size_t max, struct np_buf *out) np_must_check;

/* The same from an open descriptor, from where it stands to its end. */
int np_file_read_fd(int fd, size_t max, struct np_buf *out) np_must_check;

/* What is no regular file, for people: "a FIFO". @mode: st_mode. */
const char *np_file_kind(mode_t mode);

/* One-line attribute (sysfs): read into @out, trailing newline and blanks cut.
 * Returns the length or a negative errno. No allocation. */
int np_file_read_line_at(int dirfd, const char *path, char *out, size_t size) np_must_check;

/* Writes @text to an existing attribute file (sysfs, procfs), one write(2).
 * Returns 0 or a negative errno. */
int np_file_write_attr_at(int dirfd, const char *path, const char *text) np_must_check;

/* Calls @each with every name in a directory but "." and "..", in no order; @type is DT_*,
 * dirent.h. What it returns other than 0 ends that and is returned. Returns 0 or a negative
 * errno. Cheaper than opendir for the many small directories of /sys. */
int np_dir_each(int dirfd, const char *path,
		int (*each)(const char *name, unsigned char type, void *arg),
		void *arg) np_must_check;

/* What a file was, or shall be. */
struct np_file_attr {
	mode_t mode; /* permission bits only */
	uid_t uid;
	gid_t gid;
};

/* Replaces @name in directory @dirfd atomically: a temporary file beside it
 * (".NAME.nodeprep-XXXXXX", removed on every failure), contents, owner, mode,
 * extended attributes (SELinux label, ACL) of the old file if there is one,
 * fsync, rename, fsync of the directory. @name has no slash. Never follows a
 * symlink at @name: it would be replaced, so callers that must refuse one look
 * first (np_file_open_beneath).
 * Returns 0 or a negative errno with message (code "file.write"). */
int np_file_replace_at(int dirfd, const char *name, const void *data, size_t len,
		       const struct np_file_attr *attr, struct np_err *err) np_must_check;

/* The same for a file that is put back as it was: it gets the times of @meta, and where
 * there is none at @name its extended attributes too. @meta NULL or not known: as above. */
int np_file_restore_at(int dirfd, const char *name, const void *data, size_t len,
		       const struct np_file_attr *attr, const struct np_file_meta *meta,
		       struct np_err *err) np_must_check;

/* Makes every directory of absolute @path, 0755, as needed. */
int np_file_mkdirs(const char *path, struct np_err *err) np_must_check;

/* Removes temporary files of np_file_replace_at left in @dirfd by a killed run:
 * those for @name alone, regular, and owned by the caller, or of any owner where nobody else
 * can write to the folder (it may have given one away). Returns how many, or the negative errno of
 * one that could not be removed. */
int np_file_sweep_temp(int dirfd, const char *name);

#endif
