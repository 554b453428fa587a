/* SPDX-License-Identifier: MIT */
#ifndef NP_TEST_JUDGE_SCENE_H
#define NP_TEST_JUDGE_SCENE_H

/* Made-up facts and their judgement. */
#include "facts_build.h"

#include "agent/judge.h"

struct scene {
	struct np_facts facts;
	struct np_config cfg;
	struct np_selection sel;
	struct np_checks checks;
	struct np_err err;
};

FB_UNUSED static void begin(struct scene *s)
{
	memset(s, 0, sizeof(*s));
	np_config_init(&s->cfg);
}

FB_UNUSED static void begin_guide(struct scene *s, const char *const *ips)
{
	begin(s);
	fb_guide(&s->facts);
	fb_config(&s->cfg, ips);
}

FB_UNUSED static void end(struct scene *s)
{
	np_checks_done(&s->checks);
	np_selection_done(&s->sel);
	np_facts_done(&s->facts);
	np_config_done(&s->cfg);
}

FB_UNUSED static void set(struct scene *s, const char *section, const char *key, const char *value)
{
	if (np_config_set(&s->cfg, section, key, value, "x:1", &s->err) < 0)
		fail_msg("%s", s->err.message);
}

FB_UNUSED static void judge(struct scene *s)
{
	np_checks_done(&s->checks);
	np_selection_done(&s->sel);
	if (np_select(&s->cfg, &s->facts, &s->sel, &s->err) < 0)
		fail_msg("%s", s->err.message);
	np_judge(&s->cfg, &s->facts, &s->sel, &s->checks);
	assert_false(s->checks.failed);
	for (size_t i = 0; i < s->checks.n; i++) {
		const struct np_check *c = &s->checks.v[i];

		assert_true(c->id && c->target[0] && c->code[0] && c->message[0]);
		if (c->status == NP_CHECK_FAIL || c->status == NP_CHECK_WARN) /* names the fix */
			assert_true(c->hint[0]);
	}
}

/* The first check of that target with that code. */
FB_UNUSED static const struct np_check *find(const struct scene *s, const char *target,
					     const char *code)
{
	for (size_t i = 0; i < s->checks.n; i++)
		if (strcmp(s->checks.v[i].target, target) == 0 &&
		    strcmp(s->checks.v[i].code, code) == 0)
			return &s->checks.v[i];
	return NULL;
}

FB_UNUSED static const struct np_check *has(const struct scene *s, const char *target,
					    const char *code, enum np_check_status status)
{
	const struct np_check *c = find(s, target, code);

	if (!c || c->status != status) {
		for (size_t i = 0; i < s->checks.n; i++)
			print_message("  %s %s %s: %s\n", s->checks.v[i].target,
				      np_check_status_str(s->checks.v[i].status),
				      s->checks.v[i].code, s->checks.v[i].message);
		fail_msg("no %s %s %s", target, np_check_status_str(status), code);
	}
	return c;
}

FB_UNUSED static void says(const struct np_check *c, const char *part)
{
	if (!strstr(c->message, part) && !strstr(c->hint, part))
		fail_msg("\"%s; %s\" does not say \"%s\"", c->message, c->hint, part);
}

FB_UNUSED static size_t count_status(const struct scene *s, enum np_check_status status)
{
	size_t n = 0;

	for (size_t i = 0; i < s->checks.n; i++)
		n += s->checks.v[i].status == status;
	return n;
}

FB_UNUSED static size_t count_of(const struct scene *s, const char *id)
{
	size_t n = 0;

	for (size_t i = 0; i < s->checks.n; i++)
		n += strcmp(s->checks.v[i].id, id) == 0;
	return n;
}

#endif
