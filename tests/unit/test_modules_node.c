/* SPDX-License-Identifier: MIT */
/*
 * /dev/gdrdrv: made, replaced, adjusted, refused, in a private /dev; hostile things in
 * its place; and somebody who swaps the name all the time.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "modules/gdrdrv.h"

#define NODE  "/dev/gdrdrv"
#define MAJOR 508

static const char *no_dev; /* why there is no private /dev */
static const struct np_file_attr public = { .mode = 0666 };
static struct np_err err;

static void need_dev(void)
{
	if (!no_dev)
		return;
	fprintf(stderr, "SKIPPED: no private /dev here: %s\n", no_dev);
	skip();
}

static int fresh_dev(void **state)
{
	(void)state;
	return no_dev ? 0 : mount("dev", "/dev", "tmpfs", MS_NOSUID, "mode=755");
}

static int drop_dev(void **state)
{
	(void)state;
	return no_dev ? 0 : umount2("/dev", MNT_DETACH);
}

static int make(const struct np_file_attr *attr, enum np_gdrdrv_made *made)
{
	np_err_clear(&err);
	return np_gdrdrv_make_node(MAJOR, attr, made, &err);
}

/* The node is right, and nothing else is in /dev but what was there (@others). */
static void assert_node(mode_t mode, uid_t uid, gid_t gid, int others)
{
	DIR *dir = opendir("/dev");
	const struct dirent *entry;
	char names[1024] = "";
	struct stat st;
	int n = 0, len = 0;

	assert_int_equal(lstat(NODE, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(st.st_rdev, makedev(MAJOR, 0));
	assert_int_equal(st.st_mode & 07777, mode);
	assert_int_equal(st.st_uid, uid);
	assert_int_equal(st.st_gid, gid);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		len += snprintf(names + len, sizeof(names) - (size_t)len, " %.40s", entry->d_name);
		n++;
	}
	closedir(dir);
	if (n != 3 + others) /* . and .. */
		fail_msg("left over in /dev:%s", names);
}

static void plain(void **state)
{
	const struct np_file_attr private = { .mode = 0660, .uid = 0, .gid = 44 };
	const struct np_file_attr owned = { .mode = 04640, .uid = 1000, .gid = 44 };
	enum np_gdrdrv_made made;

	(void)state;
	need_dev();
	umask(077); /* has no say */
	assert_int_equal(make(&public, &made), 0);
	assert_int_equal(made, NP_GDRDRV_CREATED);
	assert_node(0666, 0, 0, 0);
	assert_int_equal(make(&public, &made), 0);
	assert_int_equal(made, NP_GDRDRV_UNCHANGED);
	assert_int_equal(make(&private, &made), 0);
	assert_int_equal(made, NP_GDRDRV_ADJUSTED);
	assert_node(0660, 0, 44, 0);
	assert_int_equal(make(&owned, &made), 0); /* set-uid is no mode for a device */
	assert_node(0640, 1000, 44, 0);
	assert_int_equal(make(&owned, &made), 0);
	assert_int_equal(made, NP_GDRDRV_UNCHANGED);
	assert_int_equal(make(&public, &made), 0); /* may be open in that user's hands */
	assert_int_equal(made, NP_GDRDRV_REPLACED);
	assert_node(0666, 0, 0, 0);

	assert_int_equal(np_gdrdrv_remove_node(MAJOR + 1, &err), 0);
	assert_node(0666, 0, 0, 0);
	assert_int_equal(np_gdrdrv_remove_node(MAJOR, &err), 0);
	assert_int_equal(access(NODE, F_OK), -1);
	assert_int_equal(np_gdrdrv_remove_node(MAJOR, &err), 0);
	assert_int_equal(np_gdrdrv_make_node(-1, &public, NULL, &err), -EINVAL);
	assert_int_equal(np_gdrdrv_make_node(4096, &public, NULL, NULL), -EINVAL);
	umask(022);
}

static void default_attr(void **state)
{
	struct np_file_attr attr = { .mode = 1, .uid = 1, .gid = 1 };

	(void)state;
	need_dev();
	np_gdrdrv_default_attr(&attr);
	assert_true(attr.mode == 0666 && attr.uid == 0 && attr.gid == 0);
	assert_int_equal(symlink("/dev/null", "/dev/nvidiactl"), 0); /* not followed */
	np_gdrdrv_default_attr(&attr);
	assert_int_equal(attr.mode, 0666);
	unlink("/dev/nvidiactl");
	assert_int_equal(mknod("/dev/nvidiactl", S_IFCHR | 0600, makedev(195, 255)), 0);
	assert_int_equal(chown("/dev/nvidiactl", 0, 44), 0);
	assert_int_equal(chmod("/dev/nvidiactl", 0660), 0);
	np_gdrdrv_default_attr(&attr);
	assert_true(attr.mode == 0660 && attr.uid == 0 && attr.gid == 44);
}

static void replaces(const char *what)
{
	enum np_gdrdrv_made made;

	if (make(&public, &made) < 0)
		fail_msg("%s: %s", what, err.message);
	assert_int_equal(made, NP_GDRDRV_REPLACED);
	assert_node(0666, 0, 0, 1);
	assert_int_equal(unlink(NODE), 0);
}

/* What does not belong there, but is root's, gives way; what it points to does not. */
static void wrong_things(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = NODE };
	struct stat st;
	int fd;

	(void)state;
	need_dev();
	fd = open("/dev/precious", O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);

	assert_int_equal(symlink("precious", NODE), 0);
	replaces("symlink");
	assert_int_equal(symlink("/nowhere/at/all", NODE), 0);
	replaces("dangling symlink");
	assert_int_equal(mknod(NODE, S_IFREG | 0644, 0), 0);
	replaces("regular file");
	assert_int_equal(link("/dev/precious", NODE), 0);
	replaces("hard link");
	assert_int_equal(mkfifo(NODE, 0666), 0);
	replaces("FIFO");
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	replaces("socket");
	assert_int_equal(mknod(NODE, S_IFBLK | 0600, makedev(MAJOR, 0)), 0);
	replaces("block device");
	assert_int_equal(mknod(NODE, S_IFCHR | 0666, makedev(MAJOR - 1, 0)), 0);
	replaces("dead major");
	assert_int_equal(mknod(NODE, S_IFCHR | 0666, makedev(MAJOR, 1)), 0);
	replaces("wrong minor");

	assert_int_equal(stat("/dev/precious", &st), 0);
	assert_true(st.st_size == 1 && (st.st_mode & 07777) == 0600);
}

static void refuses(const char *what, const char *part)
{
	enum np_gdrdrv_made made = (enum np_gdrdrv_made)77;

	if (make(&public, &made) >= 0)
		fail_msg("%s is not refused", what);
	assert_string_equal(err.code, "gdrdrv.node_unsafe");
	assert_true(*err.hint);
	if (!strstr(err.message, part))
		fail_msg("%s: %s", what, err.message);
	assert_int_equal(made, 77);
}

static void unsafe_things(void **state)
{
	struct stat st;

	(void)state;
	need_dev();
	assert_int_equal(mkdir(NODE, 0755), 0);
	refuses("directory", "directory");
	assert_int_equal(rmdir(NODE), 0);

	assert_int_equal(mknod(NODE, S_IFREG | 0644, 0), 0);
	assert_int_equal(chown(NODE, 1000, 1000), 0);
	refuses("a user's file", "another user");
	assert_int_equal(lstat(NODE, &st), 0);
	assert_true(S_ISREG(st.st_mode) && st.st_uid == 1000);
	unlink(NODE);

	assert_int_equal(mknod(NODE, S_IFREG | 0644, 0), 0);
	assert_int_equal(mknod("/dev/x", S_IFCHR | 0600, makedev(1, 3)), 0);
	assert_int_equal(mount("/dev/x", NODE, NULL, MS_BIND, NULL), 0);
	refuses("mount point", "mount point");
	assert_int_equal(umount2(NODE, MNT_DETACH), 0);
	unlink(NODE);

	assert_int_equal(chmod("/dev", 01777), 0);
	refuses("/dev of all", "root alone");
	assert_int_equal(chmod("/dev", 0755), 0);
	assert_int_equal(chown("/dev", 1000, 0), 0);
	refuses("/dev of a user", "root alone");
	assert_int_equal(chown("/dev", 0, 0), 0);
}

static void leftovers(void **state)
{
	enum np_gdrdrv_made made;

	(void)state;
	need_dev();
	assert_int_equal(mknod("/dev/.gdrdrv.nodeprep-abcdef", S_IFCHR, makedev(MAJOR, 0)), 0);
	assert_int_equal(mknod("/dev/.gdrdrv.nodeprep-longer7", S_IFCHR, makedev(MAJOR, 0)), 0);
	assert_int_equal(mknod("/dev/.gdrdrv.nodeprep-zzzzzz", S_IFREG, 0), 0);
	assert_int_equal(mknod("/dev/.gdrdrv.nodeprep-users0", S_IFREG, 0), 0);
	assert_int_equal(chown("/dev/.gdrdrv.nodeprep-users0", 1000, 1000), 0);
	assert_int_equal(mkdir("/dev/.gdrdrv.nodeprep-folder", 0700), 0);
	assert_int_equal(make(&public, &made), 0);
	assert_int_equal(access("/dev/.gdrdrv.nodeprep-abcdef", F_OK), -1);
	/* what a node had just taken the place of */
	assert_int_equal(access("/dev/.gdrdrv.nodeprep-zzzzzz", F_OK), -1);
	assert_node(0666, 0, 0, 3); /* not ours */
}

/* ---- a race ---- */

static atomic_bool stop;

/* Puts a file, a symlink, a directory at the name and takes them away again. */
static void *swapper(void *arg)
{
	(void)arg;
	mkdir("/dev/evil-dir", 0755);
	while (!atomic_load(&stop)) {
		symlink("/dev/precious", "/dev/evil-link");
		rename("/dev/evil-link", NODE);
		mknod("/dev/evil-file", S_IFREG | 0666, 0);
		rename("/dev/evil-file", NODE);
		unlink(NODE);
		rename("/dev/evil-dir", NODE);
		rename(NODE, "/dev/evil-dir");
		unlink(NODE);
	}
	return NULL;
}

static void swap_race(void **state)
{
	char wrong[800] = "";
	pthread_t thread;
	struct stat st;
	int fd, won = 0, lost = 0;

	(void)state;
	need_dev();
	fd = open("/dev/precious", O_WRONLY | O_CREAT, 0600);
	close(fd);
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, swapper, NULL), 0);
	for (int i = 0; i < 3000 && !*wrong; i++) {
		if (make(&public, NULL) == 0) {
			won++;
			continue;
		}
		lost++; /* in an orderly way only */
		if (strcmp(err.code, "gdrdrv.node_busy") != 0 &&
		    strcmp(err.code, "gdrdrv.node_unsafe") != 0)
			snprintf(wrong, sizeof(wrong), "%s: %s", err.code, err.message);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL); /* before anything can fail: it must not outlive this /dev */
	assert_string_equal(wrong, "");
	assert_true(won > 0);
	/* nothing was followed, nothing was changed */
	assert_int_equal(lstat("/dev/precious", &st), 0);
	assert_true(S_ISREG(st.st_mode) && (st.st_mode & 07777) == 0600);
	remove(NODE);
	remove("/dev/evil-dir");
	remove("/dev/evil-file");
	remove("/dev/evil-link");
	assert_int_equal(make(&public, NULL), 0);
	assert_node(0666, 0, 0, 1);
	fprintf(stderr, "swap race: made %d times, refused %d times\n", won, lost);
}

/* What observe says of a node in /dev that no driver stands behind. */
static void observed(void **state)
{
	struct np_gdrdrv g;

	(void)state;
	need_dev();
	np_gdrdrv_observe(&g);
	assert_false(g.node_exists);
	assert_int_equal(make(&public, NULL), 0);
	np_gdrdrv_observe(&g);
	assert_true(g.node_exists && !g.usable);
	if (g.major < 0) {
		assert_false(g.node_matches);
		assert_int_equal(g.open_errno, -1);
		assert_int_equal(g.persistent_mapping, -1);
	}
}

static void enter(void)
{
	if (geteuid() != 0)
		no_dev = "mknod needs root";
	else if (unshare(CLONE_NEWNS) < 0 ||
		 mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		no_dev = strerror(errno);
	else if (fresh_dev(NULL) < 0) /* stays below the others: the real one is never bared */
		no_dev = strerror(errno);
	else if (mknod("/dev/null", S_IFCHR | 0666, makedev(1, 3)) < 0)
		no_dev = "mknod is not allowed";
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, fresh_dev, drop_dev)
		CASE(plain),	 CASE(default_attr), CASE(wrong_things), CASE(unsafe_things),
		CASE(leftovers), CASE(swap_race),    CASE(observed),
	};

	enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
