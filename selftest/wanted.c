/* SPDX-License-Identifier: MIT */
#include "selftest/wanted.h"

#include <errno.h>
#include <stdio.h>

#include "selftest/watch.h"

bool np_port_is_active(const char *rung, const char *ca, const struct np_port *port,
		       struct np_err *err)
{
	char code[48];

	if (port->state == NP_PORT_ACTIVE)
		return true;
	snprintf(code, sizeof(code), "selftest.%s.port_not_active", rung);
	np_err_set(err, -ENETDOWN, code, "port %s:%d is %s, phys state %s: %s needs an ACTIVE port",
		   ca, port->num, np_port_state_str(port->state),
		   np_phys_state_str(port->phys_state), rung);
	np_err_hint(err, "%s",
		    port->state == NP_PORT_INIT ? "start a subnet manager on this fabric" :
						  "check the cable and the port at its other end");
	return false;
}

/* An entry without a port to run on. */
static int none(const char *rung, struct np_rung_report *report, const char *device,
		struct np_err *err)
{
	struct np_rung_result *result = np_rung_add(report, rung, device);
	struct np_err why;
	char code[48];

	if (!result)
		return np_err_nomem(err);
	snprintf(code, sizeof(code), "selftest.%s.no_device", rung);
	np_err_set(&why, -ENODEV, code, "there is no %s %s",
		   device ? "port" : "HCA with an InfiniBand port",
		   device ? device : "on this node");
	np_err_hint(&why, "load the HCA's driver (mlx5_ib for ConnectX), and see ibstat -l");
	if (device)
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

static int run_all(const char *rung, const struct np_rung_options *options,
		   const struct np_cas *cas, const char *name, int num, np_run_port_fn *run_port,
		   struct np_rung_report *report, struct np_err *err)
{
	for (size_t c = 0; c < cas->n; c++) {
		const struct np_ca *ca = &cas->v[c];

		for (size_t p = 0; p < ca->n_ports; p++) {
			struct np_rung_options mine = *options;
			struct np_rung_result *result;
			char device[80];

			if (!wanted(ca, &ca->ports[p], name, num))
				continue;
			snprintf(device, sizeof(device), "%s:%d", ca->name, ca->ports[p].num);
			mine.deadline_ms = np_watch_device(report, device, mine.deadline_ms);
			result = np_rung_add(report, rung, device);
			if (!result)
				return np_err_nomem(err);
			run_port(&mine, ca, &ca->ports[p], result);
		}
	}
	return 0;
}

int np_run_wanted(const char *rung, const struct np_rung_options *options, np_run_port_fn *run_port,
		  struct np_rung_report *report, struct np_err *err)
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
	ret = run_all(rung, options, &cas, name, num, run_port, report, err);
	if (ret == 0 && report->n == 0)
		ret = none(rung, report, options->device, err);
	np_cas_done(&cas);
	return ret;
}
