/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "agent/judge.h"

/* ---- links ---- */

/* What device and slot can do together; 0 = unknown. */
static unsigned int possible(unsigned int device, unsigned int slot)
{
	return slot && slot < device ? slot : device;
}

static void judge_width(const char *target, const struct np_pci *pci, struct np_checks *out)
{
	unsigned int can = possible(pci->max.width, pci->slot.width);

	if (pci->now.width && pci->now.width < can)
		np_checks_add(
			out, "pcie", target, NP_CHECK_WARN, "pcie.width_degraded",
			"reseat the adapter or its riser, and look at the bifurcation of its slot in the firmware set-up",
			"its PCIe link (%s) runs on %u lanes where %u are possible",
			np_pci_address(pci), pci->now.width, can);
}

static void judge_speed(const char *target, const struct np_pci *pci, struct np_checks *out)
{
	unsigned int can = possible(pci->max.speed, pci->slot.speed);

	if (pci->now.speed && pci->now.speed < can)
		np_checks_add(
			out, "pcie", target, NP_CHECK_WARN, "pcie.speed_degraded",
			"reseat the adapter or its riser, and look at the speed of its slot in the firmware set-up",
			"its PCIe link (%s) runs at %u.%u GT/s where %u.%u are possible",
			np_pci_address(pci), pci->now.speed / 1000, pci->now.speed / 100 % 10,
			can / 1000, can / 100 % 10);
}

static bool any_wanted(const struct np_config *cfg, const struct np_ca *ca)
{
	for (size_t i = 0; i < ca->n_ports; i++)
		if (np_port_role(cfg, ca, &ca->ports[i]) == NP_PORT_WANTED)
			return true;
	return false;
}

static void judge_links(const struct np_config *cfg, const struct np_facts *facts,
			struct np_checks *out)
{
	for (size_t i = 0; i < facts->cas.n; i++) {
		const struct np_ca *ca = &facts->cas.v[i];

		if (!any_wanted(cfg, ca))
			continue;
		judge_width(ca->name, &ca->pci, out);
		judge_speed(ca->name, &ca->pci, out);
	}
	/* a GPU lowers its speed when it is idle, so that says nothing */
	for (size_t i = 0; i < facts->gpus.n; i++)
		judge_width(facts->gpus.v[i].pci_address, &facts->gpus.v[i].pci, out);
}

/* ---- services ---- */

static void judge_fabricmanager(const struct np_gpu_services *s, struct np_checks *out)
{
	if (s->fabricmanager == NP_SERVICE_RUNNING)
		np_checks_add(out, "gpu", "nvidia-fabricmanager", NP_CHECK_OK,
			      "gpu.fabricmanager_running", NULL,
			      "runs, as the NVSwitches of this node need it");
	else if (s->fabricmanager == NP_SERVICE_DOWN)
		np_checks_add(
			out, "gpu", "nvidia-fabricmanager", NP_CHECK_WARN, "gpu.fabricmanager_down",
			"install the one of the GPU driver's version: systemctl enable --now nvidia-fabricmanager",
			"this node has NVSwitches, and nothing sets them up: CUDA will not start on its GPUs");
	else
		np_checks_add(out, "gpu", "nvidia-fabricmanager", NP_CHECK_UNKNOWN,
			      "gpu.service_unknown", "run nodeprep on the host",
			      "this node has NVSwitches; whether it runs cannot be seen from here");
}

static void judge_imex(const struct np_gpu_services *s, struct np_checks *out)
{
	if (s->imex == NP_SERVICE_RUNNING)
		np_checks_add(out, "gpu", "nvidia-imex", NP_CHECK_OK, "gpu.imex_running", NULL,
			      s->imex_domain ? "runs" :
					       "runs, but its default list names no nodes");
	else if (s->imex == NP_SERVICE_UNKNOWN)
		np_checks_add(out, "gpu", "nvidia-imex", NP_CHECK_UNKNOWN, "gpu.service_unknown",
			      "run nodeprep on the host",
			      "is set up here; whether it runs cannot be seen from here");
	else if (s->imex_domain)
		np_checks_add(
			out, "gpu", "nvidia-imex", NP_CHECK_WARN, "gpu.imex_down",
			"systemctl enable --now nvidia-imex, unless the scheduler starts it for each job",
			"is to join the nodes of its list, but does not run: no memory is shared with them over NVLink");
	else
		np_checks_add(
			out, "gpu", "nvidia-imex", NP_CHECK_OK, "gpu.imex_idle", NULL,
			"does not run, and has no nodes to join; this node has IMEX channels");
}

void np_judge_pci(const struct np_config *cfg, const struct np_facts *facts, struct np_checks *out)
{
	const struct np_gpu_services *s = &facts->gpu_services;

	judge_links(cfg, facts, out);
	if (s->nvswitch)
		judge_fabricmanager(s, out);
	if (s->imex_channels || s->imex_domain)
		judge_imex(s, out);
}
