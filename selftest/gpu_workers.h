/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_GPU_WORKERS_H
#define NP_SELFTEST_GPU_WORKERS_H

#include <sys/types.h>

#include "selftest/gpu_set.h"

/*
 * The GPUs of a rung, side by side: a process each, so that eight take little longer than
 * one, and what one GPU's driver does to its process is that GPU's alone. A worker does the
 * rung for its GPU as if that were the only one, with a document for each entry; the first
 * process gathers them, in the order of the GPUs. It uses no library of the rungs itself, so
 * that it may fork. Their number at a time is that of the processors, lest they take each
 * other's time; a rung may want two processes a GPU.
 */

#define NP_GPU_WORKERS_MAX 32u

struct np_gpu_worker {
	char pci[16];
	pid_t pid;
	int fd;		   /* what it writes; -1 = it came to its end */
	struct np_buf out; /* of that, what is not told yet */
	bool spoke;	   /* it gave a verdict */
	int exit_status;   /* as waitpid gives it; -1 = not ended */
};

struct np_gpu_workers {
	struct np_gpu_worker v[NP_GPU_WORKERS_MAX];
	size_t n;
	const char *rung;
	int timeout_ms;
	bool lines; /* each document goes on as it comes */
	int code;   /* for this process to exit with: the highest of theirs */
};

enum np_gpu_workers_role {
	NP_GPU_WORKERS_NONE,   /* one GPU, none on the PCI bus, names that are not of there, too
				* few processors: this process does it all */
	NP_GPU_WORKERS_WORKER, /* this is one, for workers->v[0] */
	NP_GPU_WORKERS_DONE,   /* all is told, and workers->code is good */
};

/* A worker for each GPU of options->device, or of the PCI bus; waits until all have ended,
 * each for its deadline and 4 s at most, and writes what they said. Returns the role of the
 * process that comes back, or a negative errno with message. A signal that ended a worker
 * ends this process too, once all is written. */
int np_gpu_workers(const struct np_rung *rung, const struct np_rung_options *options, bool lines,
		   struct np_gpu_workers *workers, struct np_err *err) np_must_check;

/* In a worker, which has looked who else uses its GPU and makes no context before this
 * comes back: all that run have looked, or @deadline_ms (of np_now_ms()) is half as near.
 * Otherwise it does nothing. */
void np_gpu_workers_meet(int64_t deadline_ms);
/* In a process that a worker forked: it is not waited for. */
void np_gpu_workers_leave(void);

/* ---- gpu_gather.c: the first process's part ---- */

/* Waits for those from number @from up to @to, and passes on what they wrote if it is to go
 * on at once. Returns 0 or a negative errno: nobody reads it. */
int np_gpu_workers_wait(struct np_gpu_workers *workers, size_t from, size_t to) np_must_check;
/* Writes what is not told yet and sets the code. Returns 0 or a negative errno. */
int np_gpu_workers_tell(struct np_gpu_workers *workers) np_must_check;

#endif
