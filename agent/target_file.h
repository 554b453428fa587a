/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_TARGET_FILE_H
#define NP_AGENT_TARGET_FILE_H

#include "base/file.h"

/*
 * A file that nodeprep writes: in /etc (trusted, as root) or in a home, which is
 * hostile: entered by a child with the owner's identity, openat2 with
 * RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH, O_NOFOLLOW, O_NONBLOCK; only regular
 * files with one link, owned by that user and of at most NP_TARGET_MAX bytes.
 */

#define NP_TARGET_MAX (256 * 1024)

enum np_target_status {
	NP_TARGET_UNKNOWN, /* not read, or reading failed (num, reason) */
	NP_TARGET_ABSENT,
	NP_TARGET_PRESENT,
	NP_TARGET_REFUSED, /* will not be touched (reason) */
};

/* How a file was when somebody decided what to write to it. */
struct np_target_before {
	bool present;
	const struct np_buf *content; /* when present; borrowed */
};

struct np_target_file {
	char *path; /* absolute, for people */
	bool in_home;
	char user[33]; /* owner of the home; "" for /etc */
	char *home;    /* its home directory as the password database has it */
	char *root;    /* of an image tree; NULL for /etc and homes of this system */
	uid_t uid;
	gid_t gid;

	enum np_target_status status;
	int num;	  /* negative errno behind UNKNOWN or REFUSED */
	char reason[200]; /* "a symbolic link to /etc/shadow"; with PRESENT, in /etc:
			   * readable, but a write would be refused for this */
	char hint[160];
	struct np_buf content;
	struct np_file_attr attr; /* of the file that is there */
	bool network_fs;	  /* the home is on a network file system (C8) */
	bool user_gone;		  /* np_now: there is no home, nor such a user any more */

	bool want_meta;		  /* np_target_file_read shall fill @meta */
	struct np_file_meta meta; /* of the file that is there; owned */
	/* np_target_file_write puts a file back as it was: its times, and where there is no
	 * file now its extended attributes (NULL: no such wish) */
	const struct np_file_meta *give_meta;
	/* removing it, in /etc: this folder above it and those in between go too where they
	 * are empty (NULL: none) */
	const char *drop_dir;
	/* np_target_file_write: only where the file is still this; NULL: whatever it is */
	const struct np_target_before *before;
};

/* Sets who and where; reads nothing. Returns 0, -ENOMEM, or -EINVAL (a relative path,
 * a name with a slash, a user name over 32 bytes). */
int np_target_file_init_etc(struct np_target_file *f, const char *path) np_must_check;
/* A file of an image tree: absolute @path below @root; no symlink inside the tree is
 * followed, so that nothing outside it is touched. */
int np_target_file_init_image(struct np_target_file *f, const char *root,
			      const char *path) np_must_check;
int np_target_file_init_home(struct np_target_file *f, const char *user, uid_t uid, gid_t gid,
			     const char *home, const char *name) np_must_check;
void np_target_file_done(struct np_target_file *f);

/* Reads the file as it is now; every outcome is in @f (status, reason). A home is
 * given 10 seconds to answer (UNKNOWN, -ETIMEDOUT). */
void np_target_file_read(struct np_target_file *f);

/* Writes @data atomically under the same rules (checked again at that moment, by
 * the identity that owns it); mode and owner of an existing file are kept, a new
 * one gets @attr_or_null or else 0644. @data NULL removes the file. Directories
 * above a file in /etc are made when missing. Temporary files of a killed run for
 * this name are removed. Returns 0 or a negative errno with message: "file.changed"
 * (-ESTALE) when it is not @before any more and nothing was done, "file.refused"
 * when the file may not be touched (in a home also when its owner may not write
 * there), "file.timeout" when the home does not answer, "file.write" else. */
int np_target_file_write(const struct np_target_file *f, const void *data, size_t len,
			 const struct np_file_attr *attr_or_null, struct np_err *err) np_must_check;

/* Removes the temporary files for this name that a killed run left, by the identity of
 * the home's owner where it is in one, and where the file was read and is absent the empty
 * folders that were made for it (f->drop_dir). Returns 0, or (not of homes) the negative errno
 * of a temporary file that could not be removed. */
int np_target_file_sweep(const struct np_target_file *f);

/* The uppermost folder above a file in /etc that is missing and that a write would make;
 * NULL where there is none or memory is short. Caller frees. */
char *np_target_file_missing_dir(const struct np_target_file *f);

/* The same for many files in homes, by several processes at a time. @stop_on_signal: a
 * signal leaves out those that were not begun (UNKNOWN, or result, -EINTR). Both return 0
 * or -ENOMEM; what became of each is in it. */
int np_target_homes_read(struct np_target_file *const *files, size_t n,
			 bool stop_on_signal) np_must_check;

struct np_target_write {
	const struct np_target_file *file; /* in a home */
	const void *data;		   /* NULL removes the file */
	size_t len;
	const struct np_file_attr *attr; /* of a new file, or NULL */
	int result;			 /* as np_target_file_write returns it */
	struct np_err err;
};

int np_target_homes_write(struct np_target_write *writes, size_t n,
			  bool stop_on_signal) np_must_check;

#endif
