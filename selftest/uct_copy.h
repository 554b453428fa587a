/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_UCT_COPY_H
#define NP_SELFTEST_UCT_COPY_H

#include "selftest/ucp_engine.h"

/*
 * A transport by itself, below UCP: memory registered with its domain, the key packed and
 * unpacked, bytes put into that memory and got out of it by the processor, both verified.
 * UCT's structures are another version's business: this is done with the version of the
 * headers alone.
 */

struct np_uct_copy {
	const char *code;      /* of a call that fails, "selftest.gdr_copy.uct" */
	const char *component; /* "gdr_copy" */
	const char *transport; /* "gdr_copy" */
	const struct np_ucp_mem *mem;
	const uint64_t *sizes; /* those that the transport takes are tried */
	size_t n_sizes;
};

struct np_uct_copied {
	uint64_t smallest, largest; /* bytes; what was verified */
	double put_us, get_us;	    /* of the smallest, median */
};

/* Whether UCT of version @major.@minor.@release may be used; @one_piece: it is of the same
 * directory as UCP, which tells the version. 0, or 1 with both versions in @err. Pure. */
int np_uct_usable(unsigned int major, unsigned int minor, unsigned int release, bool one_piece,
		  struct np_err *err) np_must_check;

/* Returns 0; 1 when this UCX is of another version (np_uct_usable); or a negative errno with
 *   @code                    a call failed, or the transport cannot put and get
 *   selftest.data_corrupt    a byte differs (-EBADMSG) */
int np_uct_copy_prove(const struct np_uct_copy *spec, struct np_uct_copied *out,
		      struct np_err *err) np_must_check;

#endif
