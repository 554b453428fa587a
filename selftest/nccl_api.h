/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_NCCL_API_H
#define NP_SELFTEST_NCCL_API_H

#include <limits.h>
#include <stddef.h>

/*
 * The part of NCCL that is used here, declared by hand since no distribution ships
 * nccl.h freely: names, types and values are those of NCCL's user guide ("NCCL API":
 * communicator creation, collective communication, group calls, types). They have not
 * changed since NCCL 2.0; ncclCommAbort and ncclCommGetAsyncError came with 2.4.
 */

typedef int np_nccl_result;
typedef struct np_nccl_comm_ *np_nccl_comm; /* ncclComm_t, opaque */

enum { NP_NCCL_SUCCESS = 0, NP_NCCL_IN_PROGRESS = 7 }; /* ncclResult_t */
enum { NP_NCCL_INT64 = 4, NP_NCCL_FLOAT32 = 7 };       /* ncclDataType_t */
enum { NP_NCCL_SUM = 0 };			       /* ncclRedOp_t */

/* ncclUniqueId */
struct np_nccl_id {
	char bytes[128];
};

/*
 * ncclConfig_t as NCCL 2.14 has it: later ones added members at its end, and take from an
 * older @version the defaults for those.
 */
struct np_nccl_config {
	size_t size;
	unsigned int magic, version;
	int blocking;
	int rest; /* padding in 2.14; a member that stays undefined since 2.17 */
};
_Static_assert(sizeof(struct np_nccl_config) == 24, "not the layout of NCCL 2.14");

#define NP_NCCL_CONFIG_MAGIC   0xcafebeefu /* NCCL_API_MAGIC */
#define NP_NCCL_CONFIG_VERSION 21400u	   /* NCCL_VERSION(2, 14, 0) */
#define NP_NCCL_CONFIG_UNSET   INT_MIN	   /* NCCL_CONFIG_UNDEF_INT */

/* X(member, symbol, parameters) */
#define NP_NCCL_FUNCTIONS(X) \
	X(init_all, "ncclCommInitAll", (np_nccl_comm * comms, int n, const int *devices)) \
	X(destroy, "ncclCommDestroy", (np_nccl_comm comm)) \
	X(all_reduce, "ncclAllReduce", \
	  (const void *send, void *receive, size_t count, int type, int op, np_nccl_comm comm, \
	   void *stream)) \
	X(group_start, "ncclGroupStart", (void)) \
	X(group_end, "ncclGroupEnd", (void))

/* one process a rank; NCCL 2 has them */
#define NP_NCCL_RANKS(X) \
	X(get_unique_id, "ncclGetUniqueId", (struct np_nccl_id * id)) \
	X(init_rank, "ncclCommInitRank", \
	  (np_nccl_comm * comm, int n, struct np_nccl_id id, int rank)) \
	X(count, "ncclCommCount", (np_nccl_comm comm, int *n))

/* 2.14 and newer, for communicators whose calls do not block: NULL otherwise */
#define NP_NCCL_SINCE_2_14(X) \
	X(init_rank_config, "ncclCommInitRankConfig", \
	  (np_nccl_comm * comm, int n, struct np_nccl_id id, int rank, \
	   struct np_nccl_config *config)) \
	X(finalize, "ncclCommFinalize", (np_nccl_comm comm))

/* 2.4 and newer: NULL otherwise */
#define NP_NCCL_SINCE_2_4(X) \
	X(abort, "ncclCommAbort", (np_nccl_comm comm)) \
	X(async_error, "ncclCommGetAsyncError", (np_nccl_comm comm, np_nccl_result * result))

/* a declarator has no parentheses around its parameters */
/* NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define NP_NCCL_MEMBER(member, symbol, parameters) np_nccl_result(*member) parameters;

struct np_nccl {
	void *handle;
	char path[256];	      /* of the library that was loaded */
	char version_str[16]; /* "2.28.3" */
	int version;	      /* as 10000 * major + 100 * minor + patch */
	NP_NCCL_FUNCTIONS(NP_NCCL_MEMBER)
	NP_NCCL_SINCE_2_4(NP_NCCL_MEMBER)
	NP_NCCL_RANKS(NP_NCCL_MEMBER)
	NP_NCCL_SINCE_2_14(NP_NCCL_MEMBER)
	const char *(*error_string)(np_nccl_result result); /* ncclGetErrorString */
	const char *(*last_error)(np_nccl_comm comm);	    /* 2.13 and newer, or NULL */
};

#undef NP_NCCL_MEMBER

#endif
