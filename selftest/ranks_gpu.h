/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_RANKS_GPU_H
#define NP_SELFTEST_RANKS_GPU_H

#include "selftest/gpu_set.h"
#include "selftest/nccl_lib.h"
#include "selftest/ranks.h"

/*
 * The GPU of this rank: of those that CUDA shows it, in CUDA's order, the one with the
 * number of the rank on its host, as programs take it that are started so. Where a launcher
 * shows each rank one GPU of its own, that is number 0 for all.
 * Returns 1, 0 when no GPU is shown (@why: ranks.no_gpu), or a negative errno: a GPU is
 * there and the driver does not work (codes of np_gpu_set_open). np_gpu_set_done frees @set.
 */
int np_ranks_gpu_find(const struct np_ranks *ranks, struct np_gpu_set *set,
		      const struct np_gpu_dev **gpu, struct np_err *why) np_must_check;

/* What each rank tells the others before NCCL is started. */
struct np_ranks_gpu_card {
	char host[40]; /* boot id: the same in all containers of a host */
	char pci[16];
	char nccl[16]; /* version */
	char code[48]; /* "" = it is ready */
	char message[256];
	char hint[200];
};

/* Opens NCCL and fills the card; @failed (num < 0): what is wrong already. */
void np_ranks_gpu_card_make(const struct np_gpu_dev *gpu, struct np_nccl *nccl,
			    const struct np_err *failed, struct np_ranks_gpu_card *card);

/* A card that another rank gave, @len bytes at @raw: its texts end and are one line each.
 * Returns 0 or -EPROTO: it is none. */
int np_ranks_gpu_card_read(const void *raw, size_t len,
			   struct np_ranks_gpu_card *card) np_must_check;

/*
 * Judges the cards of all ranks, by rank; the same answer on each. Returns 0, or a negative
 * errno with message, and in @about the rank that it is about:
 *   the code of a card    that rank is not ready
 *   ranks.gpu_shared      two ranks have one GPU: NCCL takes one rank a GPU
 *   ranks.nccl_differs    ranks have NCCL of different versions, which it refuses
 */
int np_ranks_gpu_judge(const struct np_ranks_gpu_card *cards, int n, char *const *hosts, int *about,
		       struct np_err *err) np_must_check;

#endif
