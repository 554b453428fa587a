/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ibmad/ca.h"
#include "selftest/rung.h"
#include "selftest/ucp_engine.h"
#include "selftest/ucx_build.h"
#include "selftest/uverbs.h"
#include "selftest/wanted.h"

/*
 * UCX's rc through one port of an HCA: both ends are this node, the bytes go
 * through the HCA, which loops them back to its own port.
 */

static const char *const carriers[] = { "rc_verbs", "rc_mlx5", "rc_gda", NULL };

static const struct np_ucp_setting settings[] = {
	/* rc connects over ud; its default gives up after 30 s only */
	{ "UD_TIMEOUT", "8s" },
	{ NULL, NULL },
};

/* Two workers of UCX 1.13 pin 132 MiB for their queues (2 x 38 MiB rc receive,
 * 20 MiB ud receive, 6 MiB ud send), the messages 32 MiB. */
#define REGISTER_BYTES (164u << 20)

static const struct np_ucx_need need = {
	.what = "the rc transport",
	.component = "ib",
	.module = "libuct_ib.so",
	.hint = "install a UCX built with verbs (Debian: libucx0 with ibverbs-providers; Conda: "
		"ucx with rdma-core)",
};

/* Returns 0, 1 (skip) or a negative errno; @err is filled unless 0. */
static int check(const char *ca, const struct np_port *port, struct np_err *err)
{
	int ret;

	if (!np_port_is_active("rc", ca, port, err))
		return 1;
	ret = np_uverbs_check("rc", ca, err);
	if (ret < 0)
		return ret;
	return np_ucx_component_check(&need, err);
}

/* The port's own counters say whether the bytes crossed it. */
static int prove(const struct np_ucp_spec *spec, const char *ca, int num,
		 struct np_rung_result *result, char *counted, size_t size, struct np_err *err)
{
	struct np_port_bytes before = np_port_bytes_read(ca, num), after;
	int ret = np_ucp_prove(spec, result, err);

	if (ret < 0)
		return ret;
	after = np_port_bytes_read(ca, num);
	result->growth.known = true;
	np_port_growth_add(&result->growth, &before, &after);
	np_port_growth_str(&result->growth, true, counted, size);
	return 0;
}

static void run_port(const struct np_rung_options *options, const struct np_ca *ca,
		     const struct np_port *port, struct np_rung_result *result)
{
	struct np_ucp_spec spec = {
		.rung = "rc",
		.tls = "rc",
		.net_devices = result->device,
		.settings = settings,
		.carriers = carriers,
		.device = result->device,
		.mem = &np_ucp_mem_host,
		.register_bytes = REGISTER_BYTES,
		.full = options->full,
		.deadline_ms = options->deadline_ms,
	};
	char first[32], last[32], counted[160];
	struct np_err why;
	int ret;

	ret = check(ca->name, port, &why);
	if (ret > 0) {
		np_rung_skip(result, &why);
		return;
	}
	if (ret == 0)
		ret = prove(&spec, ca->name, port->num, result, counted, sizeof(counted), &why);
	if (ret == -ENODEV)
		np_err_hint(&why,
			    "install the verbs provider of this HCA (ibverbs-providers) and "
			    "see ibv_devinfo -d %s",
			    ca->name);
	if (ret < 0) {
		np_rung_fail(result, &why);
		return;
	}
	np_rung_ok(result, "%s to %s verified both ways over UCX %s rc through %s; %s",
		   np_size_str(result->sizes[0].size_bytes, first),
		   np_size_str(result->sizes[result->n_sizes - 1].size_bytes, last),
		   ucp_get_version_string(), result->device, counted);
}

int np_rung_rc(const struct np_rung_options *options, struct np_rung_report *report,
	       struct np_err *err)
{
	return np_run_wanted("rc", options, run_port, report, err);
}
