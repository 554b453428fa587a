/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_RANKS_VERDICT_H
#define NP_SELFTEST_RANKS_VERDICT_H

#include "selftest/ranks_super.h"

/* What rank 0 makes of all boards: findings, the culprits and not what follows from them. */

enum np_ranks_weight { NP_FINDING_FAIL, NP_FINDING_WARN, NP_FINDING_SKIP };

struct np_ranks_finding {
	enum np_ranks_weight weight;
	char code[48];
	char target[360]; /* "rank 3 on h2 (mlx5_0:1)", or two of them */
	char message[640];
	char hint[320];
};

struct np_ranks_verdict {
	struct np_ranks_finding *v;
	size_t n, n_fail;
	/* matrices, cell [from * size + to]; 0 = not measured */
	float *latency_us, *bandwidth_MBps;
	uint8_t *status;	/* enum np_ranks_cell_status, as the receiver saw it */
	uint8_t *apart;		/* on different hosts */
	size_t verified, pairs; /* messages' ways: n (n - 1) of them */
	bool no_memory;
};

/* job->boards: NULL for ranks that gave none. Returns 0 or -ENOMEM. */
int np_ranks_verdict_make(const struct np_ranks_job *job,
			  struct np_ranks_verdict *out) np_must_check;
void np_ranks_verdict_done(struct np_ranks_verdict *verdict);

/* Adds one; @hint may be NULL. */
void np_ranks_verdict_add(struct np_ranks_verdict *verdict, enum np_ranks_weight weight,
			  const char *code, const char *target, const char *hint, const char *fmt,
			  ...) __attribute__((format(printf, 6, 7)));

/* ---- the parts of it ---- */
void np_ranks_judge_errors(const struct np_ranks_job *job, struct np_ranks_verdict *verdict);
void np_ranks_judge_cells(const struct np_ranks_job *job, struct np_ranks_verdict *verdict);
void np_ranks_judge_speed(const struct np_ranks_job *job, struct np_ranks_verdict *verdict);
void np_ranks_judge_allreduce(const struct np_ranks_job *job, struct np_ranks_verdict *verdict);
void np_ranks_judge_odds(const struct np_ranks_job *job, struct np_ranks_verdict *verdict);

/* An error that says no more than that somebody else failed, or was waited for. Pure. */
bool np_ranks_may_follow(const struct np_err *err);

/* An error that ends the job whatever other ranks do. Pure. */
bool np_ranks_fatal(const struct np_err *err);

#endif
