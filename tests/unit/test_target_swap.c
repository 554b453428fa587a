/* SPDX-License-Identifier: MIT */
/* A home whose owner swaps files while we work (C35); a kernel or filter without
 * openat2; an ordinary user where root is needed. */
#include "tests/unit/target_world.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* ---- openat2 missing or filtered ---- */

static void block_openat2(int num)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned int)num),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = NP_ARRAY_SIZE(code), .filter = code };

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
	static const int nums[] = { ENOSYS, EPERM };
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
		/* its own file may be read when the link count drops at the right moment, by
		 * its owner's rights; it must not be written, which is looked at in the end */
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
	struct tally tally = { 0 };

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
	struct tally tally = { 0 };
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
	hammer(w, is_root ? 100 : 2000, &tally);
	pid = fork();
	if (pid == 0)
		_exit(hammer_as_user(w, 3000));
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

/* It is written only as long as it is what it was when somebody decided on that. */
static void still_is(struct world *w, const char *path)
{
	struct np_buf content = { .data = (char *)"A=1\n", .len = 4 };
	struct np_target_before before = { .content = &content };

	w->file.before = &before;
	put(path, "B=2\n", 0644, uid);
	for (int i = 0; i < 4; i++) { /* there or away before, to be written or removed */
		struct np_err err = { 0 };

		before.present = i < 2;
		assert_int_equal(np_target_file_write(&w->file, i % 2 ? NULL : "C=3\n",
						      i % 2 ? 0 : 4, NULL, &err),
				 -ESTALE);
		assert_string_equal(err.code, "file.changed");
		check_text(path, "B=2\n");
	}
	content.data = (char *)"B=2\n";
	before.present = true;
	write_ok(w, "C=3\n");
	content.data = (char *)"C=3\n";
	write_ok(w, NULL);
	before.present = false;
	write_ok(w, "D=4\n");
}

static void test_still(void **state)
{
	struct world *w = *state;
	char path[140];

	still_is(w, w->conf);
	snprintf(path, sizeof(path), "%s/still.conf", top);
	np_target_file_done(&w->file);
	assert_int_equal(np_target_file_init_etc(&w->file, path), 0);
	still_is(w, path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_without_openat2),
		TEST(test_swap),
		TEST(test_not_root),
		TEST(test_still),
	};

	return cmocka_run_group_tests(tests, group_set_up, group_tear_down);
}
