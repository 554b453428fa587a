/* SPDX-License-Identifier: MIT */
/* Which homes are shared ones (C8). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/target_open.h"

/* What statfs(2) does not tell. */
static void test_network_mount(void **state)
{
	static const char mounts[] =
		"22 1 0:20 / / rw - tmpfs tmpfs rw\n"
		"29 22 0:25 / /home\\040s rw,relatime shared:3 master:1 - 9p share rw,sync\n"
		"30 22 0:26 / /a rw - fuse.sshfs host:/x rw\n"
		"31 22 0:260 / /b rw - 9pfs x rw\n"
		"0:27 0:28 0:29 / 0:27 0:28 - 9p - rw\n"
		"32 22 0:30 / /c rw - fuse /dev/sdb rw\n"
		"33 22 0:31 /\n"
		"34 22 8:1 / /d rw - btrfs - 9p";

	(void)state;
	assert_true(np_target_mount_is_network(mounts, 0, 25));
	assert_true(np_target_mount_is_network(mounts, 0, 26));
	assert_true(np_target_mount_is_network(mounts, 0, 29));
	assert_false(np_target_mount_is_network(mounts, 0, 20));
	assert_false(np_target_mount_is_network(mounts, 0, 2));
	assert_false(np_target_mount_is_network(mounts, 0, 27));
	assert_false(np_target_mount_is_network(mounts, 0, 28));
	assert_false(np_target_mount_is_network(mounts, 0, 30));
	assert_false(np_target_mount_is_network(mounts, 0, 31));
	assert_false(np_target_mount_is_network(mounts, 0, 260));
	assert_false(np_target_mount_is_network(mounts, 8, 1));
	assert_false(np_target_mount_is_network("", 0, 0));
}

static void test_network_fs(void **state)
{
	(void)state;
	assert_true(np_target_fs_is_network(0x6969));	   /* NFS */
	assert_true(np_target_fs_is_network(0x0bd00bd0));  /* Lustre */
	assert_true(np_target_fs_is_network(0x47504653));  /* GPFS */
	assert_true(np_target_fs_is_network(0x19830326));  /* BeeGFS */
	assert_true(np_target_fs_is_network(0xff534d42));  /* CIFS */
	assert_false(np_target_fs_is_network(0x01021994)); /* tmpfs */
	assert_false(np_target_fs_is_network(0xef53));	   /* ext4 */
	assert_false(np_target_fs_is_network(0x65735546)); /* FUSE: may be anything */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_network_fs),
		cmocka_unit_test(test_network_mount),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
