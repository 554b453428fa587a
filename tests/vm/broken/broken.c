// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel module whose init does not do what it should; for tests. It is built under
 * names that nodeprep knows (see build), and drives nothing.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include <linux/module.h>
#include <linux/sched.h>

static bool hang;
static uint init_errno;
/* written while init hangs: N lets it go on */
module_param(hang, bool, 0644);
module_param(init_errno, uint, 0444);
MODULE_PARM_DESC(hang, "init waits, uninterruptibly, until this is N");
MODULE_PARM_DESC(init_errno, "init fails with this errno");

static int __init broken_init(void)
{
	if (READ_ONCE(hang)) {
		pr_warn("the device does not answer, waiting for it\n");
		/* each sleep is short, so that the detector of hung tasks stays quiet */
		while (READ_ONCE(hang))
			schedule_timeout_uninterruptible(HZ / 20);
	}
	if (init_errno) {
		pr_err("no firmware in slot 3\n");
		return -(int)init_errno;
	}
	return 0;
}

static void __exit broken_exit(void)
{
}

module_init(broken_init);
module_exit(broken_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("a broken module for tests");
