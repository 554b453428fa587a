// SPDX-License-Identifier: GPL-2.0
/*
 * A stand-in for gdrcopy's kernel driver, for tests: it registers the character major
 * "gdrdrv", answers the version handshake and shows /proc/driver/gdrdrv/params. It maps
 * no memory. As the real one, it makes no device node. tests/vm/gdrdrv/README.md has the
 * list of what a test can turn.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include <linux/fs.h>
#include <linux/ioctl.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

/* The handshake: two numbers, each (major << 16) | minor. */
struct gdrdrv_version {
	u32 driver;
	u32 min_library;
};
#define GDRDRV_GET_VERSION _IOWR(0xDA, 255, void *)

/* Those of the real driver, which are not in sysfs either. */
static int dbg_enabled;
static int info_enabled;
static int use_persistent_mapping;
module_param(dbg_enabled, int, 0);
module_param(info_enabled, int, 0);
module_param(use_persistent_mapping, int, 0);
MODULE_PARM_DESC(dbg_enabled, "shown in /proc/driver/gdrdrv/params only");
MODULE_PARM_DESC(info_enabled, "log each open");
MODULE_PARM_DESC(use_persistent_mapping, "shown in /proc/driver/gdrdrv/params only");

/* Those of the tests. */
static uint answer_driver = 0x20005;
static uint answer_min_library = 0x20002;
static uint open_errno;
static uint handshake_errno;
static char *flavour = "opensource";
static bool dead_major;
static uint want_major;
module_param(answer_driver, uint, 0644);
module_param(answer_min_library, uint, 0644);
module_param(open_errno, uint, 0644);
module_param(handshake_errno, uint, 0644);
module_param(flavour, charp, 0444);
module_param(dead_major, bool, 0444);
module_param(want_major, uint, 0444);
MODULE_PARM_DESC(answer_driver, "version of the driver, (major << 16) | minor");
MODULE_PARM_DESC(answer_min_library, "oldest library that it takes, the same form");
MODULE_PARM_DESC(open_errno, "opening the node fails with this errno");
MODULE_PARM_DESC(handshake_errno, "the handshake fails with this errno");
MODULE_PARM_DESC(flavour, "of the NVIDIA driver it says it was built for: opensource, proprietary");
MODULE_PARM_DESC(dead_major, "the major is registered, and no device is behind it");
MODULE_PARM_DESC(want_major, "the major to register, 0 = any");

static dev_t first;
static int major;

static int gdrdrv_open(struct inode *inode, struct file *file)
{
	if (info_enabled)
		pr_info("open of minor %u\n", iminor(inode));
	return -(int)READ_ONCE(open_errno);
}

static long gdrdrv_ioctl(struct file *file, unsigned int request, unsigned long arg)
{
	struct gdrdrv_version version = {
		.driver = READ_ONCE(answer_driver),
		.min_library = READ_ONCE(answer_min_library),
	};

	if (request != GDRDRV_GET_VERSION)
		return -EINVAL;
	if (READ_ONCE(handshake_errno))
		return -(long)READ_ONCE(handshake_errno);
	return copy_to_user((void __user *)arg, &version, sizeof(version)) ? -EFAULT : 0;
}

static const struct file_operations gdrdrv_fops = {
	.owner = THIS_MODULE,
	.open = gdrdrv_open,
	.unlocked_ioctl = gdrdrv_ioctl,
	.llseek = noop_llseek,
};

static int params_show(struct seq_file *m, void *unused)
{
	seq_printf(m, "Built for NVIDIA driver flavor: %s\n", flavour);
	seq_printf(m, "Use persistent mapping: %s\n", use_persistent_mapping ? "yes" : "no");
	seq_printf(m, "dbg traces: %s\n", dbg_enabled ? "enabled" : "disabled");
	seq_printf(m, "info traces: %s\n", info_enabled ? "enabled" : "disabled");
	return 0;
}

static int register_major(void)
{
	int r;

	if (dead_major) {
		r = alloc_chrdev_region(&first, 0, 1, "gdrdrv");
		return r < 0 ? r : (int)MAJOR(first);
	}
	/* it gives the major where that was any, else 0 */
	r = register_chrdev(want_major, "gdrdrv", &gdrdrv_fops);
	return r < 0 || !want_major ? r : (int)want_major;
}

static void unregister_major(void)
{
	if (dead_major)
		unregister_chrdev_region(first, 1);
	else
		unregister_chrdev(major, "gdrdrv");
}

static int __init gdrdrv_init(void)
{
	major = register_major();
	if (major < 0) {
		pr_err("cannot get a major: %d\n", major);
		return major;
	}
	if (!proc_mkdir("driver/gdrdrv", NULL) ||
	    !proc_create_single("driver/gdrdrv/params", 0444, NULL, params_show)) {
		remove_proc_subtree("driver/gdrdrv", NULL);
		unregister_major();
		return -ENOMEM;
	}
	pr_info("stand-in for tests, major %d\n", major);
	return 0;
}

static void __exit gdrdrv_exit(void)
{
	remove_proc_subtree("driver/gdrdrv", NULL);
	unregister_major();
}

module_init(gdrdrv_init);
module_exit(gdrdrv_exit);
MODULE_VERSION("2.5");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("a stand-in for tests, not gdrcopy's driver; built for opensource NVIDIA driver");
