/* SPDX-License-Identifier: MIT */
/* The matrix that people know from `nvidia-smi topo -m`. */
#include <stdio.h>
#include <string.h>

#include "agent/show_help.h"

#define GAP 2

static const char *text_of(const json_t *object, const char *key, const char *none)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : none;
}

/* NVLink comes before PCIe. Where it is not known, the word of PCIe alone would say that
 * there is none. */
static void put_distance(const json_t *entry, char *out, size_t size)
{
	const json_t *nvlink = json_object_get(entry, "nvlink");
	const char *pcie = text_of(entry, "distance", "");

	if (json_integer_value(nvlink) > 0)
		snprintf(out, size, "NV%lld", (long long)json_integer_value(nvlink));
	else
		snprintf(out, size, "%s%s", pcie, *pcie && !json_is_null(nvlink) ? "" : "?");
}

static void distance_to(const json_t *device, const char *name, char *out, size_t size)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (json_object_get(device, "distances"), i, entry) {
		if (strcmp(text_of(entry, "device", ""), name) == 0) {
			put_distance(entry, out, size);
			return;
		}
	}
	np_strcpy(out, size, "X");
}

static void cell(struct np_buf *out, const char *text, size_t width)
{
	np_buf_printf(out, "%-*s", (int)width + GAP, text);
}

static size_t widest(const json_t *list, const char *key, size_t least)
{
	const json_t *device;
	size_t i;

	json_array_foreach (list, i, device) {
		size_t len = strlen(text_of(device, key, ""));

		least = len > least ? len : least;
	}
	return least;
}

static void matrix(const json_t *list, struct np_buf *out)
{
	size_t names = widest(list, "device", 4), cpus = widest(list, "cpus", 12), i, k;
	const json_t *row, *column;
	char distance[32];

	cell(out, "", names);
	json_array_foreach (list, k, column)
		cell(out, text_of(column, "device", ""), strlen(text_of(column, "device", "")));
	cell(out, "CPU affinity", cpus);
	np_buf_str(out, "NUMA affinity\n");
	json_array_foreach (list, i, row) {
		const json_t *node = json_object_get(row, "numa_node");

		cell(out, text_of(row, "device", ""), names);
		json_array_foreach (list, k, column) {
			const char *name = text_of(column, "device", "");

			distance_to(row, name, distance, sizeof(distance));
			cell(out, distance, strlen(name));
		}
		cell(out, text_of(row, "cpus", "?"), cpus);
		if (json_is_integer(node))
			np_buf_printf(out, "%lld\n", (long long)json_integer_value(node));
		else
			np_buf_str(out, "?\n");
	}
}

static void legend(struct np_buf *out)
{
	np_buf_str(out,
		   "\n"
		   "X     the device itself\n"
		   "PIX   at most one PCIe switch between them\n"
		   "PXB   several PCIe switches, no PCIe host bridge\n"
		   "PHB   through the PCIe host bridge that they share\n"
		   "NODE  over two PCIe host bridges of one NUMA node\n"
		   "SYS   over the interconnect of two NUMA nodes\n"
		   "NV#   over # NVLinks, through NVSwitches or not\n"
		   "?     unknown, or not on PCI; after a word of PCIe: perhaps over NVLink\n");
}

/* Each reason once. */
static void unknown_nvlink(const json_t *list, struct np_buf *out)
{
	const char *last = "";
	const json_t *device;
	size_t i;

	json_array_foreach (list, i, device) {
		const char *reason = text_of(json_object_get(device, "nvlink"), "reason", "");

		if (*reason && strcmp(reason, last) != 0)
			np_buf_printf(out, "NVLink is not known: %s\n", reason);
		last = reason;
	}
}

static void nvlinks(const json_t *nvlink, struct np_buf *out)
{
	const json_t *active = json_object_get(nvlink, "active");

	if (json_is_integer(active))
		np_buf_printf(out, ", %lld NVLink%s active", (long long)json_integer_value(active),
			      json_integer_value(active) == 1 ? "" : "s");
	else if (json_is_object(nvlink))
		np_buf_str(out, ", NVLink not known");
}

/* The smaller of what device and slot can do. */
static double possible(const json_t *link, const char *device, const char *slot)
{
	double a = json_number_value(json_object_get(link, device));
	double b = json_number_value(json_object_get(link, slot));

	return b > 0 && b < a ? b : a;
}

static void number(struct np_buf *out, const char *form, double value)
{
	if (value > 0)
		np_buf_printf(out, form[0] == 'x' ? "x%.0f" : "%.1f", value);
	else
		np_buf_str(out, "?");
}

static void links(const json_t *list, struct np_buf *out)
{
	size_t names = widest(list, "device", 4), i;
	const json_t *device;

	json_array_foreach (list, i, device) {
		const json_t *link = json_object_get(device, "link");

		cell(out, text_of(device, "device", ""), names);
		if (!json_is_string(json_object_get(device, "pci_address"))) {
			np_buf_str(out, "not on PCI\n");
			continue;
		}
		np_buf_printf(out, "%s  PCIe ", text_of(device, "pci_address", ""));
		number(out, "x", json_number_value(json_object_get(link, "width")));
		np_buf_str(out, " of ");
		number(out, "x", possible(link, "max_width", "slot_width"));
		np_buf_str(out, ", ");
		number(out, "", json_number_value(json_object_get(link, "speed_GTps")));
		np_buf_str(out, " of ");
		number(out, "", possible(link, "max_speed_GTps", "slot_speed_GTps"));
		np_buf_str(out, " GT/s");
		nvlinks(json_object_get(device, "nvlink"), out);
		np_buf_str(out, "\n");
	}
}

static void lists(const json_t *list, struct np_buf *out)
{
	size_t names = widest(list, "device", 4), i;
	const char *head = "\nFor one worker a GPU:\n";
	const json_t *device;

	json_array_foreach (list, i, device) {
		if (strcmp(text_of(device, "kind", ""), "gpu") != 0)
			continue;
		np_buf_str(out, head);
		head = "";
		cell(out, text_of(device, "device", ""), names);
		if (json_is_string(json_object_get(device, "ucx_net_devices")))
			np_buf_printf(out, "UCX_NET_DEVICES=%s\n",
				      text_of(device, "ucx_net_devices", ""));
		else
			np_buf_str(out, "no usable port\n");
	}
}

void np_show_topology_text(const json_t *list, struct np_buf *out)
{
	if (json_array_size(list) == 0) {
		np_buf_str(out, "no GPUs and no HCAs\n");
		return;
	}
	matrix(list, out);
	legend(out);
	unknown_nvlink(list, out);
	np_buf_str(out, "\n");
	links(list, out);
	lists(list, out);
}
