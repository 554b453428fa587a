/* SPDX-License-Identifier: MIT */
/* /etc/security/limits.d/nodeprep.conf as a plan, and the judgement of memlock. */
#include "judge_scene.h"

#include "agent/plan.h"

#define LINES_ALL \
	"*\tsoft\tmemlock\tunlimited\n*\thard\tmemlock\tunlimited\n" \
	"root\tsoft\tmemlock\tunlimited\nroot\thard\tmemlock\tunlimited\n"
#define SITE NP_LIMITS_DIR "/10-site.conf"
#define ZZ   NP_LIMITS_DIR "/zz-site.conf"
#define KIB  UINT64_C(1024)

struct limits_scene {
	struct np_config cfg;
	struct np_facts facts;
	struct np_checks checks;
};

static void set_up(struct limits_scene *s, const char *ours)
{
	memset(s, 0, sizeof(*s));
	np_config_init(&s->cfg);
	fb_active(&s->facts, "mlx5_0");
	s->facts.limits.looked = s->facts.limits.group_known = true;
	fb_file(&s->facts, NP_ROLE_LIMITS, NP_LIMITS_OURS, NULL, ours);
}

static void tear_down(struct limits_scene *s)
{
	np_checks_done(&s->checks);
	np_facts_done(&s->facts);
	np_config_done(&s->cfg);
}

static void say(struct limits_scene *s, const char *path, const char *text)
{
	assert_int_equal(np_limit_texts_add(&s->facts.limits.texts, path, text, strlen(text)), 0);
}

static void configure(struct limits_scene *s, const char *key, const char *value)
{
	assert_int_equal(np_config_set(&s->cfg, "limits", key, value, "x:1", NULL), 0);
}

/* The lines that it shall have: NULL: nothing to do; "": to be removed. */
static void expect_plan(struct limits_scene *s, const char *lines)
{
	np_auto_selection struct np_selection sel = { 0 };
	np_auto_actions struct np_actions actions = { 0 };

	assert_int_equal(np_plan_files(&s->cfg, &s->facts, &sel, &actions, NULL), 0);
	assert_int_equal(actions.n, lines ? 1 : 0);
	if (!lines)
		return;
	assert_string_equal(actions.v[0].path, NP_LIMITS_OURS);
	assert_int_equal(actions.v[0].has_new, *lines != '\0');
	if (!*lines)
		return;
	assert_non_null(strstr(actions.v[0].new_content.data, lines));
	assert_string_equal(strstr(actions.v[0].new_content.data, "\n") ?
				    strstr(actions.v[0].new_content.data, lines) :
				    "",
			    lines);
}

static void test_what_is_written(void **state)
{
	struct limits_scene s;

	(void)state;
	set_up(&s, NULL);
	expect_plan(&s, LINES_ALL);
	configure(&s, "memlock", "64 GiB");
	expect_plan(&s, "*\tsoft\tmemlock\t67108864\n*\thard\tmemlock\t67108864\n"
			"root\tsoft\tmemlock\t67108864\nroot\thard\tmemlock\t67108864\n");
	configure(&s, "group", "hpc");
	expect_plan(&s, "@hpc\tsoft\tmemlock\t67108864\n@hpc\thard\tmemlock\t67108864\n");
	configure(&s, "memlock", "keep");
	expect_plan(&s, NULL);
	configure(&s, "memlock", "unlimited");
	s.facts.limits.refuses_login = true;
	expect_plan(&s, NULL);
	s.facts.limits.refuses_login = s.facts.limits.looked = false;
	expect_plan(&s, NULL);
	tear_down(&s);
}

static void test_what_is_there(void **state)
{
	struct limits_scene s;

	(void)state;
	set_up(&s, "* - memlock 64\n");
	say(&s, NP_LIMITS_OURS, "* - memlock 64\n");
	expect_plan(&s, LINES_ALL);
	/* also where the site gives as much: ours is read later */
	say(&s, SITE, "* - memlock unlimited\n");
	expect_plan(&s, LINES_ALL);
	configure(&s, "memlock", "keep");
	s.facts.limits.looked = false;
	expect_plan(&s, "");
	/* no HCA, or none any more */
	configure(&s, "memlock", "unlimited");
	expect_plan(&s, NULL);
	tear_down(&s);
}

static void test_site_gives_enough(void **state)
{
	static const struct {
		const char *text, *memlock, *group;
		bool enough;
	} cases[] = {
		{ "* - memlock unlimited\n", "unlimited", NULL, true },
		{ "* soft memlock unlimited\n* hard memlock -1\n", "unlimited", NULL, true },
		{ "* soft memlock unlimited\n", "unlimited", NULL, false },
		{ "* hard memlock unlimited\n", "unlimited", NULL, false },
		{ "* - memlock unlimited\n* soft memlock 64\n", "unlimited", NULL, false },
		{ "@hpc - memlock unlimited\n", "unlimited", NULL, false },
		{ "@hpc - memlock unlimited\n", "unlimited", "hpc", true },
		{ "* - memlock unlimited\n", "unlimited", "hpc", true },
		{ "* - memlock unlimited\n@hpc - memlock 64\n", "unlimited", "hpc", false },
		{ "@other - memlock unlimited\n", "unlimited", "hpc", false },
		{ "* - memlock 1024\n", "1 MiB", NULL, true },
		{ "* - memlock 1023\n", "1 MiB", NULL, false },
		{ "* - memlock unlimited\n", "1 MiB", NULL, true },
		{ "root - memlock unlimited\n", "unlimited", NULL, false },
	};

	(void)state;
	for (size_t i = 0; i < NP_ARRAY_SIZE(cases); i++) {
		np_auto_selection struct np_selection sel = { 0 };
		np_auto_actions struct np_actions actions = { 0 };
		struct limits_scene s;

		set_up(&s, NULL);
		configure(&s, "memlock", cases[i].memlock);
		if (cases[i].group)
			configure(&s, "group", cases[i].group);
		say(&s, NP_LIMITS_CONF, cases[i].text);
		assert_int_equal(np_plan_files(&s.cfg, &s.facts, &sel, &actions, NULL), 0);
		if (actions.n != (cases[i].enough ? 0 : 1))
			fail_msg("%s with %s", cases[i].text, cases[i].memlock);
		tear_down(&s);
	}
}

/* ---- the judgement ---- */

static const struct np_check *nth(const struct limits_scene *s, const char *code, size_t nth)
{
	for (size_t i = 0; i < s->checks.n; i++)
		if (strcmp(s->checks.v[i].code, code) == 0 && nth-- == 0)
			return &s->checks.v[i];
	return NULL;
}

static const struct np_check *judged(struct limits_scene *s, const char *code)
{
	np_checks_done(&s->checks);
	np_judge_limits(&s->cfg, &s->facts, &s->checks);
	assert_false(s->checks.failed);
	return nth(s, code, 0);
}

static void test_given(void **state)
{
	const struct np_check *c;
	struct limits_scene s;

	(void)state;
	set_up(&s, LINES_ALL);
	assert_null(judged(&s, "limits.memlock"));
	say(&s, NP_LIMITS_OURS, LINES_ALL);
	c = judged(&s, "limits.memlock");
	assert_int_equal(c->status, NP_CHECK_OK);
	assert_string_equal(c->message,
			    "every user gets unlimited at login (" NP_LIMITS_OURS ":1)");
	assert_int_equal(s.checks.n, 1);
	configure(&s, "group", "hpc");
	s.facts.limits.group_known = false;
	assert_int_equal(judged(&s, "limits.group_unknown")->status, NP_CHECK_WARN);
	s.facts.limits.refuses_login = true;
	assert_non_null(judged(&s, "limits.not_raisable"));
	s.facts.limits.texts.v[0].num = -EACCES;
	assert_int_equal(judged(&s, "limits.unreadable")->status, NP_CHECK_UNKNOWN);
	s.facts.limits.looked = false;
	judged(&s, "");
	assert_int_equal(s.checks.n, 0);
	tear_down(&s);
}

/* Which of the site's lines keep somebody from what is wanted. */
static void test_overridden(void **state)
{
	static const struct {
		const char *path, *text, *group;
		int line; /* of the one that is named, or 0 */
	} cases[] = {
		{ ZZ, "* - memlock 64\n", NULL, 1 },
		{ ZZ, "#\n* hard memlock 64\n", NULL, 2 },
		{ SITE, "* - memlock 64\n", NULL, 0 },
		{ NP_LIMITS_CONF, "* - memlock 64\n", NULL, 0 },
		{ ZZ, "* - memlock unlimited\n", NULL, 0 },
		{ ZZ, "* - memlock 64\n* - memlock unlimited\n", NULL, 0 },
		{ ZZ, "* - memlock 64\n* soft memlock unlimited\n", NULL, 1 },
		{ NP_LIMITS_CONF, "@students - memlock 64\n", NULL, 1 },
		{ NP_LIMITS_CONF, "carol soft memlock 64\n", NULL, 1 },
		{ SITE, "1000:2000 - memlock 64\n", NULL, 1 },
		{ SITE, "carol -\n", NULL, 1 },
		{ SITE, "@students -\n", NULL, 1 },
		/* our own lines for root are read later, or earlier */
		{ SITE, "root - memlock 64\n", NULL, 0 },
		{ ZZ, "root - memlock 64\n", NULL, 1 },
		/* with a group */
		{ ZZ, "* - memlock 64\n", "hpc", 0 },
		{ ZZ, "@hpc - memlock 64\n", "hpc", 1 },
		{ SITE, "@hpc - memlock 64\n", "hpc", 0 },
		{ SITE, "carol - memlock 64\n", "hpc", 1 },
	};

	(void)state;
	/* before our file is there, and after */
	for (size_t i = 0; i < 2 * NP_ARRAY_SIZE(cases); i++) {
		const size_t k = i / 2;
		bool after = strcmp(cases[k].path, ZZ) == 0;
		const struct np_check *c;
		struct limits_scene s;
		char target[128];

		set_up(&s, i % 2 ? LINES_ALL : NULL);
		if (cases[k].group)
			configure(&s, "group", cases[k].group);
		if (!after)
			say(&s, cases[k].path, cases[k].text);
		if (i % 2)
			say(&s, NP_LIMITS_OURS, cases[k].group ? "@hpc - memlock -1\n" : LINES_ALL);
		if (after)
			say(&s, cases[k].path, cases[k].text);
		c = judged(&s, "limits.overridden");
		if (!c != (cases[k].line == 0))
			fail_msg("%s: %s", cases[k].path, cases[k].text);
		if (c) {
			snprintf(target, sizeof(target), "%s:%d", cases[k].path, cases[k].line);
			assert_string_equal(c->target, target);
			assert_int_equal(c->status, NP_CHECK_WARN);
			assert_null(nth(&s, "limits.overridden", 1));
		}
		tear_down(&s);
	}
}

/* The site gives enough, so nothing is ours: what wins over its own line is named. */
static void test_overridden_at_the_site(void **state)
{
	const struct np_check *c;
	struct limits_scene s;

	(void)state;
	set_up(&s, NULL);
	say(&s, NP_LIMITS_CONF,
	    "@students - memlock 64\n* - memlock 64\n* - memlock unlimited\n"
	    "root - memlock 64\n");
	expect_plan(&s, NULL);
	c = judged(&s, "limits.overridden");
	assert_string_equal(c->target, NP_LIMITS_CONF ":1");
	assert_non_null(strstr(c->message, "gives @students a soft memlock limit of 64 KiB"));
	assert_string_equal(nth(&s, "limits.overridden", 1)->target, NP_LIMITS_CONF ":4");
	assert_null(nth(&s, "limits.overridden", 2));
	tear_down(&s);
}

static void test_many_lines(void **state)
{
	np_auto_buf struct np_buf text = { 0 };
	struct limits_scene s;

	(void)state;
	for (int i = 0; i < 30; i++)
		np_buf_printf(&text, "user%d - memlock 64\nuser%d memlock\n", i, i);
	set_up(&s, NULL);
	say(&s, SITE, text.data);
	judged(&s, "");
	assert_string_equal(nth(&s, "limits.overridden", 8)->message, "22 more lines like these");
	assert_null(nth(&s, "limits.overridden", 9));
	assert_string_equal(nth(&s, "limits.line_ignored", 0)->target, SITE ":2");
	assert_string_equal(nth(&s, "limits.line_ignored", 8)->message, "22 more lines like these");
	tear_down(&s);
}

/* ---- services ---- */

static void add_service(struct limits_scene *s, const char *name, const char *comm, bool is_unit,
			uint64_t soft)
{
	struct np_service *service = FB_ADD(s->facts.services.v, s->facts.services.n);

	np_strcpy(service->name, sizeof(service->name), name);
	np_strcpy(service->comm, sizeof(service->comm), comm);
	service->is_unit = is_unit;
	service->pid = 77;
	service->memlock = (struct np_memlock){ soft, NP_UNLIMITED };
}

static void test_services(void **state)
{
	const struct np_check *c;
	struct limits_scene s;

	(void)state;
	set_up(&s, NULL);
	add_service(&s, "slurmd.service", "slurmd", true, 64 * KIB);
	add_service(&s, "dask-worker", "dask-worker", false, 8192 * KIB);
	add_service(&s, "kubelet.service", "kubelet", true, NP_UNLIMITED);
	c = judged(&s, "limits.service_memlock");
	assert_string_equal(c->target, "slurmd.service");
	assert_int_equal(c->status, NP_CHECK_WARN);
	assert_non_null(strstr(c->message, "slurmd (process 77) has memlock 64 KiB"));
	assert_string_equal(
		c->hint,
		"systemctl edit slurmd.service, add [Service] LimitMEMLOCK=infinity, and restart it");
	c = nth(&s, "limits.service_memlock", 1);
	assert_string_equal(c->target, "dask-worker");
	assert_null(strstr(c->hint, "systemctl"));
	assert_null(nth(&s, "limits.service_memlock", 2));
	/* as much as is wanted is enough */
	configure(&s, "memlock", "1 MiB");
	c = judged(&s, "limits.service_memlock");
	assert_non_null(strstr(c->hint, "LimitMEMLOCK=1024K"));
	assert_null(nth(&s, "limits.service_memlock", 1));
	tear_down(&s);
}

/* ---- [limits] ---- */

static void test_keys(void **state)
{
	static const char *const bad[] = { "",
					   "64",
					   "64 kib",
					   "64 TiB",
					   "-1",
					   "0 KiB",
					   "1.5 GiB",
					   "KiB",
					   "infinity",
					   "99999999999999999999 GiB",
					   "18014398509481984 KiB" };
	static const char *const bad_groups[] = {
		"",    "@hpc",	       "a b",
		"a#b", "1:2",	       "*",
		"%x",  "h\xc3\xb6her", "a-name-of-more-than-thirty-two-characters"
	};
	struct np_config cfg;
	struct np_err err;

	(void)state;
	np_config_init(&cfg);
	assert_true(cfg.memlock == NP_UNLIMITED && !cfg.memlock_keep);
	for (size_t i = 0; i < NP_ARRAY_SIZE(bad); i++) {
		assert_int_equal(np_config_set(&cfg, "limits", "memlock", bad[i], "f:1", &err),
				 -EINVAL);
		assert_string_equal(err.code, "config.bad_value");
		assert_true(cfg.memlock == NP_UNLIMITED && !cfg.memlock_keep);
	}
	for (size_t i = 0; i < NP_ARRAY_SIZE(bad_groups); i++) {
		assert_int_equal(np_config_set(&cfg, "limits", "group", bad_groups[i], "f:1", &err),
				 -EINVAL);
		cfg.limits_group[0] = '\0';
	}
	assert_int_equal(np_config_set(&cfg, "limits", "memlock", "512KiB", "f:1", &err), 0);
	assert_true(cfg.memlock == 512 * KIB);
	assert_int_equal(np_config_set(&cfg, "limits", "memlock", "3 \t MiB", "f:1", &err), 0);
	assert_true(cfg.memlock == 3072 * KIB);
	assert_int_equal(np_config_set(&cfg, "limits", "memlock", "keep", "f:1", &err), 0);
	assert_true(cfg.memlock_keep);
	assert_int_equal(np_config_set(&cfg, "limits", "memlock", "unlimited", "f:1", &err), 0);
	assert_true(cfg.memlock == NP_UNLIMITED && !cfg.memlock_keep);
	np_config_done(&cfg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written),
		cmocka_unit_test(test_what_is_there),
		cmocka_unit_test(test_site_gives_enough),
		cmocka_unit_test(test_given),
		cmocka_unit_test(test_overridden),
		cmocka_unit_test(test_overridden_at_the_site),
		cmocka_unit_test(test_many_lines),
		cmocka_unit_test(test_services),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
