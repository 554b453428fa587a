/* SPDX-License-Identifier: MIT */
#include "selftest/nvlink.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set_address(const struct np_nvml_pci *pci, char out[16])
{
	/* a far end that NVML cannot name has ones or noughts there, of no device */
	if (pci->domain > 0xffffff || pci->bus > 0xff || pci->device > 0x1f)
		out[0] = '\0';
	else
		snprintf(out, 16, "%04x:%02x:%02x.0", pci->domain & 0xffffff, pci->bus & 0xff,
			 pci->device & 0x1f);
}

static void look_at_far_end(const struct np_nvml *nvml, struct np_nvlink_gpu *gpu,
			    unsigned int link)
{
	unsigned int type = NP_NVML_LINK_TO_UNKNOWN;
	struct np_nvml_pci pci = { 0 };
	enum np_nvlink_far kind = NP_NVLINK_HIDDEN;
	size_t i = gpu->n_active++;

	gpu->active[i].pci[0] = '\0';
	if (nvml->remote_type && nvml->remote_type(gpu->device, link, &type) != NP_NVML_SUCCESS)
		type = NP_NVML_LINK_TO_UNKNOWN;
	if (type == NP_NVML_LINK_TO_SWITCH)
		kind = NP_NVLINK_SWITCH;
	else if (type == NP_NVML_LINK_TO_NPU)
		kind = NP_NVLINK_OTHER;
	else if (nvml->remote_pci && nvml->remote_pci(gpu->device, link, &pci) == NP_NVML_SUCCESS) {
		set_address(&pci, gpu->active[i].pci);
		kind = gpu->active[i].pci[0] ? NP_NVLINK_GPU : NP_NVLINK_HIDDEN;
	}
	gpu->active[i].kind = kind;
}

static void look_at_gpu(const struct np_nvml *nvml, unsigned int index, struct np_nvlink_gpu *gpu)
{
	struct np_nvml_pci pci = { 0 };

	if (nvml->by_index(index, &gpu->device) != NP_NVML_SUCCESS)
		return;
	if (nvml->pci_info(gpu->device, &pci) == NP_NVML_SUCCESS)
		set_address(&pci, gpu->pci);
	gpu->told = true;
	for (unsigned int link = 0; link < NP_NVML_LINKS; link++) {
		unsigned int state = 0;
		np_nvml_result result = nvml->link_state(gpu->device, link, &state);

		if (result == NP_NVML_SUCCESS && state == 1)
			look_at_far_end(nvml, gpu, link);
		else if (result != NP_NVML_SUCCESS && result != NP_NVML_INVALID_ARGUMENT &&
			 result != NP_NVML_NOT_SUPPORTED)
			gpu->told = false;
	}
}

int np_nvlinks_look(const struct np_nvml *nvml, struct np_nvlinks *out, struct np_err *err)
{
	struct np_nvlinks links = { 0 };
	unsigned int n = 0;
	np_nvml_result result = nvml->count(&n);
	bool all = n > 0 && n <= NP_NVLINK_GPUS;

	if (result != NP_NVML_SUCCESS)
		return np_nvml_failed(nvml, "counting the GPUs", result, err);
	links.n = n <= NP_NVLINK_GPUS ? n : NP_NVLINK_GPUS;
	links.v = calloc(links.n + 1, sizeof(*links.v));
	if (!links.v)
		return np_err_nomem(err);
	for (size_t i = 0; i < links.n; i++) {
		look_at_gpu(nvml, (unsigned int)i, &links.v[i]);
		all &= links.v[i].told;
		links.active |= links.v[i].n_active > 0;
	}
	/* one active link is an answer; none is one when every GPU has told */
	links.known = links.active || all;
	*out = links;
	return 0;
}

void np_nvlinks_done(struct np_nvlinks *links)
{
	if (!links)
		return;
	free(links->v);
	memset(links, 0, sizeof(*links));
}

/* ---- pairs ---- */

static int min(int a, int b)
{
	return a < b ? a : b;
}

static int count_to_gpu(const struct np_nvlink_gpu *from, const char *pci)
{
	int n = 0;

	for (size_t i = 0; i < from->n_active && *pci; i++)
		n += from->active[i].kind == NP_NVLINK_GPU && strcmp(from->active[i].pci, pci) == 0;
	return n;
}

static int count_to_switches(const struct np_nvlink_gpu *from)
{
	int n = 0;

	for (size_t i = 0; i < from->n_active; i++)
		n += from->active[i].kind == NP_NVLINK_SWITCH;
	return n;
}

/* Those that do not end at another GPU of the list: through switches, or nobody knows. In a
 * virtual machine the address of a GPU may be that on the host. */
static int count_open(const struct np_nvlinks *links, const struct np_nvlink_gpu *from)
{
	int n = 0;

	for (size_t i = 0; i < from->n_active; i++)
		n += from->active[i].kind != NP_NVLINK_OTHER;
	for (size_t i = 0; i < links->n; i++)
		n -= count_to_gpu(from, links->v[i].pci);
	return n;
}

enum answer { NO, YES, UNSURE };

/* Whether the driver lets these two use NVLink. */
static enum answer ask_driver(const struct np_nvml *nvml, np_nvml_device a, np_nvml_device b)
{
	unsigned int status = NP_NVML_P2P_UNKNOWN;

	if (!nvml->p2p_status ||
	    nvml->p2p_status(a, b, NP_NVML_P2P_NVLINK, &status) != NP_NVML_SUCCESS ||
	    status >= NP_NVML_P2P_UNKNOWN)
		return UNSURE;
	return status == NP_NVML_P2P_OK ? YES : NO;
}

int np_nvlinks_between(const struct np_nvml *nvml, const struct np_nvlinks *links, size_t a,
		       size_t b)
{
	const struct np_nvlink_gpu *x = &links->v[a], *y = &links->v[b];
	int direct, open, through;
	enum answer answer;

	if (!x->told || !y->told)
		return -1;
	if (x->n_active == 0 || y->n_active == 0)
		return 0;
	answer = ask_driver(nvml, x->device, y->device);
	if (answer == NO)
		return 0;
	direct = min(count_to_gpu(x, y->pci), count_to_gpu(y, x->pci));
	open = min(count_open(links, x), count_open(links, y));
	through = min(count_to_switches(x), count_to_switches(y));
	if (direct > 0)
		return direct;
	if (answer == YES || open == 0)
		return open;
	return through > 0 ? through : -1;
}
