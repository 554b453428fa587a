/* SPDX-License-Identifier: MIT */
/*
 * Files in hostile homes (C35). As root the tests use a made-up user and a tmpfs of
 * their own; as anybody else those that need root are skipped, aloud.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/target_file.h"
#include "agent/target_open.h"

#define NAME ".nccl.conf"
#define CANARY_TEXT "root:$6$canary:19000:0:99999:7:::\n"
#define MADE_UP_UID 12345
#define OTHER_UID 12346

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

static void put(const char *path, const char *text, mode_t mode, uid_t owner)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(fchown(fd, owner, owner == uid ? gid : (gid_t)owner), 0);
	close(fd);
}

static void check_text(const char *path, const char *wanted)
{
	np_auto_buf struct np_buf text = {0};

	assert_int_equal(np_file_read_at(AT_FDCWD, path, 1 << 20, &text), 0);
	assert_string_equal(text.data, wanted);
}

static int count_entries(const char *path)
{
	_cleanup_closedir_ DIR *dir = opendir(path);
	struct dirent *entry;
	int n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
	return n;
}

static void clear(const char *path)
{
	char command[200];

	snprintf(command, sizeof(command), "rm -rf %s", path);
	assert_int_equal(system(command), 0);
}

static void init_home(struct world *w, const char *home)
{
	np_target_file_done(&w->file);
	assert_int_equal(np_target_file_init_home(&w->file, "nobody-here", uid, gid, home, NAME), 0);
}

static int set_up(void **state)
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

static int tear_down(void **state)
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

static void need_root(const char *what)
{
	if (is_root)
		return;
	fprintf(stderr, "SKIP: %s needs root\n", what);
	skip();
}

/* Reading and writing are both refused, and nothing changes. */
static void check_refused(struct world *w, const char *reason)
{
	int before = count_entries(top), r;
	struct stat old, now;
	struct np_err err;
	bool there = lstat(w->conf, &old) == 0;

	np_target_file_read(&w->file);
	assert_string_equal(w->file.reason, reason);
	assert_int_equal(w->file.status, NP_TARGET_REFUSED);
	assert_true(w->file.num < 0);
	assert_true(w->file.hint[0]);
	assert_int_equal(w->file.content.len, 0);
	for (int i = 0; i < 2; i++) {
		np_err_clear(&err);
		r = np_target_file_write(&w->file, i ? NULL : "A=1\n", i ? 0 : 4, NULL, &err);
		assert_true(r < 0);
		assert_string_equal(err.code, "file.refused");
		assert_non_null(strstr(err.message, reason));
		assert_non_null(strstr(err.message, w->file.path));
		assert_true(err.hint[0]);
	}
	assert_int_equal(count_entries(top), before);
	if (there) {
		assert_int_equal(lstat(w->conf, &now), 0);
		assert_int_equal(old.st_ino, now.st_ino);
		assert_int_equal(old.st_mode, now.st_mode);
		assert_int_equal(old.st_nlink, now.st_nlink);
	}
}

static void write_ok(struct world *w, const char *text)
{
	struct np_err err;
	int r;

	np_err_clear(&err);
	r = np_target_file_write(&w->file, text, text ? strlen(text) : 0, NULL, &err);
	if (r < 0)
		fprintf(stderr, "%s (%s)\n", err.message, err.hint);
	assert_int_equal(r, 0);
}

/* ---- what is allowed ---- */

static void test_new_change_remove(void **state)
{
	struct world *w = *state;
	struct stat st;

	np_target_file_read(&w->file);
	assert_int_equal(w->file.status, NP_TARGET_ABSENT);
	assert_false(w->file.network_fs);
	write_ok(w, "A=1\n");
	assert_int_equal(lstat(w->conf, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0644);
	assert_int_equal(st.st_uid, uid);
	assert_int_equal(st.st_gid, gid);
	assert_int_equal(chmod(w->conf, 0600), 0);
	write_ok(w, "A=2\n");
	np_target_file_read(&w->file);
	assert_int_equal(w->file.status, NP_TARGET_PRESENT);
	assert_string_equal(w->file.content.data, "A=2\n");
	assert_int_equal(w->file.attr.mode, 0600);
	assert_int_equal(w->file.attr.uid, uid);
	assert_int_equal(count_entries(w->home), 1);
	write_ok(w, NULL);
	assert_int_equal(count_entries(w->home), 0);
	write_ok(w, NULL);
	np_target_file_read(&w->file);
	assert_int_equal(w->file.status, NP_TARGET_ABSENT);
	assert_int_equal(w->file.content.len, 0);
}

static void test_bytes(void **state)
{
	struct world *w = *state;
	static char big[NP_TARGET_MAX];
	struct np_err err;

	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(i * 7);
	assert_int_equal(np_target_file_write(&w->file, big, sizeof(big), NULL, &err), 0);
	np_target_file_read(&w->file);
	assert_int_equal(w->file.status, NP_TARGET_PRESENT);
	assert_int_equal(w->file.content.len, sizeof(big));
	assert_memory_equal(w->file.content.data, big, sizeof(big));
	write_ok(w, "");
	np_target_file_read(&w->file);
	assert_int_equal(w->file.status, NP_TARGET_PRESENT);
	assert_int_equal(w->file.content.len, 0);
}

static void test_restore_attr(void **state)
{
	struct world *w = *state;
	struct np_file_attr attr = {.mode = 0640, .uid = uid, .gid = gid};
	struct np_err err;
	struct stat st;

	assert_int_equal(np_target_file_write(&w->file, "A=1\n", 4, &attr, &err), 0);
	assert_int_equal(lstat(w->conf, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	/* a group that the user is not in, as a restored backup may have: its own then */
	write_ok(w, NULL);
	attr.gid = 54321;
	attr.mode = 06755;
	assert_int_equal(np_target_file_write(&w->file, "A=1\n", 4, &attr, &err), 0);
	assert_int_equal(lstat(w->conf, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(st.st_gid, is_root ? gid : st.st_gid);
}

static void test_leftovers(void **state)
{
	struct world *w = *state;
	char path[200];

	snprintf(path, sizeof(path), "%s/.%s.nodeprep-abc123", w->home, NAME);
	put(path, "half", 0600, uid);
	write_ok(w, "A=1\n");
	assert_int_equal(count_entries(w->home), 1);
}

/* /home -> /srv/home, and a home that root has linked elsewhere. */
static void test_links_above(void **state)
{
	struct world *w = *state;
	char path[120];

	snprintf(path, sizeof(path), "%s/link", top);
	assert_int_equal(symlink(top, path), 0);
	snprintf(path, sizeof(path), "%s/link/home", top);
	init_home(w, path);
	write_ok(w, "A=1\n");
	check_text(w->conf, "A=1\n");
	snprintf(path, sizeof(path), "%s/moved", top);
	assert_int_equal(symlink(w->home, path), 0);
	init_home(w, path);
	write_ok(w, "A=2\n");
	check_text(w->conf, "A=2\n");
	np_target_file_read(&w->file);
	assert_string_equal(w->file.content.data, "A=2\n");
}

/* ---- what is refused ---- */

static void test_symlink(void **state)
{
	struct world *w = *state;
	char reason[120];

	assert_int_equal(symlink("/etc/shadow", w->conf), 0);
	check_refused(w, "a symbolic link to /etc/shadow");
	unlink(w->conf);
	assert_int_equal(symlink(w->canary, w->conf), 0);
	snprintf(reason, sizeof(reason), "a symbolic link to %s", w->canary);
	check_refused(w, reason);
	unlink(w->conf);
	assert_int_equal(symlink("nothing\nthere", w->conf), 0);
	check_refused(w, "a symbolic link to nothing\\x0athere");
	unlink(w->conf);
	assert_int_equal(symlink("other", w->conf), 0);
	check_refused(w, "a symbolic link to other");
}

static void test_kinds(void **state)
{
	struct world *w = *state;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(mkfifo(w->conf, 0600), 0);
	assert_int_equal(chown(w->conf, uid, gid), 0);
	check_refused(w, "a FIFO");
	unlink(w->conf);
	assert_int_equal(mkdir(w->conf, 0700), 0);
	check_refused(w, "a directory");
	rmdir(w->conf);
	np_strcpy(address.sun_path, sizeof(address.sun_path), w->conf);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	check_refused(w, "a socket");
	close(fd);
}

static void test_devices(void **state)
{
	struct world *w = *state;

	need_root("making device nodes");
	if (mknod(w->conf, S_IFCHR | 0666, makedev(1, 3)) < 0) {
		fprintf(stderr, "SKIP: no device nodes can be made here\n");
		skip();
	}
	assert_int_equal(chown(w->conf, uid, gid), 0);
	check_refused(w, "a character device");
	unlink(w->conf);
	assert_int_equal(mknod(w->conf, S_IFBLK | 0666, makedev(7, 0)), 0);
	check_refused(w, "a block device");
}

static void test_hard_link(void **state)
{
	struct world *w = *state;
	char other[120];

	snprintf(other, sizeof(other), "%s/other", top);
	put(other, "A=1\n", 0644, uid);
	assert_int_equal(link(other, w->conf), 0);
	check_refused(w, "a file with 2 hard links");
	check_text(other, "A=1\n");
}

static void test_too_large(void **state)
{
	struct world *w = *state;

	put(w->conf, "", 0644, uid);
	assert_int_equal(truncate(w->conf, NP_TARGET_MAX + 1), 0);
	check_refused(w, "too large (262145 bytes, the limit is 262144)");
	assert_int_equal(truncate(w->conf, 1ll << 40), 0);
	check_refused(w, "too large (1099511627776 bytes, the limit is 262144)");
}

static void test_owner(void **state)
{
	struct world *w = *state;

	need_root("a file of another user");
	put(w->conf, "A=1\n", 0666, 0);
	check_refused(w, "owned by uid 0, not by the owner of the home (uid 12345)");
	/* nor by a hard link to it, which shows both faults */
	unlink(w->conf);
	assert_int_equal(link(w->canary, w->conf), 0);
	check_refused(w, "owned by uid 0, not by the owner of the home (uid 12345)");
}

static void test_unreadable_file(void **state)
{
	struct world *w = *state;

	put(w->conf, "A=1\n", 0000, uid);
	np_target_file_read(&w->file);
	assert_int_equal(w->file.status, NP_TARGET_UNKNOWN);
	assert_int_equal(w->file.num, -EACCES);
	assert_string_equal(w->file.hint, "let its owner read it");
	assert_int_equal(w->file.content.len, 0);
}

static void test_homes(void **state)
{
	struct world *w = *state;
	char path[120];

	init_home(w, "/");
	check_refused(w, "the home directory is the root directory");
	init_home(w, "//");
	check_refused(w, "the home directory is the root directory");
	init_home(w, "/nonexistent");
	check_refused(w, "the user has no home directory (/nonexistent)");
	init_home(w, "");
	check_refused(w, "the password database names no home directory");
	snprintf(path, sizeof(path), "%s/missing", top);
	init_home(w, path);
	check_refused(w, "the home directory does not exist");
	init_home(w, w->canary);
	check_refused(w, "the home is not a directory");
}

static void test_foreign_home(void **state)
{
	struct world *w = *state;
	char path[120];

	need_root("a home of another user");
	snprintf(path, sizeof(path), "%s/alias", top);
	assert_int_equal(symlink(w->home, path), 0);
	assert_int_equal(lchown(path, OTHER_UID, OTHER_UID), 0);
	init_home(w, path);
	check_refused(w, "the home directory is a symbolic link made by uid 12346");
	/* somebody else's, open to all */
	init_home(w, w->home);
	assert_int_equal(chown(w->home, OTHER_UID, OTHER_UID), 0);
	assert_int_equal(chmod(w->home, 0777), 0);
	check_refused(w, "the home directory is owned by uid 12346, not by the user (uid 12345)");
	assert_int_equal(count_entries(w->home), 0);
}

static void test_closed_home(void **state)
{
	struct world *w = *state;
	struct np_err err;

	assert_int_equal(chmod(w->home, 0000), 0);
	np_target_file_read(&w->file);
	assert_int_equal(w->file.status, NP_TARGET_UNKNOWN);
	assert_string_equal(w->file.reason,
			    "the home directory cannot be opened: Permission denied");
	assert_int_equal(np_target_file_write(&w->file, "A=1\n", 4, NULL, &err), -EACCES);
	assert_string_equal(err.code, "file.refused");
	/* readable, but not for writing */
	assert_int_equal(chmod(w->home, 0500), 0);
	np_target_file_read(&w->file);
	assert_int_equal(w->file.status, NP_TARGET_ABSENT);
	assert_int_equal(np_target_file_write(&w->file, "A=1\n", 4, NULL, &err), -EACCES);
	assert_string_equal(err.code, "file.refused");
	assert_string_equal(err.hint, "let the user write to its own home directory");
	assert_int_equal(chmod(w->home, 0700), 0);
}

static void test_init_refuses(void **state)
{
	static const char *const names[] = {"", ".", "..", "a/b", "/etc/shadow"};
	struct np_target_file f;

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(names); i++)
		assert_int_equal(np_target_file_init_home(&f, "u", 1, 1, "/home/u", names[i]),
				 -EINVAL);
	/* cut, it would be the name of another user */
	assert_int_equal(np_target_file_init_home(&f, "a123456789012345678901234567890123", 1, 1,
						  "/home/u", NAME), -EINVAL);
	assert_int_equal(np_target_file_init_etc(&f, "etc/x"), -EINVAL);
	assert_int_equal(np_target_file_init_etc(&f, "/etc/"), -EINVAL);
	assert_int_equal(np_target_file_init_image(&f, "img", "/etc/x"), -EINVAL);
}

static void test_network_fs(void **state)
{
	(void)state;
	assert_true(np_target_fs_is_network(0x6969));	   /* NFS */
	assert_true(np_target_fs_is_network(0x0bd00bd0)); /* Lustre */
	assert_true(np_target_fs_is_network(0x47504653)); /* GPFS */
	assert_true(np_target_fs_is_network(0x19830326)); /* BeeGFS */
	assert_true(np_target_fs_is_network(0xff534d42)); /* CIFS */
	assert_false(np_target_fs_is_network(0x01021994)); /* tmpfs */
	assert_false(np_target_fs_is_network(0xef53));	   /* ext4 */
	assert_false(np_target_fs_is_network(0x65735546)); /* FUSE: may be anything */
}

/* ---- openat2 missing or filtered ---- */

static void block_openat2(int num)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned int)num),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = NP_ARRAY_SIZE(code), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(77);
}

/* 0 when the steps give the same answers as openat2 does. */
static int try_steps(struct world *w, int num)
{
	int top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct np_err err;

	block_openat2(num);
	if (np_target_open_beneath(top_fd, "home/" NAME, O_RDONLY) < 0)
		return 1;
	if (np_target_open_beneath(top_fd, "alias/" NAME, O_RDONLY) != -ELOOP)
		return 2;
	if (np_target_open_beneath(top_fd, "home/../canary", O_RDONLY) != -EXDEV)
		return 3;
	if (np_target_open_beneath(top_fd, "/etc/passwd", O_RDONLY) != -EINVAL)
		return 4;
	if (np_target_open_beneath(top_fd, "home/sym", O_RDONLY) != -ELOOP)
		return 5;
	if (np_target_open_beneath(top_fd, "home/no", O_RDONLY) != -ENOENT)
		return 6;
	np_target_file_read(&w->file);
	if (w->file.status != NP_TARGET_PRESENT || !np_streq(w->file.content.data, "A=1\n"))
		return 7;
	if (unlink(w->conf) < 0 || symlink(w->canary, w->conf) < 0)
		return 8;
	np_target_file_read(&w->file);
	if (w->file.status != NP_TARGET_REFUSED)
		return 9;
	if (np_target_file_write(&w->file, "B", 1, NULL, &err) != -ELOOP)
		return 10;
	return 0;
}

static void test_without_openat2(void **state)
{
	static const int nums[] = {ENOSYS, EPERM};
	struct world *w = *state;
	char path[120];

	snprintf(path, sizeof(path), "%s/alias", top);
	assert_int_equal(symlink("home", path), 0);
	snprintf(path, sizeof(path), "%s/sym", w->home);
	assert_int_equal(symlink("../canary", path), 0);
	for (size_t i = 0; i < NP_ARRAY_SIZE(nums); i++) {
		int status;
		pid_t pid;

		unlink(w->conf);
		put(w->conf, "A=1\n", 0644, uid);
		pid = fork();
		if (pid == 0)
			_exit(try_steps(w, nums[i]));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
			fprintf(stderr, "SKIP: no seccomp filter can be set here\n");
			skip();
		}
		assert_int_equal(status, 0);
	}
}

/* ---- swapped while we write ---- */

/* The user's side: its file becomes a link to the canary, a hard link to one of its
 * own files outside, a directory, a FIFO, and a file again, as fast as it can. */
static void swap_forever(const struct world *w)
{
	char real[120], sym[120], hard[120], fifo[120], dir[120];

	if (is_root && (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(real, sizeof(real), "%s/real", w->home);
	snprintf(sym, sizeof(sym), "%s/sym", w->home);
	snprintf(hard, sizeof(hard), "%s/hard", w->home);
	snprintf(fifo, sizeof(fifo), "%s/fifo", w->home);
	snprintf(dir, sizeof(dir), "%s/dir", w->home);
	for (unsigned int i = 0;; i++) {
		char own[120];
		int fd;

		snprintf(own, sizeof(own), "%s/own/precious", top);
		switch (i % 6) {
		case 0:
			if (symlink(w->canary, sym) == 0)
				rename(sym, w->conf);
			break;
		case 1:
			if (link(own, hard) == 0)
				rename(hard, w->conf);
			unlink(hard);
			break;
		case 2:
			if (mkfifo(fifo, 0600) == 0)
				rename(fifo, w->conf);
			break;
		case 3:
			unlink(w->conf);
			mkdir(w->conf, 0700);
			break;
		case 4:
			rmdir(w->conf);
			if (symlink(own, sym) == 0)
				rename(sym, w->conf);
			break;
		default:
			fd = open(real, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
			if (fd >= 0)
				close(fd);
			rename(real, w->conf);
		}
	}
}

struct tally {
	int read_ok, read_refused, write_ok, write_refused;
};

static void hammer(struct world *w, int rounds, struct tally *tally)
{
	for (int i = 0; i < rounds; i++) {
		struct np_err err;
		int r;

		np_err_clear(&err);
		np_target_file_read(&w->file);
		assert_null(w->file.content.len ? strstr(w->file.content.data, "canary") : NULL);
		assert_null(w->file.content.len ? strstr(w->file.content.data, "precious") : NULL);
		tally->read_ok += w->file.status == NP_TARGET_PRESENT;
		tally->read_refused += w->file.status == NP_TARGET_REFUSED;
		r = np_target_file_write(&w->file, "A=1\n", i % 5 ? 4 : 0, NULL, &err);
		tally->write_ok += r == 0;
		if (r < 0) {
			assert_true(err.message[0]);
			tally->write_refused += np_streq(err.code, "file.refused");
		}
		if (i % 7 == 0) {
			r = np_target_file_write(&w->file, NULL, 0, NULL, &err);
			assert_true(r <= 0);
		}
	}
}

/* Rounds by a child that already is the user: no fork a round, so many more of them. */
static int hammer_as_user(struct world *w, int rounds)
{
	struct tally tally = {0};

	if (is_root && (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0))
		return 1;
	for (int i = 0; i < rounds; i++) {
		struct np_err err;
		int r;

		np_target_file_read(&w->file);
		if (w->file.content.len && (strstr(w->file.content.data, "canary") ||
					    strstr(w->file.content.data, "precious")))
			return 2;
		r = np_target_file_write(&w->file, i % 9 ? "A=1\n" : NULL, 4, NULL, &err);
		tally.write_ok += r == 0;
		tally.write_refused += r < 0;
	}
	return tally.write_ok && tally.write_refused ? 0 : 3;
}

static void test_swap(void **state)
{
	struct world *w = *state;
	char own[120], precious[140];
	struct tally tally = {0};
	int status, entries;
	pid_t swapper, pid;

	snprintf(own, sizeof(own), "%s/own", top);
	snprintf(precious, sizeof(precious), "%s/precious", own);
	assert_int_equal(mkdir(own, 0700), 0);
	assert_int_equal(chown(own, uid, gid), 0);
	put(precious, "precious\n", 0600, uid);
	entries = count_entries(top);
	swapper = fork();
	if (swapper == 0)
		swap_forever(w);
	hammer(w, is_root ? 1500 : 15000, &tally);
	pid = fork();
	if (pid == 0)
		_exit(hammer_as_user(w, 15000));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	kill(swapper, SIGKILL);
	waitpid(swapper, NULL, 0);
	assert_int_equal(status, 0);
	fprintf(stderr, "swap: read %d, refused %d; written %d, refused %d\n", tally.read_ok,
		tally.read_refused, tally.write_ok, tally.write_refused);
	assert_true(tally.write_ok > 0 && tally.write_refused > 0);
	/* nothing outside the home was touched or made */
	check_text(w->canary, CANARY_TEXT);
	check_text(precious, "precious\n");
	assert_int_equal(count_entries(top), entries);
	assert_int_equal(count_entries(own), 1);
}

/* ---- /etc and images ---- */

static void init_etc(struct world *w, const char *path)
{
	np_target_file_done(&w->file);
	assert_int_equal(np_target_file_init_etc(&w->file, path), 0);
}

static void test_etc(void **state)
{
	struct world *w = *state;
	char path[140];
	struct stat st;

	snprintf(path, sizeof(path), "%s/etc/nodeprep/ucx.env", top);
	init_etc(w, path);
	np_target_file_read(&w->file);
	assert_int_equal(w->file.status, NP_TARGET_ABSENT);
	write_ok(w, NULL);
	write_ok(w, "A=1\n");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0644);
	assert_int_equal(chmod(path, 0640), 0);
	write_ok(w, "A=2\n");
	np_target_file_read(&w->file);
	assert_string_equal(w->file.content.data, "A=2\n");
	assert_int_equal(w->file.attr.mode, 0640);
	assert_string_equal(w->file.reason, "");
	write_ok(w, NULL);
	assert_int_equal(access(path, F_OK), -1);
}

/* An admin's link is read, and not replaced. */
static void test_etc_link(void **state)
{
	struct world *w = *state;
	char path[140], shared[140], reason[200];
	struct np_err err;
	struct stat st;

	snprintf(path, sizeof(path), "%s/nccl.conf", top);
	snprintf(shared, sizeof(shared), "%s/shared.conf", top);
	assert_int_equal(symlink(shared, path), 0);
	init_etc(w, path);
	np_target_file_read(&w->file);
	assert_int_equal(w->file.status, NP_TARGET_REFUSED);
	put(shared, "A=1\n", 0644, geteuid());
	np_target_file_read(&w->file);
	assert_int_equal(w->file.status, NP_TARGET_PRESENT);
	assert_string_equal(w->file.content.data, "A=1\n");
	snprintf(reason, sizeof(reason), "a symbolic link to %s", shared);
	assert_string_equal(w->file.reason, reason);
	assert_int_equal(np_target_file_write(&w->file, "B=1\n", 4, NULL, &err), -ELOOP);
	assert_string_equal(err.code, "file.refused");
	assert_int_equal(np_target_file_write(&w->file, NULL, 0, NULL, &err), -ELOOP);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	check_text(shared, "A=1\n");
	unlink(path);
	assert_int_equal(mkdir(path, 0755), 0);
	np_target_file_read(&w->file);
	assert_int_equal(w->file.status, NP_TARGET_REFUSED);
	assert_string_equal(w->file.reason, "a directory");
}

static void init_image(struct world *w, const char *path)
{
	np_target_file_done(&w->file);
	assert_int_equal(np_target_file_init_image(&w->file, w->home, path), 0);
}

/* An image's own symlinks must not lead a write to the host. */
static void test_image(void **state)
{
	struct world *w = *state;
	char path[140], host[140];
	struct np_err err;

	init_image(w, "/etc/nodeprep/ucx.env");
	assert_true(np_starts_with(w->file.path, w->home));
	np_target_file_read(&w->file);
	assert_int_equal(w->file.status, NP_TARGET_ABSENT);
	write_ok(w, "A=1\n");
	np_target_file_read(&w->file);
	assert_string_equal(w->file.content.data, "A=1\n");
	init_image(w, "/nccl.conf");
	write_ok(w, "A=1\n");

	snprintf(host, sizeof(host), "%s/hostdir", top);
	assert_int_equal(mkdir(host, 0755), 0);
	snprintf(path, sizeof(path), "%s/etc/profile.d", w->home);
	assert_int_equal(symlink(host, path), 0);
	init_image(w, "/etc/profile.d/nodeprep-ucx.sh");
	np_target_file_read(&w->file);
	assert_int_equal(w->file.status, NP_TARGET_REFUSED);
	assert_int_equal(np_target_file_write(&w->file, "A=1\n", 4, NULL, &err), -ELOOP);
	assert_string_equal(err.code, "file.refused");
	snprintf(path, sizeof(path), "%s/etc/nccl.conf", w->home);
	assert_int_equal(symlink(w->canary, path), 0);
	init_image(w, "/etc/nccl.conf");
	np_target_file_read(&w->file);
	assert_int_equal(w->file.status, NP_TARGET_REFUSED);
	assert_int_equal(w->file.content.len, 0);
	assert_int_equal(np_target_file_write(&w->file, "A=1\n", 4, NULL, &err), -ELOOP);
	init_image(w, "/etc/../../canary");
	assert_true(np_target_file_write(&w->file, "A=1\n", 4, NULL, &err) < 0);
	assert_int_equal(count_entries(host), 0);
}

/* As an ordinary user another user's home cannot be entered, and that is said. */
static void test_not_root(void **state)
{
	struct world *w = *state;
	struct np_err err;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (is_root && (setresgid(OTHER_UID, OTHER_UID, OTHER_UID) < 0 ||
				setresuid(OTHER_UID, OTHER_UID, OTHER_UID) < 0))
			_exit(1);
		w->file.uid = MADE_UP_UID;
		np_target_file_read(&w->file);
		if (w->file.status != NP_TARGET_UNKNOWN || w->file.num != -EPERM)
			_exit(2);
		if (!np_streq(w->file.hint, "run nodeprep as root, or as that user"))
			_exit(3);
		if (np_target_file_write(&w->file, "A", 1, NULL, &err) != -EPERM)
			_exit(4);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- */

static int group_set_up(void **state)
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

static int group_tear_down(void **state)
{
	(void)state;
	umount2(top, MNT_DETACH);
	return rmdir(top);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_new_change_remove), TEST(test_bytes),	  TEST(test_restore_attr),
		TEST(test_leftovers),	      TEST(test_links_above), TEST(test_symlink),
		TEST(test_kinds),	      TEST(test_devices),	  TEST(test_hard_link),
		TEST(test_too_large),	      TEST(test_owner),	  TEST(test_unreadable_file),
		TEST(test_homes),	      TEST(test_foreign_home), TEST(test_closed_home),
		TEST(test_init_refuses),      TEST(test_network_fs),  TEST(test_without_openat2),
		TEST(test_swap),	      TEST(test_etc),	  TEST(test_etc_link),
		TEST(test_image),	      TEST(test_not_root),
	};

	return cmocka_run_group_tests(tests, group_set_up, group_tear_down);
}
