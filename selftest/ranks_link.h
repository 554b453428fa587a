/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_RANKS_LINK_H
#define NP_SELFTEST_RANKS_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/*
 * The socket between worker and supervisor. The worker asks for an exchange: a head and
 * its own bytes; the answer is a head and, for each rank, a length and its bytes. The end of
 * the socket is the end of the worker.
 */

enum np_ranks_ask { NP_ASK_SHARE = 1, NP_ASK_FENCE };

struct np_ranks_head {
	uint32_t ask;  /* enum np_ranks_ask; in an answer the same */
	int32_t error; /* in an answer: 0 or a negative errno, then the bytes are a message */
	uint64_t len;  /* of what follows */
	char what[32]; /* for messages and as the name of the value */
};

/* Both return 0 or a negative errno; -EPIPE at the end of the socket. */
int np_ranks_send(int fd, const struct np_ranks_head *head, const void *data) np_must_check;
/* @data gets head->len bytes. */
int np_ranks_receive(int fd, struct np_ranks_head *head, struct np_buf *data) np_must_check;

#endif
