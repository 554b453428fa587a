/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_RANKS_REPORT_H
#define NP_SELFTEST_RANKS_REPORT_H

#include "selftest/ranks_super.h"
#include "selftest/ranks_verdict.h"

/* Rank 0's: what all boards say, as text or as the JSON document. job->boards has NULL for
 * ranks that did not report. True: every rank verified everything. */
bool np_ranks_report(struct np_ranks_job *job, struct np_buf *out);

/* The two forms of it. */
void np_ranks_text(const struct np_ranks_job *job, const struct np_ranks_verdict *verdict,
		   struct np_buf *out);
void np_ranks_json(const struct np_ranks_job *job, const struct np_ranks_verdict *verdict,
		   struct np_buf *out);

/* "NCCL", "host memory", "none". */
const char *np_ranks_backend_str(uint32_t backend);

#endif
