/* SPDX-License-Identifier: MIT */
#include "selftest/ranks_report.h"

#include "base/log.h"

const char *np_ranks_backend_str(uint32_t backend)
{
	return backend == NP_BACKEND_NCCL ? "nccl" : backend == NP_BACKEND_HOST ? "host" : "none";
}

bool np_ranks_report(struct np_ranks_job *job, struct np_buf *out)
{
	struct np_ranks_verdict verdict;
	bool ready;

	if (np_ranks_verdict_make(job, &verdict) < 0) {
		np_error("no memory for the report of %d ranks", job->size);
		return false;
	}
	if (job->options->json)
		np_ranks_json(job, &verdict, out);
	else
		np_ranks_text(job, &verdict, out);
	ready = verdict.n_fail == 0;
	np_ranks_verdict_done(&verdict);
	return ready;
}
