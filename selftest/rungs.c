/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "selftest/rung.h"

const struct np_rung np_rungs[] = {
	{ "umad", "subnet management packets: what a port says of itself", 0, np_rung_umad },
	{ "verbs", "RDMA write and send, within one port of an HCA or between two", 0,
	  np_rung_verbs },
	{ "rc", "UCX rc (reliable connection) through a port of an HCA", 0, np_rung_rc },
	{ "tcp", "UCX tcp, loopback over the address of an IPoIB netdev", 0, np_rung_tcp },
	{ "cuda", "each GPU: context, memory, copies to it, on it and back", 1, np_rung_cuda },
	{ "cuda_copy", "UCX cuda_copy: GPU memory, through the host", 1, np_rung_cuda_copy },
	{ "cuda_ipc", "UCX cuda_ipc: GPU to GPU between two processes", 2, np_rung_cuda_ipc },
	{ "gdrapi", "gdrcopy's library on each GPU: pin, map, copy both ways", 1, np_rung_gdrapi },
	{ "gdr_copy", "UCX gdr_copy: small messages in GPU memory", 1, np_rung_gdr_copy },
	{ "gdr_rdma", "GPU memory by RDMA: dma-buf and nvidia_peermem", 0, np_rung_gdr_rdma },
	{ "nccl", "NCCL all-reduce over all GPUs of this node", 0, np_rung_nccl },
	{ NULL, NULL, 0, NULL },
};

const struct np_rung *np_rung_find(const char *name)
{
	for (const struct np_rung *rung = np_rungs; rung->name; rung++)
		if (np_streq(rung->name, name))
			return rung;
	return NULL;
}

const char *np_rung_nearest(const char *name)
{
	const char *names[NP_ARRAY_SIZE(np_rungs)];

	for (size_t i = 0; i < NP_ARRAY_SIZE(np_rungs); i++)
		names[i] = np_rungs[i].name;
	return np_nearest(name, names);
}

struct np_rung_result *np_rung_add(struct np_rung_report *report, const char *rung,
				   const char *device)
{
	struct np_rung_result *grown, *result;

	grown = reallocarray(report->v, report->n + 1, sizeof(*report->v));
	if (!grown)
		return NULL;
	report->v = grown;
	result = &report->v[report->n++];
	memset(result, 0, sizeof(*result));
	np_strcpy(result->rung, sizeof(result->rung), rung);
	np_strcpy(result->device, sizeof(result->device), device ? device : "");
	return result;
}

void np_rung_report_done(struct np_rung_report *report)
{
	if (!report)
		return;
	free(report->v);
	report->v = NULL;
	report->n = 0;
}

static void take_error(struct np_rung_result *result, enum np_rung_status status,
		       const struct np_err *err)
{
	result->status = status;
	np_strcpy(result->code, sizeof(result->code), err->code);
	np_strcpy(result->message, sizeof(result->message), err->message);
	np_strcpy(result->hint, sizeof(result->hint), err->hint);
}

void np_rung_fail(struct np_rung_result *result, const struct np_err *err)
{
	take_error(result, NP_RUNG_FAIL, err);
}

void np_rung_skip(struct np_rung_result *result, const struct np_err *err)
{
	take_error(result, NP_RUNG_SKIP, err);
}

void np_rung_warn(struct np_rung_result *result, const struct np_err *err)
{
	take_error(result, NP_RUNG_WARN, err);
}

void np_rung_ok(struct np_rung_result *result, const char *fmt, ...)
{
	va_list args;

	result->status = NP_RUNG_OK;
	result->code[0] = '\0';
	result->hint[0] = '\0';
	va_start(args, fmt);
	vsnprintf(result->message, sizeof(result->message), fmt, args);
	va_end(args);
}

bool np_rung_report_ok(const struct np_rung_report *report)
{
	for (size_t i = 0; i < report->n; i++)
		if (report->v[i].status != NP_RUNG_OK && report->v[i].status != NP_RUNG_WARN)
			return false;
	return report->n > 0;
}

const char *np_size_str(uint64_t bytes, char out[32])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB" };
	size_t unit = 0;

	while (unit + 1 < NP_ARRAY_SIZE(units) && bytes >= 1024 && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	snprintf(out, 32, "%llu %s", (unsigned long long)bytes, units[unit]);
	return out;
}
