/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_MEASURE_H
#define NP_SELFTEST_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

/* What the rungs share: message sizes, clock, median, seeds, the judgement of a message. */

/* Message sizes in bytes, ascending: a few from 8 B to 8 MiB, or with @full the
 * powers of 4 from 1 B to 64 MiB. At most NP_RUNG_SIZES_MAX. */
const uint64_t *np_sizes(bool full, size_t *n);

/* CLOCK_MONOTONIC in microseconds. */
double np_now_us(void);

/* Of @n > 0 values, which it sorts. */
double np_median(double *values, size_t n);

/* A seed of payloads that no earlier run had, so that old memory cannot pass. */
uint64_t np_seed_base(void);

/* Compares every byte of a message, the @nth of this run, with the payload of @seed.
 * Returns 0, or -EBADMSG with code selftest.data_corrupt. */
int np_message_verify(char *received, size_t size, uint64_t seed, uint64_t nth,
		      struct np_err *err) np_must_check;

/* -ETIMEDOUT with code selftest.timeout: @doing ("sending 8 B over rc") took too long. */
int np_too_late(const char *doing, struct np_err *err);

#endif
