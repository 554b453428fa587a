/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_LIBRARIES_H
#define NP_AGENT_LIBRARIES_H

#include <jansson.h>

#include "base/child.h"
#include "base/err.h"
#include "base/str.h"
#include "netlink/netdev.h"

/*
 * What nodeprep-selftest --libraries says of UCX, CUDA, libgdrapi, NCCL, libibverbs and NVML.
 * The agent links none of them.
 */

/* One of UCX's transports that the guides stand on. */
struct np_library_transport {
	char name[16];	  /* "rc", "cuda_copy" */
	bool missing;	  /* built without, or its module cannot be loaded */
	bool built;	  /* false: built without */
	char reason[420]; /* of what is missing */
};

#define NP_LIBRARY_TRANSPORTS 5

/* The part that the plan and the judgement look at; plain, to be copied. */
struct np_libraries {
	bool asked;
	bool known;	 /* an answer came; else @err says why not */
	int cuda;	 /* of the driver's library, 13030 = 13.3; 0 = none, or unknown */
	uint32_t gdrapi; /* (major << 16) | minor; 0 = none, unknown, or a stand-in of the tests */
	char gdrapi_path[256];
	char ucx_path[256], ucx_version[64];
	struct np_library_transport transports[NP_LIBRARY_TRANSPORTS];
	size_t n_transports;
	enum np_tri nvlink; /* what NVML says; UNKNOWN = it was not asked, or gave no answer */
	struct np_err err;
};

/* Asks for versions alone: one child, no device is opened; with @nvlink NVML is asked too,
 * and that opens the GPUs. Returns 0, also where nothing could be learnt (known false), or
 * -EINTR and -ENOMEM with message. */
int np_libraries_ask(bool nvlink, struct np_libraries *out, struct np_err *err) np_must_check;

/* Those of @names (one of the lists below), as the list of the schema's show.libraries, in
 * @list (new reference). Each library is "unknown" where nodeprep-selftest is not installed,
 * crashes or hangs. Returns 0, or -EINTR and -ENOMEM with message. */
int np_libraries_show(const char *const *names, int timeout_ms, json_t **list,
		      struct np_err *err) np_must_check;

/* ---- the document (libraries_take.c); pure ---- */

/* The child is not trusted: its list is taken member by member, each of the type, length
 * and words of the schema, each library of @names once, nothing else. New reference; NULL
 * when it is not what it must be. */
json_t *np_libraries_take(const char *text, size_t len, const char *const *names);

/* The same list from nobody: each library unknown, for @why. */
json_t *np_libraries_unknown(const char *const *names, const struct np_err *why);

/* Fills @out from a list that np_libraries_take gave. */
void np_libraries_learn(const json_t *list, struct np_libraries *out);

extern const char *const np_library_names[];	    /* all; NULL ends */
extern const char *const np_library_names_brief[];  /* those of --brief */
extern const char *const np_library_names_nvlink[]; /* those of --brief --nvml */

#endif
