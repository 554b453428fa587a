/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "selftest/measure.h"
#include "selftest/port_bytes.h"
#include "selftest/rung.h"
#include "selftest/verbs_move.h"
#include "selftest/wanted.h"

/*
 * Two reliable connected queue pairs without UCX in between: HCA, driver, driver
 * library, permissions and memlock. Both on one port, or with --peer on two.
 */

static size_t largest_size(bool full)
{
	size_t n;
	const uint64_t *sizes = np_sizes(full, &n);

	return sizes[n - 1];
}

static uint32_t max_message(const struct np_verbs_link *link)
{
	uint32_t a = link->end[0].dev.port.max_message, b = link->end[1].dev.port.max_message;

	return a < b ? a : b;
}

static int prove_sizes(struct np_verbs_link *link, bool full, struct np_rung_result *result,
		       struct np_err *err)
{
	size_t n;
	const uint64_t *sizes = np_sizes(full, &n);

	for (size_t i = 0; i < n && sizes[i] <= max_message(link); i++) {
		struct np_rung_size measured = { .size_bytes = sizes[i] };
		int ret = np_verbs_prove_size(link, full, &measured, err);

		if (ret < 0)
			return ret;
		result->sizes[result->n_sizes++] = measured;
	}
	return 0;
}

/* One port, or two: the counters of each once. */
static int prove(const struct np_verbs_spec *spec, bool full, struct np_rung_result *result,
		 char *counted, size_t size, struct np_err *err)
{
	bool one = np_streq(spec->ca[0], spec->ca[1]) && spec->num[0] == spec->num[1];
	struct np_port_growth growth = { .known = true };
	struct np_port_bytes before[2], after;
	struct np_verbs_link link;
	int ret;

	ret = np_verbs_link_open(spec, &link, err);
	if (ret == 0) {
		snprintf(result->transport, sizeof(result->transport), "%s %s",
			 link.path.grh && link.end[0].dev.port.ethernet ? "verbs RoCE" : "verbs rc",
			 link.end[0].dev.port.name);
		if (!one) {
			size_t at = strlen(result->transport);

			snprintf(result->transport + at, sizeof(result->transport) - at, " to %s",
				 link.end[1].dev.port.name);
		}
		for (int i = 0; i < 2; i++)
			before[i] = np_port_bytes_read(spec->ca[i], spec->num[i]);
		ret = prove_sizes(&link, full, result, err);
	}
	growth.moved = link.moved_bytes;
	np_verbs_link_close(&link);
	for (int i = 0; ret == 0 && i < (one ? 1 : 2); i++) {
		after = np_port_bytes_read(spec->ca[i], spec->num[i]);
		np_port_growth_add(&growth, &before[i], &after);
	}
	if (ret == 0)
		np_port_growth_str(&growth, one, counted, size);
	result->growth = growth;
	result->growth.known &= ret == 0;
	return ret;
}

/* The port of --peer. Returns 0, 1 (skip) or a negative errno. */
static int find_peer(const char *text, struct np_verbs_spec *spec, char name[64],
		     struct np_err *err)
{
	struct np_cas cas = { 0 };
	const struct np_port *port;
	const struct np_ca *ca;
	int num = 0, ret;

	ret = np_port_name_parse(text, name, &num, err);
	if (ret == 0)
		ret = np_cas_observe(NP_CA_BASIC, &cas, err);
	if (ret < 0)
		return ret;
	ca = np_cas_find(&cas, name);
	if (ca && num == 0 && ca->n_ports > 0)
		num = ca->ports[0].num;
	port = np_cas_find_port(&cas, name, num);
	if (!port) {
		ret = np_err_set(err, -ENODEV, "selftest.verbs.no_peer", "there is no port %s",
				 text);
		np_err_hint(err, "see ibstat -l for the HCAs of this node");
	} else if (!np_port_is_active("verbs", name, port, err)) {
		ret = 1;
	}
	spec->ca[1] = name;
	spec->num[1] = num;
	np_cas_done(&cas);
	return ret;
}

static void run_port(const struct np_rung_options *options, const struct np_ca *ca,
		     const struct np_port *port, struct np_rung_result *result)
{
	struct np_verbs_spec spec = {
		.ca = { ca->name, ca->name },
		.num = { port->num, port->num },
		.gid_index = options->gid_index,
		.largest = largest_size(options->full),
		.deadline_ms = options->deadline_ms,
	};
	char first[32], last[32], peer[64], counted[160];
	struct np_err why;
	int ret = np_port_is_active("verbs", ca->name, port, &why) ? 0 : 1;

	if (ret == 0 && options->peer)
		ret = find_peer(options->peer, &spec, peer, &why);
	if (ret == 0)
		ret = prove(&spec, options->full, result, counted, sizeof(counted), &why);
	if (ret > 0)
		np_rung_skip(result, &why);
	else if (ret < 0)
		np_rung_fail(result, &why);
	else
		np_rung_ok(result, "%s to %s verified both ways over %s; %s",
			   np_size_str(result->sizes[0].size_bytes, first),
			   np_size_str(result->sizes[result->n_sizes - 1].size_bytes, last),
			   result->transport, counted);
}

int np_rung_verbs(const struct np_rung_options *options, struct np_rung_report *report,
		  struct np_err *err)
{
	char name[64];
	int num;

	if (options->peer && np_port_name_parse(options->peer, name, &num, err) < 0)
		return -EINVAL;
	return np_run_wanted("verbs", options, run_port, report, err);
}
