/* SPDX-License-Identifier: MIT */
#ifndef NP_TESTS_UNIT_TARGET_WORLD_H
#define NP_TESTS_UNIT_TARGET_WORLD_H

/*
 * A home and a canary outside of it, for the tests of target_file.c. As root they use
 * a made-up user and a tmpfs of their own; as anybody else what needs root is skipped,
 * aloud.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/target_file.h"
#include "agent/target_open.h"

#define NAME	    ".nccl.conf"
#define CANARY_TEXT "root:$6$canary:19000:0:99999:7:::\n"
#define MADE_UP_UID 12345
#define OTHER_UID   12346

static char top[] = "/tmp/nodeprep-target-XXXXXX";
static bool is_root;
static uid_t uid;
static gid_t gid;

/* ---- a home, a canary outside of it ---- */

struct world {
	char home[80];
	char conf[120];
	char canary[80];
	struct np_target_file file;
};

static inline void put(const char *path, const char *text, mode_t mode, uid_t owner)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(fchown(fd, owner, owner == uid ? gid : (gid_t)owner), 0);
	close(fd);
}

static inline void check_text(const char *path, const char *wanted)
{
	np_auto_buf struct np_buf text = { 0 };

	assert_int_equal(np_file_read_at(AT_FDCWD, path, 1 << 20, &text), 0);
	assert_string_equal(text.data, wanted);
}

static inline int count_entries(const char *path)
{
	_cleanup_closedir_ DIR *dir = opendir(path);
	struct dirent *entry;
	int n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
	return n;
}

static inline void clear(const char *path)
{
	char command[200];

	snprintf(command, sizeof(command), "rm -rf %s", path);
	assert_int_equal(system(command), 0);
}

static inline void init_home(struct world *w, const char *home)
{
	np_target_file_done(&w->file);
	assert_int_equal(np_target_file_init_home(&w->file, "nobody-here", uid, gid, home, NAME),
			 0);
}

static inline int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		return -1;
	snprintf(w->home, sizeof(w->home), "%s/home", top);
	snprintf(w->conf, sizeof(w->conf), "%s/%s", w->home, NAME);
	snprintf(w->canary, sizeof(w->canary), "%s/canary", top);
	if (mkdir(w->home, 0700) < 0 || chown(w->home, uid, gid) < 0)
		return -1;
	put(w->canary, CANARY_TEXT, 0600, geteuid());
	init_home(w, w->home);
	*state = w;
	return 0;
}

static inline int tear_down(void **state)
{
	struct world *w = *state;
	char inner[100];

	check_text(w->canary, CANARY_TEXT);
	np_target_file_done(&w->file);
	free(w);
	snprintf(inner, sizeof(inner), "%s/*", top);
	clear(inner);
	return 0;
}

static inline void write_ok(struct world *w, const char *text)
{
	struct np_err err;
	int r;

	np_err_clear(&err);
	r = np_target_file_write(&w->file, text, text ? strlen(text) : 0, NULL, &err);
	if (r < 0)
		fprintf(stderr, "%s (%s)\n", err.message, err.hint);
	assert_int_equal(r, 0);
}

static inline int group_set_up(void **state)
{
	(void)state;
	umask(022);
	if (!mkdtemp(top))
		return -1;
	is_root = geteuid() == 0;
	uid = is_root ? MADE_UP_UID : geteuid();
	gid = is_root ? MADE_UP_UID : getegid();
	if (!is_root)
		return 0;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", top, "tmpfs", 0, "mode=0755") < 0)
		fprintf(stderr, "no tmpfs of its own: %s\n", strerror(errno));
	return chmod(top, 0755);
}

static inline int group_tear_down(void **state)
{
	(void)state;
	umount2(top, MNT_DETACH);
	return rmdir(top);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
