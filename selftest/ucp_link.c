/* SPDX-License-Identifier: MIT */
#include "selftest/ucp_link.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "base/log.h"
#include "selftest/measure.h"
#include "selftest/memlock.h"
#include "selftest/ucx_log.h"

/* The clock is read once in so many rounds of progress. */
#define CLOCK_EVERY 512

static int set_code(const struct np_ucp_spec *spec, const char *what, char code[48])
{
	return snprintf(code, 48, "selftest.%s.%s", spec->rung, what);
}

int np_ucp_link_error(const struct np_ucp_spec *spec, ucs_status_t status, const char *doing,
		      struct np_err *err)
{
	const char *said = np_ucx_log_first();
	uint64_t limit;
	const char *what = "ucx", *hint = "read UCX's own messages on stderr";
	int num = -EIO;
	char code[48];

	if (status == UCS_ERR_NO_DEVICE) {
		what = "no_transport";
		hint = "see which transports and devices this UCX has: ucx_info -d";
		num = -ENODEV;
	} else if ((np_ucx_log_memlock() || status == UCS_ERR_NO_MEMORY) &&
		   np_memlock_limit(&limit)) {
		return np_memlock_error(spec->rung, doing, limit, err);
	} else if (status == UCS_ERR_ENDPOINT_TIMEOUT || status == UCS_ERR_TIMED_OUT ||
		   status == UCS_ERR_CONNECTION_RESET || status == UCS_ERR_UNREACHABLE ||
		   status == UCS_ERR_NOT_CONNECTED || status == UCS_ERR_REJECTED) {
		what = "endpoint";
		hint = "check the port's state and error counters, and for RoCE its GIDs";
		num = -ECONNRESET;
	}
	set_code(spec, what, code);
	np_err_set(err, num, code, "UCX failed while %s: %s%s%s", doing, ucs_status_string(status),
		   *said ? ": " : "", said);
	np_err_hint(err, "%s", hint);
	return num;
}

static int configure(const struct np_ucp_spec *spec, ucp_config_t *config, struct np_err *err)
{
	const struct np_ucp_setting fixed[] = {
		{ "TLS", spec->tls },
		{ "NET_DEVICES", spec->net_devices ? spec->net_devices : "all" },
		{ NULL, NULL },
	};
	const struct np_ucp_setting *const lists[] = { fixed, spec->settings };

	for (size_t i = 0; i < NP_ARRAY_SIZE(lists); i++) {
		for (const struct np_ucp_setting *s = lists[i]; s && s->name; s++) {
			ucs_status_t status;
			char name[64];

			snprintf(name, sizeof(name), "UCX_%s", s->name);
			if (lists[i] != fixed && getenv(name))
				continue;
			status = ucp_config_modify(config, s->name, s->value);
			if (status != UCS_OK)
				return np_ucp_link_error(spec, status, "configuring it", err);
			np_debug("%s=%s", name, s->value);
		}
	}
	return 0;
}

static int open_context(struct np_ucp_link *link, struct np_err *err)
{
	ucp_params_t params = {
		.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED,
		.features = UCP_FEATURE_TAG,
		.mt_workers_shared = 0,
	};
	ucp_config_t *config = NULL;
	ucs_status_t status;
	int ret;

	status = ucp_config_read(NULL, NULL, &config);
	if (status != UCS_OK)
		return np_ucp_link_error(link->spec, status, "reading its configuration", err);
	ret = configure(link->spec, config, err);
	if (ret == 0) {
		status = ucp_init(&params, config, &link->context);
		if (status != UCS_OK) {
			link->context = NULL;
			ret = np_ucp_link_error(link->spec, status, "opening the transport", err);
		}
	}
	ucp_config_release(config);
	return ret;
}

static void on_peer_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	struct np_ucp_link *link = arg;

	(void)ep;
	link->peer_status = status;
}

int np_ucp_link_connect(struct np_ucp_link *link, int from, const ucp_address_t *address,
			struct np_err *err)
{
	ucp_ep_params_t params;
	ucs_status_t status;

	memset(&params, 0, sizeof(params));
	params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
			    UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
	params.address = address;
	params.err_mode = link->spec->no_peer_errors ? UCP_ERR_HANDLING_MODE_NONE :
						       UCP_ERR_HANDLING_MODE_PEER;
	params.err_handler.cb = on_peer_error;
	params.err_handler.arg = link;
	status = ucp_ep_create(link->worker[from], &params, &link->ep[from]);
	if (status == UCS_OK)
		return 0;
	link->ep[from] = NULL;
	return np_ucp_link_error(link->spec, status, "connecting", err);
}

static int open_endpoint(struct np_ucp_link *link, int from, struct np_err *err)
{
	ucp_address_t *address = NULL;
	ucs_status_t status;
	size_t len;
	int ret;

	status = ucp_worker_get_address(link->worker[1 - from], &address, &len);
	if (status != UCS_OK)
		return np_ucp_link_error(link->spec, status, "asking for the worker address", err);
	ret = np_ucp_link_connect(link, from, address, err);
	ucp_worker_release_address(link->worker[1 - from], address);
	return ret;
}

/* Pins as much memory as the transport's queues will: where the limit is too low
 * UCX itself never returns from opening the device, or tries for ever. */
static int try_register(struct np_ucp_link *link, struct np_err *err)
{
	size_t len = link->spec->register_bytes;
	ucp_mem_map_params_t params = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
		.length = len,
	};
	uint64_t limit;
	ucs_status_t status;
	char doing[64];
	ucp_mem_h mem;

	if (len == 0)
		return 0;
	params.address = np_ucp_mem_host.alloc(NULL, len, err);
	if (!params.address)
		return -ENOMEM;
	status = ucp_mem_map(link->context, &params, &mem);
	if (status == UCS_OK)
		status = ucp_mem_unmap(link->context, mem);
	np_ucp_mem_host.release(NULL, params.address, len);
	if (status == UCS_OK)
		return 0;
	if (np_memlock_limit(&limit) && limit < len)
		status = UCS_ERR_NO_MEMORY;
	snprintf(doing, sizeof(doing), "registering %zu MiB", len >> 20);
	return np_ucp_link_error(link->spec, status, doing, err);
}

static int open_worker(struct np_ucp_link *link, int i, struct np_err *err)
{
	ucp_worker_params_t params = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SINGLE,
	};
	ucs_status_t status = ucp_worker_create(link->context, &params, &link->worker[i]);

	if (status != UCS_OK)
		link->worker[i] = NULL;
	else if (np_ucx_log_memlock()) /* it would try for ever */
		status = UCS_ERR_NO_MEMORY;
	return status == UCS_OK ? 0 :
				  np_ucp_link_error(link->spec, status, "opening the device", err);
}

int np_ucp_link_open_half(struct np_ucp_link *link, const struct np_ucp_spec *spec,
			  struct np_err *err)
{
	int ret;

	memset(link, 0, sizeof(*link));
	link->spec = spec;
	link->peer_status = UCS_OK;
	np_ucx_log_start();
	ret = open_context(link, err);
	if (ret == 0)
		ret = try_register(link, err);
	return ret < 0 ? ret : open_worker(link, 0, err);
}

int np_ucp_link_open(struct np_ucp_link *link, const struct np_ucp_spec *spec, struct np_err *err)
{
	int ret = np_ucp_link_open_half(link, spec, err);

	if (ret == 0)
		ret = open_worker(link, 1, err);
	for (int i = 0; i < 2 && ret == 0; i++)
		ret = open_endpoint(link, i, err);
	return ret;
}

void np_ucp_link_progress(struct np_ucp_link *link)
{
	unsigned int did = 0;

	for (int i = 0; i < 2; i++)
		if (link->worker[i])
			did += ucp_worker_progress(link->worker[i]);
	if (did == 0 && link->crowded)
		sched_yield();
}

static void close_endpoints(struct np_ucp_link *link)
{
	int64_t until = np_now_ms() + 1000; /* a second to flush */
	ucp_request_param_t param = { 0 };
	ucs_status_ptr_t closing[2] = { NULL, NULL };

	for (int i = 0; i < 2; i++)
		if (link->ep[i])
			closing[i] = ucp_ep_close_nbx(link->ep[i], &param);
	for (int i = 0; i < 2; i++) {
		if (!UCS_PTR_IS_PTR(closing[i]))
			continue;
		while (ucp_request_check_status(closing[i]) == UCS_INPROGRESS &&
		       np_now_ms() < until)
			np_ucp_link_progress(link);
		ucp_request_free(closing[i]);
	}
}

void np_ucp_link_close(struct np_ucp_link *link)
{
	close_endpoints(link);
	for (int i = 0; i < 2; i++)
		if (link->worker[i])
			ucp_worker_destroy(link->worker[i]);
	if (link->context)
		ucp_cleanup(link->context);
	memset(link, 0, sizeof(*link));
}

ucs_status_t np_ucp_request_status(const struct np_ucp_request *request)
{
	return UCS_PTR_IS_PTR(request->ptr) ? ucp_request_check_status(request->ptr) :
					      UCS_PTR_STATUS(request->ptr);
}

/* How many are under way; *failed becomes the status of one that failed. */
static size_t under_way(const struct np_ucp_request *requests, size_t n, ucs_status_t *failed)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		ucs_status_t status = np_ucp_request_status(&requests[i]);

		if (status == UCS_INPROGRESS)
			count++;
		else if (status != UCS_OK)
			*failed = status;
	}
	return count;
}

int np_ucp_link_in_time(const struct np_ucp_link *link, const char *doing, struct np_err *err)
{
	return np_now_ms() < link->spec->deadline_ms ? 0 : np_too_late(doing, err);
}

int np_ucp_peer_died(const char *doing, struct np_err *err)
{
	np_err_set(err, -EPIPE, "selftest.peer_died", "the process at the other end ended while %s",
		   doing);
	np_err_hint(err, "read its messages on stderr, and the kernel log for a process that was "
			 "killed (out of memory, Xid)");
	return -EPIPE;
}

/* A process that ends gives up its memory before its socket: UCX may see that first. */
#define GONE_WITHIN_MS 300

static int failed_or_gone(struct np_ucp_link *link, ucs_status_t failed, const char *doing,
			  struct np_err *err)
{
	int64_t until = np_now_ms() + GONE_WITHIN_MS;

	while (link->peer_failed && np_now_ms() < until) {
		if (link->peer_failed(link->peer_arg))
			return np_ucp_peer_died(doing, err);
		np_sleep_ms(10);
	}
	return np_ucp_link_error(link->spec, failed, doing, err);
}

int np_ucp_link_trouble(struct np_ucp_link *link, unsigned int round, ucs_status_t failed,
			const char *doing, struct np_err *err)
{
	if (np_ucx_log_memlock() && failed == UCS_OK) /* UCX would try for ever */
		failed = UCS_ERR_NO_MEMORY;
	if (failed == UCS_OK)
		failed = link->peer_status;
	if (failed != UCS_OK)
		return failed_or_gone(link, failed, doing, err);
	if (round % CLOCK_EVERY != 0)
		return 0;
	if (link->peer_failed)
		sched_yield(); /* it may want this processor */
	if (link->peer_failed && link->peer_failed(link->peer_arg))
		return np_ucp_peer_died(doing, err);
	return np_ucp_link_in_time(link, doing, err);
}

int np_ucp_link_wait(struct np_ucp_link *link, struct np_ucp_request *requests, size_t n,
		     const char *doing, struct np_err *err)
{
	ucs_status_t failed = UCS_OK;
	int ret;

	for (unsigned int round = 1; under_way(requests, n, &failed) > 0; round++) {
		ret = np_ucp_link_trouble(link, round, failed, doing, err);
		if (ret < 0)
			return ret;
		np_ucp_link_progress(link);
	}
	if (failed == UCS_OK)
		failed = link->peer_status;
	if (failed != UCS_OK)
		return failed_or_gone(link, failed, doing, err);
	for (size_t i = 0; i < n; i++) {
		if (UCS_PTR_IS_PTR(requests[i].ptr))
			ucp_request_free(requests[i].ptr);
		requests[i].ptr = NULL;
	}
	return 0;
}
