/* SPDX-License-Identifier: MIT */
#include "selftest/ucp_engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "selftest/measure.h"
#include "selftest/ucp_link.h"
#include "selftest/ucp_move.h"

static void *host_alloc(void *ctx, size_t len, struct np_err *err)
{
	void *mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)ctx;
	if (mem == MAP_FAILED) {
		np_err_nomem(err);
		return NULL;
	}
	return mem;
}

static void host_release(void *ctx, void *mem, size_t len)
{
	(void)ctx;
	munmap(mem, len);
}

const struct np_ucp_mem np_ucp_mem_host = {
	.name = "host memory",
	.type = UCS_MEMORY_TYPE_HOST,
	.alloc = host_alloc,
	.release = host_release,
};

static int other_transport(const struct np_ucp_spec *spec, const char *did, const char *carried,
			   struct np_err *err)
{
	char code[48];

	snprintf(code, sizeof(code), "selftest.%s.other_transport", spec->rung);
	np_err_set(err, -EPROTO, code, "asked for %s%s%s, but %s %s", spec->tls,
		   spec->device ? " on " : "", spec->device ? spec->device : "",
		   *carried ? carried : "nothing that UCX names", did);
	np_err_hint(err, "see which transports and devices this UCX has: ucx_info -d");
	return -EPROTO;
}

/* What copies to and from the GPU: put before the transport of the messages. */
static int check_memory(struct np_ucp_link *link, struct np_rung_result *result, struct np_err *err)
{
	const struct np_ucp_spec *spec = link->spec;
	char copies[80], over[sizeof(result->transport)];
	struct np_ucx_lanes lanes;
	int ret = np_ucp_link_memory(link, &lanes, err);

	if (ret < 0)
		return ret;
	np_ucx_lanes_str(&lanes, copies, sizeof(copies));
	if (!np_ucx_lanes_only(&lanes, spec->memory_carriers, NULL) ||
	    !np_ucx_lanes_all(&lanes, spec->memory_carriers))
		return other_transport(spec, "copied to and from the GPU", copies, err);
	np_strcpy(over, sizeof(over), result->transport);
	snprintf(result->transport, sizeof(result->transport), "%s over %.*s", copies,
		 (int)(sizeof(result->transport) - sizeof(copies) - sizeof(" over ")), over);
	return 0;
}

int np_ucp_check_carrier(struct np_ucp_link *link, struct np_rung_result *result,
			 struct np_err *err)
{
	const struct np_ucp_spec *spec = link->spec;
	const char *const must[] = { spec->must_carry, NULL };
	struct np_ucx_lanes lanes;
	int ret;

	ret = np_ucp_link_lanes(link, &lanes, err);
	if (ret < 0)
		return ret;
	np_ucx_lanes_str(&lanes, result->transport, sizeof(result->transport));
	if (!np_ucx_lanes_only(&lanes, spec->carriers, spec->device) ||
	    !np_ucx_lanes_all(&lanes, must))
		return other_transport(spec, "carried the messages", result->transport, err);
	return spec->memory_carriers ? check_memory(link, result, err) : 0;
}

const uint64_t *np_ucp_sizes(const struct np_ucp_spec *spec, size_t *n)
{
	if (!spec->sizes)
		return np_sizes(spec->full, n);
	*n = spec->n_sizes;
	return spec->sizes;
}

static int prove_sizes(struct np_ucp_link *link, struct np_ucp_buffers *buffers,
		       struct np_rung_result *result, struct np_err *err)
{
	size_t n;
	const uint64_t *sizes = np_ucp_sizes(link->spec, &n);

	for (size_t i = 0; i < n; i++) {
		struct np_rung_size measured = { .size_bytes = sizes[i] };
		int ret;

		ret = np_ucp_latency(link, buffers, sizes[i], &measured.latency_us, err);
		if (ret == 0 && i == 0) /* before it moves megabytes over the wrong one */
			ret = np_ucp_check_carrier(link, result, err);
		if (ret == 0)
			ret = np_ucp_bandwidth(link, buffers, sizes[i], &measured.bandwidth_MBps,
					       err);
		if (ret < 0)
			return ret;
		np_debug("%s: %llu B: %.2f us, %.1f MB/s", link->spec->rung,
			 (unsigned long long)sizes[i], measured.latency_us,
			 measured.bandwidth_MBps);
		result->sizes[result->n_sizes++] = measured;
	}
	return np_ucp_check_carrier(link, result, err);
}

/* Corrupt data is worth a name of what brought it. */
static void name_carrier(struct np_ucp_link *link, struct np_rung_result *result)
{
	struct np_ucx_lanes lanes;

	if (!result->transport[0] && np_ucp_link_lanes(link, &lanes, NULL) == 0)
		np_ucx_lanes_str(&lanes, result->transport, sizeof(result->transport));
}

static bool abandoned;

bool np_ucp_abandoned(void)
{
	return abandoned;
}

void np_ucp_finish(struct np_ucp_link *link, struct np_ucp_buffers *buffers, int ret)
{
	if (ret < 0 && ret != -EBADMSG && ret != -EPROTO && link->context) {
		abandoned = true; /* requests may hold the buffers */
		return;
	}
	np_ucp_link_close(link);
	np_ucp_buffers_done(buffers);
}

int np_ucp_prove(const struct np_ucp_spec *spec, struct np_rung_result *result, struct np_err *err)
{
	struct np_ucp_buffers buffers = { 0 };
	struct np_ucp_link link;
	int ret;

	ret = np_ucp_link_open(&link, spec, err);
	if (ret == 0)
		ret = np_ucp_buffers_alloc(&buffers, spec, err);
	if (ret == 0)
		ret = prove_sizes(&link, &buffers, result, err);
	if (ret == -EBADMSG)
		name_carrier(&link, result);
	result->growth.moved = link.moved_bytes;
	np_ucp_finish(&link, &buffers, ret);
	return ret;
}
