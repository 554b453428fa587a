/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_SELFTEST_CHILD_H
#define NP_AGENT_SELFTEST_CHILD_H

#include <jansson.h>

#include "agent/helper.h"
#include "agent/ladder.h"
#include "agent/selftest_run.h"

/*
 * Runs the @n steps, of one rung and alike but for their device, in one child: what a rung
 * has to start (CUDA, UCX) it starts once. @got[i], NULL before, becomes the entry of
 * steps[i]. A child that crashes or hangs is the failure of the device that it was at
 * work on; the devices behind that one get another child, until a second one hangs.
 * Returns 0, or a negative errno with message when no child could be run or a signal came;
 * entries that are there by then are the caller's too.
 */
int np_selftest_child(const struct np_rung_options *options, const struct np_helper *helper,
		      const struct np_ladder_step *steps, size_t n, json_t **got,
		      struct np_err *err) np_must_check;

#endif
