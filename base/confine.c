/* SPDX-License-Identifier: MIT */
/* Filters of our own instead of libseccomp's: they are loaded at the end of every run, and
 * that library alone would take longer to load than a run with nothing to do has
 * (docs/decisions/0012). */
#include "base/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* ---- capabilities ---- */

int np_caps_keep(uint64_t mask)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	bool changed = false;

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	for (size_t i = 0; i < NP_ARRAY_SIZE(data); i++) {
		uint32_t keep = (uint32_t)(mask >> 32 * i);

		/* an ambient capability goes with its inheritable bit */
		changed |= data[i].permitted & ~keep || data[i].effective & ~keep ||
			   data[i].inheritable;
		data[i].permitted &= keep;
		data[i].effective &= keep;
		data[i].inheritable = 0;
	}
	return changed && syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

void np_no_new_privs(void)
{
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* ---- filters ---- */

#if defined(__x86_64__) && !defined(__ILP32__)
#define ARCH	  AUDIT_ARCH_X86_64
#define FIRST_X32 0x40000000u /* arch/x86/include/uapi/asm/unistd.h __X32_SYSCALL_BIT */
#elif defined(__aarch64__) && defined(__AARCH64EL__) && !defined(__ILP32__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef ARCH

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

#define REFUSE(num) (SECCOMP_RET_ERRNO | (uint32_t)(num))
#define NAMESPACES \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
	 CLONE_NEWPID | CLONE_NEWNET)

/* No child of ours has a use for these. */
static const int no_child[] = {
	/* the kernel itself */
	SYS_kexec_load, SYS_kexec_file_load, SYS_reboot, SYS_bpf, SYS_perf_event_open,
	SYS_userfaultfd, SYS_syslog, SYS_acct, SYS_swapon, SYS_swapoff, SYS_io_uring_setup,
	SYS_io_uring_enter, SYS_io_uring_register,
#ifdef SYS_iopl
	SYS_iopl, SYS_ioperm,
#endif
	/* what is mounted, and ways around paths */
	SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_open_tree, SYS_move_mount,
	SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_mount_setattr, SYS_quotactl,
	443, 467, /* quotactl_fd, open_tree_attr: asm-generic/unistd.h of newer kernels */
	SYS_open_by_handle_at,
	/* namespaces and names */
	SYS_unshare, SYS_setns, SYS_sethostname, SYS_setdomainname,
	/* clocks, keys */
	SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex, SYS_add_key,
	SYS_request_key, SYS_keyctl
};

static const int modules[] = { SYS_init_module, SYS_finit_module, SYS_delete_module };

/* Who reads and writes files in a home does this alone. */
static const int no_home[] = {
	/* programs, processes */
	SYS_execve,
	SYS_execveat,
	SYS_clone,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_pidfd_getfd,
	SYS_kcmp,
	/* sockets */
	SYS_socket,
	SYS_socketpair,
	SYS_connect,
	SYS_bind,
	SYS_listen,
	SYS_accept,
	SYS_accept4,
	/* identities, special files */
	SYS_setuid,
	SYS_setreuid,
	SYS_setresuid,
	SYS_setfsuid,
	SYS_setgid,
	SYS_setregid,
	SYS_setresgid,
	SYS_setfsgid,
	SYS_setgroups,
	SYS_mknodat,
#ifdef SYS_fork
	SYS_fork,
	SYS_vfork,
	SYS_mknod,
#endif
};

/* What is left to do when the result is known. */
static const int report[] = {
	/* say it, and end */
	SYS_write, SYS_writev, SYS_lseek, SYS_fstat, SYS_close, SYS_exit_group, SYS_exit,
	/* memory; mmap is looked at below */
	SYS_brk, SYS_munmap, SYS_mremap, SYS_madvise, SYS_getrandom,
	/* signals; tgkill is looked at below */
	SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_restart_syscall, SYS_getpid,
	SYS_gettid,
	/* locks of the C library, time */
	SYS_futex, SYS_sched_yield, SYS_clock_gettime
};

struct filter {
	struct sock_filter code[256];
	size_t n;
};

static void add(struct filter *f, struct sock_filter one)
{
	/* the lists are constants: tests/unit/test_base_confine.c loads each kind */
	if (f->n < NP_ARRAY_SIZE(f->code))
		f->code[f->n++] = one;
}

static void add_return(struct filter *f, uint32_t what)
{
	add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what));
}

static void load_number(struct filter *f)
{
	add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					    offsetof(struct seccomp_data, nr)));
}

/* Calls of this program's own kind alone: another has other numbers. The argument that is
 * loaded first is not used. It keeps the kernel from trying the filter with each of some 900
 * numbers in advance, to know which are always allowed (kernel/seccomp.c
 * seccomp_is_const_allow): that costs a quarter of a millisecond, which pays for a process
 * that lives long and makes many calls, and for none of ours. */
static void begin(struct filter *f)
{
	add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					    offsetof(struct seccomp_data, args)));
	add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					    offsetof(struct seccomp_data, arch)));
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
	add_return(f, REFUSE(EPERM));
	load_number(f);
#ifdef FIRST_X32
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FIRST_X32, 0, 1));
	add_return(f, REFUSE(ENOSYS));
#endif
}

static void on_calls(struct filter *f, const int *calls, size_t n, uint32_t what)
{
	for (size_t i = 0; i < n; i++) {
		add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i],
						    0, 1));
		add_return(f, what);
	}
}

/* One argument's lower half (both architectures are little-endian), compared by @test: BPF_JSET
 * (any of these bits) or BPF_JEQ. Where that comes out as @truth the call gets @what, else
 * the next rule. */
static void on_argument(struct filter *f, int call, int argument, uint16_t test, uint32_t value,
			bool truth, uint32_t what)
{
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 4));
	add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					    (uint32_t)offsetof(struct seccomp_data, args) +
						    8 * (uint32_t)argument));
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, value, truth ? 0 : 1,
					    truth ? 1 : 0));
	add_return(f, what);
	load_number(f);
}

static void fill_report(struct filter *f)
{
	on_calls(f, report, NP_ARRAY_SIZE(report), SECCOMP_RET_ALLOW);
	/* memory, but neither a file's nor to run */
	on_argument(f, SYS_mmap, 2, BPF_JSET, PROT_EXEC, true, REFUSE(EPERM));
	on_argument(f, SYS_mmap, 3, BPF_JSET, MAP_ANONYMOUS, true, SECCOMP_RET_ALLOW);
	on_argument(f, SYS_mprotect, 2, BPF_JSET, PROT_EXEC, false, SECCOMP_RET_ALLOW);
	/* fstat of newer C libraries: what is open, not a path */
	on_argument(f, SYS_newfstatat, 3, BPF_JSET, AT_EMPTY_PATH, true, SECCOMP_RET_ALLOW);
	/* abort, which is its own end alone */
	on_argument(f, SYS_tgkill, 0, BPF_JEQ, (uint32_t)getpid(), true, SECCOMP_RET_ALLOW);
	/* is it a terminal? */
	on_argument(f, SYS_ioctl, 1, BPF_JEQ, TCGETS, true, SECCOMP_RET_ALLOW);
	add_return(f, REFUSE(EPERM));
}

static void fill_child(struct filter *f, enum np_confine kind)
{
	static const int tracing[] = { SYS_ptrace }, clone3[] = { SYS_clone3 };

	on_calls(f, no_child, NP_ARRAY_SIZE(no_child), REFUSE(EPERM));
	on_calls(f, clone3, 1, REFUSE(ENOSYS));
	on_argument(f, SYS_clone, 0, BPF_JSET, NAMESPACES, true, REFUSE(EPERM));
	/* typing on a terminal that others read */
	on_argument(f, SYS_ioctl, 1, BPF_JEQ, TIOCSTI, true, REFUSE(EPERM));
	on_argument(f, SYS_ioctl, 1, BPF_JEQ, TIOCLINUX, true, REFUSE(EPERM));
	if (!SANITIZED)
		on_calls(f, tracing, 1, REFUSE(EPERM));
	if (kind != NP_CONFINE_LOADER)
		on_calls(f, modules, NP_ARRAY_SIZE(modules), REFUSE(EPERM));
	if (kind == NP_CONFINE_HOME)
		on_calls(f, no_home, NP_ARRAY_SIZE(no_home), REFUSE(EPERM));
	add_return(f, SECCOMP_RET_ALLOW);
}

int np_confine(enum np_confine kind)
{
	struct filter f = { .n = 0 };
	struct sock_fprog program;

	begin(&f);
	if (kind == NP_CONFINE_REPORT && !SANITIZED)
		fill_report(&f);
	else
		fill_child(&f, kind);
	np_no_new_privs();
	program = (struct sock_fprog){ .len = (unsigned short)f.n, .filter = f.code };
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

#else

int np_confine(enum np_confine kind)
{
	(void)kind;
	np_no_new_privs();
	return -EOPNOTSUPP;
}

#endif
