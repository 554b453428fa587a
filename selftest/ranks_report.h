/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_RANKS_REPORT_H
#define NP_SELFTEST_RANKS_REPORT_H

#include "selftest/ranks_super.h"

/* Rank 0's: what all boards say, as text or as the JSON document. job->boards has NULL for
 * ranks that did not report. True: every rank verified everything. */
bool np_ranks_report(struct np_ranks_job *job, struct np_buf *out);

/* An error that ends the job whatever other ranks do. Pure. */
bool np_ranks_fatal(const struct np_err *err);

#endif
