/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_NCCL_API_H
#define NP_SELFTEST_NCCL_API_H

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
enum { NP_NCCL_FLOAT32 = 7 };			       /* ncclDataType_t */
enum { NP_NCCL_SUM = 0 };			       /* ncclRedOp_t */

/* X(member, symbol, parameters) */
#define NP_NCCL_FUNCTIONS(X) \
	X(init_all, "ncclCommInitAll", (np_nccl_comm * comms, int n, const int *devices)) \
	X(destroy, "ncclCommDestroy", (np_nccl_comm comm)) \
	X(all_reduce, "ncclAllReduce", \
	  (const void *send, void *receive, size_t count, int type, int op, np_nccl_comm comm, \
	   void *stream)) \
	X(group_start, "ncclGroupStart", (void)) \
	X(group_end, "ncclGroupEnd", (void))

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
	const char *(*error_string)(np_nccl_result result); /* ncclGetErrorString */
	const char *(*last_error)(np_nccl_comm comm);	    /* 2.13 and newer, or NULL */
};

#undef NP_NCCL_MEMBER

#endif
