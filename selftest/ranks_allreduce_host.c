/* SPDX-License-Identifier: MIT */
#include "selftest/ranks.h"

int np_ranks_allreduce_host(struct np_ranks *ranks, struct np_ranks_allreduce *out,
			    struct np_err *err)
{
	(void)err;
	out->clique_size = (uint32_t)ranks->size;
	return 0;
}
