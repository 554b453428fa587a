/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_TARGET_OPEN_H
#define NP_AGENT_TARGET_OPEN_H

#include <sys/stat.h>

#include "agent/target_file.h"

/* What target_file.c and target_home.c share: descriptors that do not leave a
 * directory, and the judgement of one name in it. Nothing here follows a symlink. */

/* What one name in a directory is. */
struct np_target_look {
	enum np_target_status status;
	int num;
	char reason[200];
	char hint[160];
	struct stat st; /* when PRESENT */
};

/* Opens @path (relative) below @dirfd, with no symlink on the way (openat2(2), or
 * one O_NOFOLLOW step at a time where the kernel or a filter has no openat2).
 * @flags as for openat, O_CLOEXEC is added. Returns a descriptor or a negative errno
 * (-ELOOP for a symlink). */
int np_target_open_beneath(int dirfd, const char *path, int flags) np_must_check;

/* Opens the directory @path (absolute) through the symlinks that the system has, but through
 * none of /proc's that lead out of the root (/proc/PID/root, cwd, fd). Returns a descriptor or
 * a negative errno (-ELOOP for such a link). */
int np_target_open_dir(const char *path) np_must_check;

/* Looks at @name in @dirfd. @owner: in a home, the only uid that may own it, and the
 * file must have one link; NULL: any owner, any number of links. */
void np_target_look_at(int dirfd, const char *name, const uid_t *owner,
		       struct np_target_look *look);

/* Reads @name, which @look found PRESENT, into @content (contents replaced) and
 * refreshes @look; with @meta (or NULL) times and extended attributes too. A file that
 * changed its identity since is UNKNOWN (-ESTALE). */
void np_target_read_at(int dirfd, const char *name, struct np_target_look *look,
		       struct np_buf *content, struct np_file_meta *meta);

/* Is @name, on which @look has just been taken, still as @before says? */
bool np_target_is_still(int dirfd, const char *name, struct np_target_look *look,
			const struct np_target_before *before);

/* Sets status, errno, reason and, with @hint, the hint. */
void np_target_look_set(struct np_target_look *look, enum np_target_status status, int num,
			const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* statfs(2)'s f_type is that of a network file system. FUSE is not known to be one. */
bool np_target_fs_is_network(uint32_t type);

/* The mount of device @major:@minor in @mountinfo (proc(5)) is of a type that only its name
 * tells: 9p, sshfs, GlusterFS by FUSE. */
bool np_target_mount_is_network(const char *mountinfo, unsigned int major, unsigned int minor);

/* Both, for an open directory. False where it cannot be told. */
bool np_target_is_network(int fd);

/* It is not as before any more: says so in @err, and returns -ESTALE. */
int np_target_changed(const struct np_target_file *f, struct np_err *err);

/* target_home.c: see np_target_file_sweep. */
void np_target_home_sweep(const struct np_target_file *f);

#endif
