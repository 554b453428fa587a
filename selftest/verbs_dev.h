/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_VERBS_DEV_H
#define NP_SELFTEST_VERBS_DEV_H

#include "selftest/verbs_pick.h"

/* An opened HCA and one of its ports. */
struct np_verbs_dev {
	struct ibv_context *context;
	int num;
	struct np_verbs_port port;
};

/* Opens @ca for port @num. Returns 0 or a negative errno with
 *   selftest.verbs.no_uverbs     the kernel offers no user-space verbs for it, or no node
 *   selftest.verbs.permission    the node may not be opened (-EACCES, -EPERM)
 *   selftest.verbs.uverbs_open   it cannot be opened otherwise
 *   selftest.verbs.no_provider   libibverbs has no driver library for it (-ENODEV)
 *   selftest.verbs.open          libibverbs or its driver library refuses it
 *   selftest.verbs.query         the port cannot be asked
 * np_verbs_dev_close closes. */
int np_verbs_dev_open(const char *ca, int num, struct np_verbs_dev *out,
		      struct np_err *err) np_must_check;
void np_verbs_dev_close(struct np_verbs_dev *dev);
#define np_auto_verbs_dev np_auto(np_verbs_dev_close)

#endif
