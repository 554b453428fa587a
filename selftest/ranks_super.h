/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_RANKS_SUPER_H
#define NP_SELFTEST_RANKS_SUPER_H

#include <stdatomic.h>
#include <sys/types.h>

#include "selftest/ranks.h"
#include "selftest/ranks_card.h"
#include "selftest/ranks_pmix.h"

/* What a supervisor holds. */
struct np_ranks_job {
	const struct np_ranks_options *options;
	int rank, size, local_rank, local_size;
	int64_t start_ms, deadline_ms; /* of the job */
	int64_t worker_deadline_ms;
	struct np_ranks_card *cards; /* by rank; empty where a rank gave none */
	char **hosts;		     /* by rank, also of those */
	struct np_ranks_board *board;
	/* what is waited for */
	int wake, signals;     /* eventfd of PMIx, signalfd */
	int link;	       /* to the worker; -1 = its end was seen */
	int worker_fd;	       /* pidfd */
	pid_t worker;	       /* 0 = it was reaped */
	int *peers;	       /* pidfds of the other supervisors of this host by rank, or -1 */
	int ended;	       /* signal by which the launcher ends the job, 0 = none */
	int64_t ended_ms;      /* when */
	int gone;	       /* rank of a peer that is gone, -1 = none */
	unsigned int sequence; /* of exchanges */
	struct np_buf request; /* what the worker asked for */
	struct np_ranks_head *asked; /* NULL = nothing */
	_Atomic int fence;	     /* state of the one under way */
	/* rank 0 */
	struct np_pmix_look *looks;	/* by rank */
	struct np_ranks_board **boards; /* by rank; NULL = none yet */
	int64_t next_ask_ms;
};

/* The program after its options were read. Returns the exit code; prints the report. */
int np_ranks_supervise(const struct np_ranks_options *options);

/* ---- parts of it ---- */

/* Waits at most @ms for anything to happen and takes note of it: answers of PMIx, signals,
 * peers that are gone, the end of the worker. Requests of the worker stay for the caller:
 * returns true when there is one, or its end. */
bool np_ranks_pump(struct np_ranks_job *job, int ms);

/* Their end is no news from here on. */
void np_ranks_forget_peers(struct np_ranks_job *job);

/* Every supervisor that is told to end stays so long; one that goes within half of that
 * after the first word has gone by itself, before or because of it. */
#define NP_RANKS_LINGER_MS 800

/* Exchanges over PMIx; waits until @deadline_ms or until the job ends. */
int np_ranks_meet(struct np_ranks_job *job, bool collect, int64_t deadline_ms, const char *what,
		  struct np_err *err) np_must_check;
/* What @rank put under @key; waits @ms at most. 0, -ENOENT, -ETIMEDOUT, or another errno. */
int np_ranks_look(struct np_ranks_job *job, int rank, const char *key, int ms,
		  struct np_buf *out) np_must_check;

/* "rank 3 on h2 (mlx5_0:1)"; returns @out. */
const char *np_ranks_name(const struct np_ranks_job *job, int rank, char out[160]);

/* The worker, until it is at its end one way or the other; its board says how. */
int np_ranks_start_worker(struct np_ranks_job *job, struct np_err *err) np_must_check;
void np_ranks_watch_worker(struct np_ranks_job *job);

/* Rank 0: asks the ranks for their boards; true when all are there. @fatal: one of them has
 * ended in a way that makes waiting for others pointless. */
bool np_ranks_gather(struct np_ranks_job *job, bool *fatal);

/* Rank 0, now and then during the run: true when a rank has died or hangs. */
bool np_ranks_lost(struct np_ranks_job *job);

#endif
