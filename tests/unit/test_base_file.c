/* SPDX-License-Identifier: MIT */
#include "facts_build.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"

static char dir_path[] = "/tmp/test_base_file.XXXXXX";
static int dir = -1;

static int set_up(void **state)
{
	(void)state;
	strcpy(dir_path + strlen(dir_path) - 6, "XXXXXX");
	assert_non_null(mkdtemp(dir_path));
	dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0;
}

static int tear_down(void **state)
{
	char command[100];

	(void)state;
	close(dir);
	snprintf(command, sizeof(command), "rm -rf %s", dir_path);
	return system(command);
}

static void put(const char *name, const char *text, mode_t mode)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void holds(const char *name, const char *text)
{
	np_auto_buf struct np_buf buf = { 0 };

	assert_int_equal(np_file_read_at(dir, name, 1 << 20, &buf), 0);
	assert_string_equal(buf.data, text);
}

static int count_entries(void)
{
	DIR *list = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	int n = 0;

	while (readdir(list))
		n++;
	closedir(list);
	return n - 2;
}

static struct np_file_attr attr_of(mode_t mode)
{
	return (struct np_file_attr){ .mode = mode, .uid = geteuid(), .gid = getegid() };
}

/* ---- reading ---- */

static void test_read(void **state)
{
	np_auto_buf struct np_buf buf = { 0 };
	char line[8], big[9001];

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	put("big", big, 0600);
	put("empty", "", 0600);
	np_buf_str(&buf, "old");
	assert_int_equal(np_file_read_at(dir, "absent", 10, &buf), -ENOENT);
	assert_int_equal(np_file_read_at(dir, "big", 8999, &buf), -EFBIG);
	assert_string_equal(buf.data, "old");
	assert_int_equal(np_file_read_at(dir, ".", 10, &buf), -EISDIR);
	assert_int_equal(np_file_read_at(dir, "big", 9000, &buf), 0);
	assert_int_equal(buf.len, 9000);
	assert_int_equal(np_file_read_at(dir, "empty", 0, &buf), 0);
	assert_int_equal(buf.len, 0);
	assert_non_null(buf.data);
	put("line", "4: ACTIVE \r\n", 0600);
	assert_int_equal(np_file_read_line_at(dir, "line", line, sizeof(line)), 7);
	assert_string_equal(line, "4: ACTI"); /* cut, and ended */
	put("line", " \t\n", 0600);
	assert_int_equal(np_file_read_line_at(dir, "line", line, sizeof(line)), 0);
	assert_string_equal(line, "");
	assert_int_equal(np_file_read_line_at(dir, "absent", line, sizeof(line)), -ENOENT);
}

static int note_entry(const char *name, unsigned char type, void *arg)
{
	assert_string_not_equal(name, ".");
	assert_string_not_equal(name, "..");
	if (strcmp(name, ".hidden") == 0)
		assert_int_equal(type, DT_DIR);
	return ++*(int *)arg == 250 ? -ENOSPC : 0;
}

static void test_each(void **state)
{
	int n = 0;

	(void)state;
	assert_int_equal(np_dir_each(dir, ".", note_entry, &n), 0);
	assert_int_equal(n, 0);
	/* more than one call of the kernel gives, and names that start with a dot */
	assert_int_equal(mkdirat(dir, ".hidden", 0755), 0);
	for (int i = 0; i < 200; i++) {
		char name[64];

		snprintf(name, sizeof(name), "a_name_of_some_length_for_a_full_buffer_%d", i);
		put(name, "", 0644);
	}
	assert_int_equal(np_dir_each(dir, ".", note_entry, &n), 0);
	assert_int_equal(n, 201);
	/* what the function says ends it */
	assert_int_equal(np_dir_each(dir, ".", note_entry, &n), -ENOSPC);
	assert_int_equal(n, 250);
	assert_int_equal(np_dir_each(dir, "none", note_entry, &n), -ENOENT);
	put("file", "", 0644);
	assert_int_equal(np_dir_each(dir, "file", note_entry, &n), -ENOTDIR);
}

static void test_write_attr(void **state)
{
	(void)state;
	put("attr", "datagram", 0600);
	assert_int_equal(np_file_write_attr_at(dir, "attr", "connected"), 0);
	holds("attr", "connected");
	assert_int_equal(np_file_write_attr_at(dir, "absent", "x"), -ENOENT);
	assert_int_equal(faccessat(dir, "absent", F_OK, 0), -1);
}

/* ---- replacing ---- */

static void test_replace(void **state)
{
	struct np_file_attr attr = attr_of(0640);
	struct np_err err;
	struct stat st, old;

	(void)state;
	np_err_clear(&err);
	assert_int_equal(np_file_replace_at(dir, "new", "hello", 5, &attr, &err), 0);
	holds("new", "hello");
	assert_int_equal(fstatat(dir, "new", &old, 0), 0);
	assert_int_equal(old.st_mode & 07777, 0640);
	attr.mode = 0604;
	assert_int_equal(np_file_replace_at(dir, "new", "bye", 3, &attr, &err), 0);
	holds("new", "bye");
	assert_int_equal(fstatat(dir, "new", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0604);
	assert_true(st.st_ino != old.st_ino); /* renamed over, not written into */
	assert_int_equal(np_file_replace_at(dir, "new", "", 0, &attr, &err), 0);
	holds("new", "");
	assert_int_equal(count_entries(), 1);
}

static void test_replace_owner(void **state)
{
	struct np_file_attr attr = { .mode = 0600, .uid = 12345, .gid = 23456 };
	struct np_err err;
	struct stat st;

	(void)state;
	if (geteuid() != 0) {
		print_message("SKIP: only root can give files away\n");
		skip();
	}
	np_err_clear(&err);
	assert_int_equal(np_file_replace_at(dir, "given", "x", 1, &attr, &err), 0);
	assert_int_equal(fstatat(dir, "given", &st, 0), 0);
	assert_int_equal(st.st_uid, 12345);
	assert_int_equal(st.st_gid, 23456);
	/* set-uid would be lost to chown if the mode came first */
	attr.mode = 04755;
	assert_int_equal(np_file_replace_at(dir, "given", "y", 1, &attr, &err), 0);
	assert_int_equal(fstatat(dir, "given", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 04755);
}

static void test_replace_keeps_xattr(void **state)
{
	struct np_file_attr attr = attr_of(0600);
	char path[100], value[10] = "";
	struct np_err err;

	(void)state;
	np_err_clear(&err);
	put("labelled", "a", 0600);
	snprintf(path, sizeof(path), "%s/labelled", dir_path);
	if (setxattr(path, "user.note", "kept", 5, 0) < 0 &&
	    (geteuid() != 0 || setxattr(path, "trusted.note", "kept", 5, 0) < 0)) {
		print_message("SKIP: no extended attributes on %s: %s\n", dir_path,
			      strerror(errno));
		skip();
	}
	assert_int_equal(np_file_replace_at(dir, "labelled", "b", 1, &attr, &err), 0);
	holds("labelled", "b");
	assert_true(getxattr(path, "user.note", value, sizeof(value)) == 5 ||
		    getxattr(path, "trusted.note", value, sizeof(value)) == 5);
	assert_string_equal(value, "kept");
}

/* A symlink at the name is replaced; what it points to is not touched. */
static void test_replace_symlink(void **state)
{
	struct np_file_attr attr = attr_of(0600);
	struct np_err err;
	struct stat st;

	(void)state;
	np_err_clear(&err);
	put("victim", "precious", 0600);
	assert_int_equal(symlinkat("victim", dir, "link"), 0);
	assert_int_equal(np_file_replace_at(dir, "link", "x", 1, &attr, &err), 0);
	holds("victim", "precious");
	assert_int_equal(fstatat(dir, "link", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(st.st_mode));
}

static void test_replace_refused(void **state)
{
	static const char *const names[] = { "", "a/b", "/etc/x", "../x" };
	struct np_file_attr attr = attr_of(0600);
	char long_name[260];
	struct np_err err;

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(names); i++) {
		np_err_clear(&err);
		assert_int_equal(np_file_replace_at(dir, names[i], "x", 1, &attr, &err), -EINVAL);
		assert_string_equal(err.code, "file.write");
	}
	memset(long_name, 'n', sizeof(long_name));
	for (size_t len = 240; len < sizeof(long_name); len++) {
		long_name[len] = '\0';
		np_err_clear(&err);
		assert_int_equal(np_file_replace_at(dir, long_name, "x", 1, &attr, &err),
				 -ENAMETOOLONG);
		long_name[len] = 'n';
	}
	np_err_clear(&err);
	assert_int_equal(mkdirat(dir, "folder", 0700), 0);
	assert_int_equal(np_file_replace_at(dir, "folder", "x", 1, &attr, &err), -EISDIR);
	assert_int_equal(np_file_replace_at(-1, "x", "x", 1, &attr, &err), -EBADF);
	assert_int_equal(count_entries(), 1); /* no temporary file */
}

/* The disk is full in the middle: the old file stays whole, nothing is left over. */
static void test_write_failure(void **state)
{
	static char data[100000];
	pid_t pid;
	int status;

	(void)state;
	memset(data, 'x', sizeof(data));
	put("kept", "old", 0600);
	pid = fork();
	if (pid == 0) {
		struct rlimit limit = { 5000, 5000 };
		struct np_file_attr attr = attr_of(0600);
		struct np_err err = { 0 };
		int r;

		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		r = np_file_replace_at(dir, "kept", data, sizeof(data), &attr, &err);
		_exit(r == -EFBIG && strcmp(err.code, "file.write") == 0 && err.message[0] ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	holds("kept", "old");
	assert_int_equal(count_entries(), 1);
}

/* A reader never sees anything but the old or the new content. */
static void test_atomic(void **state)
{
	static char a[20000], b[30000];
	struct np_file_attr attr = attr_of(0600);
	struct np_err err;
	int status, seen = 0;
	pid_t pid;

	(void)state;
	memset(a, 'a', sizeof(a));
	memset(b, 'b', sizeof(b));
	np_err_clear(&err);
	assert_int_equal(np_file_replace_at(dir, "flip", a, sizeof(a), &attr, &err), 0);
	pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 60; i++)
			if (np_file_replace_at(dir, "flip", i % 2 ? a : b,
					       i % 2 ? sizeof(a) : sizeof(b), &attr, NULL) < 0)
				_exit(1);
		_exit(0);
	}
	while (waitpid(pid, &status, WNOHANG) == 0) {
		np_auto_buf struct np_buf buf = { 0 };

		assert_int_equal(np_file_read_at(dir, "flip", 1 << 20, &buf), 0);
		assert_true(buf.len == sizeof(a) || buf.len == sizeof(b));
		assert_memory_equal(buf.data, buf.len == sizeof(a) ? a : b, buf.len);
		seen++;
	}
	assert_int_equal(status, 0);
	assert_true(seen > 0);
	assert_int_equal(count_entries(), 1);
}

/* ---- directories, sweeping ---- */

static void test_mkdirs(void **state)
{
	char path[120];
	struct np_err err;
	struct stat st;

	(void)state;
	np_err_clear(&err);
	snprintf(path, sizeof(path), "%s/a/b//c", dir_path);
	assert_int_equal(np_file_mkdirs(path, &err), 0);
	assert_int_equal(np_file_mkdirs(path, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(np_file_mkdirs("/", &err), 0);
	assert_int_equal(np_file_mkdirs("/tmp/", &err), 0);
	put("file", "x", 0600);
	snprintf(path, sizeof(path), "%s/file/b", dir_path);
	assert_int_equal(np_file_mkdirs(path, &err), -ENOTDIR);
	assert_string_equal(err.code, "file.write");
	snprintf(path, sizeof(path), "%s/file", dir_path);
	np_err_clear(&err);
	assert_int_equal(np_file_mkdirs(path, &err), -ENOTDIR);
	assert_int_equal(np_file_mkdirs(path, NULL), -ENOTDIR);
}

static void test_sweep(void **state)
{
	static const char *const kept[] = {
		".conf.nodeprep-abc",	  ".conf.nodeprep-abcdefg", "conf.nodeprep-abcdef",
		".other.nodeprep-abcdef", ".conf.nodeprep_abcdef",  ".xconf.nodeprep-abcdef",
		".conf.nodeprep-dirdir",  ".conf.nodeprep-symlnk",  "conf",
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(kept); i++) {
		if (strstr(kept[i], "dirdir"))
			assert_int_equal(mkdirat(dir, kept[i], 0700), 0);
		else if (strstr(kept[i], "symlnk"))
			assert_int_equal(symlinkat("conf", dir, kept[i]), 0);
		else
			put(kept[i], "x", 0600);
	}
	put(".conf.nodeprep-abc123", "x", 0600);
	put(".conf.nodeprep-zzzzzz", "x", 0600);
	if (geteuid() == 0) { /* where others can make one, theirs is not ours to remove */
		put(".conf.nodeprep-others", "x", 0600);
		assert_int_equal(fchownat(dir, ".conf.nodeprep-others", 12345, 0, 0), 0);
		assert_int_equal(fchmod(dir, 0777), 0);
	}
	assert_int_equal(np_file_sweep_temp(dir, "conf"), 2);
	assert_int_equal(np_file_sweep_temp(dir, "conf"), 0);
	for (size_t i = 0; i < NP_ARRAY_SIZE(kept); i++)
		assert_int_equal(faccessat(dir, kept[i], F_OK, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(count_entries(), NP_ARRAY_SIZE(kept) + (geteuid() == 0));
	assert_int_equal(np_file_sweep_temp(-1, "conf"), 0);
	/* killed after it had given the file to its owner */
	assert_int_equal(fchmod(dir, 0755), 0);
	assert_int_equal(np_file_sweep_temp(dir, "conf"), geteuid() == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_each, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_write_attr, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_replace, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_replace_owner, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_replace_keeps_xattr, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_replace_symlink, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_replace_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_write_failure, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_atomic, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_mkdirs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_sweep, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
