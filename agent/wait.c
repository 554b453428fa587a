/* SPDX-License-Identifier: MIT */
#include "agent/wait.h"

#include <errno.h>
#include <stdio.h>

#include "base/child.h"
#include "base/log.h"

#define POLL_MS 100

static bool port_may_come(const struct np_config *cfg, const struct np_ca *ca,
			  const struct np_port *port)
{
	return np_port_role(cfg, ca, port) == NP_PORT_WANTED && port->state != NP_PORT_ACTIVE &&
	       port->state != NP_PORT_UNKNOWN && port->phys_state != NP_PHYS_DISABLED;
}

static bool netdev_may_come(const struct np_selected_netdev *sel)
{
	return sel->want && !(sel->dev->flags & IFF_RUNNING);
}

/* The first port still waited for, or NULL. */
static const struct np_port *pending_port(const struct np_config *cfg, const struct np_facts *facts,
					  const struct np_ca **owner)
{
	for (size_t i = 0; i < facts->cas.n; i++) {
		const struct np_ca *ca = &facts->cas.v[i];

		for (size_t p = 0; p < ca->n_ports; p++) {
			if (port_may_come(cfg, ca, &ca->ports[p])) {
				*owner = ca;
				return &ca->ports[p];
			}
		}
	}
	return NULL;
}

/* A netdev without carrier is waited for as long as its own port may come. */
bool np_wait_needed(const struct np_config *cfg, const struct np_facts *facts,
		    const struct np_selection *sel)
{
	const struct np_ca *ca;

	if (pending_port(cfg, facts, &ca))
		return true;
	for (size_t i = 0; i < sel->n_netdevs; i++)
		if (netdev_may_come(&sel->netdevs[i]))
			return true;
	return false;
}

static void refresh_ports(const struct np_config *cfg, struct np_facts *facts)
{
	for (size_t i = 0; i < facts->cas.n; i++) {
		struct np_ca *ca = &facts->cas.v[i];

		for (size_t p = 0; p < ca->n_ports; p++)
			if (port_may_come(cfg, ca, &ca->ports[p]) &&
			    np_port_refresh(ca->name, &ca->ports[p]) < 0)
				ca->ports[p].state = NP_PORT_UNKNOWN;
	}
}

static int gone(const struct np_netdev *dev, struct np_err *err)
{
	np_err_set(err, -ENODEV, "netdev.gone", "%s went away while it was waited for%s%s",
		   dev->name, dev->ca[0] ? ", and its HCA may be gone: " : "", dev->ca);
	np_err_hint(err, "look for its HCA in the kernel log, and run it again when it is back");
	return -ENODEV;
}

int np_wait_ready(const struct np_config *cfg, struct np_netlink *nl, struct np_facts *facts,
		  const struct np_selection *sel, int timeout_s, struct np_err *err)
{
	int64_t deadline = np_now_ms() + (int64_t)timeout_s * 1000;
	size_t netdev = 0;

	for (;;) {
		const struct np_ca *ca = NULL;
		const struct np_port *port;
		int64_t left;

		refresh_ports(cfg, facts);
		port = pending_port(cfg, facts, &ca);
		while (netdev < sel->n_netdevs && !netdev_may_come(&sel->netdevs[netdev]))
			netdev++;
		if (!port && netdev >= sel->n_netdevs)
			break;
		left = deadline - np_now_ms();
		if (np_interrupted()) {
			np_err_set(err, -EINTR, "internal.interrupted",
				   "interrupted while waiting for ports");
			np_err_hint(err, "run it again; what was done has been undone");
			return -EINTR;
		}
		if (left <= 0)
			break;
		if (port)
			np_progress("waiting for port %s:%d to become ACTIVE (%s, %s), %lld s left",
				    ca->name, port->num, np_port_state_str(port->state),
				    np_phys_state_str(port->phys_state), (long long)left / 1000);
		if (netdev < sel->n_netdevs) {
			int r = np_netdev_wait_running(nl, sel->netdevs[netdev].dev->ifindex,
						       left < POLL_MS ? (int)left : POLL_MS, err);

			if (r < 0)
				return r == -ENODEV ? gone(sel->netdevs[netdev].dev, err) : r;
			netdev += r == 1;
		} else {
			np_sleep_ms(left < POLL_MS ? (int)left : POLL_MS);
		}
	}
	np_progress_done();
	return 0;
}
