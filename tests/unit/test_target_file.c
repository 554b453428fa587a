/* SPDX-License-Identifier: MIT */
/* Files in hostile homes (C35), and in /etc and images. */
#include "tests/unit/target_world.h"

#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

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
	struct np_file_attr attr = { .mode = 0640, .uid = uid, .gid = gid };
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
	struct sockaddr_un address = { .sun_family = AF_UNIX };
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
	static const char *const names[] = { "", ".", "..", "a/b", "/etc/shadow" };
	struct np_target_file f;

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(names); i++)
		assert_int_equal(np_target_file_init_home(&f, "u", 1, 1, "/home/u", names[i]),
				 -EINVAL);
	/* cut, it would be the name of another user */
	assert_int_equal(np_target_file_init_home(&f, "a123456789012345678901234567890123", 1, 1,
						  "/home/u", NAME),
			 -EINVAL);
	assert_int_equal(np_target_file_init_etc(&f, "etc/x"), -EINVAL);
	assert_int_equal(np_target_file_init_etc(&f, "/etc/"), -EINVAL);
	assert_int_equal(np_target_file_init_image(&f, "img", "/etc/x"), -EINVAL);
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

/* ---- */

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_new_change_remove),
		TEST(test_bytes),
		TEST(test_restore_attr),
		TEST(test_leftovers),
		TEST(test_links_above),
		TEST(test_symlink),
		TEST(test_kinds),
		TEST(test_devices),
		TEST(test_hard_link),
		TEST(test_too_large),
		TEST(test_owner),
		TEST(test_unreadable_file),
		TEST(test_homes),
		TEST(test_foreign_home),
		TEST(test_closed_home),
		TEST(test_init_refuses),
		TEST(test_etc),
		TEST(test_etc_link),
		TEST(test_image),
	};

	return cmocka_run_group_tests(tests, group_set_up, group_tear_down);
}
