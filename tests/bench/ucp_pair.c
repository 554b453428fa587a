/* SPDX-License-Identifier: MIT */
/*
 * ucp_pair TLS DEVICE SIZE CARRIER...: what the engine of the UCX rungs measures between two
 * processes, as ucx_perftest does: half a round trip in microseconds and 10^6 bytes a second.
 */
#include <stdio.h>
#include <string.h>

#include "base/child.h"
#include "base/str.h"
#include "selftest/ucp_pair.h"

#define DEADLINE_MS 60000

static struct np_ucp_spec spec;

static int run_end(struct np_ucp_pair *pair, const struct np_ucp_order *order,
		   struct np_rung_result *result, struct np_err *err)
{
	np_err_clear(err);
	spec.deadline_ms = order->deadline_ms;
	return np_ucp_pair_prove(pair, &spec, order->base, result, err);
}

static int serve(struct np_ucp_pair *pair, const struct np_ucp_order *order)
{
	struct np_rung_result result = { 0 };
	struct np_err err;

	return run_end(pair, order, &result, &err);
}

int main(int argc, char **argv)
{
	struct np_ucp_order order = { .deadline_ms = np_now_ms() + DEADLINE_MS, .base = 1 };
	struct np_rung_result result = { 0 };
	struct np_ucp_pair pair;
	struct np_err err = { 0 };
	uint64_t size;
	int ret;

	if (argc < 5 || np_parse_u64(argv[3], 10, 8 << 20, &size) < 0 || size == 0) {
		fprintf(stderr, "usage: ucp_pair TLS DEVICE SIZE CARRIER...\n");
		return 2;
	}
	spec = (struct np_ucp_spec){ .rung = "pair",
				     .tls = argv[1],
				     .net_devices = argv[2],
				     .carriers = (const char *const *)argv + 4,
				     .mem = &np_ucp_mem_host,
				     .no_peer_errors = true,
				     .sizes = &size,
				     .n_sizes = 1 };
	ret = np_ucp_pair_start(&pair, serve, &err);
	if (ret == 0) {
		ret = np_ucp_pair_order(&pair, &order, &err);
		if (ret == 0)
			ret = run_end(&pair, &order, &result, &err);
		np_ucp_pair_stop(&pair);
	}
	if (ret < 0) {
		fprintf(stderr, "ucp_pair: %s\n", err.message);
		return 1;
	}
	printf("%.4f %.1f\n", result.sizes[0].latency_us, result.sizes[0].bandwidth_MBps);
	return 0;
}
