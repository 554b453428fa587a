/* SPDX-License-Identifier: MIT */
#include "facts_build.h"

#include <fcntl.h>
#include <unistd.h>

#include "agent/report.h"
#include "agent/show.h"

static void add_action(struct np_result *r, enum np_action_status status, const char *ifname)
{
	struct np_action *a = np_actions_add(&r->actions, NP_ACTION_ADDR_ADD);

	np_strcpy(a->ifname, sizeof(a->ifname), ifname);
	a->addr.inet = fb_inet("10.0.0.50/24");
	a->status = status;
}

static void add_rung(struct np_result *r, const char *status)
{
	if (!r->selftest)
		r->selftest = json_array();
	json_array_append_new(
		r->selftest, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:f, s:f}", "rung",
				       "rc", "device", "mlx5_0:1", "transport", "rc_mlx5", "status",
				       status, "code", "rc.x", "message", "moved", "hint",
				       "fix\033it", "latency_us", 1.5, "bandwidth_MBps", 12000.4));
}

/* ---- ready ---- */

static void test_ready(void **state)
{
	struct np_result r = { .verb = "check", .converged = true };

	(void)state;
	assert_true(np_result_ready(&r));
	for (int status = NP_CHECK_OK; status <= NP_CHECK_SKIP; status++)
		if (status != NP_CHECK_FAIL)
			np_checks_add(&r.checks, "port", "x", (enum np_check_status)status, "a.b",
				      NULL, "x");
	add_rung(&r, "ok");
	add_rung(&r, "skip");
	assert_true(np_result_ready(&r));
	r.converged = false;
	assert_false(np_result_ready(&r));
	r.converged = true;
	r.error.num = -EIO;
	assert_false(np_result_ready(&r));
	r.error.num = 0;
	r.checks.failed = true; /* a lost check is no good news */
	assert_false(np_result_ready(&r));
	r.checks.failed = false;
	add_rung(&r, "fail");
	assert_false(np_result_ready(&r));
	json_array_clear(r.selftest);
	np_checks_add(&r.checks, "port", "x", NP_CHECK_FAIL, "a.b", NULL, "x");
	assert_false(np_result_ready(&r));
	np_result_done(&r);
	np_result_done(NULL);
}

static void test_checks_are_cut(void **state)
{
	struct np_checks checks = { 0 };
	char big[2000];

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	np_checks_add(&checks, "file", big, NP_CHECK_WARN, big, big, "%s", big);
	assert_int_equal(strlen(checks.v[0].target), sizeof(checks.v[0].target) - 1);
	assert_int_equal(strlen(checks.v[0].message), sizeof(checks.v[0].message) - 1);
	assert_int_equal(strlen(checks.v[0].hint), sizeof(checks.v[0].hint) - 1);
	assert_string_equal(np_check_status_str(NP_CHECK_UNKNOWN), "unknown");
	np_checks_done(&checks);
}

/* ---- JSON ---- */

static const char *member(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static void test_json_empty(void **state)
{
	static const char *const order[] = { "schema", "verb",	  "version", "changed",
					     "ready",  "actions", "checks",  "selftest" };
	struct np_result r = { .verb = "check", .converged = true };
	json_t *doc = np_report_json(&r), *value;
	const char *key;
	size_t i = 0;

	(void)state;
	assert_non_null(doc);
	json_object_foreach (doc, key, value)
		assert_string_equal(key, order[i++]);
	assert_int_equal(i, NP_ARRAY_SIZE(order)); /* neither show nor error */
	assert_int_equal(json_integer_value(json_object_get(doc, "schema")), 1);
	assert_string_equal(member(doc, "verb"), "check");
	assert_string_equal(member(doc, "version"), NP_VERSION);
	assert_true(json_is_false(json_object_get(doc, "changed")));
	assert_true(json_is_true(json_object_get(doc, "ready")));
	for (i = 5; i < 8; i++) /* empty lists are present */
		assert_true(json_is_array(json_object_get(doc, order[i])) &&
			    json_array_size(json_object_get(doc, order[i])) == 0);
	json_decref(doc);
}

static void test_json_full(void **state)
{
	struct np_result r = { .verb = "apply", .changed = true, .converged = true };
	const json_t *action, *check, *error;
	json_t *doc;

	(void)state;
	add_action(&r, NP_STATUS_DONE, "ib0");
	np_checks_add(&r.checks, "port", "mlx5_0:1", NP_CHECK_WARN, "port.x", "do it", "is %d", 7);
	add_rung(&r, "ok");
	r.show = json_pack("{s:[]}", "gpus");
	np_err_set(&r.error, -EIO, "", "broken");
	np_err_hint(&r.error, "mend it");
	doc = np_report_json(&r);
	assert_non_null(doc);
	action = json_array_get(json_object_get(doc, "actions"), 0);
	assert_int_equal(json_object_size(action), 5);
	assert_string_equal(member(action, "id"), "netdev.address_add");
	assert_string_equal(member(action, "target"), "ib0");
	assert_string_equal(member(action, "from"), "");
	assert_string_equal(member(action, "to"), "10.0.0.50/24");
	assert_string_equal(member(action, "status"), "done");
	check = json_array_get(json_object_get(doc, "checks"), 0);
	assert_int_equal(json_object_size(check), 6);
	assert_string_equal(member(check, "status"), "warn");
	assert_string_equal(member(check, "message"), "is 7");
	assert_string_equal(member(check, "hint"), "do it");
	assert_true(json_equal(json_object_get(doc, "selftest"), r.selftest));
	assert_true(json_equal(json_object_get(doc, "show"), r.show));
	error = json_object_get(doc, "error");
	assert_string_equal(member(error, "code"), "internal");
	assert_string_equal(member(error, "message"), "broken");
	assert_string_equal(member(error, "hint"), "mend it");
	assert_true(json_is_true(json_object_get(doc, "changed")));
	assert_true(json_is_false(json_object_get(doc, "ready")));
	json_decref(doc);
	np_result_done(&r);
}

/* Names and texts from outside need not be UTF-8, also where a cut made them so. */
static void test_json_not_utf8(void **state)
{
	struct np_result r = { .verb = "apply" };
	struct np_action *file;
	char *text;
	json_t *doc;

	(void)state;
	add_action(&r, NP_STATUS_DONE,
		   "ib\xff"
		   "0");
	file = np_actions_add(&r.actions, NP_ACTION_FILE);
	file->path = strdup("/home/m\xfcller/.nccl.conf");
	np_checks_add(&r.checks, "file", "/home/m\xfcller", NP_CHECK_WARN, "x.y", "\xc3",
		      "\xe2\x82");
	np_err_set(&r.error, -EIO, "x.y", "m\xfcller");
	doc = np_report_json(&r);
	assert_non_null(doc);
	text = json_dumps(doc, 0);
	assert_non_null(text);
	assert_non_null(strstr(text, "/home/m\\\\xfcller/.nccl.conf"));
	free(text);
	json_decref(doc);
	np_result_done(&r);
}

/* ---- text ---- */

static void text_says(const struct np_result *r, bool color, const char *part, bool there)
{
	np_auto_buf struct np_buf out = { 0 };

	np_report_text(r, color, &out);
	if ((strstr(out.data, part) != NULL) != there)
		fail_msg("\"%s\" is %sin: %s", part, there ? "not " : "", out.data);
	for (const char *c = out.data; !color && *c; c++) /* nothing that drives a terminal */
		assert_true(*c == '\n' || *c == '\t' || (*c >= ' ' && *c <= '~'));
}

static void test_text(void **state)
{
	struct np_result r = { .verb = "apply", .converged = true };

	(void)state;
	text_says(&r, false, "nodeprep apply: ready, nothing to do\n", true);
	add_action(&r, NP_STATUS_DONE, "ib0");
	text_says(&r, false, "nodeprep apply: ready, 1 change made\n", true);
	text_says(&r, false, "done    ib0  netdev.address_add: 10.0.0.50/24\n", true);
	add_action(&r, NP_STATUS_DONE, "ib1");
	text_says(&r, false, ", 2 changes made\n", true);
	np_checks_add(&r.checks, "port", "mlx5_0:1", NP_CHECK_FAIL, "port.no_sm", "start one",
		      "INIT");
	text_says(&r, false, "fail    mlx5_0:1  INIT\n          fix: start one [port.no_sm]\n",
		  true);
	text_says(&r, false, "not ready", true);
	np_checks_add(&r.checks, "port", "mlx5_1:1", NP_CHECK_SKIP, "a.b", "not shown", "x");
	text_says(&r, false, "not shown", false);
	add_rung(&r, "ok");
	text_says(&r, false, "ok      selftest rc mlx5_0:1  moved (rc_mlx5: 1.50 us, 12000 MB/s)\n",
		  true);
	add_rung(&r, "fail");
	text_says(&r, false, "fix: fix\\x1bit [rc.x]\n", true);
	text_says(&r, false, "\033", false);
	text_says(&r, true, "\033[31mfail   \033[0m", true);
	np_err_set(&r.error, -EIO, "x.y", "went wrong");
	np_err_hint(&r.error, "look at ib\033");
	text_says(&r, false, "nodeprep apply: went wrong [x.y]\n  fix: look at ib\\x1b\n", true);
	np_result_done(&r);
}

static void test_text_hostile(void **state)
{
	struct np_result r = { .verb = "apply" };

	(void)state;
	add_action(&r, NP_STATUS_FAILED, "ib\033[2J");
	np_checks_add(&r.checks, "netdev", "ib\033]0;", NP_CHECK_WARN, "a.b", "see ib\033[1m\n",
		      "on ib\r\033");
	text_says(&r, false, "ib\\x1b[2J", true);
	text_says(&r, false, "see ib\\x1b[1m\\x0a", true);
	np_result_done(&r);
}

static void test_text_plan(void **state)
{
	struct np_result r = { .verb = "plan", .converged = true };

	(void)state;
	text_says(&r, false, "nodeprep plan: nothing to do\n", true);
	add_action(&r, NP_STATUS_PLANNED, "ib0");
	text_says(&r, false, "nodeprep plan: 1 change to make\n", true);
	r.verb = "check";
	r.converged = false;
	text_says(&r, false, "nodeprep check: not ready, 1 change to make (nodeprep apply)\n",
		  true);
	np_result_done(&r);
}

/* ---- show ---- */

static void test_show(void **state)
{
	struct np_result r = { .verb = "show" };
	struct np_facts facts;
	struct np_config cfg;

	(void)state;
	fb_guide(&facts);
	fb_gpu(&facts);
	fb_addr(&facts.netdevs.v[0], "10.0.0.50/24", 0);
	assert_int_equal(np_strv_add(&facts.netdevs.v[0].altnames, "ib\033\xff"), 0);
	strcpy(facts.netdevs.v[0].kind, "ipoib");
	strcpy(facts.netdevs.v[0].manager, "m\033");
	facts.cas.v[1].ports[0].rate[0] = '\0';
	facts.cas.v[1].ports[0].has_lid = false;
	facts.cas.v[1].ports[0].rate_gbps = 0;
	assert_int_equal(np_strv_add(&facts.cas.v[1].ports[0].unreadable, "rate: Invalid argument"),
			 0);
	fb_config(&cfg, FB_LIST("10.0.0.50/24"));
	assert_int_equal(np_strv_add(&cfg.users, "m\xfcller"), 0);
	r.show = json_object();
	for (size_t i = 0; np_show_nouns[i]; i++)
		assert_int_equal(np_show_add(r.show, np_show_nouns[i], &cfg, &facts, NULL),
				 np_streq(np_show_nouns[i], "libraries") ? -EINVAL : 0);
	assert_int_equal(np_show_add(r.show, "nonsense", &cfg, &facts, NULL), -EINVAL);
	text_says(&r, false, "# ports\nmlx5_0:1\n\tstate:          ACTIVE\n", true);
	text_says(&r, false, "rate:           " FB_EDR "\n", true);
	text_says(&r, false, "rate:           unknown\n", true);
	text_says(&r, false, "base lid:       unknown\n", true);
	text_says(&r, false, "unreadable:     rate: Invalid argument\n", true);
	text_says(&r, false, "\tinet 10.0.0.50/24 brd 10.0.0.255 scope global\n", true);
	text_says(&r, false, "manager m\\x1b", true);
	text_says(&r, false, "address = 10.0.0.50/24\n", true);
	text_says(&r, false, "users = m\\xfcller\n", true);
	{
		json_t *doc = np_report_json(&r);
		const json_t *port = json_array_get(json_object_get(r.show, "ports"), 1);
		char *text = json_dumps(doc, 0);

		assert_non_null(text);
		assert_true(json_is_null(json_object_get(port, "rate"))); /* unknown is null */
		assert_true(json_is_null(json_object_get(port, "lid")));
		assert_true(json_is_null(json_object_get(port, "rate_gbps")));
		free(text);
		json_decref(doc);
	}
	np_result_done(&r);
	np_facts_done(&facts);
	np_config_done(&cfg);
}

/* ---- Prometheus ---- */

static void prometheus_is(const struct np_result *r, const char *part)
{
	np_auto_buf struct np_buf out = { 0 };

	np_report_prometheus(r, &out);
	if (!strstr(out.data, part))
		fail_msg("\"%s\" is not in: %s", part, out.data);
	assert_int_equal(out.data[out.len - 1], '\n');
}

static void test_prometheus(void **state)
{
	struct np_result r = { .verb = "check", .converged = true };

	(void)state;
	prometheus_is(&r, "# TYPE nodeprep_ready gauge\nnodeprep_ready 1\n");
	prometheus_is(&r, "\nnodeprep_pending_changes 0\n");
	np_checks_add(&r.checks, "port", "mlx5_0:1", NP_CHECK_FAIL, "port.no_sm", NULL, "x");
	prometheus_is(&r, "\nnodeprep_ready 0\n");
	prometheus_is(&r, "\nnodeprep_check{id=\"port\",target=\"mlx5_0:1\",code=\"port.no_sm\","
			  "status=\"fail\"} 1\n");
	add_action(&r, NP_STATUS_PLANNED, "ib0");
	add_action(&r, NP_STATUS_DONE, "ib0");
	prometheus_is(&r, "\nnodeprep_pending_changes 1\n");
	np_checks_add(&r.checks, "file", "a\"b\\c\n\xff", NP_CHECK_WARN, "a.b", NULL, "x");
	prometheus_is(&r, "target=\"a\\\"b\\\\c\\\\x0a\\\\xff\",");
	np_result_done(&r);
}

/* Two findings of one kind on one target: a series twice would void the whole file. */
static void test_prometheus_series_once(void **state)
{
	struct np_result r = { .verb = "check", .converged = true };
	np_auto_buf struct np_buf out = { 0 };
	const char *first;

	(void)state;
	for (int i = 0; i < 3; i++)
		np_checks_add(&r.checks, "netdev", "ib0", NP_CHECK_WARN, "netdev.subnet_overlap",
			      "x", "over eth%d", i);
	np_checks_add(&r.checks, "netdev", "ib1", NP_CHECK_WARN, "netdev.subnet_overlap", "x", "y");
	np_report_prometheus(&r, &out);
	first = strstr(out.data, "target=\"ib0\"");
	assert_non_null(first);
	assert_null(strstr(first + 1, "target=\"ib0\""));
	assert_non_null(strstr(out.data, "target=\"ib1\""));
	np_result_done(&r);
}

/* ---- stdout ---- */

static void test_stdout(void **state)
{
	struct np_result r = { .verb = "check", .converged = true };
	int saved, full = open("/dev/full", O_WRONLY | O_CLOEXEC), fd;
	char path[] = "/tmp/test_report.XXXXXX", text[4096];
	ssize_t len;

	(void)state;
	assert_true(full >= 0);
	fflush(stdout);
	saved = dup(1);
	for (int format = NP_FORMAT_TEXT; format <= NP_FORMAT_PROMETHEUS; format++) {
		int rc;

		dup2(full, 1); /* a full disk must not look like success */
		rc = np_report(&r, (enum np_format)format);
		clearerr(stdout);
		dup2(saved, 1);
		assert_int_equal(rc, -EIO);
	}
	fd = mkstemp(path);
	unlink(path);
	dup2(fd, 1);
	assert_int_equal(np_report(&r, NP_FORMAT_JSON), 0);
	dup2(saved, 1);
	len = pread(fd, text, sizeof(text) - 1, 0);
	assert_true(len > 0);
	text[len] = '\0';
	assert_true(np_starts_with(text, "{\n  \"schema\": 1,\n  \"verb\": \"check\","));
	assert_string_equal(text + len - 2, "}\n");
	close(fd);
	close(full);
	close(saved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ready),
		cmocka_unit_test(test_checks_are_cut),
		cmocka_unit_test(test_json_empty),
		cmocka_unit_test(test_json_full),
		cmocka_unit_test(test_json_not_utf8),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_text_hostile),
		cmocka_unit_test(test_text_plan),
		cmocka_unit_test(test_show),
		cmocka_unit_test(test_prometheus),
		cmocka_unit_test(test_prometheus_series_once),
		cmocka_unit_test(test_stdout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
