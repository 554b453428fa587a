/* SPDX-License-Identifier: MIT */
/*
 * What is on disk about a module: a made-up /lib/modules with real indexes, modprobe.d,
 * other kernels, DKMS sources, vendor stacks; and a machine without libkmod.
 */
#include "tests/unit/test_modules_tree.h"

#include <dlfcn.h>

#include "modules/gdrdrv.h"
#include "modules/lookup.h"
#include "modules/module.h"
#include "modules/private.h"

static bool no_library;

/* The linker prefers this one to libc's: a machine without libkmod. */
void *dlopen(const char *name, int flags)
{
	static void *(*real)(const char *, int);

	if (!real)
		*(void **)(&real) = dlsym(RTLD_NEXT, "dlopen");
	return real(no_library && name ? "libnot-there.so.2" : name, flags);
}

static void without_libkmod(void **state)
{
	struct np_kmod_lookup l = { .headers = true };
	struct np_err err;

	(void)state;
	no_library = true;
	assert_int_equal(np_kmod_look_up("ib_umad", &l, &err), -ENOENT);
	no_library = false;
	assert_string_equal(err.code, "module.no_libkmod");
	assert_non_null(strstr(err.message, "libkmod.so.2"));
	assert_non_null(strstr(err.hint, "libkmod2"));
	assert_int_equal(l.headers, true);
}

static void look(const char *name, struct np_kmod_lookup *l)
{
	struct np_err err;

	if (np_kmod_look_up_at(&fake_place, name, l, &err) < 0)
		fail_msg("%s: %s", name, err.message);
}

static void available(void **state)
{
	struct np_kmod_lookup l;

	(void)state;
	need_namespace();
	put_module(RELEASE, "kernel/ib_core",
		   "license=Dual BSD/GPL|vermagic=" RELEASE " SMP mod_unload", "np_core", NULL);
	put_module(RELEASE, "updates/dkms/gdrdrv",
		   "version=2.5|license=Dual MIT/GPL|vermagic=" RELEASE
		   " SMP|parm=dbg_enabled:debug|parmtype=dbg_enabled:int|parmtype=other:int|"
		   "description=GDRCopy kernel-mode driver built for opensource NVIDIA driver|"
		   "signer=Some\tOne",
		   NULL, "np_core");
	put_module(RELEASE, "extra/mlnx-ofa_kernel/drivers/mlx5-ib", "version=24.10-1", NULL, NULL);
	put_module(RELEASE, "extra/loose", "", NULL, NULL);
	put_module(RELEASE, "weak-updates/kmod-x/weak", "", NULL, NULL);
	put_module(RELEASE, "updates/drivers/infiniband/ofed", "", NULL, NULL);
	put_module(RELEASE, "misc/homemade", "", NULL, NULL);
	put_file("softdep gdrdrv pre: loose absent post: ib_core", "etc/modprobe.d/a.conf");
	index_modules(RELEASE);

	look("gdrdrv", &l);
	assert_true(l.available && !l.builtin && !l.blacklisted && !l.install_command);
	assert_true(!l.not_indexed && !l.tree_missing);
	assert_string_equal(l.kernel, RELEASE);
	assert_string_equal(l.version, "2.5");
	assert_string_equal(l.license, "Dual MIT/GPL");
	assert_string_equal(l.vermagic, RELEASE " SMP");
	assert_string_equal(l.signer, "Some\\x09One");
	assert_int_equal(l.params.n, 2);
	assert_true(np_strv_has(&l.params, "dbg_enabled") && np_strv_has(&l.params, "other"));
	assert_int_equal(l.softdeps.n, 2);
	assert_true(np_strv_has(&l.softdeps, "loose") && np_strv_has(&l.softdeps, "ib_core"));
	assert_int_equal(l.origin, NP_KMOD_ORIGIN_DKMS);
	assert_string_equal(l.vendor, "updates/dkms");
	assert_non_null(strstr(l.path, "/updates/dkms/gdrdrv.ko"));
	assert_int_equal(np_gdrdrv_built_for(&l), NP_GPU_FLAVOUR_OPEN);
	assert_int_equal(np_kmod_loadable(&l, false, NULL), 0);
	np_kmod_lookup_done(&l);

	static const struct {
		const char *name;
		enum np_kmod_origin origin;
		const char *vendor;
	} origins[] = {
		{ "ib-core", NP_KMOD_ORIGIN_KERNEL, "" },
		{ "mlx5_ib", NP_KMOD_ORIGIN_EXTRA, "extra/mlnx-ofa_kernel" },
		{ "loose", NP_KMOD_ORIGIN_EXTRA, "extra" },
		{ "weak", NP_KMOD_ORIGIN_WEAK_UPDATES, "weak-updates/kmod-x" },
		{ "ofed", NP_KMOD_ORIGIN_UPDATES, "updates" },
		{ "homemade", NP_KMOD_ORIGIN_OTHER, "misc" },
	};
	for (size_t i = 0; i < NP_ARRAY_SIZE(origins); i++) {
		look(origins[i].name, &l);
		assert_true(l.available);
		assert_int_equal(l.origin, origins[i].origin);
		assert_string_equal(l.vendor, origins[i].vendor);
		np_kmod_lookup_done(&l);
	}
}

static void configuration(void **state)
{
	struct np_kmod_lookup l;
	struct np_err err;

	(void)state;
	need_namespace();
	put_module(RELEASE, "kernel/one", "", NULL, NULL);
	put_module(RELEASE, "kernel/two", "", NULL, NULL);
	put_module(RELEASE, "kernel/three", "", NULL, NULL);
	put_module(RELEASE, "kernel/nvidia-current", "license=NVIDIA", NULL, NULL);
	put_file("kernel/builtin/ib_cm.ko", "lib/modules/%s/modules.builtin", RELEASE);
	put_file("# blacklist two\n  blacklist\tone", "etc/modprobe.d/site.conf");
	put_file("blacklist two", "etc/modprobe.d/site.conf.bak"); /* no .conf: not read */
	put_file("install two /bin/touch /tmp/np-was-run", "usr/lib/modprobe.d/hard.conf");
	put_file("alias three off\nalias nvidia nvidia-current", "etc/modprobe.d/alias.conf");
	index_modules(RELEASE);

	look("one", &l);
	assert_true(l.available && l.blacklisted);
	assert_string_equal(l.said_by, "/etc/modprobe.d/site.conf");
	assert_int_equal(np_kmod_loadable(&l, true, &err), 0);
	assert_int_equal(np_kmod_loadable(&l, false, &err), -EPERM);
	assert_string_equal(err.code, "module.blacklisted");
	assert_non_null(strstr(err.message, "/etc/modprobe.d/site.conf"));
	np_kmod_lookup_done(&l);

	look("two", &l);
	assert_true(!l.blacklisted);
	assert_string_equal(l.install_command, "/bin/touch /tmp/np-was-run");
	assert_string_equal(l.said_by, "/usr/lib/modprobe.d/hard.conf");
	assert_int_equal(np_kmod_loadable(&l, true, &err), -EPERM);
	assert_string_equal(err.code, "module.install_command");
	assert_non_null(strstr(err.message, "/bin/touch /tmp/np-was-run"));
	np_kmod_lookup_done(&l);

	look("three", &l);
	assert_true(l.blacklisted);
	assert_string_equal(l.said_by, "/etc/modprobe.d/alias.conf");
	np_kmod_lookup_done(&l);

	look("nvidia", &l);
	assert_true(l.available);
	assert_string_equal(l.name, "nvidia_current");
	np_kmod_lookup_done(&l);

	look("ib-cm", &l);
	assert_true(l.builtin && !l.available);
	assert_int_equal(np_kmod_loadable(&l, false, &err), 0);
	np_kmod_lookup_done(&l);
}

static void check_missing(const char *name, const char *message, const char *hint)
{
	struct np_kmod_lookup l;
	struct np_err err;

	look(name, &l);
	assert_int_equal(np_kmod_loadable(&l, false, &err), -ENOENT);
	assert_string_equal(err.code, "module.missing");
	if (!strstr(err.message, message) || !strstr(err.hint, hint))
		fail_msg("%s: \"%s\" / \"%s\"", name, err.message, err.hint);
	np_kmod_lookup_done(&l);
}

static void missing(void **state)
{
	static const struct np_kmod_place nowhere = { .root = fake_root, .release = "7.0-gone" };
	struct np_kmod_lookup l;
	struct np_err err;

	(void)state;
	need_namespace();
	put_module(RELEASE, "kernel/ib_core", "", NULL, NULL);
	put_file("", "lib/modules/%s/build/Makefile", RELEASE);
	put_file("updates/dkms/gdrdrv.ko.xz: kernel/gdrdrv-helper.ko",
		 "lib/modules/6.1.0-10-test/modules.dep");
	put_file("extra/gdrdrv.ko:", "lib/modules/6.1.0-9-test/modules.dep");
	put_file("kernel/gdrdrv2.ko:\nkernel/x.ko: extra/gdrdrv.ko",
		 "lib/modules/6.1.0-8-test/modules.dep");
	put_file("kernel/drivers/gdrdrv.ko", "lib/modules/6.2-builtin/modules.builtin");
	put_file("PACKAGE_NAME=\"gdrdrv\"\nPACKAGE_VERSION=\"2.4\"\n"
		 "BUILT_MODULE_NAME[0]=\"gdrdrv\"",
		 "usr/src/gdrdrv-2.4/dkms.conf");
	put_file("PACKAGE_NAME=nvidia\nPACKAGE_VERSION=@VERSION@\n"
		 "BUILT_MODULE_NAME[4]='nvidia-peermem'",
		 "usr/src/nvidia-580.1/dkms.conf");
	put_file("", "var/lib/dkms/ofed_x/5.8/source");
	index_modules(RELEASE);
	/* after depmod */
	put_module(RELEASE, "extra/deep/er/ib-umad", "", NULL, NULL);

	check_missing("gdrdrv",
		      "kernel " RELEASE ", only for 6.1.0-9-test, 6.1.0-10-test, 6.2-builtin",
		      "run: dkms install gdrdrv/2.4 -k " RELEASE);
	check_missing("nvidia_peermem", "not there for kernel", "dkms install nvidia-580.1 -k");
	check_missing("ofed_x", "", "dkms install ofed_x/5.8");
	check_missing("ib_umad", "depmod has not seen it", "depmod -a " RELEASE);
	check_missing("mlx5_ib", "not there for kernel " RELEASE, "linux-modules-extra");
	check_missing("nvidia_uvm", "", "install the NVIDIA driver");

	assert_int_equal(np_kmod_look_up_at(&nowhere, "gdrdrv", &l, &err), 0);
	assert_true(l.tree_missing && !l.headers);
	assert_int_equal(np_kmod_loadable(&l, false, &err), -ENOENT);
	assert_non_null(strstr(err.message, "no modules of the running kernel 7.0-gone"));
	assert_non_null(strstr(err.hint, "boot a kernel that is installed"));
	np_kmod_lookup_done(&l);
}

/* depmod knows it, but the file is gone; a file that is no module; a cut one. */
static void broken_files(void **state)
{
	struct np_kmod_lookup l;
	char path[200];

	(void)state;
	need_namespace();
	put_module(RELEASE, "kernel/one", "version=1", NULL, NULL);
	put_module(RELEASE, "kernel/two", "version=1", NULL, NULL);
	put_module(RELEASE, "kernel/three", "version=1", NULL, NULL);
	index_modules(RELEASE);
	snprintf(path, sizeof(path), "%s/lib/modules/%s/kernel/one.ko", fake_root, RELEASE);
	assert_int_equal(unlink(path), 0);
	put_file("this is no ELF file", "lib/modules/%s/kernel/two.ko", RELEASE);
	snprintf(path, sizeof(path), "%s/lib/modules/%s/kernel/three.ko", fake_root, RELEASE);
	assert_int_equal(truncate(path, 100), 0);
	look("one", &l);
	assert_true(!l.available && !l.path);
	np_kmod_lookup_done(&l);
	look("two", &l);
	assert_true(l.available);
	assert_string_equal(l.version, "");
	np_kmod_lookup_done(&l);
	look("three", &l);
	assert_string_equal(l.version, "");
	np_kmod_lookup_done(&l);
}

static void bad_names(void **state)
{
	static const char *const bad[] = { "",
					   ".",
					   "../ib_umad",
					   "/x",
					   "-r",
					   "ib umad",
					   "a\nb",
					   "a;b",
					   "a=b",
					   "\x80",
					   "*",
					   "a:b",
					   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
					   "aaaaaaaaaa" };
	struct np_kmod_lookup l = { .headers = true };
	struct np_err err;

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(bad); i++) {
		assert_int_equal(np_kmod_look_up(bad[i], &l, &err), -EINVAL);
		assert_string_equal(err.code, "module.name");
	}
	assert_true(l.headers); /* untouched */
	assert_true(np_kmod_same_name("mlx5-ib", "mlx5_ib"));
	assert_false(np_kmod_same_name("mlx5", "mlx5_ib"));
	np_kmod_lookup_done(NULL);
	assert_string_equal(np_kmod_origin_str(NP_KMOD_ORIGIN_WEAK_UPDATES), "weak-updates");
	assert_string_equal(np_kmod_origin_str((enum np_kmod_origin)77), "none");
}

/* Of this machine, through the public list: lazily, once. */
static void facts(void **state)
{
	struct np_kmods list;
	struct np_kmod_lookup *first;

	(void)state;
	assert_int_equal(np_kmods_observe(true, &list, NULL), 0);
	assert_null(np_kmods_find(&list, "ib_umad")->lookup);
	assert_int_equal(np_kmods_look_up(&list, "ib-umad", NULL), 0);
	first = np_kmods_find(&list, "ib_umad")->lookup;
	assert_non_null(first);
	assert_string_equal(first->name, "ib_umad");
	assert_null(np_kmods_find(&list, "ib_core")->lookup);
	assert_int_equal(np_kmods_look_up(&list, NULL, NULL), 0);
	assert_ptr_equal(np_kmods_find(&list, "ib_umad")->lookup, first);
	assert_non_null(np_kmods_find(&list, "gdrdrv")->lookup);
	np_kmods_done(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up_modules, tear_down)
		cmocka_unit_test(without_libkmod), /* first: it is opened once */
		CASE(available),
		CASE(configuration),
		CASE(missing),
		CASE(broken_files),
		cmocka_unit_test(bad_names),
		cmocka_unit_test(facts),
	};
	int failed;

	enter_namespace();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	leave_namespace();
	return failed;
}
