/* SPDX-License-Identifier: MIT */
#include "agent/topology.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/select.h"

const char *np_distance_str(enum np_distance d)
{
	static const char *const words[] = {
		[NP_DISTANCE_PIX] = "PIX", [NP_DISTANCE_PXB] = "PXB",	[NP_DISTANCE_PHB] = "PHB",
		[NP_DISTANCE_SYS] = "SYS", [NP_DISTANCE_NODE] = "NODE",
	};

	return d < NP_ARRAY_SIZE(words) ? words[d] : "unknown";
}

static size_t count_parts(const char *path)
{
	size_t n = 1;

	for (; *path; path++)
		n += *path == '/';
	return n;
}

/* How many parts two paths have in common from the start, their last ones (the
 * functions themselves) left out. */
static size_t shared_parts(const char *a, const char *b)
{
	size_t n = 0;

	for (;;) {
		size_t len = strcspn(a, "/");

		if (len != strcspn(b, "/") || strncmp(a, b, len) != 0 || !a[len] || !b[len])
			return n;
		n++;
		a += len + 1;
		b += len + 1;
	}
}

/* A switch is a bridge above (its upstream port) and one bridge for each device below,
 * so two devices with at most one bridge each under the last shared one have just that
 * switch between them. */
static enum np_distance below_one_host_bridge(const char *a, const char *b, size_t shared)
{
	size_t own_a = count_parts(a) - 1 - shared, own_b = count_parts(b) - 1 - shared;

	if (shared == 1) /* the host bridge alone: different root ports */
		return NP_DISTANCE_PHB;
	return own_a <= 1 && own_b <= 1 ? NP_DISTANCE_PIX : NP_DISTANCE_PXB;
}

enum np_distance np_distance(const struct np_pci *a, const struct np_pci *b, bool one_node)
{
	size_t shared;

	if (!a->path[0] || !b->path[0])
		return NP_DISTANCE_UNKNOWN;
	if (strcmp(a->path, b->path) == 0) /* two subfunctions of one function */
		return NP_DISTANCE_PIX;
	shared = shared_parts(a->path, b->path);
	if (shared > 0)
		return below_one_host_bridge(a->path, b->path, shared);
	if (a->numa_node >= 0 && b->numa_node >= 0)
		return a->numa_node == b->numa_node ? NP_DISTANCE_NODE : NP_DISTANCE_SYS;
	return one_node ? NP_DISTANCE_NODE : NP_DISTANCE_UNKNOWN;
}

int np_topology_make(const struct np_facts *facts, struct np_topology *out)
{
	struct np_topology t = { .one_node = facts->one_numa_node };
	size_t n_gpus = 0;

	t.v = calloc(facts->gpus.n + facts->cas.n + 1, sizeof(*t.v));
	if (!t.v)
		return -ENOMEM;
	for (size_t i = 0; i < facts->gpus.n; i++) {
		struct np_topology_device *d = &t.v[t.n];

		if (np_gpu_is_given_away(&facts->gpus.v[i]))
			continue;
		t.n++;
		snprintf(d->name, sizeof(d->name), "GPU%zu", n_gpus++);
		d->gpu = &facts->gpus.v[i];
		d->pci = &d->gpu->pci;
	}
	for (size_t i = 0; i < facts->cas.n; i++) {
		struct np_topology_device *d = &t.v[t.n];

		if (facts->cas.v[i].management_only)
			continue;
		t.n++;
		d->ca = &facts->cas.v[i];
		np_strcpy(d->name, sizeof(d->name), d->ca->name);
		d->pci = &d->ca->pci;
	}
	*out = t;
	return 0;
}

void np_topology_done(struct np_topology *t)
{
	if (!t)
		return;
	free(t->v);
	memset(t, 0, sizeof(*t));
}

static bool any_usable(const struct np_config *cfg, const struct np_ca *ca)
{
	for (size_t i = 0; i < ca->n_ports; i++)
		if (np_port_usable(cfg, ca, &ca->ports[i]))
			return true;
	return false;
}

int np_topology_nearest(const struct np_config *cfg, const struct np_topology *t,
			const struct np_topology_device *gpu, struct np_strv *out)
{
	enum np_distance best = NP_DISTANCE_UNKNOWN;

	for (size_t i = 0; i < t->n; i++) {
		enum np_distance d = np_distance(gpu->pci, t->v[i].pci, t->one_node);

		if (t->v[i].ca && d < best && any_usable(cfg, t->v[i].ca))
			best = d;
	}
	for (size_t i = 0; i < t->n; i++) {
		const struct np_ca *ca = t->v[i].ca;

		if (!ca || np_distance(gpu->pci, t->v[i].pci, t->one_node) != best)
			continue;
		for (size_t p = 0; p < ca->n_ports; p++) {
			char name[96];

			if (!np_port_usable(cfg, ca, &ca->ports[p]))
				continue;
			snprintf(name, sizeof(name), "%s:%d", ca->name, ca->ports[p].num);
			if (np_strv_add(out, name) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}
