/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ibmad/ca.h"
#include "selftest/rung.h"
#include "selftest/ucp_engine.h"
#include "selftest/ucx_build.h"
#include "selftest/uverbs.h"

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

/* Returns 0, 1 (skip) or a negative errno; @err is filled unless 0. */
static int check(const char *ca, const struct np_port *port, struct np_err *err)
{
	int ret;

	if (port->state != NP_PORT_ACTIVE) {
		np_err_set(err, -ENETDOWN, "selftest.rc.port_not_active",
			   "port %s:%d is %s, phys state %s: rc needs an ACTIVE port", ca,
			   port->num, np_port_state_str(port->state),
			   np_phys_state_str(port->phys_state));
		np_err_hint(err, "%s",
			    port->state == NP_PORT_INIT ?
				    "start a subnet manager on this fabric" :
				    "check the cable and the port at its other end");
		return 1;
	}
	ret = np_uverbs_check("rc", ca, err);
	if (ret < 0)
		return ret;
	return np_ucx_component_check("ib", "rc transport",
				      "install a UCX built with verbs (Debian: libucx0 with "
				      "ibverbs-providers; Conda: ucx with rdma-core)",
				      err);
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
	char first[32], last[32];
	struct np_err why;
	int ret;

	ret = check(ca->name, port, &why);
	if (ret > 0) {
		np_rung_skip(result, &why);
		return;
	}
	if (ret == 0)
		ret = np_ucp_prove(&spec, result, &why);
	if (ret == -ENODEV)
		np_err_hint(&why,
			    "install the verbs provider of this HCA (ibverbs-providers) and "
			    "see ibv_devinfo -d %s",
			    ca->name);
	if (ret < 0) {
		np_rung_fail(result, &why);
		return;
	}
	np_rung_ok(result,
		   "%s to %s verified both ways over UCX rc through %s, looped back in the HCA",
		   np_size_str(result->sizes[0].size_bytes, first),
		   np_size_str(result->sizes[result->n_sizes - 1].size_bytes, last),
		   result->device);
}

/* An entry without a port to run on. */
static int none(struct np_rung_report *report, const char *device, bool asked, struct np_err *err)
{
	struct np_rung_result *result = np_rung_add(report, "rc", device);
	struct np_err why;

	if (!result)
		return np_err_nomem(err);
	np_err_set(&why, -ENODEV, "selftest.rc.no_device", "there is no %s %s",
		   asked ? "port" : "HCA with an InfiniBand port", asked ? device : "on this node");
	np_err_hint(&why, "load the HCA's driver (mlx5_ib for ConnectX), and see ibstat -l");
	if (asked)
		np_rung_fail(result, &why);
	else
		np_rung_skip(result, &why);
	return 0;
}

/* With --device that port or CA; else all InfiniBand ports that can carry data. */
static bool wanted(const struct np_ca *ca, const struct np_port *port, const char *name, int num)
{
	if (*name)
		return np_streq(ca->name, name) && (num == 0 || num == port->num);
	return !ca->management_only && port->link_layer == NP_LL_INFINIBAND;
}

static int run_wanted(const struct np_rung_options *options, const struct np_cas *cas,
		      const char *name, int num, struct np_rung_report *report, struct np_err *err)
{
	for (size_t c = 0; c < cas->n; c++) {
		const struct np_ca *ca = &cas->v[c];

		for (size_t p = 0; p < ca->n_ports; p++) {
			struct np_rung_result *result;
			char device[80];

			if (!wanted(ca, &ca->ports[p], name, num))
				continue;
			snprintf(device, sizeof(device), "%s:%d", ca->name, ca->ports[p].num);
			result = np_rung_add(report, "rc", device);
			if (!result)
				return np_err_nomem(err);
			run_port(options, ca, &ca->ports[p], result);
		}
	}
	return 0;
}

int np_rung_rc(const struct np_rung_options *options, struct np_rung_report *report,
	       struct np_err *err)
{
	struct np_cas cas = { 0 };
	char name[64] = "";
	int num = 0, ret = 0;

	if (options->device)
		ret = np_port_name_parse(options->device, name, &num, err);
	if (ret == 0)
		ret = np_cas_observe(NP_CA_BASIC, &cas, err);
	if (ret < 0)
		return ret;
	ret = run_wanted(options, &cas, name, num, report, err);
	if (ret == 0 && report->n == 0)
		ret = none(report, options->device, options->device != NULL, err);
	np_cas_done(&cas);
	return ret;
}
