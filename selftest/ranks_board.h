/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_RANKS_BOARD_H
#define NP_SELFTEST_RANKS_BOARD_H

#include "selftest/ranks.h"

/*
 * The board that @rank of @size ranks has published, @len bytes at @raw. Nothing in it is taken
 * on trust: strings come to an end and are one line, numbers and indices are such as a rank
 * can have, what is none counts as not measured. NULL when it is none, or without memory;
 * free() it. Pure.
 */
struct np_ranks_board *np_ranks_board_read(const void *raw, size_t len, int rank, int size);

#endif
