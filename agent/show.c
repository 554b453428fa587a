/* SPDX-License-Identifier: MIT */
#include "agent/show.h"
#include "agent/show_help.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

static json_t *guid_text(uint64_t guid)
{
	return guid ? json_sprintf("%04x:%04x:%04x:%04x", (unsigned int)(guid >> 48) & 0xffff,
				   (unsigned int)(guid >> 32) & 0xffff,
				   (unsigned int)(guid >> 16) & 0xffff,
				   (unsigned int)guid & 0xffff) :
		      json_null();
}

static json_t *strings(const struct np_strv *list)
{
	json_t *array = json_array();

	for (size_t i = 0; i < list->n; i++)
		json_array_append_new(array, np_json_text_or_null(list->v[i]));
	return array;
}

static json_t *tri(enum np_tri t)
{
	return t == NP_TRI_UNKNOWN ? json_null() : json_boolean(t == NP_TRI_YES);
}

/* ---- ports ---- */

static json_t *counters(const struct np_port *port)
{
	json_t *object = json_object();

	for (size_t i = 0; i < port->n_counters; i++)
		json_object_set_new(object, port->counters[i].name,
				    port->counters[i].known &&
						    port->counters[i].value <= INT64_MAX ?
					    json_integer((json_int_t)port->counters[i].value) :
					    json_null());
	return object;
}

static json_t *show_port(const struct np_ca *ca, const struct np_port *port)
{
	json_t *o = json_object(), *pkeys = json_array();

	json_object_set_new(o, "ca", np_json_text_or_null(ca->name));
	json_object_set_new(o, "port", json_integer(port->num));
	json_object_set_new(o, "state", json_string(np_port_state_str(port->state)));
	json_object_set_new(o, "phys_state", json_string(np_phys_state_str(port->phys_state)));
	json_object_set_new(o, "rate", np_json_text_or_null(port->rate));
	json_object_set_new(o, "rate_gbps",
			    port->rate_gbps > 0 ? json_real(port->rate_gbps) : json_null());
	json_object_set_new(o, "width",
			    port->width ? json_sprintf("%dX", port->width) : json_null());
	json_object_set_new(o, "speed", np_json_text_or_null(port->speed));
	json_object_set_new(o, "lid", port->has_lid ? json_integer(port->lid) : json_null());
	json_object_set_new(o, "sm_lid",
			    port->has_sm_lid ? json_integer(port->sm_lid) : json_null());
	json_object_set_new(o, "link_layer", json_string(np_link_layer_str(port->link_layer)));
	json_object_set_new(o, "gid", np_json_text_or_null(port->gid));
	json_object_set_new(o, "guid", guid_text(port->guid));
	json_object_set_new(o, "ca_type", np_json_text_or_null(ca->ca_type));
	json_object_set_new(o, "fw_ver", np_json_text_or_null(ca->fw_ver));
	json_object_set_new(o, "board_id", np_json_text_or_null(ca->board_id));
	json_object_set_new(o, "node_guid", guid_text(ca->node_guid));
	json_object_set_new(o, "management_only", json_boolean(ca->management_only));
	json_object_set_new(o, "netdevs", strings(&ca->netdevs));
	for (size_t i = 0; i < port->n_pkeys; i++)
		json_array_append_new(pkeys, json_sprintf("0x%04x", port->pkeys[i]));
	json_object_set_new(o, "pkeys", pkeys);
	json_object_set_new(o, "counters", counters(port));
	json_object_set_new(o, "unreadable", strings(&port->unreadable));
	return o;
}

static json_t *show_ports(const struct np_facts *facts)
{
	json_t *list = json_array();

	for (size_t i = 0; i < facts->cas.n; i++)
		for (size_t p = 0; p < facts->cas.v[i].n_ports; p++)
			json_array_append_new(list, show_port(&facts->cas.v[i],
							      &facts->cas.v[i].ports[p]));
	return list;
}

/* ---- netdevs ---- */

static json_t *show_address(const struct np_netdev_addr *addr)
{
	char address[NP_INET_STRLEN], broadcast[INET_ADDRSTRLEN] = "";
	json_t *o = json_object();

	if (addr->has_broadcast)
		inet_ntop(AF_INET, addr->broadcast, broadcast, sizeof(broadcast));
	json_object_set_new(o, "address", json_string(np_inet_str(&addr->inet, address)));
	json_object_set_new(o, "family",
			    json_string(addr->inet.family == AF_INET6 ? "inet6" : "inet"));
	json_object_set_new(o, "broadcast", np_json_text_or_null(broadcast));
	json_object_set_new(o, "scope",
			    json_string(addr->scope == RT_SCOPE_LINK ? "link" :
					addr->scope == RT_SCOPE_HOST ? "host" :
								       "global"));
	json_object_set_new(o, "secondary",
			    json_boolean(addr->inet.family == AF_INET &&
					 (addr->flags & IFA_F_SECONDARY)));
	return o;
}

static json_t *show_statistics(const struct np_netdev *dev)
{
	if (!dev->has_stats)
		return json_null();
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "rx_bytes", (json_int_t)dev->rx_bytes,
			 "tx_bytes", (json_int_t)dev->tx_bytes, "rx_packets",
			 (json_int_t)dev->rx_packets, "tx_packets", (json_int_t)dev->tx_packets,
			 "rx_errors", (json_int_t)dev->rx_errors, "tx_errors",
			 (json_int_t)dev->tx_errors);
}

static json_t *flag_names(uint32_t flags)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} names[] = { { IFF_UP, "UP" },
		      { IFF_BROADCAST, "BROADCAST" },
		      { IFF_LOOPBACK, "LOOPBACK" },
		      { IFF_POINTOPOINT, "POINTOPOINT" },
		      { IFF_RUNNING, "RUNNING" },
		      { IFF_NOARP, "NOARP" },
		      { IFF_MULTICAST, "MULTICAST" } };
	json_t *list = json_array();

	for (size_t i = 0; i < NP_ARRAY_SIZE(names); i++)
		if (flags & names[i].bit)
			json_array_append_new(list, json_string(names[i].name));
	return list;
}

static json_t *show_netdev(const struct np_netdev *dev)
{
	json_t *o = json_object(), *addresses = json_array();
	bool ipoib = np_netdev_is_ipoib(dev);
	char hwaddr[32 * 3];

	json_object_set_new(o, "name", np_json_text_or_null(dev->name));
	json_object_set_new(o, "ifindex", json_integer(dev->ifindex));
	json_object_set_new(o, "type",
			    dev->type == 32  ? json_string("infiniband") :
			    dev->type == 1   ? json_string("ether") :
			    dev->type == 772 ? json_string("loopback") :
					       json_sprintf("%u", dev->type));
	json_object_set_new(o, "kind", np_json_text_or_null(dev->kind));
	json_object_set_new(o, "mode",
			    ipoib && dev->mode != NP_IPOIB_MODE_UNKNOWN ?
				    json_string(np_ipoib_mode_str(dev->mode)) :
				    json_null());
	json_object_set_new(o, "mtu", json_integer(dev->mtu));
	json_object_set_new(o, "carrier", tri(dev->carrier));
	json_object_set_new(o, "flags", flag_names(dev->flags));
	json_object_set_new(o, "operstate", json_string(np_operstate_str(dev->operstate)));
	json_object_set_new(o, "hwaddr",
			    dev->hwaddr_len ? json_string(np_hwaddr_str(dev, hwaddr)) :
					      json_null());
	for (size_t i = 0; i < dev->n_addrs; i++)
		json_array_append_new(addresses, show_address(&dev->addrs[i]));
	json_object_set_new(o, "addresses", addresses);
	json_object_set_new(o, "ca", np_json_text_or_null(dev->ca));
	json_object_set_new(o, "port", dev->port ? json_integer(dev->port) : json_null());
	json_object_set_new(o, "port_guid", guid_text(dev->port_guid));
	json_object_set_new(o, "pkey",
			    dev->has_pkey ? json_sprintf("0x%04x", dev->pkey) : json_null());
	json_object_set_new(o, "umcast", ipoib ? tri(dev->umcast) : json_null());
	json_object_set_new(o, "altnames", strings(&dev->altnames));
	json_object_set_new(o, "manager", np_json_text_or_null(dev->manager));
	json_object_set_new(o, "statistics", show_statistics(dev));
	return o;
}

static json_t *show_netdevs(const struct np_facts *facts)
{
	json_t *list = json_array();

	for (size_t i = 0; i < facts->netdevs.n; i++)
		json_array_append_new(list, show_netdev(&facts->netdevs.v[i]));
	return list;
}

/* ---- config ---- */

/* Where the addresses of a list come from that are not written down in it. */
static json_t *show_sources(const struct np_want_netdev *want)
{
	json_t *list = json_array();

	for (size_t i = 0; i < want->n_sources; i++) {
		const struct np_address_source *src = &want->sources[i];
		char address[NP_INET_STRLEN] = "";
		json_t *o = json_object();

		if (src->resolved)
			np_inet_str(&src->inet, address);
		json_object_set_new(o, "source", np_json_text(src->text));
		json_object_set_new(o, "where", np_json_text(src->where));
		json_object_set_new(o, "address", np_json_text_or_null(address));
		json_object_set_new(o, "by", np_json_text_or_null(src->resolved ? src->by : NULL));
		json_object_set_new(o, "failure", np_json_text_or_null(src->failure));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *show_config(const struct np_config *cfg)
{
	struct np_config_row *rows = NULL;
	json_t *list;
	size_t n = 0;

	if (np_config_rows(cfg, &rows, &n) < 0)
		return NULL;
	list = json_array();
	for (size_t i = 0; i < n; i++) {
		json_t *row = json_pack("{s:o, s:s, s:o}", "section", np_json_text(rows[i].section),
					"key", rows[i].key, "value", np_json_text(rows[i].value));

		if (row && rows[i].want)
			json_object_set_new(row, "sources", show_sources(rows[i].want));
		json_array_append_new(list, row);
	}
	np_config_rows_free(rows, n);
	return list;
}

const char *const np_show_nouns[] = { "ports",	   "netdevs",  "modules", "gpus",
				      "libraries", "topology", "config",  NULL };

int np_show_add(json_t *show, const char *noun, const struct np_config *cfg,
		const struct np_facts *facts, const json_t *libraries)
{
	json_t *list;

	if (strcmp(noun, "ports") == 0)
		list = show_ports(facts);
	else if (strcmp(noun, "netdevs") == 0)
		list = show_netdevs(facts);
	else if (strcmp(noun, "modules") == 0)
		list = np_show_modules(facts);
	else if (strcmp(noun, "gpus") == 0)
		list = np_show_gpus(facts);
	else if (strcmp(noun, "topology") == 0)
		list = np_show_topology(cfg, facts, libraries);
	else if (strcmp(noun, "config") == 0)
		list = show_config(cfg);
	else
		return -EINVAL;
	return json_object_set_new(show, noun, list) < 0 ? -ENOMEM : 0;
}
