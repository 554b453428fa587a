/* SPDX-License-Identifier: MIT */
/* The engine of two processes, with host memory over shared memory: what GPU memory over
 * cuda_ipc uses, less the GPU. */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/child.h"
#include "selftest/gpu_mem.h"
#include "selftest/ucp_flow.h"
#include "selftest/ucp_pair.h"

static const char *const shared_memory[] = { "posix", "sysv", "cma", "xpmem", "knem", NULL };
static const char *const no_such[] = { "cuda_ipc", NULL };

static struct np_ucp_spec spec_of(const struct np_ucp_order *order)
{
	const struct np_ucp_spec spec = {
		.rung = "cuda_ipc",
		.tls = "sm",
		.carriers = shared_memory,
		.mem = &np_ucp_mem_host,
		.no_peer_errors = true,
		.full = order->full,
		.deadline_ms = order->deadline_ms,
	};

	return spec;
}

static int run_end(struct np_ucp_pair *pair, const struct np_ucp_order *order,
		   struct np_rung_result *result, struct np_err *err)
{
	struct np_ucp_spec spec = spec_of(order);

	memset(result, 0, sizeof(*result));
	np_err_clear(err);
	return np_ucp_pair_prove(pair, &spec, order->base, result, err);
}

static int serve(struct np_ucp_pair *pair, const struct np_ucp_order *order)
{
	struct np_rung_result result;
	struct np_err err;

	return run_end(pair, order, &result, &err);
}

/* Host memory that is written so often before the process ends: in the second size. */
static int writes_left = 900;

static int write_or_die(void *ctx, void *mem, const void *host, size_t len, struct np_err *err)
{
	(void)ctx;
	(void)err;
	if (writes_left-- == 0)
		_exit(3);
	memcpy(mem, host, len);
	return 0;
}

static int read_plainly(void *ctx, void *host, const void *mem, size_t len, struct np_err *err)
{
	(void)ctx;
	(void)err;
	memcpy(host, mem, len);
	return 0;
}

static int serve_and_die(struct np_ucp_pair *pair, const struct np_ucp_order *order)
{
	struct np_ucp_mem mortal = np_ucp_mem_host;
	struct np_ucp_spec spec = spec_of(order);
	struct np_rung_result result = { 0 };
	struct np_err err;

	mortal.write = write_or_die;
	mortal.read = read_plainly;
	spec.mem = &mortal;
	return np_ucp_pair_prove(pair, &spec, order->base, &result, &err);
}

static int die(struct np_ucp_pair *pair, const struct np_ucp_order *order)
{
	(void)pair;
	(void)order;
	_exit(3);
}

/* By a signal, wherever it is by then. */
static int be_killed(struct np_ucp_pair *pair, const struct np_ucp_order *order)
{
	const struct itimerval soon = { .it_value.tv_usec = 250000 };

	signal(SIGVTALRM, SIG_DFL);
	setitimer(ITIMER_VIRTUAL, &soon, NULL);
	return serve(pair, order);
}

static int refuse(struct np_ucp_pair *pair, const struct np_ucp_order *order)
{
	struct np_err why;

	np_err_set(&why, -ENODEV, "selftest.no_gpu", "there is no GPU %s", order->pci);
	np_ucp_pair_refuse(pair, &why);
	return 1;
}

static int corrupt(struct np_ucp_pair *pair, const struct np_ucp_order *order)
{
	setenv("NP_TEST_CORRUPT", "70", 1);
	return serve(pair, order);
}

static int other_base(struct np_ucp_pair *pair, const struct np_ucp_order *order)
{
	struct np_ucp_order other = *order;

	other.base++;
	return serve(pair, &other);
}

static int prove(int (*other)(struct np_ucp_pair *pair, const struct np_ucp_order *order),
		 bool full, struct np_rung_result *result, struct np_err *err)
{
	struct np_ucp_order order = { .pci = "0000:17:00.0", .full = full, .base = 4711 };
	struct np_ucp_pair pair;
	int ret;

	order.deadline_ms = np_now_ms() + 60000;
	assert_int_equal(np_ucp_pair_start(&pair, other, err), 0);
	assert_int_equal(np_ucp_pair_order(&pair, &order, err), 0);
	ret = run_end(&pair, &order, result, err);
	np_ucp_pair_stop(&pair);
	return ret;
}

static void messages_go_both_ways(void **state)
{
	struct np_rung_result result;
	struct np_err err;

	(void)state;
	if (prove(serve, false, &result, &err) != 0)
		fail_msg("%s: %s", err.code, err.message);
	assert_int_equal(result.n_sizes, 5);
	assert_int_equal(result.sizes[4].size_bytes, 8 << 20);
	for (size_t i = 0; i < result.n_sizes; i++)
		assert_true(result.sizes[i].latency_us > 0 && result.sizes[i].bandwidth_MBps > 0);
	assert_non_null(strstr(result.transport, "/memory"));
}

/* The engine of one process, with what it has the ports' counters compared to. */
static void one_process_is_enough(void **state)
{
	struct np_ucp_order order = { .deadline_ms = np_now_ms() + 60000 };
	struct np_ucp_spec spec = spec_of(&order);
	struct np_rung_result result = { 0 };
	uint64_t all = 0;
	struct np_err err;

	(void)state;
	if (np_ucp_prove(&spec, &result, &err) != 0)
		fail_msg("%s: %s", err.code, err.message);
	assert_int_equal(result.n_sizes, 5);
	for (size_t i = 0; i < result.n_sizes; i++) {
		assert_true(result.sizes[i].bandwidth_MBps > 0);
		/* two ways: a ping-pong, a window and a flow at least of each */
		all += 2 * 3 * result.sizes[i].size_bytes;
	}
	assert_true(result.growth.moved >= all);
	assert_false(result.growth.known); /* no port was looked at */
}

/* As long as can be measured, and no longer than one waits for. */
static void lengths_of_flows(void **state)
{
	struct np_ucp_order order = { .full = false };
	struct np_ucp_spec spec = spec_of(&order);

	(void)state;
	assert_int_equal(np_ucp_flow_length(&spec, 8 << 20, 300000), 1788);
	assert_int_equal(np_ucp_flow_length(&spec, 1 << 20, 300000), 2861);
	assert_int_equal(np_ucp_flow_length(&spec, 8 << 20, 12500), 74);
	assert_int_equal(np_ucp_flow_length(&spec, 8 << 20, 2000), 35);
	assert_int_equal(np_ucp_flow_length(&spec, 8 << 20, 50), 2);
	assert_int_equal(np_ucp_flow_length(&spec, 8 << 20, 0), 2);
	assert_int_equal(np_ucp_flow_length(&spec, 8, 1e9), 100000);
	spec.full = true;
	assert_int_equal(np_ucp_flow_length(&spec, 8 << 20, 300000), 3576);
}

static void one_process_serves_twice(void **state)
{
	struct np_ucp_order order = { .base = 1 };
	struct np_rung_result result;
	struct np_ucp_pair pair;
	struct np_err err;

	(void)state;
	order.deadline_ms = np_now_ms() + 60000;
	assert_int_equal(np_ucp_pair_start(&pair, serve, &err), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(np_ucp_pair_order(&pair, &order, &err), 0);
		assert_int_equal(run_end(&pair, &order, &result, &err), 0);
		assert_int_equal(result.n_sizes, 5);
	}
	np_ucp_pair_stop(&pair);
}

static void the_other_process_ends(void **state)
{
	struct np_rung_result result;
	struct np_err err;

	(void)state;
	assert_int_equal(prove(die, false, &result, &err), -EPIPE);
	assert_string_equal(err.code, "selftest.peer_died");
	assert_int_equal(prove(serve_and_die, false, &result, &err), -EPIPE);
	assert_string_equal(err.code, "selftest.peer_died");
	assert_true(result.n_sizes > 0 && result.n_sizes < 5);
	/* in the middle of a flow, most likely */
	assert_int_equal(prove(be_killed, true, &result, &err), -EPIPE);
	assert_string_equal(err.code, "selftest.peer_died");
	assert_true(result.n_sizes < 14);
	assert_true(err.hint[0]);
}

static void the_other_process_refuses(void **state)
{
	struct np_rung_result result;
	struct np_err err;

	(void)state;
	assert_int_equal(prove(refuse, false, &result, &err), -ENODEV);
	assert_string_equal(err.code, "selftest.no_gpu");
	assert_string_equal(err.message, "in the other process: there is no GPU 0000:17:00.0");
}

static void wrong_bytes_in_either_process(void **state)
{
	struct np_rung_result result;
	struct np_err err;

	(void)state;
#ifdef NP_TEST_HOOKS
	assert_int_equal(prove(corrupt, false, &result, &err), -EBADMSG);
	assert_string_equal(err.code, "selftest.data_corrupt");
	assert_non_null(strstr(err.message, "in the other process: message 70 "));
#else
	(void)corrupt;
#endif
	assert_int_equal(prove(other_base, false, &result, &err), -EBADMSG);
	assert_string_equal(err.code, "selftest.data_corrupt");
}

/* ---- memory of a GPU, played by the fake libcuda (tests/fake) ---- */

static struct np_gpu_set gpus;

/* Beside this program's folder; what is loaded once is found by its name. */
static void load_fake(void)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 64);
	char *slash;

	assert_true(len > 0);
	path[len] = '\0';
	slash = strrchr(path, '/');
	strcpy(slash, "/../fake/libcuda.so.1");
	if (!dlopen(path, RTLD_NOW))
		fail_msg("%s", dlerror());
}

/* What the engine of one process makes of @plays over that memory. */
static int prove_on_gpu(const char *rung, const char *plays, const char *hook,
			struct np_rung_result *result, struct np_err *err)
{
	const struct np_rung_options options = { .force = true };
	struct np_ucp_order order = { .deadline_ms = np_now_ms() + 60000 };
	np_auto_rung_report struct np_rung_report report = { 0 };
	struct np_ucp_spec spec = spec_of(&order);
	struct np_gpu_mem mem;
	int ret;

	setenv("FAKE_CUDA", "gpus=1", 1);
	assert_int_equal(np_gpu_set_open(rung, &options, &gpus, &report, err), 1);
	assert_int_equal(np_gpu_retain(&gpus, &gpus.v[0], err), 0);
	np_gpu_mem_init(&mem, &gpus, &gpus.v[0]);
	/* the fake's memory is the host's, and this UCX has no CUDA */
	mem.ops.type = UCS_MEMORY_TYPE_HOST;
	spec.rung = rung;
	spec.mem = &mem.ops;
	setenv("FAKE_CUDA", plays, 1);
	if (hook)
		setenv("NP_TEST_CORRUPT", hook, 1);
	memset(result, 0, sizeof(*result));
	ret = np_ucp_prove(&spec, result, err);
	unsetenv("NP_TEST_CORRUPT");
	np_gpu_release(&gpus, &gpus.v[0]);
	np_gpu_set_done(&gpus);
	return ret;
}

static void wrong_bytes_from_a_gpu(void **state)
{
	static const char *const rungs[] = { "cuda_copy", "cuda_ipc", "gdr_copy" };
	struct np_rung_result result;
	struct np_err err;

	(void)state;
	load_fake();
	for (size_t i = 0; i < NP_ARRAY_SIZE(rungs); i++) {
		char plays[32];

		/* the copy from the GPU; the fake counts on from run to run */
		snprintf(plays, sizeof(plays), "corrupt=%zu", 300 * (i + 1));
		if (prove_on_gpu(rungs[i], plays, NULL, &result, &err) != -EBADMSG)
			fail_msg("%s", rungs[i]);
		assert_string_equal(err.code, "selftest.data_corrupt");
#ifdef NP_TEST_HOOKS
		/* the message */
		assert_int_equal(prove_on_gpu(rungs[i], "gpus=1", "20", &result, &err), -EBADMSG);
		assert_string_equal(err.code, "selftest.data_corrupt");
		assert_non_null(strstr(err.message, "message 20 (8 B)"));
		/* and what brought it is named */
		assert_non_null(strstr(result.transport, "/memory"));
#endif
	}
	assert_int_equal(prove_on_gpu("cuda_copy", "gpus=1", NULL, &result, &err), 0);
	assert_int_equal(result.n_sizes, 5);
	assert_int_equal(prove_on_gpu("cuda_copy", "fail=cuMemcpyHtoD_v2:214", NULL, &result, &err),
			 -EIO);
	assert_string_equal(err.code, "cuda.ecc");
}

/* What must carry and does not is another transport. */
static void the_carrier_is_asked_for(void **state)
{
	struct np_ucp_order order = { .base = 5 };
	struct np_rung_result result = { 0 };
	struct np_ucp_spec spec;
	struct np_ucp_pair pair;
	struct np_err err;

	(void)state;
	order.deadline_ms = np_now_ms() + 60000;
	spec = spec_of(&order);
	spec.carriers = no_such;
	assert_int_equal(np_ucp_pair_start(&pair, serve, &err), 0);
	assert_int_equal(np_ucp_pair_order(&pair, &order, &err), 0);
	assert_int_equal(np_ucp_pair_prove(&pair, &spec, order.base, &result, &err), -EPROTO);
	assert_string_equal(err.code, "selftest.cuda_ipc.other_transport");
	np_ucp_pair_stop(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_go_both_ways),
		cmocka_unit_test(one_process_is_enough),
		cmocka_unit_test(lengths_of_flows),
		cmocka_unit_test(one_process_serves_twice),
		cmocka_unit_test(the_other_process_ends),
		cmocka_unit_test(the_other_process_refuses),
		cmocka_unit_test(wrong_bytes_in_either_process),
		cmocka_unit_test(the_carrier_is_asked_for),
		/* the last one: who has used CUDA forks no more */
		cmocka_unit_test(wrong_bytes_from_a_gpu),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	/* after a failure the engine leaves UCX as it is (np_ucp_abandoned): no leaks to find */
	fflush(NULL);
	_exit(failed);
}
