/* SPDX-License-Identifier: MIT */
#include "selftest/ranks_board.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void end_text(char *text, size_t size)
{
	text[size - 1] = '\0';
	np_one_line(text, size);
}

/* Codes are words of ours; what is none says "internal" (see np_err). */
static void end_code(char *code, size_t size)
{
	code[size - 1] = '\0';
	if (strspn(code, "abcdefghijklmnopqrstuvwxyz0123456789_.") != strlen(code))
		code[0] = '\0';
}

static int32_t rank_or_none(int32_t rank, int size)
{
	return rank >= 0 && rank < size ? rank : -1;
}

static float measured(float value)
{
	return isfinite(value) && value > 0 ? value : 0;
}

static void clean_cells(struct np_ranks_board *board)
{
	for (int i = 0; i < board->size; i++) {
		struct np_ranks_cell *cell = &board->cells[i];

		if (i == board->rank || cell->status > NP_CELL_CORRUPT)
			memset(cell, 0, sizeof(*cell));
		if (cell->lane > board->n_lanes)
			cell->lane = 0;
		cell->latency_us = measured(cell->latency_us);
		cell->in_MBps = measured(cell->in_MBps);
	}
}

static void clean_allreduce(struct np_ranks_allreduce *of)
{
	if (of->backend > NP_BACKEND_NCCL)
		of->backend = NP_BACKEND_NONE;
	if (of->n_sizes > NP_RANKS_SIZES_MAX)
		of->n_sizes = NP_RANKS_SIZES_MAX;
	end_text(of->device, sizeof(of->device));
	end_text(of->version, sizeof(of->version));
}

static void clean(struct np_ranks_board *board)
{
	if (board->err.num > 0)
		board->err.num = -EPROTO;
	end_code(board->err.code, sizeof(board->err.code));
	end_text(board->err.message, sizeof(board->err.message));
	end_text(board->err.hint, sizeof(board->err.hint));
	board->err_peer = rank_or_none(board->err_peer, board->size);
	board->lost = rank_or_none(board->lost, board->size);
	if (board->n_lanes > NP_RANKS_LANES_MAX)
		board->n_lanes = NP_RANKS_LANES_MAX;
	for (size_t i = 0; i < NP_RANKS_LANES_MAX; i++)
		end_text(board->lanes[i], sizeof(board->lanes[i]));
	for (size_t i = 0; i < NP_RANKS_NOTES_MAX; i++) {
		end_code(board->notes[i].code, sizeof(board->notes[i].code));
		end_text(board->notes[i].message, sizeof(board->notes[i].message));
	}
	clean_allreduce(&board->allreduce);
	clean_cells(board);
}

struct np_ranks_board *np_ranks_board_read(const void *raw, size_t len, int rank, int size)
{
	struct np_ranks_board *board;

	if (!raw || len != np_ranks_board_size(size))
		return NULL;
	board = malloc(len);
	if (!board)
		return NULL;
	memcpy(board, raw, len);
	if (board->protocol != NP_RANKS_PROTOCOL || board->rank != rank || board->size != size) {
		free(board);
		return NULL;
	}
	clean(board);
	return board;
}
