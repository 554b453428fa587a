/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_CONFIRM_H
#define NP_AGENT_CONFIRM_H

#include <stdint.h>
#include <sys/types.h>

#include "agent/run.h"

/*
 * Who takes a run back that nobody confirms: a child in a session of its own, without
 * descriptors, terminal or lock, deaf to SIGHUP, started when the journal is written and
 * nothing is changed yet. It sleeps until @deadline_ms (CLOCK_BOOTTIME), or as long as the
 * journal says by then; at SIGTERM (the end of its session, a shutdown) it does so at once, since
 * then nobody would later. Where it cannot (a full disk), it tries again, after pauses of up to
 * 5 minutes. It ends when the run's journal is gone. What kills it outright leaves
 * the journal to the next nodeprep. It reports to syslog. Returns 0, or a negative errno with
 * message ("internal.child").
 */
int np_confirm_start(const char *run, int64_t deadline_ms, pid_t *guard,
		     struct np_err *err) np_must_check;

/* Before another run: looks what an earlier one left (np_run_look). One that waits to be
 * confirmed is a refusal (-EBUSY, "confirm.waiting"); one that was not is taken back, and told
 * as a check ("confirm.expired"). Returns 0 or a negative errno with message. */
int np_confirm_settle(struct np_run *run, struct np_result *result) np_must_check;

/* The run is over: the child need not wait. 0 = there is none. */
void np_confirm_stop(pid_t guard);

#endif
