/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_LOCK_H
#define NP_AGENT_LOCK_H

#include "base/cleanup.h"
#include "base/err.h"

/*
 * One apply at a time: an flock on /run/nodeprep/lock, waited for up to
 * @timeout_s seconds. Returns the descriptor (closing it, or dying, frees the
 * lock), or -EBUSY (time passed), -EINTR (a signal) or another negative errno with message (code
 * "lock.busy").
 */
int np_lock(int timeout_s, struct np_err *err) np_must_check;

#endif
