/* SPDX-License-Identifier: MIT */
#ifndef NP_BASE_USER_H
#define NP_BASE_USER_H

#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

/* An entry of the password database (getpwnam_r: files, LDAP, ...; root's of /etc/passwd). */
struct np_user {
	char name[33];
	uid_t uid;
	gid_t gid;
	char *home;
	char *shell; /* "" = /bin/sh */
};

/* Returns 0, -ENOENT (no such user, code "usage.user") or another negative errno
 * with message. np_user_done frees. */
int np_user_by_name(const char *name, struct np_user *out, struct np_err *err) np_must_check;
int np_user_by_uid(uid_t uid, struct np_user *out, struct np_err *err) np_must_check;
/* A group's number by the group database (getgrnam_r). Returns 0, -ENOENT (no such
 * group) or another negative errno; sets no message. */
int np_group_by_name(const char *name, gid_t *out) np_must_check;
/* The groups of a user with the primary one (getgrouplist). *out is the caller's to free.
 * Returns 0 or -ENOMEM. */
int np_user_groups(const char *name, gid_t gid, gid_t **out, size_t *n) np_must_check;
void np_user_done(struct np_user *user);
#define np_auto_user np_auto(np_user_done)

/* For a child: becomes that user for good (supplementary groups of the database,
 * none where it has no entry; all capabilities gone). Does not allow a way back.
 * Returns 0 or a negative errno. */
int np_user_become(uid_t uid, gid_t gid) np_must_check;

#endif
