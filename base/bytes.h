/* SPDX-License-Identifier: MIT */
#ifndef NP_BASE_BYTES_H
#define NP_BASE_BYTES_H

#include <stdint.h>

#include "base/cleanup.h"

/* Amounts of memory as people write them. */

#define NP_BYTES_STRLEN 32

/* "64 GiB", with or without the blank: a number of KiB, MiB or GiB, above 0 and below
 * 2^64 - 1 bytes. Returns 0 or -EINVAL; @bytes is untouched on failure. */
int np_parse_bytes(const char *s, uint64_t *bytes) np_must_check;

/* In the largest of these units that it is a whole number of, else in bytes: what
 * np_parse_bytes gave reads the same again. Returns @out. */
const char *np_bytes_str(uint64_t bytes, char out[NP_BYTES_STRLEN]);

#endif
