/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_RANKS_WORKER_H
#define NP_SELFTEST_RANKS_WORKER_H

#include "selftest/ranks.h"

/* All that the worker does; the board gets it, the error too. */
void np_ranks_work(struct np_ranks *ranks);

#endif
