/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_RANKS_CLIQUE_H
#define NP_SELFTEST_RANKS_CLIQUE_H

#include "selftest/gpu_set.h"
#include "selftest/nccl_lib.h"
#include "selftest/ranks.h"

/* The driver's start on a node with many GPUs takes long, and so does NCCL's. */
#define NP_CLIQUE_LIBRARY_MS 60000
/* Before the deadline of the worker: for ending what is under way; of it, for an abort. */
#define NP_CLIQUE_END_MS   3000
#define NP_CLIQUE_ABORT_MS 1000

/* This rank of NCCL's communicator, with its GPU. */
struct np_clique {
	struct np_ranks *ranks;
	struct np_ranks_allreduce *out;
	struct np_gpu_set set;
	const struct np_gpu_dev *gpu;
	bool has_context;
	struct np_nccl nccl;
	np_nccl_comm comm;
	bool blocks; /* NCCL before 2.14: a call returns when it pleases */
	np_cu_ptr send, receive;
	np_cu_stream stream;
	float *host; /* of the largest size */
	uint64_t seed;
	int64_t limit_ms;
	struct np_err wrong; /* the first element that was; num 0 = none */
};

/* Puts this rank and its host before the message. Returns err->num. */
int np_clique_named(const struct np_clique *c, struct np_err *err);

/* Errors of a call, with this rank's name: 0 when it succeeded. @doing completes "while ...". */
int np_clique_cuda_failed(struct np_clique *c, np_cu_result result, const char *doing,
			  struct np_err *err);
int np_clique_nccl_failed(struct np_clique *c, np_nccl_result result, const char *doing,
			  struct np_err *err);
/* -ETIMEDOUT with code ranks.nccl_timeout. */
int np_clique_too_late(struct np_clique *c, const char *doing, struct np_err *err);

/* The next call into a library may take long, up to the limit; np_ranks_quiet ends it. */
void np_clique_quiet(struct np_clique *c);

/* Until the communicator has done what it was asked for; @result is what it said to that.
 * Returns 0 or a negative errno with nccl.failed or ranks.nccl_timeout. */
int np_clique_await(struct np_clique *c, np_nccl_result result, const char *doing,
		    struct np_err *err) np_must_check;

/* Makes the communicator of all ranks, and their common seed. NCCL is open, the GPU's context
 * current. Calls do not block where NCCL is 2.14 or newer. Returns 0 or a negative errno. */
int np_clique_open(struct np_clique *c, struct np_err *err) np_must_check;

/* @clean: nothing is under way; else it is aborted, and what the GPU may still use is left to
 * the end of the process, which is near. */
void np_clique_close(struct np_clique *c, bool clean);

#endif
