/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_UCP_ENGINE_H
#define NP_SELFTEST_UCP_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucp/api/ucp.h>

#include "base/err.h"
#include "selftest/rung.h"

/*
 * What every UCX rung does: one process, one context, two workers joined by
 * their addresses; tagged messages of several sizes both ways, each with its own
 * payload, every byte verified at the receiver; latency as half a ping-pong,
 * bandwidth with as many messages outstanding as ucx_perftest has; and at the end the question
 * to the endpoint what carried them. UCX is configured through its API alone.
 */

struct np_ucp_link;
struct np_ucp_buffers;

/* Where the messages lie. */
struct np_ucp_mem {
	const char *name; /* "host memory" */
	ucs_memory_type_t type;
	/* NULL with message on failure */
	void *(*alloc)(void *ctx, size_t len, struct np_err *err);
	void (*release)(void *ctx, void *mem, size_t len);
	/* Copies between @mem and the host, done when they return; 0 or a negative
	 * errno with message. Both NULL: the CPU can reach the memory itself. */
	int (*write)(void *ctx, void *mem, const void *host, size_t len, struct np_err *err);
	int (*read)(void *ctx, void *host, const void *mem, size_t len, struct np_err *err);
	void *ctx;
};

extern const struct np_ucp_mem np_ucp_mem_host;

struct np_ucp_setting {
	const char *name; /* without UCX_ */
	const char *value;
};

struct np_ucp_spec {
	const char *rung;		       /* "rc": codes are "selftest.rc...." */
	const char *tls;		       /* UCX_TLS */
	const char *net_devices;	       /* UCX_NET_DEVICES; NULL = UCX's choice */
	const struct np_ucp_setting *settings; /* more, up to name NULL; or NULL. One of
						* them set in the environment (--env) wins */
	const char *const *carriers; /* transports that may carry the messages, NULL-terminated */
	/* transports that must copy between the host and @mem, all of them and no other,
	 * NULL-terminated; NULL = that is not asked. UCX has an endpoint of its own for it. */
	const char *const *memory_carriers;
	const char *must_carry; /* one of @carriers that must be among them, or NULL */
	const char *device;	/* the device they must use, or NULL */
	const struct np_ucp_mem *mem;
	size_t register_bytes; /* host memory that must be registrable beforehand, 0 = none */
	bool no_peer_errors;   /* for transports that cannot report a failed peer */
	bool full;	       /* powers of 4 from 1 B to 64 MiB */
	const uint64_t *sizes; /* other sizes, up to 8 MiB (@full: 64 MiB), ascending; or NULL */
	size_t n_sizes;
	int64_t deadline_ms; /* np_now_ms() by which it gives up */
};

/* Runs it all. Fills sizes (also those done before a failure), transport and the bytes
 * moved (growth.moved) of @result; the verdict is the caller's. Returns 0, or a negative errno with
 *   selftest.data_corrupt        a byte differs, or too few arrived (-EBADMSG)
 *   selftest.timeout             the deadline passed (-ETIMEDOUT)
 *   selftest.RUNG.no_transport   UCX has no such transport on this device (-ENODEV)
 *   selftest.RUNG.other_transport  something else carried the messages (-EPROTO)
 *   selftest.RUNG.memlock        memory could not be registered (-ENOMEM)
 *   selftest.RUNG.endpoint       the connection failed (-ECONNRESET)
 *   selftest.RUNG.ucx            UCX failed otherwise (-EIO) */
int np_ucp_prove(const struct np_ucp_spec *spec, struct np_rung_result *result,
		 struct np_err *err) np_must_check;

/* The parts of it, for engines that share them. Fills transport of @result. */
int np_ucp_check_carrier(struct np_ucp_link *link, struct np_rung_result *result,
			 struct np_err *err) np_must_check;
/* The sizes of @spec. */
const uint64_t *np_ucp_sizes(const struct np_ucp_spec *spec, size_t *n);
/* Takes down link and buffers, unless after @ret (0 or an error) requests may hold them. */
void np_ucp_finish(struct np_ucp_link *link, struct np_ucp_buffers *buffers, int ret);

/* True when a failed connection was left as it is: UCX 1.13 aborts when it is to
 * take down one that is half made. The process then ends by _exit. */
bool np_ucp_abandoned(void);

#endif
