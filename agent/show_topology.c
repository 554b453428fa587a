/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "agent/nvlink.h"
#include "agent/select.h"
#include "agent/show_help.h"
#include "agent/topology.h"
#include "agent/ucx_env.h"

static void set(json_t *object, const char *key, json_t *value)
{
	json_object_set_new(object, key, value);
}

static json_t *lanes(unsigned int width)
{
	return width ? json_integer(width) : json_null();
}

static json_t *gtps(unsigned int speed)
{
	return speed ? json_real(speed / 1000.0) : json_null();
}

static json_t *show_link(const struct np_pci *pci)
{
	json_t *o = json_object();

	set(o, "width", lanes(pci->now.width));
	set(o, "max_width", lanes(pci->max.width));
	set(o, "slot_width", lanes(pci->slot.width));
	set(o, "speed_GTps", gtps(pci->now.speed));
	set(o, "max_speed_GTps", gtps(pci->max.speed));
	set(o, "slot_speed_GTps", gtps(pci->slot.speed));
	return o;
}

static json_t *count_or_null(int n)
{
	return n < 0 ? json_null() : json_integer(n);
}

static const char *gpu_address(const struct np_topology_device *d)
{
	return d->gpu->pci_address;
}

/* Of a GPU alone. */
static json_t *show_nvlink(const struct np_topology_device *d, const json_t *libraries)
{
	const char *why = NULL;
	int n;

	if (!d->gpu)
		return json_null();
	n = np_nvlink_active(libraries, gpu_address(d), &why);
	return json_pack("{s:o, s:o}", "active", count_or_null(n), "reason",
			 np_json_text_or_null(why));
}

/* An HCA has none. */
static int links_between(const struct np_topology_device *a, const struct np_topology_device *b,
			 const json_t *libraries)
{
	return a->gpu && b->gpu ? np_nvlink_between(libraries, gpu_address(a), gpu_address(b)) : 0;
}

static json_t *show_distances(const struct np_topology *t, size_t from, const json_t *libraries)
{
	json_t *list = json_array();

	for (size_t i = 0; i < t->n; i++) {
		enum np_distance d = np_distance(t->v[from].pci, t->v[i].pci, t->one_node);
		json_t *o;

		if (i == from)
			continue;
		o = json_object();
		set(o, "device", np_json_text(t->v[i].name));
		set(o, "distance",
		    d == NP_DISTANCE_UNKNOWN ? json_null() : json_string(np_distance_str(d)));
		set(o, "nvlink", count_or_null(links_between(&t->v[from], &t->v[i], libraries)));
		json_array_append_new(list, o);
	}
	return list;
}

/* UCX_NET_DEVICES as the profile would list the ports nearest to one GPU. */
static int set_nearest(json_t *o, const struct np_config *cfg, const struct np_topology *t,
		       const struct np_topology_device *device, const char *netdev)
{
	struct np_ucx_input input = { .profile = cfg->ucx.profile, .netdev = netdev };
	np_auto_strv struct np_strv ports = { 0 };
	np_auto_buf struct np_buf value = { 0 };

	if (device->gpu) {
		if (np_topology_nearest(cfg, t, device, &ports) < 0)
			return -ENOMEM;
		input.hca_ports = &ports;
		np_ucx_net_devices(&input, &value);
		if (value.failed)
			return -ENOMEM;
	}
	set(o, "nearest_ports", np_json_strv(&ports));
	set(o, "ucx_net_devices", np_json_text_or_null(value.data));
	return 0;
}

static json_t *show_device(const struct np_topology *t, size_t i, const json_t *libraries)
{
	const struct np_topology_device *d = &t->v[i];
	json_t *o = json_object();

	set(o, "device", np_json_text(d->name));
	set(o, "kind", json_string(d->gpu ? "gpu" : "hca"));
	set(o, "pci_address", np_json_text_or_null(np_pci_address(d->pci)));
	set(o, "pci_path", np_json_text_or_null(d->pci->path));
	set(o, "numa_node", d->pci->numa_node < 0 ? json_null() : json_integer(d->pci->numa_node));
	set(o, "cpus", np_json_text_or_null(d->pci->cpus));
	set(o, "link", show_link(d->pci));
	set(o, "nvlink", show_nvlink(d, libraries));
	set(o, "distances", show_distances(t, i, libraries));
	return o;
}

json_t *np_show_topology(const struct np_config *cfg, const struct np_facts *facts,
			 const json_t *libraries)
{
	np_auto_selection struct np_selection sel = { 0 };
	np_auto_topology struct np_topology t = { 0 };
	json_t *list = json_array();

	if (np_topology_make(facts, &t) < 0)
		goto nomem;
	/* what cannot be selected is refused by the plan, in its own words */
	if (np_select(cfg, facts, &sel, NULL) == -ENOMEM)
		goto nomem;
	for (size_t i = 0; i < t.n; i++) {
		json_t *o = show_device(&t, i, libraries);

		json_array_append_new(list, o);
		if (set_nearest(o, cfg, &t, &t.v[i], np_consumer_netdev(&sel)) < 0)
			goto nomem;
	}
	return list;
nomem:
	json_decref(list);
	return NULL;
}
