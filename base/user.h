/* SPDX-License-Identifier: MIT */
#ifndef NP_BASE_USER_H
#define NP_BASE_USER_H

#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

/*
 * The password and group databases (getpwnam_r: files, LDAP, ...; root's entry of
 * /etc/passwd). What a name stands for is asked once a run: each question reads whole
 * files or asks a server, and a thousand homes are looked at several times.
 */
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
/* Makes np_user_by_name and np_user_groups ask again. */
void np_users_forget(void);
void np_user_done(struct np_user *user);
#define np_auto_user np_auto(np_user_done)

/* Who a child is to become. */
struct np_identity {
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* supplementary ones */
	size_t n_groups;
};

/* Looks up the supplementary groups that uid has by the databases; none where it has no
 * entry. @name (or NULL) is the entry that is meant where several have that uid. Done
 * before the fork, so that a child loads no name service. Returns 0 or -ENOMEM;
 * np_identity_done frees. */
int np_identity_find(const char *name, uid_t uid, gid_t gid, struct np_identity *out) np_must_check;
void np_identity_done(struct np_identity *id);
#define np_auto_identity np_auto(np_identity_done)

/* For a child: becomes that user for good, all capabilities gone. Does not allow a way
 * back. Returns 0 or a negative errno. */
int np_user_become(const struct np_identity *id) np_must_check;

#endif
