/* SPDX-License-Identifier: MIT */
/*
 * 100,000 swaps (C35): while one process writes ~/.nccl.conf as root does, through a child
 * with the owner's identity, and another does so as the owner without a pause, the owner
 * exchanges the file and the home itself for links, FIFOs and folders, each in one step
 * (RENAME_EXCHANGE), so that there is no moment without something at the name. What lies
 * outside is open to everybody, so that no permission protects it: only the care of the
 * writer does.
 */
#include "tests/unit/target_world.h"

#include <dirent.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/child.h"

#define SWAPS	     100000
#define ROOT_ROUNDS  300
#define OWNER_ROUNDS 10000
#define PRECIOUS     "precious\n"
#define SECRET	     "secret\n"
#define TEXT	     "A=1\n"

/* What the processes tell each other. */
struct shared {
	volatile bool stop;
	volatile unsigned long swaps, home_swaps, owner_rounds;
};

static struct shared *shared;

/* ---- the place: top/{outside,drop,other} are others', top/area and top/own the user's ---- */

struct place {
	char area[80], home[100], canary[100], precious[100], secret[100];
	struct np_target_file file;
};

static void make_dir(const char *name, mode_t mode, uid_t owner)
{
	char path[120];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chown(path, owner, owner), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void put_in(const char *name, const char *text, mode_t mode, uid_t owner)
{
	char path[120];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	put(path, text, mode, owner);
}

static void make_place(struct place *p)
{
	memset(p, 0, sizeof(*p));
	make_dir("outside", 0777, 0);
	make_dir("drop", 01777, 0);
	make_dir("other", 0777, OTHER_UID);
	make_dir("own", 0755, uid);
	make_dir("area", 0755, uid);
	make_dir("area/home", 0755, uid);
	make_dir("area/stash", 0755, uid);
	/* also one that already has the name that is written */
	put_in("outside/canary", CANARY_TEXT, 0666, 0);
	put_in("outside/" NAME, CANARY_TEXT, 0666, 0);
	put_in("other/" NAME, CANARY_TEXT, 0666, OTHER_UID);
	put_in("own/precious", PRECIOUS, 0644, uid);
	put_in("own/secret", SECRET, 0644, uid);
	snprintf(p->area, sizeof(p->area), "%s/area", top);
	snprintf(p->home, sizeof(p->home), "%s/area/home", top);
	snprintf(p->canary, sizeof(p->canary), "%s/outside/canary", top);
	snprintf(p->precious, sizeof(p->precious), "%s/own/precious", top);
	snprintf(p->secret, sizeof(p->secret), "%s/own/secret", top);
	assert_int_equal(np_target_file_init_home(&p->file, "nobody-here", uid, gid, p->home, NAME),
			 0);
}

/* Everything outside as text, contents included. A folder's time of change tells of what
 * came and went again. Links that the owner adds to its own file change no line. */
static void describe(const char *name, struct np_buf *out)
{
	_cleanup_closedir_ DIR *dir = NULL;
	char path[400];
	struct dirent *entry;
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", top, name);
	assert_int_equal(lstat(path, &st), 0);
	np_buf_printf(out, "%s %lu %o %u:%u %lld %lld.%09ld\n", name, (unsigned long)st.st_ino,
		      st.st_mode, st.st_uid, st.st_gid, (long long)st.st_size,
		      (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	if (S_ISREG(st.st_mode)) {
		np_auto_buf struct np_buf text = { 0 };

		assert_int_equal(np_file_read_at(AT_FDCWD, path, 1 << 20, &text), 0);
		np_buf_add(out, text.data, text.len);
	}
	dir = S_ISDIR(st.st_mode) ? opendir(path) : NULL;
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", name, entry->d_name);
		if (!np_streq(entry->d_name, ".") && !np_streq(entry->d_name, ".."))
			describe(path, out);
	}
}

static void describe_outside(struct np_buf *out)
{
	static const char *const names[] = { "outside", "drop", "other", "own" };

	for (size_t i = 0; i < NP_ARRAY_SIZE(names); i++)
		describe(names[i], out);
	np_buf_str(out, "");
}

/* ---- the owner's side ---- */

static void become_owner(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		_exit(9);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void remove_at(int dirfd, const char *name)
{
	if (unlinkat(dirfd, name, 0) < 0)
		unlinkat(dirfd, name, AT_REMOVEDIR);
}

static int make_file(int dirfd, const char *name, const char *text)
{
	_cleanup_close_ int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	return fd < 0 || write(fd, text, strlen(text)) < 0 ? -1 : 0;
}

static int make_bait(const struct place *p, unsigned long kind, int dirfd, const char *name)
{
	switch (kind % 7) {
	case 0:
		return symlinkat(p->canary, dirfd, name);
	case 1:
		return linkat(AT_FDCWD, p->precious, dirfd, name, 0);
	case 2:
		return mkfifoat(dirfd, name, 0666);
	case 3:
		return mkdirat(dirfd, name, 0755);
	case 4:
		return symlinkat(p->secret, dirfd, name);
	default: /* more often than others: the way on which the writer goes on */
		return make_file(dirfd, name, "B=2\n");
	}
}

static int make_false_home(unsigned long kind, int dirfd, const char *name)
{
	static const char *const others[] = { "outside", "drop", "other" };
	char path[120];

	switch (kind % 5) {
	case 3:
		return mkfifoat(dirfd, name, 0666);
	case 4:
		return make_file(dirfd, name, "C=3\n");
	default:
		snprintf(path, sizeof(path), "%s/%s", top, others[kind % 5]);
		return symlinkat(path, dirfd, name);
	}
}

/* By descriptors, so that it finds the real home wherever that stands at the moment. */
static void swap_until_told(const struct place *p)
{
	int area = open(p->area, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int home = open(p->home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	become_owner();
	if (area < 0 || home < 0)
		_exit(1);
	for (unsigned long i = 0; !shared->stop; i++) {
		remove_at(area, "stash/x");
		if (make_bait(p, i, area, "stash/x") < 0)
			_exit(2);
		if (renameat2(area, "stash/x", home, NAME, RENAME_EXCHANGE) == 0)
			shared->swaps++;
		else if (errno != ENOENT || renameat(area, "stash/x", home, NAME) < 0)
			_exit(3);
		if (i % 3)
			continue;
		if (make_false_home(i / 3, area, "stash/home") < 0 ||
		    renameat2(area, "stash/home", area, "home", RENAME_EXCHANGE) < 0)
			_exit(4);
		/* let somebody look at it, for longer or shorter */
		for (unsigned long n = i % 64; n > 0; n--)
			faccessat(area, "home", F_OK, AT_SYMLINK_NOFOLLOW);
		if (renameat2(area, "stash/home", area, "home", RENAME_EXCHANGE) < 0 ||
		    unlinkat(area, "stash/home", 0) < 0)
			_exit(5);
		shared->home_swaps += 2;
	}
	remove_at(area, "stash/x");
	_exit(0);
}

/* ---- the writers ---- */

struct tally {
	unsigned long read, written, refused;
};

/* One look and one write, or removal. False: it read what lies outside. */
static bool go_round(struct np_target_file *f, unsigned long i, struct tally *tally)
{
	struct np_err err;
	int r;

	np_err_clear(&err);
	np_target_file_read(f);
	/* the file that has a hard link here may be read, by the one whose it is, when the link
	 * comes and goes at the right moments; what symbolic links lead to may never be */
	if (f->content.len &&
	    (strstr(f->content.data, "canary") || strstr(f->content.data, "secret")))
		return false;
	tally->read += f->status == NP_TARGET_PRESENT;
	r = np_target_file_write(f, i % 8 ? TEXT : NULL, i % 8 ? strlen(TEXT) : 0, NULL, &err);
	tally->written += r == 0;
	tally->refused += r < 0;
	return true;
}

static void write_as_owner(struct place *p)
{
	struct tally tally = { 0 };

	become_owner();
	for (unsigned long i = 0; !shared->stop; i++) {
		if (!go_round(&p->file, i, &tally))
			_exit(1);
		shared->owner_rounds++;
	}
	np_target_file_done(&p->file);
	_exit(tally.written && tally.refused && tally.read ? 0 : 2);
}

static pid_t start(void (*fn)(struct place *), struct place *p)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		fn(p);
	return pid;
}

static void start_swapper(struct place *p)
{
	swap_until_told(p);
}

static void check_child(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static bool is_alive(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == 0;
}

static void check_no_temporary_files(const char *name)
{
	char path[200];
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;

	snprintf(path, sizeof(path), "%s/%s", top, name);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir)))
		assert_null(strstr(entry->d_name, ".nodeprep-"));
}

static void test_race(void **state)
{
	np_auto_buf struct np_buf before = { 0 };
	np_auto_buf struct np_buf after = { 0 };
	struct tally tally = { 0 };
	struct place p;
	pid_t swapper, owner;
	bool clean = true;
	unsigned long rounds = 0;

	(void)state;
	if (!is_root) {
		print_message("SKIP: only root can have a user and files of others\n");
		skip();
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	make_place(&p);
	describe_outside(&before);
	swapper = start(start_swapper, &p);
	owner = start(write_as_owner, &p);
	while (clean && (shared->swaps < SWAPS || rounds < ROOT_ROUNDS ||
			 shared->owner_rounds < OWNER_ROUNDS)) {
		clean = go_round(&p.file, rounds++, &tally) && is_alive(swapper) && is_alive(owner);
	}
	shared->stop = true;
	check_child(swapper);
	check_child(owner);
	assert_true(clean);
	fprintf(stderr,
		"race: %lu swaps of the file, %lu of the home; rounds: %lu by root "
		"(%lu written, %lu refused), %lu by the owner\n",
		shared->swaps, shared->home_swaps, rounds, tally.written, tally.refused,
		shared->owner_rounds);
	assert_true(shared->swaps >= SWAPS && shared->home_swaps > 0);
	assert_true(tally.read > 0 && tally.written > 0 && tally.refused > 0);
	describe_outside(&after);
	assert_string_equal(after.data, before.data);
	check_no_temporary_files("area");
	check_no_temporary_files("area/home");
	check_no_temporary_files("area/stash");
	np_target_file_done(&p.file);
	munmap(shared, sizeof(*shared));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_race) };

	return cmocka_run_group_tests(tests, group_set_up, group_tear_down);
}
