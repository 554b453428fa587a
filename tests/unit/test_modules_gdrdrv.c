/* SPDX-License-Identifier: MIT */
/* gdrdrv's rungs: /proc/devices, the node, opening it, the handshake. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "modules/gdrdrv.h"
#include "modules/private.h"

static uint32_t driver_says; /* 0: there is no driver, ioctl goes to the kernel */

/* The linker prefers this one to libc's: a driver that answers. The request is
 * the number that gdrcopy 2.x sends: _IOWR(0xDA, 255, 8 bytes). */
int ioctl(int fd, unsigned long request, ...)
{
	uint32_t *version;
	va_list args;

	va_start(args, request);
	version = va_arg(args, uint32_t *);
	va_end(args);
	if (driver_says == 0)
		return (int)syscall(SYS_ioctl, fd, request, version);
	assert_int_equal(request, 0xc008daff);
	version[0] = driver_says;
	version[1] = 2 << 16;
	return 0;
}

static void majors(void **state)
{
	static const char text[] = "Character devices:\n  1 mem\n  4 /dev/vc/0\n  5 /dev/tty\n"
				   "226 drm\n195 nvidia\n195 nvidiactl\n500 gdrdrv2\n"
				   "508 gdrdrv\n\nBlock devices:\n  8 sd\n259 blkext\n";

	(void)state;
	assert_int_equal(np_char_major(text, "gdrdrv"), 508);
	assert_int_equal(np_char_major(text, "mem"), 1);
	assert_int_equal(np_char_major(text, "sd"), -1);
	assert_int_equal(np_char_major(text, "gdr"), -1);
	assert_int_equal(np_char_major("", "gdrdrv"), -1);
	assert_int_equal(np_char_major("508 gdrdrv\n", "gdrdrv"), -1);
	assert_int_equal(np_char_major("Character devices:\n508 gdrdrv", "gdrdrv"), 508);
	assert_int_equal(np_char_major("Character devices:\n99999999999 gdrdrv\n", "gdrdrv"), -1);
	assert_int_equal(np_char_major("Character devices:\nx gdrdrv\n gdrdrv\n", "gdrdrv"), -1);
}

static void observe(const char *path, int major, struct np_gdrdrv *out)
{
	memset(out, 0, sizeof(*out));
	np_gdrdrv_observe_node(path, major, out);
}

/* /dev/null is major 1 on every Linux. */
static void rungs(void **state)
{
	struct np_gdrdrv g;

	(void)state;
	observe("/dev/null", -1, &g);
	assert_true(g.node_exists && !g.node_matches && !g.usable);
	assert_int_equal(g.open_errno, -1);

	observe("/dev/null", 508, &g);
	assert_true(g.node_exists && !g.node_matches && !g.usable);
	assert_int_equal(g.open_errno, -1);

	observe("/dev/nonexistent", 508, &g);
	assert_true(!g.node_exists && !g.usable);
	assert_int_equal(g.open_errno, ENOENT);

	observe("/dev/null", 1, &g); /* opens, but it is not gdrdrv */
	assert_true(g.node_exists && g.node_matches && !g.usable);
	assert_int_equal(g.open_errno, 0);
	assert_int_equal(g.handshake_errno, ENOTTY);

	driver_says = 2 << 16 | 4;
	observe("/dev/null", 1, &g);
	driver_says = 0;
	assert_true(g.usable);
	assert_int_equal(g.handshake_errno, 0);
	assert_int_equal(g.driver_version, 0x20004);
	assert_int_equal(g.min_library_version, 0x20000);

	driver_says = 1 << 16 | 9;
	observe("/dev/null", 1, &g);
	driver_says = 0;
	assert_true(!g.usable); /* answered, too old */
	assert_int_equal(g.handshake_errno, 0);
	assert_int_equal(g.driver_version, 0x10009);
}

static void hostile_nodes(void **state)
{
	char dir[] = "/tmp/test_gdrdrv.XXXXXX", path[64];
	struct np_gdrdrv g;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/node", dir);

	assert_int_equal(symlink("/dev/null", path), 0);
	observe(path, 1, &g);
	assert_true(g.node_exists && !g.node_matches);
	assert_int_equal(g.open_errno, -1);
	unlink(path);

	assert_int_equal(mkfifo(path, 0600), 0); /* opening it would block */
	observe(path, 1, &g);
	assert_true(g.node_exists && !g.node_matches);
	unlink(path);

	assert_int_equal(mkdir(path, 0700), 0);
	observe(path, 1, &g);
	assert_true(g.node_exists && !g.node_matches);
	rmdir(path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(majors),
		cmocka_unit_test(rungs),
		cmocka_unit_test(hostile_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
