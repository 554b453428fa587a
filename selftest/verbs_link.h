/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_VERBS_LINK_H
#define NP_SELFTEST_VERBS_LINK_H

#include "selftest/verbs_dev.h"

/* Sends outstanding at most; ib_write_bw has as many. */
#define NP_VERBS_DEPTH 128

/* Memory that the CPU cannot reach, a GPU's. @len bytes at addresses that the HCA knows
 * by @mr. All return 0 or a negative errno with message. */
struct np_verbs_mem {
	int (*make)(void *ctx, struct ibv_pd *pd, size_t len, int access, char **memory,
		    struct ibv_mr **mr, struct np_err *err);
	void (*release)(void *ctx, char *memory);
	/* done when they return */
	int (*write)(void *ctx, char *to, const char *host, size_t len, struct np_err *err);
	int (*read)(void *ctx, char *host, const char *from, size_t len, struct np_err *err);
	void *ctx;
};

/* One end: a queue pair on a port, a completion queue that is polled, and memory. */
struct np_verbs_end {
	struct np_verbs_dev dev;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *tx, *rx;	     /* of link->largest bytes each */
	uint32_t inline_max; /* messages up to it travel in the work request */
	uint32_t psn;
};

struct np_verbs_link {
	struct np_verbs_end end[2];
	struct np_verbs_path path;
	const struct np_verbs_mem *mem; /* NULL = host memory */
	char *host;			/* with @mem: one message */
	size_t largest;
	int64_t deadline_ms;
	uint64_t seed_base, sequence, verified;
	uint64_t moved_bytes; /* payload that was handed over, both ways */
};

struct np_verbs_spec {
	const char *ca[2]; /* may be the same */
	int num[2];
	int gid_index;			/* -1 = the best */
	const struct np_verbs_mem *mem; /* of both ends; NULL = host memory */
	size_t largest;
	int64_t deadline_ms; /* np_now_ms() by which it gives up */
};

/* Opens, makes and joins two reliable connected queue pairs. Returns 0 or a negative
 * errno with the codes of np_verbs_dev_open and np_verbs_choose, and
 *   selftest.verbs.memlock  memory cannot be pinned (-ENOMEM)
 *   selftest.verbs.create   a verbs object cannot be made
 *   selftest.verbs.connect  a queue pair does not take the path
 *   selftest.verbs.no_path  the other port cannot be resolved (RoCE)
 * np_verbs_link_close closes, after a failure too. */
int np_verbs_link_open(const struct np_verbs_spec *spec, struct np_verbs_link *link,
		       struct np_err *err) np_must_check;
void np_verbs_link_close(struct np_verbs_link *link);

#endif
