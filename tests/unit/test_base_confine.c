/* SPDX-License-Identifier: MIT */
/* What a confined process can still do, and what it cannot. */
#include "facts_build.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/confine.h"

/* Runs @fn in a child that is confined as @kind; its code is 0 where all was as expected,
 * else the number of the line that was not. */
static int in_child(enum np_confine kind, int (*fn)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(np_confine(kind) == 0 ? fn() : 255);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#define EXPECT(what) \
	do { \
		errno = 0; \
		if (!(what)) \
			return __LINE__ % 250 + 1; \
	} while (0)
#define REFUSED(call) EXPECT((call) < 0 && errno == EPERM)

static void *nothing(void *arg)
{
	return arg;
}

/* The calls get arguments that are faulty: a filter that lets them through shows as
 * another errno, and does no harm. */
static int child_calls(void)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	pthread_t thread;
	int status;
	pid_t pid;

	REFUSED(syscall(SYS_mount, NULL, NULL, NULL, 0, NULL));
	REFUSED(syscall(SYS_unshare, 0));
	REFUSED(syscall(SYS_setns, -1, 0));
	REFUSED(syscall(SYS_chroot, NULL));
	REFUSED(syscall(SYS_bpf, -1, NULL, 0));
	REFUSED(syscall(SYS_perf_event_open, NULL, 0, 0, -1, 0));
	REFUSED(syscall(SYS_userfaultfd, -1));
	REFUSED(syscall(SYS_keyctl, -1, 0, 0, 0, 0));
	REFUSED(syscall(SYS_add_key, NULL, NULL, NULL, 0, 0));
	REFUSED(syscall(SYS_open_by_handle_at, -1, NULL, 0));
	REFUSED(syscall(SYS_io_uring_setup, 0, NULL));
	REFUSED(syscall(SYS_clock_settime, -1, NULL));
	REFUSED(syscall(SYS_reboot, 0, 0, 0, NULL));
	REFUSED(syscall(SYS_kexec_load, 0, -1, NULL, -1));
	REFUSED(syscall(443, -1, 0, 0, NULL));	   /* quotactl_fd */
	REFUSED(syscall(467, -1, "", 0, NULL, 0)); /* open_tree_attr */
	REFUSED(ioctl(-1, TIOCSTI, ""));
	REFUSED(ioctl(-1, TIOCLINUX, ""));
	/* the kernel looks at 32 bits of it */
	REFUSED(syscall(SYS_ioctl, -1, TIOCSTI | 1UL << 32, ""));
	EXPECT(ioctl(-1, TIOCGWINSZ, "") < 0 && errno == EBADF);
	REFUSED(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL));
#ifndef __SANITIZE_ADDRESS__
	REFUSED(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
#endif
	EXPECT(syscall(SYS_clone3, &args, sizeof(args)) < 0 && errno == ENOSYS);
	/* what libraries need */
	EXPECT(pthread_create(&thread, NULL, nothing, NULL) == 0);
	EXPECT(pthread_join(thread, NULL) == 0);
	pid = fork();
	if (pid == 0)
		_exit(7);
	EXPECT(pid > 0 && waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
	EXPECT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	EXPECT(prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2);
	return 0;
}

static int no_modules(void)
{
	REFUSED(syscall(SYS_finit_module, -1, "", 0));
	REFUSED(syscall(SYS_delete_module, NULL, 0));
	return 0;
}

static int without_filter;

static int some_modules(void)
{
	/* without the capability, or in a kernel that loads none, it fails in another way */
	EXPECT(syscall(SYS_finit_module, -1, "", 0) < 0 && errno == without_filter);
	REFUSED(syscall(SYS_mount, NULL, NULL, NULL, 0, NULL));
	return 0;
}

static int a_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	EXPECT(fd >= 0);
	return 0;
}

static int home_calls(void)
{
	char name[] = "/tmp/confine-XXXXXX", other[sizeof(name) + 1];
	int fd = mkstemp(name);

	/* all that the writer of a file does */
	EXPECT(fd >= 0 && write(fd, "x", 1) == 1 && fchmod(fd, 0600) == 0 && fsync(fd) == 0);
	snprintf(other, sizeof(other), "%s+", name);
	EXPECT(rename(name, other) == 0 && unlink(other) == 0);
	REFUSED(socket(AF_UNIX, SOCK_STREAM, 0));
	REFUSED(syscall(SYS_execve, NULL, NULL, NULL));
	REFUSED(fork());
	REFUSED(syscall(SYS_accept4, -1, NULL, NULL, 0));
	REFUSED(syscall(SYS_setresuid, -1, -1, -1));
	REFUSED(syscall(SYS_setreuid, -1, -1));
	REFUSED(syscall(SYS_setfsuid, -1));
	REFUSED(syscall(SYS_setresgid, -1, -1, -1));
	REFUSED(syscall(SYS_setregid, -1, -1));
	REFUSED(syscall(SYS_setfsgid, -1));
	REFUSED(syscall(SYS_mknodat, -1, NULL, 0, 0));
	REFUSED(syscall(SYS_mount, NULL, NULL, NULL, 0, NULL));
	return 0;
}

static void test_child(void **state)
{
	(void)state;
	assert_int_equal(in_child(NP_CONFINE_CHILD, child_calls), 0);
	assert_int_equal(in_child(NP_CONFINE_CHILD, no_modules), 0);
	assert_int_equal(in_child(NP_CONFINE_CHILD, a_socket), 0);
}

static void test_loader(void **state)
{
	(void)state;
	assert_int_equal(in_child(NP_CONFINE_LOADER, child_calls), 0);
	assert_true(syscall(SYS_finit_module, -1, "", 0) < 0);
	without_filter = errno;
	assert_int_equal(in_child(NP_CONFINE_LOADER, some_modules), 0);
}

static void test_home(void **state)
{
	(void)state;
	assert_int_equal(in_child(NP_CONFINE_HOME, home_calls), 0);
	assert_int_equal(in_child(NP_CONFINE_HOME, no_modules), 0);
}

#ifdef __x86_64__

/* Calls by the numbers of another kind of program: a list of ours would read them wrongly. */
static long call_32(long number)
{
	long r;

	__asm__ volatile("int $0x80" : "=a"(r) : "a"(number) : "r8", "r9", "r10", "r11", "memory");
	return r;
}

static int kind_x32(void)
{
	EXPECT(syscall(0x40000000 | SYS_mount, NULL, NULL, NULL, 0, NULL) < 0 && errno == ENOSYS);
	return 0;
}

static int kind_32(void)
{
	EXPECT(call_32(21) == -EPERM); /* mount */
	EXPECT(call_32(20) == -EPERM); /* getpid, which no list has */
	return 0;
}

/* A kernel without them sends SIGSEGV, which must end the child: the test framework's own
 * way with it is to go on, twice. */
static bool kernel_has_32(void)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		_exit(call_32(20) == getpid() ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV));
	return status == 0;
}

static void test_other_kinds(void **state)
{
	static const enum np_confine kinds[] = { NP_CONFINE_CHILD, NP_CONFINE_LOADER,
						 NP_CONFINE_HOME };
	bool has_32 = kernel_has_32();

	(void)state;
	if (!has_32)
		print_message("this kernel runs no 32-bit calls: none is there to be refused\n");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		assert_int_equal(in_child(kinds[i], kind_x32), 0);
		if (has_32)
			assert_int_equal(in_child(kinds[i], kind_32), 0);
	}
}

#endif

/* Its strict half is seen in tests/cli/test_security.py: these programs are sanitized. */
static void test_report(void **state)
{
	(void)state;
	assert_int_equal(in_child(NP_CONFINE_REPORT, no_modules), 0);
}

/* ---- capabilities ---- */

static void get(struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	assert_int_equal(syscall(SYS_capget, &header, data), 0);
}

static void keep_in_child(uint64_t mask)
{
	struct __user_cap_data_struct before[2], after[2];
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		bool right = true;

		get(before);
		right &= np_caps_keep(mask) == 0;
		get(after);
		for (int i = 0; i < 2; i++)
			right &= after[i].effective ==
					 (before[i].effective & (uint32_t)(mask >> 32 * i)) &&
				 after[i].permitted ==
					 (before[i].permitted & (uint32_t)(mask >> 32 * i)) &&
				 after[i].inheritable == 0;
		/* none comes back */
		right &= np_caps_keep(UINT64_MAX) == 0;
		get(before);
		right &= memcmp(before, after, sizeof(after)) == 0;
		_exit(right ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_capabilities(void **state)
{
	(void)state;
	keep_in_child(0);
	keep_in_child(UINT64_MAX);
	keep_in_child(NP_CAP(NET_ADMIN));
	keep_in_child(NP_CAP(KILL) | NP_CAP(SYSLOG)); /* one of each word */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_child),	     cmocka_unit_test(test_loader),
		cmocka_unit_test(test_home),	     cmocka_unit_test(test_report),
		cmocka_unit_test(test_capabilities),
#ifdef __x86_64__
		cmocka_unit_test(test_other_kinds),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
