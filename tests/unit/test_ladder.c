/* SPDX-License-Identifier: MIT */
/* Which rungs are tried, on what, and what a broken one leaves untried. */
#include "facts_build.h"

#include <jansson.h>

#include "agent/ladder.h"
#include "agent/selftest_entry.h"

struct world {
	struct np_config cfg;
	struct np_facts facts;
	struct np_selection sel;
	struct np_rdma_users users;
	struct np_ladder ladder;
	bool force;
};

static void begin(struct world *w, const char *const *ips)
{
	memset(w, 0, sizeof(*w));
	fb_guide(&w->facts);
	fb_config(&w->cfg, ips);
	for (size_t i = 0; i < w->facts.cas.n; i++)
		w->facts.cas.v[i].numa_node = (int)i / 2;
}

static void end(struct world *w)
{
	np_ladder_done(&w->ladder);
	np_selection_done(&w->sel);
	np_rdma_users_done(&w->users);
	np_facts_done(&w->facts);
	np_config_done(&w->cfg);
}

static void make(struct world *w, const char *const *names)
{
	np_auto_strv struct np_strv rungs = { 0 };
	struct np_err err = { 0 };

	for (; names && *names; names++)
		assert_int_equal(np_strv_add(&rungs, *names), 0);
	np_ladder_done(&w->ladder);
	np_selection_done(&w->sel);
	assert_int_equal(np_select(&w->cfg, &w->facts, &w->sel, &err), 0);
	assert_int_equal(np_ladder_make(&w->cfg, &w->facts, &w->sel, &rungs, &w->users, w->force,
					&w->ladder, &err),
			 0);
}

/* "verbs mlx5_0:1 mlx5_1:1" of each step, "-CODE" behind one that skips. */
static void is(const struct world *w, const char *const *expected)
{
	for (size_t i = 0; i < w->ladder.n; i++) {
		const struct np_ladder_step *s = &w->ladder.v[i];
		char text[512];

		snprintf(text, sizeof(text), "%s%s%s%s%s%s%s%s%s%s%s", s->rung,
			 s->device[0] ? " " : "", s->device, s->peer[0] ? " " : "", s->peer,
			 s->gpu[0] ? " " : "", s->gpu, s->address[0] ? " " : "", s->address,
			 s->code[0] ? " -" : "", s->code);
		if (!expected[i])
			fail_msg("one more: %s", text);
		assert_string_equal(text, expected[i]);
		assert_true(!s->code[0] || (s->message[0] && s->hint[0]));
		assert_int_equal(s->as_root, np_streq(s->rung, "umad") && !s->code[0]);
	}
	if (expected[w->ladder.n])
		fail_msg("not there: %s", expected[w->ladder.n]);
}

static void test_guide(void **state)
{
	struct world w;

	(void)state;
	begin(&w, NULL);
	fb_addr(&w.facts.netdevs.v[0], "10.0.0.50/24", 0);
	make(&w, NULL);
	is(&w, FB_LIST("umad mlx5_0:1", "umad mlx5_1:1", "umad mlx5_2:1", "umad mlx5_3:1",
		       "verbs mlx5_0:1", "verbs mlx5_0:1 mlx5_1:1", "verbs mlx5_1:1",
		       "verbs mlx5_1:1 mlx5_2:1", "verbs mlx5_2:1", "verbs mlx5_2:1 mlx5_3:1",
		       "verbs mlx5_3:1", "verbs mlx5_3:1 mlx5_0:1", "rc mlx5_0:1", "rc mlx5_1:1",
		       "rc mlx5_2:1", "rc mlx5_3:1", "tcp ib0 10.0.0.50", "cuda -selftest.no_gpu",
		       "cuda_copy -selftest.no_gpu", "cuda_ipc -selftest.no_gpu",
		       "gdrapi -selftest.no_gpu", "gdr_copy -selftest.no_gpu",
		       "gdr_rdma -selftest.no_gpu", "nccl -selftest.no_gpu"));
	end(&w);
}

static void test_named(void **state)
{
	struct world w;

	(void)state;
	begin(&w, NULL);
	w.facts.cas.v[1].ports[0].state = NP_PORT_INIT;
	w.facts.cas.v[2].management_only = true;
	make(&w, FB_LIST("tcp", "verbs", "umad"));
	/* bottom first, whatever the order of the words; a pair is tried once */
	is(&w, FB_LIST("umad mlx5_0:1", "umad mlx5_1:1", "umad mlx5_3:1", "verbs mlx5_0:1",
		       "verbs mlx5_0:1 mlx5_3:1", "verbs mlx5_1:1 -selftest.verbs.port_not_active",
		       "verbs mlx5_3:1", "tcp ib0 -selftest.tcp.no_address"));
	np_cas_done(&w.facts.cas);
	np_netdevs_done(&w.facts.netdevs);
	make(&w, FB_LIST("umad", "rc", "tcp"));
	is(&w, FB_LIST("umad -selftest.umad.no_device", "rc -selftest.rc.no_port",
		       "tcp -selftest.tcp.no_address"));
	end(&w);
}

static void test_gpus(void **state)
{
	struct world w;

	(void)state;
	begin(&w, NULL);
	fb_gpu(&w.facts);
	fb_gpu(&w.facts);
	fb_gpu(&w.facts);
	strcpy(w.facts.gpus.v[1].pci_address, "0000:c3:00.0");
	w.facts.gpus.v[0].numa_node = 0;
	w.facts.gpus.v[1].numa_node = 1;
	/* a virtual machine's */
	strcpy(w.facts.gpus.v[2].driver, "vfio-pci");
	make(&w, FB_LIST("cuda", "nccl", "gdr_rdma"));
	is(&w, FB_LIST("cuda 0000:17:00.0", "cuda 0000:c3:00.0", "gdr_rdma mlx5_0:1 0000:17:00.0",
		       "gdr_rdma mlx5_1:1 0000:17:00.0", "gdr_rdma mlx5_2:1 0000:c3:00.0",
		       "gdr_rdma mlx5_3:1 0000:c3:00.0", "nccl"));
	end(&w);
}

/* Somebody's queue pairs: what takes bandwidth waits, what does not goes on. */
static void test_busy(void **state)
{
	struct np_rdma_user *user;
	struct world w;

	(void)state;
	begin(&w, NULL);
	w.users.known = true;
	user = FB_ADD(w.users.v, w.users.n);
	strcpy(user->ca, "mlx5_1");
	strcpy(user->command, "python3");
	user->pid = 4711;
	user->queue_pairs = 12;
	make(&w, FB_LIST("umad", "rc"));
	is(&w, FB_LIST("umad mlx5_0:1", "umad mlx5_1:1", "umad mlx5_2:1", "umad mlx5_3:1",
		       "rc mlx5_0:1", "rc mlx5_1:1 -selftest.busy", "rc mlx5_2:1", "rc mlx5_3:1"));
	assert_non_null(strstr(w.ladder.v[5].message, "12 queue pairs of process 4711 (python3)"));
	w.force = true;
	make(&w, FB_LIST("rc"));
	is(&w, FB_LIST("rc mlx5_0:1", "rc mlx5_1:1", "rc mlx5_2:1", "rc mlx5_3:1"));
	end(&w);
}

static void test_below(void **state)
{
	static const struct {
		const char *rung, *device, *gpu, *broken, *on;
		bool below;
	} cases[] = {
		{ "rc", "mlx5_0:1", "", "verbs", "mlx5_0:1", true },
		{ "rc", "mlx5_0:1", "", "verbs", "mlx5_1:1", false },
		{ "rc", "mlx5_0:1", "", "umad", "mlx5_0:1", false },
		{ "verbs", "mlx5_0:1", "", "verbs", "mlx5_0:1", true },
		{ "tcp", "ib0", "", "verbs", "mlx5_0:1", false },
		{ "cuda_copy", "0000:17:00.0", "", "cuda", "0000:17:00.0", true },
		{ "cuda_copy", "0000:17:00.0", "", "cuda", "0000:c3:00.0", false },
		{ "nccl", "", "", "cuda", "0000:c3:00.0", true },
		{ "gdr_copy", "0000:17:00.0", "", "gdrapi", "0000:17:00.0", true },
		{ "gdr_rdma", "mlx5_0:1", "0000:17:00.0", "cuda", "0000:17:00.0", true },
		{ "gdr_rdma", "mlx5_0:1", "0000:17:00.0", "verbs", "mlx5_0:1", true },
		{ "gdr_rdma", "mlx5_0:1", "0000:17:00.0", "gdrapi", "0000:17:00.0", false },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct np_ladder_step step = { .rung = cases[i].rung };

		np_strcpy(step.device, sizeof(step.device), cases[i].device);
		np_strcpy(step.gpu, sizeof(step.gpu), cases[i].gpu);
		if (np_ladder_is_below(cases[i].broken, cases[i].on, &step) != cases[i].below)
			fail_msg("case %zu", i);
	}
}

/* ---- floors ---- */

static void test_floors(void **state)
{
	static const struct {
		const char *status;
		double bandwidth, floor, rate;
		json_int_t size;
		const char *then, *code;
	} cases[] = {
		{ "ok", 12000, 0, 100, 8 << 20, "ok", "" },
		{ "ok", 9000, 0, 100, 8 << 20, "warn", "selftest.slow" },
		{ "ok", 9000, 0, 100, 65536, "ok", "" }, /* small messages are no measure */
		{ "ok", 9000, 0, 0, 8 << 20, "ok", "" }, /* rate unknown */
		{ "ok", 9000, 9001, 100, 8 << 20, "fail", "selftest.below_floor" },
		{ "ok", 9000, 8999, 400, 8 << 20, "ok", "" }, /* a floor of one's own is the word */
		{ "fail", 1, 9000, 100, 8 << 20, "fail", "x.y" },
		{ "skip", 0, 9000, 100, 8 << 20, "skip", "x.y" },
	};

	struct np_selftest_fair fair;

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		const char *code = np_streq(cases[i].status, "ok") ? "" : "x.y";
		json_t *e = np_selftest_entry("rc", "mlx5_0:1", cases[i].status, code, "m", "");

		assert_non_null(e);
		json_object_set_new(e, "bandwidth_MBps", json_real(cases[i].bandwidth));
		json_object_set_new(e, "size_bytes", json_integer(cases[i].size));
		fair = np_selftest_fair_port(cases[i].rate);
		np_selftest_judge_bandwidth(e, cases[i].floor, &fair);
		assert_string_equal(json_string_value(json_object_get(e, "status")), cases[i].then);
		assert_string_equal(json_string_value(json_object_get(e, "code")), cases[i].code);
		if (!np_streq(cases[i].status, cases[i].then))
			assert_true(*json_string_value(json_object_get(e, "hint")));
		json_decref(e);
	}
}

/* Of a GPU: its lanes, at the speed that it has when it is not idle. */
static void test_fair_gpu(void **state)
{
	static const struct {
		const char *rung;
		struct np_pci pci;
		int MBps;
	} cases[] = {
		{ "cuda", { .now = { 16, 32000 }, .max = { 16, 32000 } }, 37809 },
		{ "cuda", { .now = { 16, 2500 }, .max = { 16, 32000 } }, 37809 },
		{ "cuda",
		  { .now = { 8, 32000 }, .max = { 16, 32000 }, .slot = { 16, 16000 } },
		  9452 },
		{ "cuda_copy", { .now = { 16, 32000 }, .max = { 16, 32000 } }, 1260 },
		{ "cuda", { .now = { 0, 0 }, .max = { 16, 32000 } }, 0 },
		{ "cuda", { .now = { 16, 32000 } }, 0 },
		{ "cuda_ipc", { .now = { 16, 32000 }, .max = { 16, 32000 } }, 0 },
		{ "gdrapi", { .now = { 16, 32000 }, .max = { 16, 32000 } }, 0 },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		struct np_selftest_fair fair = np_selftest_fair_gpu(cases[i].rung, &cases[i].pci);

		assert_int_equal((int)fair.MBps, cases[i].MBps);
		assert_true(fair.MBps <= 0 || (fair.of && fair.hint));
	}
}

/* ---- what a child says ---- */

/* Returns np_selftest_take's result. */
static int take(const char *status, const char *code, const char *message, const char *size,
		const char *latency, json_t *to)
{
	struct np_child_result result = { .exit_status = np_streq(status, "ok") ? 0 : 1 };
	const struct np_ladder_step step = { .rung = "rc", .device = "mlx5_0:1" };
	const json_t *last;
	json_t *got = NULL;
	int r;

	np_buf_printf(
		&result.out,
		"{\"selftest\":[{\"rung\":\"rc\",\"device\":\"mlx5_0:1\",\"transport\":\"rc\","
		"\"status\":\"%s\",\"code\":\"%s\",\"message\":\"%s\",\"hint\":\"\","
		"\"size_bytes\":%s,\"latency_us\":%s,\"bandwidth_MBps\":7,"
		"\"sizes\":[{\"size_bytes\":%s,\"latency_us\":%s,\"bandwidth_MBps\":7}]}]}",
		status, code, message, size, latency, size, latency);
	r = np_selftest_take(&result, "rc", &step, 1, &got, &last);
	if (got)
		json_array_append_new(to, got);
	np_child_result_done(&result);
	return r;
}

static void test_hostile_child(void **state)
{
	static const struct {
		const char *status, *code, *size, *latency;
	} bad[] = {
		{ "ok", "", "-8", "1" },	   { "ok", "", "8.5", "1" },
		{ "ok", "", "8", "-1" },	   { "ok", "", "8", "1e999" },
		{ "ok", "", "8", "NaN" },	   { "ok", "", "99999999999999999999", "1" },
		{ "ok", "", "8", "\"1\"" },	   { "ok", "x.y", "8", "1" },
		{ "fail", "", "8", "1" },	   { "fail", "x y", "8", "1" },
		{ "fail", "X.y", "8", "1" },	   { "fail", "x..y", "8", "1" },
		{ "fail", "x.y\\n[x]", "8", "1" }, { "fail", "x.", "8", "1" },
		{ "mad", "x.y", "8", "1" },
	};
	json_t *to = json_array();
	const char *message;

	(void)state;
	assert_int_equal(take("ok", "", "m", "8", "1", to), 0);
	assert_int_equal(take("fail", "selftest.rc.no_port", "m", "8", "1.5", to), 0);
	for (size_t i = 0; i < NP_ARRAY_SIZE(bad); i++)
		if (take(bad[i].status, bad[i].code, "m", bad[i].size, bad[i].latency, to) !=
		    -EPROTO)
			fail_msg("case %zu", i);
	assert_int_equal(json_array_size(to), 2);
	/* what is said is one line, whatever is in it */
	assert_int_equal(take("ok", "", "a\\nb\\u001b[2J", "8", "1", to), 0);
	message = json_string_value(json_object_get(json_array_get(to, 2), "message"));
	assert_string_equal(message, "a\\x0ab\\x1b[2J");
	json_decref(to);
}

/* Whoever has the queue pairs chose the name of his process. */
static void test_names_that_are_not_utf8(void **state)
{
	json_t *entry = np_selftest_entry("rc", "mlx5_\xff:1", "skip", "selftest.busy",
					  "in use by (\xff\xfe)", "\xff");

	(void)state;
	assert_non_null(entry);
	assert_string_equal(json_string_value(json_object_get(entry, "message")),
			    "in use by (\\xff\\xfe)");
	assert_string_equal(json_string_value(json_object_get(entry, "hint")), "\\xff");
	json_decref(entry);
}

static void test_floor_keys(void **state)
{
	struct np_config cfg;
	struct np_err err = { 0 };

	(void)state;
	np_config_init(&cfg);
	assert_int_equal(
		np_config_set(&cfg, "selftest", "min_bandwidth_MBps.rc", "9000", "x:1", &err), 0);
	assert_int_equal(
		np_config_set(&cfg, "selftest", "min_bandwidth_MBps.rc", "9500", "x:2", &err), 0);
	assert_true(np_config_floor(&cfg, "rc") == 9500);
	assert_true(np_config_floor(&cfg, "tcp") == 0);
	assert_int_equal(np_config_set(&cfg, "selftest", "min_bandwidth_MBps.rx", "1", "x:3", &err),
			 -EINVAL);
	assert_non_null(strstr(err.message, "did you mean \"rc\""));
	assert_int_equal(np_config_set(&cfg, "selftest", "min_bandwidth_MBps.rc", "-1", "x:4",
				       &err),
			 -EINVAL);
	assert_int_equal(np_config_set(&cfg, "selftest", "min_bandwidth", "1", "x:5", &err),
			 -EINVAL);
	np_config_done(&cfg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_guide),
		cmocka_unit_test(test_named),
		cmocka_unit_test(test_gpus),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_below),
		cmocka_unit_test(test_floors),
		cmocka_unit_test(test_fair_gpu),
		cmocka_unit_test(test_floor_keys),
		cmocka_unit_test(test_hostile_child),
		cmocka_unit_test(test_names_that_are_not_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
