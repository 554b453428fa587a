/* SPDX-License-Identifier: MIT */
/*
 * Loading modules: libkmod and the made-up /lib/modules are real, the kernel behind
 * finit_module is played by this program, in the child that loads. What a real kernel
 * does is tested in the VM.
 */
#include "tests/unit/test_modules_tree.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/child.h"
#include "modules/load.h"
#include "modules/private.h"

/* ---- the kernel's part ---- */

struct answer {
	const char *module;
	int num;	 /* errno; 0 = loaded */
	const char *log; /* NULL = nothing is logged */
	int sleep_ms;
};

/* Written by the child, read by the test. */
struct seen {
	int n;
	char names[8][64];
	char args[8][128];
	bool inherited; /* the caller's lock, or a standard stream that is not /dev/null */
	bool environment;
	bool by_bytes; /* init_module, for a kernel without finit_module */
};

static const struct answer *answers;
static size_t n_answers;
static struct seen *seen;
static bool slow_start;

/* The test holds a memfd of this name, not close-on-exec, as a careless lock. */
#define LOCK "np-test-lock"

static bool inherits(void)
{
	bool found = false;

	for (int fd = 0; fd < 256; fd++) {
		char link[64], path[512];
		ssize_t len;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		len = readlink(link, path, sizeof(path) - 1);
		path[len < 0 ? 0 : len] = '\0';
		found |= strstr(path, LOCK) || (fd < 3 && strcmp(path, "/dev/null") != 0);
	}
	return found;
}

static void log_line(const char *text)
{
	int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	char line[256];
	int len = snprintf(line, sizeof(line), "%s\n", text); /* else the record stays open */

	if (fd >= 0 && write(fd, line, (size_t)len) < 0)
		fprintf(stderr, "cannot write to /dev/kmsg\n");
	if (fd >= 0)
		close(fd);
}

static void make_live(const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/sys/module/%s", name);
	mkdir(path, 0755);
	strcat(path, "/initstate");
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, "live\n", 5) != 5)
		_exit(99);
	close(fd);
}

static long play_kernel(int fd, const char *args)
{
	char link[64], path[512], name[64];
	ssize_t len;
	char *c;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path) - 1);
	path[len < 0 ? 0 : len] = '\0';
	snprintf(name, sizeof(name), "%.60s", strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
	*strstr(name, ".ko") = '\0';
	for (c = name; *c; c++)
		*c = *c == '-' ? '_' : *c;
	seen->inherited |= inherits();
	seen->environment |= environ && *environ;
	snprintf(seen->names[seen->n & 7], sizeof(seen->names[0]), "%s", name);
	snprintf(seen->args[seen->n++ & 7], sizeof(seen->args[0]), "%s", args);
	for (size_t i = 0; i < n_answers; i++) {
		if (strcmp(answers[i].module, name) != 0)
			continue;
		if (answers[i].log)
			log_line(answers[i].log);
		np_sleep_ms(answers[i].sleep_ms);
		if (answers[i].num) {
			errno = answers[i].num;
			return -1;
		}
	}
	make_live(name);
	return 0;
}

/* The linker prefers these to libc's, for libkmod too. Not every call has six arguments. */
__attribute__((no_sanitize("address"))) long syscall(long number, ...)
{
	static long (*real)(long, ...);
	long a[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_finit_module)
		return play_kernel((int)a[0], (const char *)a[1]);
	if (!real)
		*(void **)(&real) = dlsym(RTLD_NEXT, "syscall");
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int init_module(void *image, unsigned long len, const char *args);
int init_module(void *image, unsigned long len, const char *args)
{
	(void)image;
	(void)len;
	(void)args;
	seen->by_bytes = true;
	errno = ENOSYS;
	return -1;
}

pid_t setsid(void)
{
	if (slow_start)
		np_sleep_ms(10000);
	return (pid_t)syscall(SYS_setsid, 0L, 0L, 0L, 0L, 0L, 0L);
}

/* ---- help ---- */

static struct np_kmod_load_result result;
static struct np_err err;

static int load_with(const struct answer *list, size_t n, struct np_kmod_load_spec spec)
{
	np_kmod_load_result_done(&result);
	np_err_clear(&err);
	memset(seen, 0, sizeof(*seen));
	answers = list;
	n_answers = n;
	if (!spec.timeout_ms)
		spec.timeout_ms = 30000;
	return np_kmod_load_at(&fake_place, &spec, &result, &err);
}

static bool log_readable(void)
{
	int fd = np_klog_open("/dev/kmsg");

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* base <- mid <- top, with soft dependencies of top. */
static void put_stack(void)
{
	put_module(RELEASE, "kernel/base", "vermagic=" RELEASE " SMP", "np_base", NULL);
	put_module(RELEASE, "kernel/mid-dle", "", "np_mid", "np_base");
	put_module(RELEASE, "extra/top", "vermagic=" RELEASE " SMP|parm=a:an a", NULL, "np_mid");
	put_module(RELEASE, "kernel/before", "", NULL, NULL);
	put_module(RELEASE, "kernel/after", "", NULL, NULL);
	put_module(RELEASE, "kernel/foreign", "vermagic=5.0.0-other SMP", NULL, NULL);
	put("", "module/already/parameters/x"); /* built in */
	put("live", "module/lively/initstate");
	put_file("", "dev/nothing");
	put_link("/dev/kmsg", "root/dev/kmsg");
	lay_over("module");
}

static int set_up_stack(void **state)
{
	int r = set_up_modules(state);

	if (!no_namespace)
		put_stack();
	return r;
}

static int tear_down_stack(void **state)
{
	np_kmod_load_result_done(&result);
	return tear_down(state);
}

/* ---- cases ---- */

static void with_dependencies(void **state)
{
	int lock = memfd_create(LOCK, 0);

	(void)state;
	need_namespace();
	assert_true(lock >= 0);
	put_file("softdep top pre: before post: after\noptions top b=1\noptions base z=9",
		 "etc/modprobe.d/a.conf");
	index_modules(RELEASE);
	setenv("MODPROBE_OPTIONS", "--dry-run", 1);
	assert_int_equal(
		load_with(NULL, 0,
			  (struct np_kmod_load_spec){ .name = "top", .options = "a=1 b=2" }),
		0);
	assert_true(result.loaded_now);
	assert_int_equal(result.abandoned, 0);
	assert_string_equal(result.module, "");
	assert_int_equal(seen->n, 5);
	assert_string_equal(seen->names[0], "before");
	assert_string_equal(seen->names[1], "base");
	assert_string_equal(seen->args[1], "z=9");
	assert_string_equal(seen->names[2], "mid_dle");
	assert_string_equal(seen->names[3], "top");
	assert_string_equal(seen->args[3], "b=1 a=1 b=2");
	assert_string_equal(seen->names[4], "after");
	assert_int_equal(result.also_loaded.n, 4);
	assert_string_equal(result.also_loaded.v[1], "base");
	/* the child has nothing of ours */
	assert_false(seen->inherited);
	assert_false(seen->environment);

	close(lock);
	/* again: nothing is done */
	assert_int_equal(load_with(NULL, 0, (struct np_kmod_load_spec){ .name = "top" }), 0);
	assert_false(result.loaded_now);
	assert_int_equal(seen->n, 0);
}

static void nothing_to_do(void **state)
{
	(void)state;
	need_namespace();
	index_modules(RELEASE);
	assert_int_equal(load_with(NULL, 0, (struct np_kmod_load_spec){ .name = "already" }), 0);
	assert_int_equal(load_with(NULL, 0, (struct np_kmod_load_spec){ .name = "lively" }), 0);
	assert_false(result.loaded_now);
	assert_int_equal(seen->n, 0);
}

static void somebody_was_faster(void **state)
{
	static const struct answer list[] = { { "base", EEXIST, NULL, 0 } };

	(void)state;
	need_namespace();
	index_modules(RELEASE);
	assert_int_equal(load_with(list, 1, (struct np_kmod_load_spec){ .name = "base" }), 0);
	assert_false(result.loaded_now);
}

/* The kernel's refusals, each with its line. */
static void refusals(void **state)
{
	static const struct {
		const char *module;
		int num;
		const char *log, *code;
	} cases[] = {
		{ "base", EKEYREJECTED, "Loading of unsigned module is rejected",
		  "module.key_rejected" },
		{ "base", EPERM,
		  "Lockdown: nodeprep: unsigned module loading is restricted; see man "
		  "kernel_lockdown.7",
		  "module.key_rejected" },
		{ "base", ENOEXEC, "base: version magic '5.0 SMP' should be '6.1 SMP'",
		  "module.vermagic" },
		{ "foreign", ENOEXEC, NULL, "module.vermagic" },
		{ "base", ENOEXEC, "base: disagrees about version of symbol module_layout",
		  "module.vermagic" },
		{ "base", ENOEXEC, NULL, "module.format" },
		{ "base", ENOENT, "base: Unknown symbol np_gone (err -2)",
		  "module.unknown_symbol" },
		{ "base", EINVAL, "base: disagrees about version of symbol np_moved",
		  "module.unknown_symbol" },
		{ "base", ENOENT, NULL, "module.unknown_symbol" },
		{ "base", EINVAL, "base: `x' invalid for parameter `a'", "module.option" },
		{ "base", EINVAL, "base: device is in a bad mood", "module.init_failed" },
		{ "base", ENODEV, NULL, "module.init_failed" },
		{ "base", EPERM, NULL, "module.init_failed" },
		{ "base", ENOSYS, NULL, "module.unsupported" },
	};
	bool readable = log_readable();

	(void)state;
	need_namespace();
	index_modules(RELEASE);
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		const struct answer list[] = { { cases[i].module, cases[i].num, cases[i].log, 0 } };
		struct np_kmod_load_spec spec = { .name = cases[i].module };

		if (cases[i].log && !readable)
			continue; /* test_modules_words judges the same lines */
		assert_int_equal(load_with(list, 1, spec), -cases[i].num);
		if (strcmp(err.code, cases[i].code) != 0)
			fail_msg("case %zu: %s, not %s", i, err.code, cases[i].code);
		assert_int_equal(result.load_errno, cases[i].num);
		assert_string_equal(result.module, cases[i].module);
		assert_false(result.loaded_now);
		assert_int_equal(result.abandoned, 0);
		assert_true(*err.hint);
		assert_string_equal(result.log_line, cases[i].log ? cases[i].log : "");
		if (cases[i].log)
			assert_non_null(strstr(err.message, cases[i].log));
	}
	if (access("/proc/modules", F_OK) < 0) /* init_module was asked as well */
		assert_true(seen->by_bytes);
}

static void a_dependency_fails(void **state)
{
	static const struct answer list[] = { { "mid_dle", ENODEV, NULL, 0 },
					      { "before", EINVAL, NULL, 0 } };

	(void)state;
	need_namespace();
	put_file("softdep top pre: before", "etc/modprobe.d/a.conf");
	index_modules(RELEASE);
	assert_int_equal(load_with(list, 2, (struct np_kmod_load_spec){ .name = "top" }), -ENODEV);
	assert_string_equal(err.code, "module.init_failed");
	assert_string_equal(result.module, "mid_dle");
	assert_non_null(strstr(err.message, "top needs mid_dle: "));
	/* a soft dependency may fail; what was loaded stays and is named */
	assert_int_equal(result.also_loaded.n, 1);
	assert_string_equal(result.also_loaded.v[0], "base");
	assert_false(result.loaded_now);
}

static void forbidden_dependencies(void **state)
{
	char path[200];

	(void)state;
	need_namespace();
	index_modules(RELEASE);
	put_file("blacklist base\nsoftdep base pre: before\ninstall before /bin/false",
		 "etc/modprobe.d/a.conf");
	assert_int_equal(load_with(NULL, 0, (struct np_kmod_load_spec){ .name = "top" }), -EPERM);
	assert_string_equal(err.code, "module.blacklisted");
	assert_non_null(strstr(err.message, "top needs base"));
	assert_int_equal(seen->n, 0);
	assert_int_equal(
		load_with(NULL, 0,
			  (struct np_kmod_load_spec){ .name = "top", .ignore_blacklist = true }),
		0);
	assert_int_equal(seen->n, 3); /* not "before": its command is never run */

	put_file("install after /bin/true", "etc/modprobe.d/b.conf");
	assert_int_equal(
		load_with(NULL, 0,
			  (struct np_kmod_load_spec){ .name = "after", .ignore_blacklist = true }),
		-EPERM);
	assert_string_equal(err.code, "module.install_command");
	assert_string_equal(result.module, "after");

	snprintf(path, sizeof(path), "%s/lib/modules/%s/kernel/foreign.ko", fake_root, RELEASE);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(load_with(NULL, 0, (struct np_kmod_load_spec){ .name = "foreign" }),
			 -ENOENT);
	assert_string_equal(err.code, "module.missing");
}

/* libkmod drops the dependencies when the file of one is gone: the kernel then lacks
 * their symbols. */
static void missing_dependency(void **state)
{
	static const struct answer list[] = { { "top", ENOENT, NULL, 0 } };
	char path[200];

	(void)state;
	need_namespace();
	index_modules(RELEASE);
	snprintf(path, sizeof(path), "%s/lib/modules/%s/kernel/base.ko", fake_root, RELEASE);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(load_with(list, 1, (struct np_kmod_load_spec){ .name = "top" }), -ENOENT);
	assert_string_equal(err.code, "module.unknown_symbol");
	assert_non_null(strstr(err.hint, "depmod"));
}

static void system_says_no(void **state)
{
	static const struct answer list[] = { { "base", EPERM, NULL, 0 } };

	(void)state;
	need_namespace();
	index_modules(RELEASE);
	put_file("1", "proc/sys/kernel/modules_disabled");
	assert_int_equal(load_with(list, 1, (struct np_kmod_load_spec){ .name = "base" }), -EPERM);
	assert_string_equal(err.code, "module.modules_disabled");
	put_file("0", "proc/sys/kernel/modules_disabled");
	put_file("none [integrity] confidentiality", "sys/kernel/security/lockdown");
	assert_int_equal(load_with(list, 1, (struct np_kmod_load_spec){ .name = "base" }), -EPERM);
	assert_string_equal(err.code, "module.key_rejected");
}

/* The child is left in the "kernel"; afterwards it loads nothing more. */
static void stuck_in_init(void **state)
{
	static const struct answer list[] = { { "base", 0, "base: waiting for firmware", 1500 } };
	int64_t start = np_now_ms();

	(void)state;
	need_namespace();
	index_modules(RELEASE);
	assert_int_equal(load_with(list, 1,
				   (struct np_kmod_load_spec){ .name = "top", .timeout_ms = 300 }),
			 -ETIMEDOUT);
	assert_in_range(np_now_ms() - start, 300, 1400);
	assert_string_equal(err.code, "module.timeout");
	assert_non_null(strstr(err.message, "its init has not returned after 300 ms"));
	assert_string_equal(result.module, "base");
	assert_true(result.abandoned > 0);
	if (log_readable())
		assert_string_equal(result.log_line, "base: waiting for firmware");
	assert_int_equal(waitpid(result.abandoned, NULL, 0), result.abandoned);
	assert_int_equal(seen->n, 1);
}

/* Stuck elsewhere: killed. */
static void stuck_before(void **state)
{
	(void)state;
	need_namespace();
	index_modules(RELEASE);
	slow_start = true;
	assert_int_equal(load_with(NULL, 0,
				   (struct np_kmod_load_spec){ .name = "base", .timeout_ms = 200 }),
			 -ETIMEDOUT);
	slow_start = false;
	assert_string_equal(err.code, "module.timeout");
	assert_int_equal(result.abandoned, 0);
	assert_int_equal(seen->n, 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void bad_input(void **state)
{
	char many[2000];

	(void)state;
	need_namespace();
	index_modules(RELEASE);
	memset(many, 'a', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	assert_int_equal(load_with(NULL, 0, (struct np_kmod_load_spec){ .name = "../base" }),
			 -EINVAL);
	assert_string_equal(err.code, "module.name");
	assert_int_equal(load_with(NULL, 0,
				   (struct np_kmod_load_spec){ .name = "base", .options = "a=\n" }),
			 -EINVAL);
	assert_string_equal(err.code, "module.option");
	assert_int_equal(load_with(NULL, 0,
				   (struct np_kmod_load_spec){ .name = "base", .options = many }),
			 -EINVAL);
	assert_int_equal(load_with(NULL, 0, (struct np_kmod_load_spec){ .name = "nope" }), -ENOENT);
	assert_string_equal(err.code, "module.missing");
	assert_int_equal(seen->n, 0);
	np_kmod_load_result_done(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up_stack, tear_down_stack)
		CASE(with_dependencies),  CASE(nothing_to_do),	    CASE(somebody_was_faster),
		CASE(refusals),		  CASE(a_dependency_fails), CASE(forbidden_dependencies),
		CASE(missing_dependency), CASE(system_says_no),	    CASE(stuck_in_init),
		CASE(stuck_before),	  CASE(bad_input),
	};
	int failed;

	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	enter_namespace();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	leave_namespace();
	return failed;
}
