/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "selftest/ranks.h"

bool np_ranks_nccl_ready(struct np_ranks *ranks, struct np_ranks_allreduce *out, struct np_err *why)
{
	(void)ranks;
	(void)out;
	np_err_set(why, -ENODEV, "ranks.no_nccl", "this build has no NCCL");
	return false;
}

int np_ranks_allreduce_nccl(struct np_ranks *ranks, struct np_ranks_allreduce *out,
			    struct np_err *err)
{
	(void)ranks;
	(void)out;
	return np_err_set(err, -ENODEV, "ranks.no_nccl", "this build has no NCCL");
}
