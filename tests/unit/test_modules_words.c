/* SPDX-License-Identifier: MIT */
/*
 * Texts of the kernel and of drivers that modules/ reads, and the errors it makes of
 * them: pure, so every kind is here, also those that no test machine can show.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "modules/gdrdrv.h"
#include "modules/gpu.h"
#include "modules/lookup.h"
#include "modules/private.h"

static void kernel_log(void **state)
{
	static const struct {
		const char *text, *module;
		int rank;
	} lines[] = {
		{ "gdrdrv: version magic '6.1 SMP' should be '6.2 SMP'", "gdrdrv", 2 },
		{ "gdrdrv: Unknown symbol nvidia_p2p_get_pages (err -2)", "gdrdrv", 2 },
		{ "gdrdrv: module using GPL-only symbols uses symbols x from proprietary module "
		  "nvidia.",
		  "gdrdrv", 2 },
		{ "Loading of unsigned module is rejected", "gdrdrv", 2 },
		{ "Lockdown: modprobe: unsigned module loading is restricted; see man "
		  "kernel_lockdown.7",
		  "gdrdrv", 2 },
		{ "gdrdrv:gdrdrv_init:can't get major 0", "gdrdrv", 1 },
		{ "nvidia-uvm: Loaded the UVM driver", "nvidia_uvm", 1 },
		{ "nvidia-uvm: Loaded the UVM driver", "nvidia", 0 },
		{ "NVRM: No NVIDIA GPU found.", "nvidia", 1 },
		{ "gdrdrv: loading out-of-tree module taints kernel.", "gdrdrv", 0 },
		{ "gdrdrv: module verification failed: signature and/or required key missing - "
		  "tainting kernel",
		  "gdrdrv", 0 },
		{ "mlx5_core 0000:17:00.0: probe failed", "gdrdrv", 0 },
		{ "othergdrdrv: x", "gdrdrv", 0 },
		{ "", "gdrdrv", 0 },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(lines); i++)
		if (np_klog_rank(lines[i].text, lines[i].module) != lines[i].rank)
			fail_msg("%s: %d", lines[i].text,
				 np_klog_rank(lines[i].text, lines[i].module));
}

/* A pipe in packet mode gives a record a read, as /dev/kmsg does. */
static void pick(const char *const *records, size_t n, const char *wanted)
{
	char out[256];
	int fds[2];

	assert_int_equal(pipe2(fds, O_DIRECT | O_CLOEXEC), 0);
	for (size_t i = 0; i < n; i++)
		assert_true(write(fds[1], records[i], strlen(records[i])) > 0);
	close(fds[1]);
	np_klog_pick(fds[0], "gdrdrv", out, sizeof(out));
	assert_string_equal(out, wanted);
	close(fds[0]);
}

static void picking(void **state)
{
	static const char *const records[] = {
		"6,1,100,-;gdrdrv: all is well\n SUBSYSTEM=x\n",
		"no record at all",
		"3,2,101,-;gdrdrv: first error\x1b[31m\n",
		"3,3,102,-;gdrdrv: second error\n",
		"0,4,103,-;another driver is on fire\n",
		"30,5,104,c;gdrdrv: Unknown symbol x (err -2)\n",
	};
	char out[256];

	(void)state;
	assert_int_equal(np_klog_open("/nonexistent/kmsg"), -1);
	np_klog_pick(-1, "gdrdrv", out, sizeof(out));
	assert_string_equal(out, "");
	pick(records, 2, "gdrdrv: all is well");
	pick(records + 1, 1, "");
	pick(records, 5, "gdrdrv: first error\\x1b[31m");      /* most severe, first */
	pick(records, 6, "gdrdrv: Unknown symbol x (err -2)"); /* the loader's verdict */
}

/* ---- errors ---- */

static void check(const struct np_kmod_failure *f, const char *code, const char *hint)
{
	struct np_err err = { 0 };
	int r = np_kmod_load_error(f, &err);

	assert_true(r < 0);
	assert_int_equal(err.num, r);
	if (strcmp(err.code, code) != 0 || !strstr(err.hint, hint))
		fail_msg("%s: %s / %s, not %s / %s", f->module, err.code, err.hint, code, hint);
	assert_int_equal(np_kmod_load_error(f, NULL), r);
}

static struct np_kmod_lookup gdrdrv = { .name = "gdrdrv",
					.kernel = "6.1.0-57-amd64",
					.vermagic = "6.1.0-57-amd64 SMP preempt",
					.available = true };

static struct np_kmod_failure failure(int num, const char *log)
{
	return (struct np_kmod_failure){
		.stage = NP_KMOD_STAGE_INSERT,
		.num = num,
		.name = "gdrdrv",
		.module = "gdrdrv",
		.log = log,
		.lookup = &gdrdrv,
		.options = "",
		.timeout_ms = 1000,
		.may_load = true,
	};
}

static void errors(void **state)
{
	struct np_kmod_failure f;

	(void)state;
	f = failure(EPERM, "");
	f.may_load = false;
	check(&f, "privilege.module", "outside of containers");
	f.modules_disabled = true;
	check(&f, "module.modules_disabled", "modules-load.d");
	f = failure(EPERM, "");
	f.locked_down = true;
	check(&f, "module.key_rejected", "mokutil");
	f = failure(EBADMSG, "");
	check(&f, "module.key_rejected", "Secure Boot");
	f = failure(ENOENT, "gdrdrv: Unknown symbol nvidia_p2p_get_pages (err -2)");
	check(&f, "module.unknown_symbol", "again for the GPU driver");
	f = failure(ENOEXEC, "gdrdrv: Invalid ELF header magic: != \x7f");
	check(&f, "module.format", "install the package of gdrdrv again");
	f = failure(EINVAL, "gdrdrv: `maybe' invalid for parameter `dbg_enabled'");
	check(&f, "module.option", "modinfo -p gdrdrv");
	f = failure(ENODEV, "");
	check(&f, "module.init_failed", "lspci");
	f = failure(ENOSYS, "");
	check(&f, "module.unsupported", "built in");

	strcpy(gdrdrv.dkms, "gdrdrv/2.4");
	f = failure(ENOEXEC, "gdrdrv: version magic 'a' should be 'b'");
	check(&f, "module.vermagic",
	      "install the headers of kernel 6.1.0-57-amd64, then run: dkms install gdrdrv/2.4");
	gdrdrv.headers = true;
	check(&f, "module.vermagic", "run: dkms install gdrdrv/2.4 -k 6.1.0-57-amd64");

	f = failure(0, "");
	f.module = "nvidia";
	f.stage = NP_KMOD_STAGE_MISSING;
	check(&f, "module.missing", "depmod -a 6.1.0-57-amd64");
	f.stage = NP_KMOD_STAGE_BLACKLIST;
	check(&f, "module.blacklisted", "take nvidia off");
	f.stage = NP_KMOD_STAGE_COMMAND;
	check(&f, "module.install_command", "load nvidia by hand");
	f.stage = NP_KMOD_STAGE_TIMEOUT;
	check(&f, "module.timeout", "/lib/modules");
	f.in_kernel = true;
	check(&f, "module.timeout", "reboot");
	f.stage = NP_KMOD_STAGE_CHILD;
	check(&f, "internal.child", "");
}

/* ---- drivers ---- */

static void gpu_driver(void **state)
{
	static const struct {
		const char *text, *version;
		enum np_gpu_flavour flavour;
		bool loaded;
	} cases[] = {
		{ "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release "
		  "Build  (dvs-builder@U22)\nGCC version:  gcc version 12.2.0\n",
		  "580.65.06", NP_GPU_FLAVOUR_OPEN, true },
		{ "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 2023\n",
		  "535.104.05", NP_GPU_FLAVOUR_PROPRIETARY, true },
		{ "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  610.1\n", "610.1",
		  NP_GPU_FLAVOUR_OPEN, true },
		{ "NVRM version: something new\nOpen Kernel Module 12.2.0\n", "",
		  NP_GPU_FLAVOUR_UNKNOWN, true },
		{ "GCC version: 12.2.0\n", "", NP_GPU_FLAVOUR_UNKNOWN, false },
		{ "", "", NP_GPU_FLAVOUR_UNKNOWN, false },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct np_gpu_driver d = { 0 };

		np_gpu_driver_parse(cases[i].text, &d);
		assert_int_equal(d.loaded, cases[i].loaded);
		assert_int_equal(d.flavour, cases[i].flavour);
		assert_string_equal(d.version, cases[i].version);
	}
	assert_string_equal(np_gpu_flavour_str(NP_GPU_FLAVOUR_OPEN), "open");
	assert_string_equal(np_gpu_flavour_str((enum np_gpu_flavour)9), "unknown");
}

static void gdrdrv_words(void **state)
{
	struct np_gdrdrv g = { .persistent_mapping = -1 };
	struct np_kmod_lookup l = { 0 };

	(void)state;
	np_gdrdrv_parse_params("", &g);
	assert_int_equal(g.persistent_mapping, -1);
	np_gdrdrv_parse_params("Version: 2.5\nBuilt for NVIDIA driver flavor: opensource\n"
			       "Use persistent mapping: yes\ndbg_enabled: 0\n",
			       &g);
	assert_int_equal(g.persistent_mapping, 1);
	assert_int_equal(g.built_for, NP_GPU_FLAVOUR_OPEN);
	np_gdrdrv_parse_params("Built for NVIDIA driver flavor: proprietary\n"
			       "Use persistent mapping: no",
			       &g);
	assert_int_equal(g.persistent_mapping, 0);
	assert_int_equal(g.built_for, NP_GPU_FLAVOUR_PROPRIETARY);
	strcpy(l.description, "GDRCopy kernel-mode driver");
	assert_int_equal(np_gdrdrv_built_for(&l), NP_GPU_FLAVOUR_UNKNOWN);
	strcpy(l.description, "GDRCopy kernel-mode driver built for proprietary NVIDIA driver");
	assert_int_equal(np_gdrdrv_built_for(&l), NP_GPU_FLAVOUR_PROPRIETARY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_log),	cmocka_unit_test(picking),
		cmocka_unit_test(errors),	cmocka_unit_test(gpu_driver),
		cmocka_unit_test(gdrdrv_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
