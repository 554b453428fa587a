/* SPDX-License-Identifier: MIT */
#include "base/trust.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

#define LINKS_MAX 40 /* as the kernel's own: path_resolution(7) */

struct walk {
	char done[PATH_MAX]; /* what was looked at, without a slash at its end; "" is / */
	char todo[PATH_MAX]; /* what comes behind it */
	int links;
};

static bool others_write(const struct stat *st)
{
	return st->st_mode & (S_IWGRP | S_IWOTH);
}

static int at_fault(const char *path, char *which, size_t size)
{
	np_strcpy(which, size, *path ? path : "/");
	return -EPERM;
}

/* Puts the target of the link @here in front of what is left. */
static int follow(struct walk *w, const char *here)
{
	char target[PATH_MAX], rest[PATH_MAX];
	ssize_t len = readlink(here, target, sizeof(target) - 1);

	if (len < 0)
		return -errno;
	if (++w->links > LINKS_MAX)
		return -ELOOP;
	target[len] = '\0';
	np_strcpy(rest, sizeof(rest), w->todo);
	if (target[0] == '/')
		w->done[0] = '\0';
	return snprintf(w->todo, sizeof(w->todo), "%s/%s", target, rest) < (int)sizeof(w->todo) ?
		       0 :
		       -ENAMETOOLONG;
}

/* Cuts the next name off; false: there is none. */
static bool next_name(struct walk *w, char *name, size_t size)
{
	char *from = w->todo + strspn(w->todo, "/");
	size_t len = strcspn(from, "/");

	if (len == 0 || len >= size)
		return false;
	memcpy(name, from, len);
	name[len] = '\0';
	memmove(w->todo, from + len, strlen(from + len) + 1);
	return true;
}

/* Where the walk stands. @last: nothing comes behind it that is there. */
static int check_here(const struct walk *w, bool last, char *which, size_t size)
{
	struct stat st;

	if (stat(*w->done ? w->done : "/", &st) < 0)
		return -errno;
	if (st.st_uid != 0 ||
	    (others_write(&st) && (last || !S_ISDIR(st.st_mode) || !(st.st_mode & S_ISVTX))))
		return at_fault(w->done, which, size);
	return 0;
}

static int step(struct walk *w, const char *name, char *which, size_t size)
{
	char here[PATH_MAX + NAME_MAX + 2];
	struct stat st;
	char *slash;
	int r;

	if (np_streq(name, "."))
		return 0;
	if (np_streq(name, "..")) {
		slash = strrchr(w->done, '/');
		if (slash)
			*slash = '\0';
		return 0;
	}
	snprintf(here, sizeof(here), "%s/%s", w->done, name);
	r = lstat(here, &st) < 0 ? -errno : 0;
	if (r == -ENOENT) {
		r = check_here(w, true, which, size);
		return r < 0 ? r : -ENOENT;
	}
	if (r == 0)
		r = check_here(w, false, which, size);
	if (r < 0)
		return r;
	if (st.st_uid != 0)
		return at_fault(here, which, size);
	if (S_ISLNK(st.st_mode))
		return follow(w, here);
	return np_strcpy(w->done, sizeof(w->done), here) ? 0 : -ENAMETOOLONG;
}

int np_path_trusted(const char *path, char *which, size_t size)
{
	struct walk w = { .links = 0 };
	char name[NAME_MAX + 1];
	int r = 0;

	if (path[0] != '/')
		return -EINVAL;
	if (!np_strcpy(w.todo, sizeof(w.todo), path))
		return -ENAMETOOLONG;
	while (r == 0 && next_name(&w, name, sizeof(name)))
		r = step(&w, name, which, size);
	if (r == -ENOENT)
		return 0;
	if (r == 0 && w.todo[strspn(w.todo, "/")])
		return -ENAMETOOLONG;
	return r < 0 ? r : check_here(&w, true, which, size);
}
