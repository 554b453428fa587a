/* SPDX-License-Identifier: MIT */
#ifndef NP_TEST_FAKE_SYS_H
#define NP_TEST_FAKE_SYS_H

/*
 * A made-up tree whose top folders are bound over those of /sys, in a private
 * mount namespace (and a user namespace, when not root). For one test program
 * each, so all of it is static.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char tree[] = "/tmp/fake_sys.XXXXXX";
static const char *no_namespace; /* why there is none */
static char laid[4][32];	 /* what hides a folder of /sys now */
static size_t n_laid;

/* ---- the made-up tree ---- */

static void make_dirs(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0755) < 0)
			assert_int_equal(errno, EEXIST);
		*slash = '/';
	}
}

__attribute__((format(printf, 2, 3))) static void put(const char *text, const char *fmt, ...)
{
	char path[512];
	int len = snprintf(path, sizeof(path), "%s/", tree);
	va_list args;
	FILE *f;

	va_start(args, fmt);
	vsnprintf(path + len, sizeof(path) - (size_t)len, fmt, args);
	va_end(args);
	make_dirs(path);
	if (text) {
		f = fopen(path, "w");
		assert_non_null(f);
		fprintf(f, "%s\n", text);
		fclose(f);
	} else {
		assert_int_equal(mkdir(path, 0755), 0);
	}
}

static __attribute__((unused)) void put_link(const char *target, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", tree, name);
	make_dirs(path);
	assert_int_equal(symlink(target, path), 0);
}

/* ---- each test has an empty tree of its own ---- */

static int set_up(void **state)
{
	(void)state;
	if (no_namespace)
		return 0;
	return mount("tree", tree, "tmpfs", 0, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	if (no_namespace)
		return 0;
	while (n_laid > 0)
		umount2(laid[--n_laid], MNT_DETACH);
	return umount2(tree, MNT_DETACH);
}

/* "class" of the tree over /sys/class. */
static __attribute__((unused)) void lay_over(const char *name)
{
	char path[64];

	assert_in_range(n_laid, 0, 3);
	snprintf(laid[n_laid], sizeof(laid[0]), "/sys/%s", name);
	snprintf(path, sizeof(path), "%s/%s", tree, name);
	assert_int_equal(mount(path, laid[n_laid], NULL, MS_BIND | MS_REC, NULL), 0);
	n_laid++;
}

static void need_namespace(void)
{
	if (!no_namespace)
		return;
	fprintf(stderr, "SKIPPED: no private mount namespace here: %s\n", no_namespace);
	skip();
}

/* ---- the namespace ---- */

static void write_map(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		no_namespace = "cannot map the user";
	close(fd);
}

static void enter_namespace(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char map[64];

	if (!mkdtemp(tree)) {
		no_namespace = strerror(errno);
		return;
	}
	if (unshare(uid == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) < 0) {
		no_namespace = strerror(errno);
		return;
	}
	if (uid != 0) {
		write_map("/proc/self/setgroups", "deny");
		snprintf(map, sizeof(map), "0 %u 1", uid);
		write_map("/proc/self/uid_map", map);
		snprintf(map, sizeof(map), "0 %u 1", gid);
		write_map("/proc/self/gid_map", map);
	}
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		no_namespace = strerror(errno);
}

static void leave_namespace(void)
{
	rmdir(tree);
}

#endif
