/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_WANTED_H
#define NP_SELFTEST_WANTED_H

#include "ibmad/ca.h"
#include "selftest/rung.h"

typedef void np_run_port_fn(const struct np_rung_options *options, const struct np_ca *ca,
			    const struct np_port *port, struct np_rung_result *result);

/* Runs @run_port for each port of options->device, or for all InfiniBand ports that
 * can carry data, each with an entry of its own. None of them: one entry that skips, or
 * where one was named fails, with code selftest.RUNG.no_device. Returns as np_rung.run. */
int np_run_wanted(const char *rung, const struct np_rung_options *options, np_run_port_fn *run_port,
		  struct np_rung_report *report, struct np_err *err) np_must_check;

/* True when the port is ACTIVE; else @err says why @rung skips (code
 * selftest.RUNG.port_not_active). */
bool np_port_is_active(const char *rung, const char *ca, const struct np_port *port,
		       struct np_err *err);

#endif
