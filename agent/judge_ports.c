/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "agent/judge.h"

/* What the wanted ports of this node have among them; the expectation for each. */
struct siblings {
	int width; /* widest */
	double rate_gbps;
	char rate[40];
	char widest[80]; /* who has it */
};

static void measure_siblings(const struct np_config *cfg, const struct np_facts *facts,
			     const struct np_ca *like, struct siblings *out)
{
	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < facts->cas.n; i++) {
		const struct np_ca *ca = &facts->cas.v[i];

		/* another kind of adapter may rightly be slower */
		if (strcmp(ca->ca_type, like->ca_type) != 0)
			continue;
		for (size_t p = 0; p < ca->n_ports; p++) {
			const struct np_port *port = &ca->ports[p];

			if (np_port_role(cfg, ca, port) != NP_PORT_WANTED ||
			    port->state != NP_PORT_ACTIVE)
				continue;
			if (port->width > out->width) {
				out->width = port->width;
				snprintf(out->widest, sizeof(out->widest), "%s:%d", ca->name,
					 port->num);
			}
			if (port->rate_gbps > out->rate_gbps) {
				out->rate_gbps = port->rate_gbps;
				np_strcpy(out->rate, sizeof(out->rate), port->rate);
			}
		}
	}
}

struct verdict {
	struct np_checks *out;
	const char *target;
};

/* A port that is not judged, with the reason. True when it was one. */
static bool not_judged(const struct verdict *v, const struct np_config *cfg, const struct np_ca *ca,
		       const struct np_port *port)
{
	switch (np_port_role(cfg, ca, port)) {
	case NP_PORT_WANTED:
		return false;
	case NP_PORT_IGNORED:
		np_checks_add(v->out, "port", v->target, NP_CHECK_SKIP, "port.ignored", NULL,
			      "ignored by [ports] ignore");
		return true;
	case NP_PORT_MANAGEMENT:
		np_checks_add(
			v->out, "port", v->target, NP_CHECK_SKIP, "port.management_only", NULL,
			"NVSwitch management port (its VPD says SW_MNG); carries no traffic of jobs");
		return true;
	case NP_PORT_NOT_LISTED:
		np_checks_add(v->out, "port", v->target, NP_CHECK_SKIP, "port.not_listed", NULL,
			      "not among [ports] devices");
		return true;
	case NP_PORT_NOT_INFINIBAND:
		np_checks_add(v->out, "port", v->target, NP_CHECK_SKIP,
			      port->link_layer == NP_LL_ETHERNET ? "port.ethernet" :
								   "port.not_infiniband",
			      NULL,
			      port->link_layer == NP_LL_ETHERNET && ca->node_type == NP_NODE_CA ?
				      "link layer Ethernet: RoCE, not InfiniBand; no IPoIB on it" :
				      "%s: not InfiniBand; left out of the InfiniBand checks",
			      ca->node_type == NP_NODE_RNIC ? "iWARP adapter" :
							      np_link_layer_str(port->link_layer));
		return true;
	}
	return false;
}

static void judge_not_active(const struct verdict *v, const struct np_port *port)
{
	const char *state = np_port_state_str(port->state);
	const char *phys = np_phys_state_str(port->phys_state);

	if (port->state == NP_PORT_UNKNOWN || port->phys_state == NP_PHYS_UNKNOWN)
		np_checks_add(v->out, "port", v->target, NP_CHECK_FAIL, "port.state_unknown",
			      "look at the kernel log for this adapter, and reload its driver",
			      "state %s, physical state %s: cannot be read", state, phys);
	else if (port->phys_state == NP_PHYS_DISABLED)
		np_checks_add(
			v->out, "port", v->target, NP_CHECK_FAIL, "port.disabled",
			"enable it (ibportstate LID PORT enable, or mlxlink), or list it in [ports] ignore",
			"%s, physical state %s: somebody disabled the port", state, phys);
	else if (port->phys_state == NP_PHYS_LINKUP &&
		 (port->state == NP_PORT_INIT || port->state == NP_PORT_ARMED))
		np_checks_add(
			v->out, "port", v->target, NP_CHECK_FAIL, "port.no_sm",
			"start a subnet manager on this fabric (opensm, or the switch's own)",
			"%s, physical state %s: the link is up, but no subnet manager has brought the port to ACTIVE",
			state, phys);
	else
		np_checks_add(
			v->out, "port", v->target, NP_CHECK_FAIL, "port.down",
			"plug in or replace the cable and look at the peer port, or list the port in [ports] ignore",
			"%s, physical state %s: no link; no cable, a bad one, or no peer at its other end",
			state, phys);
}

static void judge_active(const struct verdict *v, const struct np_config *cfg,
			 const struct np_port *port, const struct siblings *sib)
{
	char lid[16] = "unreadable", sm_lid[16] = "unknown";

	if (port->has_lid)
		snprintf(lid, sizeof(lid), "0x%x", port->lid);
	if (port->has_sm_lid)
		snprintf(sm_lid, sizeof(sm_lid), "0x%x", port->sm_lid);
	/* unicast LIDs end at 0xbfff, IBA 4.1.3 */
	if (!port->has_lid || port->lid == 0 || port->lid > 0xbfff) {
		np_checks_add(
			v->out, "port", v->target, NP_CHECK_FAIL, "port.lid_zero",
			"restart the subnet manager and look whether it knows this port (ibnetdiscover)",
			"ACTIVE, but base lid %s is no unicast lid: the subnet manager has not configured it",
			lid);
		return;
	}
	if (port->width && sib->width > port->width) {
		np_checks_add(v->out, "port", v->target, NP_CHECK_FAIL, "port.width_degraded",
			      "reseat or replace the cable, then look at the switch port",
			      "%s: runs on %d of the %d lanes that %s has", port->rate, port->width,
			      sib->width, sib->widest);
		return;
	}
	if (cfg->min_rate_gbps > 0 && port->rate_gbps > 0 && port->rate_gbps < cfg->min_rate_gbps) {
		np_checks_add(
			v->out, "port", v->target, NP_CHECK_FAIL, "port.rate_degraded",
			"replace the cable or look at the switch port, or lower [ports] min_rate",
			"%s is below [ports] min_rate of %g Gb/sec", port->rate,
			cfg->min_rate_gbps);
		return;
	}
	if (port->rate_gbps > 0 && sib->rate_gbps > port->rate_gbps) {
		np_checks_add(v->out, "port", v->target, NP_CHECK_WARN, "port.rate_degraded",
			      "compare cable and switch port with those of its siblings",
			      "%s, while a sibling runs at %s", port->rate, sib->rate);
		return;
	}
	if (port->rate_gbps <= 0) {
		np_checks_add(v->out, "port", v->target,
			      cfg->min_rate_gbps > 0 ? NP_CHECK_FAIL : NP_CHECK_UNKNOWN,
			      "port.rate_unknown", "look at the kernel log for this adapter",
			      "ACTIVE, LinkUp, lid 0x%x, but the rate cannot be read", port->lid);
		return;
	}
	np_checks_add(v->out, "port", v->target, NP_CHECK_OK, "port.active", NULL,
		      "ACTIVE, LinkUp, %s, lid %s, sm lid %s", port->rate, lid, sm_lid);
}

void np_judge_ports(const struct np_config *cfg, const struct np_facts *facts,
		    struct np_checks *out)
{
	size_t n_wanted = 0;
	bool any_ignored = false;

	for (size_t i = 0; i < facts->cas.n; i++) {
		const struct np_ca *ca = &facts->cas.v[i];
		struct siblings sib;

		measure_siblings(cfg, facts, ca, &sib);
		for (size_t p = 0; p < ca->n_ports; p++) {
			const struct np_port *port = &ca->ports[p];
			char target[80];
			struct verdict v = { out, target };

			snprintf(target, sizeof(target), "%s:%d", ca->name, port->num);
			any_ignored |= np_port_role(cfg, ca, port) == NP_PORT_IGNORED;
			if (not_judged(&v, cfg, ca, port))
				continue;
			n_wanted++;
			if (port->link_layer != NP_LL_INFINIBAND)
				np_checks_add(
					out, "port", target, NP_CHECK_FAIL,
					port->link_layer == NP_LL_ETHERNET ?
						"port.ethernet" :
						"port.link_layer_unknown",
					"take it out of [ports] devices, or make it an InfiniBand port (mlxconfig LINK_TYPE_P1=1)",
					"link layer %s where InfiniBand is wanted",
					port->link_layer_raw[0] ? port->link_layer_raw : "unknown");
			else if (port->state == NP_PORT_ACTIVE &&
				 port->phys_state == NP_PHYS_LINKUP)
				judge_active(&v, cfg, port, &sib);
			else
				judge_not_active(&v, port);
		}
	}
	for (size_t i = 0; i < cfg->port_devices.n; i++) {
		char ca[64];
		int num;

		if (np_port_name_parse(cfg->port_devices.v[i], ca, &num, NULL) == 0 &&
		    (num ? (const void *)np_cas_find_port(&facts->cas, ca, num) :
			   (const void *)np_cas_find(&facts->cas, ca)))
			continue;
		np_checks_add(
			out, "port", cfg->port_devices.v[i], NP_CHECK_FAIL, "port.missing",
			"correct [ports] devices, or look why the adapter is gone (lspci, dmesg)",
			"listed in [ports] devices, but there is no such port on this node");
		n_wanted++;
	}
	if (n_wanted == 0)
		np_checks_add(
			out, "port", "node", any_ignored ? NP_CHECK_WARN : NP_CHECK_FAIL,
			"port.none",
			any_ignored ?
				"take a port out of [ports] ignore" :
				"look for the adapter with lspci, and load its driver (mlx5_ib)",
			any_ignored ? "every InfiniBand port is ignored" :
				      "no InfiniBand port on this node");
}
