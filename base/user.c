/* SPDX-License-Identifier: MIT */
#include "base/user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/str.h"

#define PASSWD_ENTRY_MAX 16384
#define GROUP_ENTRY_MAX	 (PASSWD_ENTRY_MAX * 64)

/* ---- what was asked before ---- */

struct known {
	struct np_user user;
	gid_t *groups; /* NULL: not asked yet */
	size_t n_groups;
};

static void *known_users; /* a tree of struct known by name */

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct known *)a)->user.name, ((const struct known *)b)->user.name);
}

static struct known *find_known(const char *name)
{
	struct known key = { 0 };
	void *slot;

	if (!np_strcpy(key.user.name, sizeof(key.user.name), name))
		return NULL;
	slot = tfind(&key, &known_users, compare_names);
	return slot ? *(struct known **)slot : NULL;
}

static void free_known(void *entry)
{
	struct known *known = entry;

	np_user_done(&known->user);
	free(known->groups);
	free(known);
}

void np_users_forget(void)
{
	tdestroy(known_users, free_known);
	known_users = NULL;
}

static int copy_user(const struct np_user *from, struct np_user *out)
{
	struct np_user user = *from;

	user.home = strdup(from->home ? from->home : "");
	user.shell = strdup(from->shell ? from->shell : "");
	if (!user.home || !user.shell) {
		np_user_done(&user);
		return -ENOMEM;
	}
	*out = user;
	return 0;
}

/* Without memory for it the next question goes to the database again. */
static void remember(const struct np_user *user)
{
	struct known *known = calloc(1, sizeof(*known));

	if (!known || copy_user(user, &known->user) < 0 ||
	    !tsearch(known, &known_users, compare_names)) {
		if (known)
			free_known(known);
	}
}

/* ---- the databases ---- */

static int fill(const struct passwd *entry, struct np_user *out, struct np_err *err)
{
	struct np_user user = { .uid = entry->pw_uid, .gid = entry->pw_gid };

	if (!np_strcpy(user.name, sizeof(user.name), entry->pw_name))
		return np_err_set(err, -ENAMETOOLONG, "usage.user", "user name \"%s\" is too long",
				  entry->pw_name);
	user.home = strdup(entry->pw_dir ? entry->pw_dir : "");
	user.shell = strdup(entry->pw_shell ? entry->pw_shell : "");
	if (!user.home || !user.shell) {
		np_user_done(&user);
		return np_err_nomem(err);
	}
	*out = user;
	return 0;
}

/* Root is in /etc/passwd on every system; the name service is asked for it only where it is
 * not. That spares a run its start: sockets to a cache daemon, the switch's file, plugins. */
static int root_entry(const char *name, struct passwd *entry, char *memory, size_t size)
{
	FILE *file = fopen("/etc/passwd", "re");
	struct passwd *found;
	int r = -ENOENT;

	while (file && r < 0 && fgetpwent_r(file, entry, memory, size, &found) == 0)
		if (entry->pw_uid == 0 && (!name || strcmp(entry->pw_name, name) == 0))
			r = 0;
	if (file)
		fclose(file);
	return r;
}

int np_user_by_name(const char *name, struct np_user *out, struct np_err *err)
{
	_cleanup_free_ char *memory = malloc(PASSWD_ENTRY_MAX);
	const struct known *known = find_known(name);
	struct passwd entry, *found = NULL;
	char shown[80];
	int r;

	if (known)
		return copy_user(&known->user, out) < 0 ? np_err_nomem(err) : 0;
	if (!memory)
		return np_err_nomem(err);
	if (strcmp(name, "root") == 0 && root_entry(name, &entry, memory, PASSWD_ENTRY_MAX) == 0)
		return fill(&entry, out, err);
	r = getpwnam_r(name, &entry, memory, PASSWD_ENTRY_MAX, &found);
	if (found) {
		r = fill(found, out, err);
		/* a database that takes another spelling is asked each time */
		if (r == 0 && np_streq(name, out->name))
			remember(out);
		return r;
	}
	np_printable(name, shown, sizeof(shown));
	if (r == 0 || r == ENOENT || r == ESRCH) {
		np_err_set(err, -ENOENT, "usage.user", "no user \"%s\" in the password database",
			   shown);
		np_err_hint(err, "give a user name that `getent passwd` knows");
		return -ENOENT;
	}
	return np_err_set(err, -r, "usage.user", "cannot look up user \"%s\": %s", shown,
			  strerror(r));
}

int np_group_by_name(const char *name, gid_t *out)
{
	/* a group of thousands of members is one long entry */
	for (size_t size = PASSWD_ENTRY_MAX; size <= GROUP_ENTRY_MAX; size *= 4) {
		_cleanup_free_ char *memory = malloc(size);
		struct group entry, *found = NULL;
		int r;

		if (!memory)
			return -ENOMEM;
		r = getgrnam_r(name, &entry, memory, size, &found);
		if (found) {
			*out = found->gr_gid;
			return 0;
		}
		if (r != ERANGE)
			return r == 0 || r == ESRCH ? -ENOENT : -r;
	}
	return -ERANGE;
}

int np_user_by_uid(uid_t uid, struct np_user *out, struct np_err *err)
{
	_cleanup_free_ char *memory = malloc(PASSWD_ENTRY_MAX);
	struct passwd entry, *found = NULL;
	int r;

	if (!memory)
		return np_err_nomem(err);
	if (uid == 0 && root_entry(NULL, &entry, memory, PASSWD_ENTRY_MAX) == 0)
		return fill(&entry, out, err);
	r = getpwuid_r(uid, &entry, memory, PASSWD_ENTRY_MAX, &found);
	if (found)
		return fill(found, out, err);
	return np_err_set(err, r ? -r : -ENOENT, "usage.user",
			  "no user with uid %u in the password database", (unsigned int)uid);
}

static int ask_groups(const char *name, gid_t gid, gid_t **out, size_t *n)
{
	int room = 32, got = room;
	gid_t *v = calloc((size_t)room, sizeof(*v));

	while (v && getgrouplist(name, gid, v, &got) < 0) {
		gid_t *more;

		/* glibc gives the number that is needed; another library may not */
		room = got > room ? got : room * 2;
		got = room;
		more = reallocarray(v, (size_t)room, sizeof(*v));
		if (!more)
			free(v);
		v = more;
	}
	if (!v)
		return -ENOMEM;
	*out = v;
	*n = (size_t)got;
	return 0;
}

static int copy_groups(const gid_t *from, size_t n, gid_t **out)
{
	gid_t *v = reallocarray(NULL, n, sizeof(*v));

	if (!v)
		return -ENOMEM;
	memcpy(v, from, n * sizeof(*v));
	*out = v;
	return 0;
}

int np_user_groups(const char *name, gid_t gid, gid_t **out, size_t *n)
{
	struct known *known = find_known(name);
	int r;

	if (!known || known->user.gid != gid)
		return ask_groups(name, gid, out, n);
	if (!known->groups) {
		r = ask_groups(name, gid, &known->groups, &known->n_groups);
		if (r < 0)
			return r;
	}
	r = copy_groups(known->groups, known->n_groups, out);
	if (r == 0)
		*n = known->n_groups;
	return r;
}

void np_user_done(struct np_user *user)
{
	if (!user)
		return;
	free(user->home);
	free(user->shell);
	memset(user, 0, sizeof(*user));
}

/* ---- becoming one ---- */

int np_identity_find(const char *name, uid_t uid, gid_t gid, struct np_identity *out)
{
	np_auto_user struct np_user user = { 0 };
	int r;

	*out = (struct np_identity){ .uid = uid, .gid = gid };
	r = name ? np_user_by_name(name, &user, NULL) : -ENOENT;
	if (r < 0 || user.uid != uid) {
		np_user_done(&user);
		r = np_user_by_uid(uid, &user, NULL);
	}
	if (r == 0)
		r = np_user_groups(user.name, gid, &out->groups, &out->n_groups);
	return r == -ENOMEM ? r : 0;
}

void np_identity_done(struct np_identity *id)
{
	if (!id)
		return;
	free(id->groups);
	memset(id, 0, sizeof(*id));
}

int np_user_become(const struct np_identity *id)
{
	/* to the kernel that is "as it is", and a database may say it: setresuid(2) */
	if (id->uid == (uid_t)-1 || id->gid == (gid_t)-1)
		return -EINVAL;
	/* an ordinary user cannot change groups, and need not when it is itself */
	if (setgroups(id->n_groups, id->groups) < 0 && !(errno == EPERM && id->uid == getuid()))
		return -errno;
	if (setresgid(id->gid, id->gid, id->gid) < 0 || setresuid(id->uid, id->uid, id->uid) < 0)
		return -errno;
	if (id->uid != 0 && setuid(0) == 0)
		return -EPERM;
	prctl(PR_SET_KEEPCAPS, 0);
	return 0;
}
