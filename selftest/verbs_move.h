/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_VERBS_MOVE_H
#define NP_SELFTEST_VERBS_MOVE_H

#include "selftest/rung.h"
#include "selftest/verbs_link.h"

/* For one size: RDMA write and send both ways, every byte verified; then latency (half a
 * ping-pong of RDMA writes, as ib_write_lat) and bandwidth (a window of them, as
 * ib_write_bw), with what they left in memory verified afterwards. @full spends more
 * time. Returns 0, or a negative errno with
 *   selftest.data_corrupt    a byte differs (-EBADMSG)
 *   selftest.timeout         the deadline passed (-ETIMEDOUT)
 *   selftest.verbs.no_path   the other end did not acknowledge (-EHOSTUNREACH)
 *   selftest.verbs.completion  a work request ended otherwise than well (-EIO)
 *   selftest.verbs.post      a work request was refused */
int np_verbs_prove_size(struct np_verbs_link *link, bool full, struct np_rung_size *size,
			struct np_err *err) np_must_check;

#endif
