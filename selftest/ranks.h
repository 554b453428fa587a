/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_RANKS_H
#define NP_SELFTEST_RANKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/*
 * nodeprep-ranks. Each rank is two processes. The supervisor is the one that the launcher
 * started: it alone speaks PMIx, and never touches UCX, CUDA or NCCL. The worker is its child
 * and does everything else. A worker that crashes or hangs in a vendor's library is so a
 * verdict of its supervisor, not the end of the job. They share a board (memory), where the
 * worker writes what it does and what came of it, and a socket (ranks_link.h) over which the
 * worker asks for exchanges with the other ranks.
 */

#define NP_RANKS_PROTOCOL 1u

/* ---- what a rank finds out ---- */

enum np_ranks_cell_status {
	NP_CELL_NONE,	 /* not tried (yet) */
	NP_CELL_OK,	 /* all trials verified, both ways */
	NP_CELL_MISSING, /* no way to the peer, or it failed on the way */
	NP_CELL_CORRUPT, /* a byte that came from the peer was wrong */
};

/* One peer, as this rank sees it. Best of all trials. */
struct np_ranks_cell {
	uint8_t status;	  /* enum np_ranks_cell_status */
	uint8_t lane;	  /* index into lanes, what carries messages to the peer */
	uint16_t trials;  /* verified */
	float latency_us; /* half a round trip of 8 B; 0 = not measured */
	float in_MBps;	  /* from the peer, 10^6 bytes a second, at this end; 0 = not measured */
};

#define NP_RANKS_LANES_MAX 16
#define NP_RANKS_NOTES_MAX 16

/* Why a cell is not OK. More than NP_RANKS_NOTES_MAX are counted only. */
struct np_ranks_note {
	int32_t peer;
	char code[48];
	char message[400];
};

enum np_ranks_backend { NP_BACKEND_NONE, NP_BACKEND_HOST, NP_BACKEND_NCCL };

struct np_ranks_reduced {
	uint64_t size_bytes;
	double time_us;	 /* of one allreduce, median */
	double bus_MBps; /* size / time * 2 (n - 1) / n, 10^6 bytes a second */
};

#define NP_RANKS_SIZES_MAX 16

struct np_ranks_allreduce {
	uint32_t backend;     /* enum np_ranks_backend */
	uint32_t verified;    /* every element of every size was right */
	uint32_t clique_size; /* how many ranks the communicator has */
	uint32_t final_size;  /* the sum of a one from each rank */
	char device[80];      /* of this rank: the GPU's PCI address; "" = host memory */
	char version[32];     /* of NCCL; "" = not used */
	uint32_t n_sizes;
	struct np_ranks_reduced sizes[NP_RANKS_SIZES_MAX];
};

enum np_ranks_phase {
	NP_PHASE_START,
	NP_PHASE_UCX,	   /* opening devices */
	NP_PHASE_EXCHANGE, /* waits for what all ranks give */
	NP_PHASE_CONNECT,  /* waits for a first message from each rank */
	NP_PHASE_ROUNDS,   /* point to point */
	NP_PHASE_ALLREDUCE,
	NP_PHASE_DONE,
};

/* What a rank did or does: shared memory of worker and supervisor; what of it goes to rank 0
 * is the same struct (ranks_report.h). Cells: one a rank, the own one stays NONE. */
struct np_ranks_board {
	uint32_t protocol;
	int32_t rank, size;
	/* the worker is alive, in milliseconds of np_now_ms() */
	_Atomic int64_t tick_ms;
	_Atomic int64_t quiet_until_ms; /* a library's call may last so long without a tick */
	_Atomic uint32_t phase;
	_Atomic int32_t trial, round, peer; /* in NP_PHASE_ROUNDS; peer -1 = none */
	uint32_t finished;		    /* the worker came to its end; then @err tells how */
	uint32_t passed_all;		    /* it took part in every exchange */
	struct np_err err;		    /* num 0 = no error beyond the cells */
	int32_t err_peer;		    /* whom it is about; -1 = itself */
	_Atomic int32_t lost;	  /* the first peer whose endpoint UCX found broken; -1 = none */
	uint64_t messages, bytes; /* sent, point to point */
	/* resident memory: with UCX open, with all endpoints, at the end */
	uint64_t open_kb, connected_kb, rss_kb;
	uint64_t connect_ms, rounds_ms, allreduce_ms;
	struct np_ranks_allreduce allreduce;
	uint32_t n_lanes, n_notes; /* notes may be more than there is room for */
	char lanes[NP_RANKS_LANES_MAX][96];
	struct np_ranks_note notes[NP_RANKS_NOTES_MAX];
	struct np_ranks_cell cells[];
};

size_t np_ranks_board_size(int size);

/* ---- what the worker has ---- */

struct np_ranks_options {
	int trials;
	int timeout_ms;	      /* of the whole job */
	uint64_t size_bytes;  /* of the messages that measure bandwidth */
	double factor;	      /* what is so many times worse than its like is slow */
	bool close_endpoints; /* one endpoint at a time */
	bool no_allreduce, host_only;
	bool json, verbose, quiet;
	const char *config_env; /* the file that apply wrote, or another */
};

struct np_ranks_ucx; /* ranks_ucx.h */

struct np_ranks {
	int rank, size, local_rank, local_size;
	const struct np_ranks_options *options;
	int64_t deadline_ms; /* of the worker, np_now_ms(); the report needs the rest */
	char **hosts;	     /* by rank */
	struct np_ranks_board *board;
	struct np_ranks_ucx *ucx; /* context, worker, endpoints */
	int link;		  /* socket to the supervisor */
	bool has_gpu;		  /* every rank has one */
	/* lets UCX go on while an exchange is waited for: what was sent may not have left yet */
	void (*progress)(struct np_ranks *ranks);
};

/* ---- exchanges with all other ranks, over PMIx; every rank must make the same calls ----
 * Return 0 or a negative errno with message: -ETIMEDOUT with code ranks.exchange when not all
 * ranks came before the deadline. */

/* @mine of each rank (any length) to everybody: @all is an array of size buffers, which the
 * caller frees with np_ranks_parts_done. */
int np_ranks_share(struct np_ranks *ranks, const char *what, const void *mine, size_t len,
		   struct np_buf *all, struct np_err *err) np_must_check;
void np_ranks_parts_done(struct np_buf *all, int n);

/* @data of rank @root to everybody; the same @len in all. */
int np_ranks_broadcast(struct np_ranks *ranks, const char *what, int root, void *data, size_t len,
		       struct np_err *err) np_must_check;

/* All came here. */
int np_ranks_fence(struct np_ranks *ranks, const char *what, struct np_err *err) np_must_check;

/* ---- signs of life ---- */

/* Call it at least once a second while waiting; cheap. */
void np_ranks_tick(struct np_ranks *ranks);

/* The next call into a library may last @ms without a tick; @ms 0 ends it. */
void np_ranks_quiet(struct np_ranks *ranks, int ms);

/* Resident memory of this process in kB, 0 = unknown. */
uint64_t np_ranks_rss_kb(void);

/* ---- the allreduce: one of two backends fills board->allreduce ----
 * 0: it ran; what is wrong with the data is told by verified, clique_size, final_size.
 * A negative errno with message (codes ranks....): it could not be run. */
int np_ranks_allreduce_host(struct np_ranks *ranks, struct np_ranks_allreduce *out,
			    struct np_err *err) np_must_check;
int np_ranks_allreduce_nccl(struct np_ranks *ranks, struct np_ranks_allreduce *out,
			    struct np_err *err) np_must_check;

/* What NCCL needs is on this node: libnccl and a GPU for the local rank. Asked on each rank;
 * NCCL is used when all of them say yes, host memory when all say no; else it is an error that
 * names the odd ones. Fills version and device. Returns true or false, never fails;
 * @why (not NULL) tells why not. */
bool np_ranks_nccl_ready(struct np_ranks *ranks, struct np_ranks_allreduce *out,
			 struct np_err *why);

#endif
