/* SPDX-License-Identifier: MIT */
/* fault WHAT N LIST COMMAND...: runs a command and, at its Nth changing system call, lets
 * something go wrong. The calls of all its processes are counted together, as they are made.
 *
 *   none            nothing; N is not looked at
 *   kill            SIGKILL to every process of it, before the call
 *   torn            the same after half of it, where it is a write
 *   kill-one        SIGKILL to the process that makes the call alone
 *   ERRNO           the call is not made and fails: ENOSPC, EROFS, EIO
 *   ERRNO+          so do those after it, as on a disk that stays full (ENOSPC: what needs no
 *                   space works)
 *
 * LIST gets a line for each call: number, name, what it is about, and its result (as the
 * command saw it). The exit code is the command's, or 128 + the signal that ended it; 125
 * when it could not be traced. x86-64 alone. */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_TASKS 256
#define OPTIONS \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | \
	 PTRACE_O_TRACEEXEC)

enum action { ACT_NONE, ACT_KILL, ACT_TORN, ACT_KILL_ONE, ACT_ERROR };

/* A call is about an open file (FD), a path that is its first or second word, or both. */
enum about { ABOUT_FD, ABOUT_PATH, ABOUT_AT, ABOUT_OPEN, ABOUT_OPENAT, ABOUT_WRITE, ABOUT_NETLINK };

static const struct call {
	long nr;
	const char *name;
	enum about about;
	bool needs_space;
} calls[] = {
	{ SYS_open, "open", ABOUT_OPEN, true },
	{ SYS_openat, "openat", ABOUT_OPENAT, true },
	{ SYS_write, "write", ABOUT_WRITE, true },
	{ SYS_pwrite64, "pwrite64", ABOUT_WRITE, true },
	{ SYS_writev, "writev", ABOUT_WRITE, true },
	{ SYS_fsync, "fsync", ABOUT_FD, true },
	{ SYS_fdatasync, "fdatasync", ABOUT_FD, true },
	{ SYS_ftruncate, "ftruncate", ABOUT_FD, true },
	{ SYS_fchmod, "fchmod", ABOUT_FD, false },
	{ SYS_fchown, "fchown", ABOUT_FD, false },
	{ SYS_fsetxattr, "fsetxattr", ABOUT_FD, true },
	{ SYS_fremovexattr, "fremovexattr", ABOUT_FD, false },
	{ SYS_chmod, "chmod", ABOUT_PATH, false },
	{ SYS_chown, "chown", ABOUT_PATH, false },
	{ SYS_lchown, "lchown", ABOUT_PATH, false },
	{ SYS_setxattr, "setxattr", ABOUT_PATH, true },
	{ SYS_lsetxattr, "lsetxattr", ABOUT_PATH, true },
	{ SYS_mkdir, "mkdir", ABOUT_PATH, true },
	{ SYS_rmdir, "rmdir", ABOUT_PATH, false },
	{ SYS_unlink, "unlink", ABOUT_PATH, false },
	{ SYS_rename, "rename", ABOUT_PATH, true },
	{ SYS_link, "link", ABOUT_PATH, true },
	{ SYS_symlink, "symlink", ABOUT_PATH, true },
	{ SYS_mknod, "mknod", ABOUT_PATH, true },
	{ SYS_fchmodat, "fchmodat", ABOUT_AT, false },
	{ SYS_fchownat, "fchownat", ABOUT_AT, false },
	{ SYS_utimensat, "utimensat", ABOUT_AT, false },
	{ SYS_mkdirat, "mkdirat", ABOUT_AT, true },
	{ SYS_unlinkat, "unlinkat", ABOUT_AT, false },
	{ SYS_renameat, "renameat", ABOUT_AT, true },
	{ SYS_renameat2, "renameat2", ABOUT_AT, true },
	{ SYS_linkat, "linkat", ABOUT_AT, true },
	{ SYS_symlinkat, "symlinkat", ABOUT_PATH, true },
	{ SYS_mknodat, "mknodat", ABOUT_AT, true },
	{ SYS_sendmsg, "sendmsg", ABOUT_NETLINK, false },
	{ SYS_finit_module, "finit_module", ABOUT_FD, false },
	{ SYS_delete_module, "delete_module", ABOUT_PATH, false },
};

struct task {
	pid_t pid;
	const struct call *call;
	bool failed; /* this call is made to fail */
	bool torn;
	long number;
	char what[256];
};

static struct task tasks[MAX_TASKS];
static enum action action;
static int error_num;
static bool stays;
static long point, counted;
static FILE *list;

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("fault: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(125);
}

static struct task *task_of(pid_t pid)
{
	struct task *spare = NULL;

	for (size_t i = 0; i < MAX_TASKS; i++) {
		if (tasks[i].pid == pid)
			return &tasks[i];
		if (!tasks[i].pid && !spare)
			spare = &tasks[i];
	}
	if (!spare)
		die("more than %d processes", MAX_TASKS);
	*spare = (struct task){ .pid = pid };
	return spare;
}

static bool read_memory(pid_t pid, unsigned long long at, void *out, size_t size)
{
	struct iovec here = { out, size }, there = { (void *)at, size };

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* A string of another process, a byte at a time: it may end at the end of a page. */
static void read_text(pid_t pid, unsigned long long at, char *out, size_t size)
{
	size_t i = 0;

	while (i + 1 < size && read_memory(pid, at + i, out + i, 1) && out[i])
		i++;
	out[i] = '\0';
}

static void name_of_fd(pid_t pid, int fd, char *out, size_t size)
{
	char path[64];
	ssize_t len;

	snprintf(path, sizeof(path), fd == AT_FDCWD ? "/proc/%d/cwd" : "/proc/%d/fd/%d", pid, fd);
	len = readlink(path, out, size - 1);
	out[len > 0 ? len : 0] = '\0';
}

static void name_at(pid_t pid, int fd, unsigned long long path, char *out, size_t size)
{
	char folder[128], name[128];

	read_text(pid, path, name, sizeof(name));
	folder[0] = '\0';
	if (name[0] != '/')
		name_of_fd(pid, fd, folder, sizeof(folder));
	snprintf(out, size, "%s%s%s", folder, folder[0] ? "/" : "", name);
}

static bool is_file(const char *path)
{
	return path[0] == '/' && strncmp(path, "/memfd:", 7) != 0 &&
	       strcmp(path, "/dev/null") != 0 && strncmp(path, "/proc/", 6) != 0;
}

/* Only what the kernel is told to change, in the family of addresses and links. */
static bool is_netlink_change(pid_t pid, unsigned long long at, char *what, size_t size)
{
	struct msghdr msg;
	struct iovec iov;
	struct nlmsghdr nl;
	struct sockaddr_nl to;

	if (!read_memory(pid, at, &msg, sizeof(msg)) || msg.msg_iovlen < 1 || !msg.msg_name ||
	    !read_memory(pid, (unsigned long long)msg.msg_name, &to, sizeof(to)) ||
	    to.nl_family != AF_NETLINK ||
	    !read_memory(pid, (unsigned long long)msg.msg_iov, &iov, sizeof(iov)) ||
	    iov.iov_len < sizeof(nl) ||
	    !read_memory(pid, (unsigned long long)iov.iov_base, &nl, sizeof(nl)))
		return false;
	/* the kind is in the last two bits: new, delete, get, set; another family of netlink has
	 * the same numbers for its dumps */
	if (nl.nlmsg_type < RTM_BASE || nl.nlmsg_type > RTM_MAX || (nl.nlmsg_type & 3) == 2 ||
	    (nl.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP)
		return false;
	snprintf(what, size, "netlink:%s",
		 nl.nlmsg_type == RTM_NEWADDR ? "address" :
		 nl.nlmsg_type == RTM_DELADDR ? "address-gone" :
		 nl.nlmsg_type == RTM_NEWLINK ? "link" :
						"other");
	return true;
}

static bool opens_to_write(unsigned long long flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC));
}

/* Is the call that begins a changing one? Fills task->what. */
static bool is_changing(struct task *task, const struct user_regs_struct *regs)
{
	char *what = task->what;
	size_t size = sizeof(task->what);

	switch (task->call->about) {
	case ABOUT_FD:
	case ABOUT_WRITE:
		name_of_fd(task->pid, (int)regs->rdi, what, size);
		return is_file(what);
	case ABOUT_OPEN:
		name_at(task->pid, AT_FDCWD, regs->rdi, what, size);
		return opens_to_write(regs->rsi) && is_file(what);
	case ABOUT_OPENAT:
		name_at(task->pid, (int)regs->rdi, regs->rsi, what, size);
		return opens_to_write(regs->rdx) && is_file(what);
	case ABOUT_PATH:
		name_at(task->pid, AT_FDCWD, regs->rdi, what, size);
		return true;
	case ABOUT_AT:
		name_at(task->pid, (int)regs->rdi, regs->rsi, what, size);
		return true;
	case ABOUT_NETLINK:
		return is_netlink_change(task->pid, regs->rsi, what, size);
	}
	return false;
}

static void say(const struct task *task, const char *result)
{
	fprintf(list, "%ld %s %s %s\n", task->number, task->call->name,
		task->what[0] ? task->what : "-", result);
	fflush(list);
}

static void kill_all(void)
{
	for (size_t i = 0; i < MAX_TASKS; i++)
		if (tasks[i].pid)
			kill(tasks[i].pid, SIGKILL);
}

static bool hits(const struct task *task)
{
	if (action != ACT_ERROR || !stays)
		return action != ACT_NONE && task->number == point;
	return task->number >= point && (error_num != ENOSPC || task->call->needs_space);
}

static void at_entry(struct task *task, struct user_regs_struct *regs)
{
	task->call = NULL;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].nr == (long)regs->orig_rax)
			task->call = &calls[i];
	if (!task->call || !is_changing(task, regs)) {
		task->call = NULL;
		return;
	}
	task->number = ++counted;
	if (!hits(task))
		return;
	if (action == ACT_ERROR) {
		task->failed = true;
		regs->orig_rax = (unsigned long long)-1;
		ptrace(PTRACE_SETREGS, task->pid, NULL, regs);
		return;
	}
	if (action == ACT_TORN && task->call->about == ABOUT_WRITE && regs->rdx > 1) {
		task->torn = true;
		regs->rdx /= 2;
		ptrace(PTRACE_SETREGS, task->pid, NULL, regs);
		return;
	}
	say(task, "killed");
	if (action == ACT_KILL_ONE)
		kill(task->pid, SIGKILL);
	else
		kill_all();
}

static void at_exit(struct task *task, struct user_regs_struct *regs)
{
	char result[32];

	if (!task->call)
		return;
	if (task->failed) {
		regs->rax = (unsigned long long)-error_num;
		ptrace(PTRACE_SETREGS, task->pid, NULL, regs);
	}
	snprintf(result, sizeof(result), "%s%lld",
		 task->failed ? "made " :
		 task->torn   ? "torn " :
				"",
		 (long long)regs->rax);
	say(task, result);
	if (task->torn)
		kill_all();
	task->call = NULL;
	task->failed = task->torn = false;
}

static void at_syscall(struct task *task)
{
	struct __ptrace_syscall_info info;
	struct user_regs_struct regs;

	/* a process may be gone at any time: it was killed */
	if (ptrace(PTRACE_GET_SYSCALL_INFO, task->pid, (void *)sizeof(info), &info) < 0 ||
	    ptrace(PTRACE_GETREGS, task->pid, NULL, &regs) < 0)
		return;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
		at_entry(task, &regs);
	else if (info.op == PTRACE_SYSCALL_INFO_EXIT)
		at_exit(task, &regs);
}

/* A stop of any kind: goes on with the signal that belongs to it. */
static void at_stop(pid_t pid, int status)
{
	struct task *task = task_of(pid);
	int number = WSTOPSIG(status), event = status >> 16;

	if (number == (SIGTRAP | 0x80)) {
		at_syscall(task);
		number = 0;
	} else if (event == PTRACE_EVENT_STOP && number != SIGTRAP) {
		ptrace(PTRACE_LISTEN, pid, NULL, NULL);
		return;
	} else if (event) {
		number = 0;
	}
	ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(long)number);
}

/* Until the command itself ends; what it leaves running goes on untraced. */
static int trace(pid_t first)
{
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, __WALL);

		if (pid < 0)
			die("waitpid: %s", strerror(errno));
		if (WIFSTOPPED(status)) {
			at_stop(pid, status);
			continue;
		}
		task_of(pid)->pid = 0;
		if (pid != first)
			continue;
		return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
}

static pid_t start(char **argv)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (pid == 0) {
		raise(SIGSTOP);
		execv(argv[0], argv);
		_exit(127);
	}
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		die("the command did not start");
	if (ptrace(PTRACE_SEIZE, pid, NULL, OPTIONS) < 0)
		die("cannot trace: %s", strerror(errno));
	kill(pid, SIGCONT);
	ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
	return pid;
}

static void parse_action(const char *word)
{
	static const struct {
		const char *name;
		enum action action;
		int num;
	} words[] = {
		{ "none", ACT_NONE, 0 },	 { "kill", ACT_KILL, 0 },
		{ "torn", ACT_TORN, 0 },	 { "kill-one", ACT_KILL_ONE, 0 },
		{ "ENOSPC", ACT_ERROR, ENOSPC }, { "EROFS", ACT_ERROR, EROFS },
		{ "EIO", ACT_ERROR, EIO },
	};
	size_t len = strcspn(word, "+");

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i].name) != len || strncmp(words[i].name, word, len) != 0)
			continue;
		action = words[i].action;
		error_num = words[i].num;
		stays = word[len] == '+';
		return;
	}
	die("unknown fault %s", word);
}

int main(int argc, char **argv)
{
	if (argc < 5)
		die("usage: fault WHAT N LIST COMMAND...");
	parse_action(argv[1]);
	point = strtol(argv[2], NULL, 10);
	list = fopen(argv[3], "we");
	if (!list)
		die("%s: %s", argv[3], strerror(errno));
	return trace(start(argv + 4));
}
