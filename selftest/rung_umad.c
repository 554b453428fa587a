/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/child.h"
#include "ibmad/smp.h"
#include "selftest/measure.h"
#include "selftest/rung.h"
#include "selftest/umad_judge.h"
#include "selftest/wanted.h"

/*
 * The port answers management: what it says of itself by subnet management packets,
 * against what the kernel shows of it, what it could be, and what the fabric's subnet
 * manager says.
 */

#define MAD_BYTES    256 /* IBA 13.4.2 */
#define MAD_TIMEOUT  500 /* ms; a local answer takes microseconds, one over the fabric a few ms */
#define ROUNDS_QUICK 20
#define ROUNDS_FULL  200
/* The kernel's values may be a moment older than the port's, so they are read again. */
#define MISMATCH_TRIES	 3
#define MISMATCH_WAIT_MS 200

struct umad_run {
	const struct np_rung_options *options;
	struct np_smp smp;
	const char *ca;
	int num;
	struct np_umad_view view;
};

static int time_left(const struct umad_run *run, struct np_err *err)
{
	return np_now_ms() < run->options->deadline_ms ? 0 : np_too_late("asking the port", err);
}

static int ask(struct umad_run *run, struct np_err *err)
{
	uint8_t data[NP_SMP_DATA];
	int ret;

	ret = np_smp_get(&run->smp, NP_SMP_NODE_INFO, 0, 0, MAD_TIMEOUT, data, err);
	if (ret < 0)
		return ret;
	np_node_info_decode(data, &run->view.node);
	/* of a CA: 0 would be the port that the packet came in by */
	ret = np_smp_get(&run->smp, NP_SMP_PORT_INFO, (uint32_t)run->num, 0, MAD_TIMEOUT, data,
			 err);
	if (ret == 0)
		np_port_info_decode(data, &run->view.info);
	return ret;
}

/* The subnet manager is on another node as a rule; that it does not answer is no fault
 * of this port. */
static int ask_sm(struct umad_run *run, struct np_err *err)
{
	struct np_umad_view *view = &run->view;
	uint8_t data[NP_SMP_DATA];
	int ret;

	if (view->info.state != NP_PORT_ACTIVE || !view->info.sm_lid)
		return 0;
	for (int i = 0; i < 2; i++) { /* such packets may be lost */
		ret = np_smp_get(&run->smp, NP_SMP_SM_INFO, 0, view->info.sm_lid, MAD_TIMEOUT, data,
				 err);
		if (ret != -ETIMEDOUT)
			break;
	}
	view->sm_asked = true;
	view->sm_answered = ret == 0;
	if (ret == 0)
		np_sm_info_decode(data, &view->sm);
	return ret == -ETIMEDOUT || ret == -EPROTO ? 0 : ret;
}

/* What the kernel shows, read again until it agrees with the port. */
static int compare(struct umad_run *run, struct np_err *err)
{
	int ret = 0;

	for (int i = 0; i < MISMATCH_TRIES; i++) {
		struct np_cas cas = { 0 };
		const struct np_ca *ca;

		if (i > 0) {
			np_sleep_ms(MISMATCH_WAIT_MS);
			ret = ask(run, err);
			if (ret < 0)
				return ret;
		}
		ret = np_cas_observe(NP_CA_BASIC, &cas, err);
		if (ret < 0)
			return ret;
		ca = np_cas_find(&cas, run->ca);
		ret = np_umad_mismatch(&run->view, ca, np_cas_find_port(&cas, run->ca, run->num),
				       err);
		np_cas_done(&cas);
		if (ret == 0)
			return 0;
	}
	return ret;
}

static int measure(struct umad_run *run, struct np_rung_result *result, struct np_err *err)
{
	size_t rounds = run->options->full ? ROUNDS_FULL : ROUNDS_QUICK;
	double samples[ROUNDS_FULL];
	uint8_t data[NP_SMP_DATA];

	for (size_t i = 0; i < rounds; i++) {
		double start = np_now_us();
		int ret = np_smp_get(&run->smp, NP_SMP_PORT_INFO, (uint32_t)run->num, 0,
				     MAD_TIMEOUT, data, err);

		samples[i] = (np_now_us() - start) / 2;
		if (ret == 0)
			ret = time_left(run, err);
		if (ret < 0)
			return ret;
	}
	result->sizes[0].size_bytes = MAD_BYTES;
	result->sizes[0].latency_us = np_median(samples, rounds);
	result->n_sizes = 1;
	return 0;
}

static int prove(struct umad_run *run, struct np_rung_result *result, struct np_err *err)
{
	int ret = ask(run, err);

	if (ret == 0)
		ret = measure(run, result, err);
	if (ret == 0)
		ret = compare(run, err);
	if (ret == 0)
		ret = ask_sm(run, err);
	return ret;
}

static void run_port(const struct np_rung_options *options, const struct np_ca *ca,
		     const struct np_port *port, struct np_rung_result *result)
{
	struct umad_run run = { .options = options, .ca = ca->name, .num = port->num };
	char text[512];
	struct np_err why;
	int ret;

	/* of an unknown one the port itself can tell */
	if (port->link_layer != NP_LL_INFINIBAND && port->link_layer != NP_LL_UNKNOWN) {
		np_err_set(&why, -EOPNOTSUPP, "selftest.umad.not_infiniband",
			   "port %s is %s: it takes no subnet management packets", result->device,
			   np_link_layer_str(port->link_layer));
		np_err_hint(&why, "name an InfiniBand port: --device CA:PORT");
		np_rung_skip(result, &why);
		return;
	}
	/* a umad node that cannot be opened says nothing against the port */
	if (np_smp_open(ca->name, port->num, &run.smp, &why) < 0) {
		np_rung_skip(result, &why);
		return;
	}
	snprintf(result->transport, sizeof(result->transport), "smp/%s", result->device);
	ret = prove(&run, result, &why);
	np_smp_close(&run.smp);
	if (ret < 0) {
		np_rung_fail(result, &why);
		return;
	}
	np_umad_describe(&run.view, text, sizeof(text));
	if (np_umad_warning(&run.view, result->device, text, &why))
		np_rung_warn(result, &why);
	else
		np_rung_ok(result, "port %s answers management: %s", result->device, text);
}

int np_rung_umad(const struct np_rung_options *options, struct np_rung_report *report,
		 struct np_err *err)
{
	return np_run_wanted("umad", options, run_port, report, err);
}
