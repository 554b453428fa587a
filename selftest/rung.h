/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_RUNG_H
#define NP_SELFTEST_RUNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "selftest/port_bytes.h"

/*
 * A rung proves one data path by moving bytes over it. One file a rung, one
 * line a rung in rungs.c; one rung a process.
 */

/* warn: the path works, and something about it wants a look. */
enum np_rung_status { NP_RUNG_FAIL, NP_RUNG_OK, NP_RUNG_WARN, NP_RUNG_SKIP };

struct np_rung_size {
	uint64_t size_bytes;
	double latency_us;     /* half round trip, median */
	double bandwidth_MBps; /* 10^6 bytes a second, at the receiver, median; 0 = not measured */
};

#define NP_RUNG_SIZES_MAX 16

/* One entry a rung and device. */
struct np_rung_result {
	char rung[24];
	char device[80];     /* "mlx5_0:1", "ib0", "0000:17:00.0"; "" = none */
	char transport[160]; /* what carried it, "rc_verbs/mlx5_0:1"; "" = nothing did */
	enum np_rung_status status;
	char code[48]; /* "" when ok */
	char message[640];
	char hint[320];
	struct np_rung_size sizes[NP_RUNG_SIZES_MAX]; /* ascending; also those before a failure */
	size_t n_sizes;
	struct np_port_growth growth; /* what the ports counted; known = it was looked at */
};

struct np_rung_report {
	struct np_rung_result *v;
	size_t n;
};

struct np_rung_options {
	const char *device;  /* "mlx5_0:1", "mlx5_0", GPUs; NULL = every one there is */
	const char *peer;    /* the port at the other end, as device; NULL = the same port */
	const char *gpu;     /* "0000:17:00.0" or "GPU0", beside the port; NULL = the nearest */
	int gid_index;	     /* of both ports; -1 = the best there is */
	const char *netdev;  /* "ib0" or NULL */
	const char *address; /* "10.0.0.50", a prefix length allowed; or NULL */
	bool force;	     /* also a GPU that other processes use */
	bool full;	     /* every power of 4 instead of a few sizes */
	int timeout_ms;	     /* of each device */
	int64_t deadline_ms; /* the same as a time of np_now_ms() */
};

struct np_rung {
	const char *name;
	const char *purpose; /* for --list */
	/* an entry a GPU, which needs no other (gpu_workers.h): processes at work on one;
	 * 0 = else */
	unsigned int gpu_processes;
	/* Adds one entry or more. Returns 0 whatever the verdict; a negative
	 * errno with message only when no verdict was possible (out of memory,
	 * a --device that is no device name: code "usage..."). */
	int (*run)(const struct np_rung_options *options, struct np_rung_report *report,
		   struct np_err *err);
};

/* Ends with name NULL. */
extern const struct np_rung np_rungs[];

const struct np_rung *np_rung_find(const char *name);
/* The rung whose name is nearest to @name, or NULL. */
const char *np_rung_nearest(const char *name);

int np_rung_tcp(const struct np_rung_options *options, struct np_rung_report *report,
		struct np_err *err) np_must_check;
int np_rung_rc(const struct np_rung_options *options, struct np_rung_report *report,
	       struct np_err *err) np_must_check;
int np_rung_umad(const struct np_rung_options *options, struct np_rung_report *report,
		 struct np_err *err) np_must_check;
int np_rung_verbs(const struct np_rung_options *options, struct np_rung_report *report,
		  struct np_err *err) np_must_check;
int np_rung_cuda(const struct np_rung_options *options, struct np_rung_report *report,
		 struct np_err *err) np_must_check;
int np_rung_nccl(const struct np_rung_options *options, struct np_rung_report *report,
		 struct np_err *err) np_must_check;
int np_rung_gdrapi(const struct np_rung_options *options, struct np_rung_report *report,
		   struct np_err *err) np_must_check;
int np_rung_cuda_copy(const struct np_rung_options *options, struct np_rung_report *report,
		      struct np_err *err) np_must_check;
int np_rung_gdr_copy(const struct np_rung_options *options, struct np_rung_report *report,
		     struct np_err *err) np_must_check;
int np_rung_cuda_ipc(const struct np_rung_options *options, struct np_rung_report *report,
		     struct np_err *err) np_must_check;
int np_rung_gdr_rdma(const struct np_rung_options *options, struct np_rung_report *report,
		     struct np_err *err) np_must_check;

/* Adds an entry whose status is fail until somebody says otherwise. The pointer
 * is good until the next call. NULL when out of memory. */
struct np_rung_result *np_rung_add(struct np_rung_report *report, const char *rung,
				   const char *device);
void np_rung_report_done(struct np_rung_report *report);
#define np_auto_rung_report np_auto(np_rung_report_done)

/* Verdicts. The error's code, message and hint become the entry's. */
void np_rung_fail(struct np_rung_result *result, const struct np_err *err);
void np_rung_skip(struct np_rung_result *result, const struct np_err *err);
void np_rung_warn(struct np_rung_result *result, const struct np_err *err);
void np_rung_ok(struct np_rung_result *result, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Ready: each entry is ok or a warning, and there is one. A rung that was asked for and had to
 * skip is not ready. */
bool np_rung_report_ok(const struct np_rung_report *report);

/* "8 B", "64 KiB", "1 MiB"; whole units only, else bytes. Returns @out. */
const char *np_size_str(uint64_t bytes, char out[32]);

#endif
