/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_UCX_VIEW_H
#define NP_SELFTEST_UCX_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* What UCX has on this node, as `ucx_info -d` shows it. */

#define NP_UCX_UNLIMITED UINT64_MAX
#define NP_UCX_NAMES_MAX 8

/* Largest message of a way to send; 0 = there is no such way. */
struct np_ucx_limits {
	uint64_t short_max, bcopy_max, zcopy_max;
};

struct np_ucx_transport {
	char name[32];	   /* "rc_mlx5" */
	char device[64];   /* "mlx5_0:1" */
	char md[64];	   /* memory domain, "" = unknown */
	const char *type;  /* "network", "intra-node", "accelerator", "loopback"; NULL = unknown */
	bool opened;	   /* the members below are known */
	char failure[320]; /* why it could not be opened; "" = it was, or was not tried */
	/* 10^6 bytes a second: what one process has, and what all of a device share */
	double dedicated_MBps, shared_MBps;
	double latency_ns, latency_per_ep_ns; /* the second for each active endpoint */
	double overhead_ns;		      /* of each message */
	struct np_ucx_limits put, get, am;
	unsigned int priority;
	const char *error_handling[NP_UCX_NAMES_MAX]; /* "peer failure", ...; NULL ends */
};

struct np_ucx_md {
	char name[64];
	char component[32]; /* "" = unknown */
	bool opened;	    /* the members below are known */
	char failure[320];
	uint64_t register_max, allocate_max; /* 0 = cannot */
	size_t rkey_bytes;		     /* of a packed remote key */
	/* "host", "cuda", ...; NULL ends */
	const char *register_types[NP_UCX_NAMES_MAX + 1];
	const char *access_types[NP_UCX_NAMES_MAX + 1];
};

struct np_ucx_view {
	char version[64]; /* at run time, "1.13.1" */
	char path[256];	  /* of libucp */
	bool exact;	  /* asked through UCT: numbers are known */
	struct np_strv components;
	struct np_ucx_md *mds;
	size_t n_mds;
	struct np_ucx_transport *transports;
	size_t n_transports;
};

/* Version that this program was built against, "1.13". */
const char *np_ucx_built_against(void);

/* UCT's structures change from one minor version to the next, so they are used when the
 * library is of the version of the headers. Pure. */
bool np_ucx_is_exact(unsigned int major, unsigned int minor);

/*
 * Asks UCX. @brief: opens no device; only version, path and (where the version is that
 * of the headers) components. Else, with the version of the headers, everything by UCT;
 * with another one the names of transports and devices alone, as UCP prints them.
 * Returns 0 or -ENOMEM; what cannot be opened says so in its own entry.
 * np_ucx_view_done frees.
 */
int np_ucx_view_make(bool brief, struct np_ucx_view *view, struct np_err *err) np_must_check;
void np_ucx_view_done(struct np_ucx_view *view);
#define np_auto_ucx_view np_auto(np_ucx_view_done)

/* The text of ucp_context_print_info: components, memory domains, transports. Lines that
 * say something else are passed over. Returns 0 or -ENOMEM. */
int np_ucx_view_parse(const char *text, struct np_ucx_view *view) np_must_check;

/* By UCT; only when np_ucx_is_exact. @brief: the components alone. Returns 0 or -ENOMEM. */
int np_ucx_view_ask_uct(bool brief, struct np_ucx_view *view) np_must_check;

/* New entries at the end, zeroed; NULL when out of memory. Good until the next call. */
struct np_ucx_md *np_ucx_view_add_md(struct np_ucx_view *view);
struct np_ucx_transport *np_ucx_view_add_transport(struct np_ucx_view *view);

#endif
