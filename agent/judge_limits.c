/* SPDX-License-Identifier: MIT */
/* memlock: what logins get, what keeps them from it, and services that limits.conf does
 * not reach. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/judge.h"

/* More lines than that of one kind tell no more. */
#define SHOWN_MAX 8

struct scene {
	const struct np_config *cfg;
	const struct np_facts *facts;
	const struct np_limit_rules *rules;
	bool ours; /* our file is there, or will be */
	/* what everybody, or the group, gets; the rules behind it when @ours is false */
	struct np_login_limit all;
	struct np_checks *out;
};

static bool is_ours(const struct np_limit_rule *rule)
{
	return strcmp(rule->path, NP_LIMITS_OURS) == 0;
}

/* Read after our file, whether that is there yet or not. */
static bool is_after_ours(const struct np_limit_rule *rule)
{
	return strcmp(rule->path, NP_LIMITS_CONF) != 0 && strcmp(rule->path, NP_LIMITS_OURS) > 0;
}

/* A later line for the same users makes this one void. */
static bool is_replaced(const struct np_limit_rules *rules, const struct np_limit_rule *rule)
{
	for (const struct np_limit_rule *later = rule + 1; later < rules->v + rules->n; later++)
		if (!later->off && strcmp(later->name, rule->name) == 0 &&
		    later->soft >= rule->soft && later->hard >= rule->hard)
			return true;
	return false;
}

static bool wins(const struct scene *s, const struct np_limit_rule *rule)
{
	const struct np_limit_rule *site = s->all.soft ? s->all.soft : s->all.hard;
	int mine = s->cfg->limits_group[0] ? 1 : 2, its = np_limit_priority(rule);

	/* our file has lines for root by name */
	if (s->ours && !s->cfg->limits_group[0] && strcmp(rule->name, "root") == 0)
		mine = 0;
	if (its != mine)
		return its < mine;
	return s->ours ? is_after_ours(rule) : site && rule >= site;
}

/* Lines that give somebody less than is wanted, whatever our file says. */
static void judge_overridden(const struct scene *s)
{
	char wanted[NP_MEMLOCK_STRLEN], value[NP_MEMLOCK_STRLEN], target[NP_LIMIT_SOURCE];
	size_t n = 0;

	np_memlock_str(s->cfg->memlock, wanted);
	for (size_t i = 0; i < s->rules->n; i++) {
		const struct np_limit_rule *rule = &s->rules->v[i];

		if (is_ours(rule) || (!rule->off && rule->value >= s->cfg->memlock) ||
		    (!rule->off && (!wins(s, rule) || is_replaced(s->rules, rule))) ||
		    n++ >= SHOWN_MAX)
			continue;
		np_limit_source(rule, target);
		if (rule->off)
			np_checks_add(
				s->out, "limits", target, NP_CHECK_WARN, "limits.overridden",
				"remove that line, unless these users pin no memory",
				"\"%.60s -\" takes these users out of all limits: they keep what the login service has",
				rule->name);
		else
			np_checks_add(
				s->out, "limits", target, NP_CHECK_WARN, "limits.overridden",
				"raise or remove that line, unless these users pin no memory",
				"gives %.60s a %s memlock limit of %s and wins over the %s that is wanted",
				rule->name, rule->soft ? "soft" : "hard",
				np_memlock_str(rule->value, value), wanted);
	}
	if (n > SHOWN_MAX)
		np_checks_add(s->out, "limits", NP_LIMITS_DIR, NP_CHECK_WARN, "limits.overridden",
			      "raise or remove those lines, unless these users pin no memory",
			      "%zu more lines like these", n - SHOWN_MAX);
}

static void judge_lines(const struct scene *s)
{
	const struct np_limit_rules *rules = s->rules;

	for (size_t i = 0; i < rules->n_issues && i < SHOWN_MAX; i++) {
		char target[NP_LIMIT_SOURCE];

		snprintf(target, sizeof(target), "%.300s:%d", rules->issues[i].path,
			 rules->issues[i].line);
		np_checks_add(s->out, "limits", target, NP_CHECK_WARN, "limits.line_ignored",
			      "correct the line, see limits.conf(5)", "%s", rules->issues[i].what);
	}
	if (rules->n_issues > SHOWN_MAX)
		np_checks_add(s->out, "limits", NP_LIMITS_DIR, NP_CHECK_WARN, "limits.line_ignored",
			      "correct the lines, see limits.conf(5)", "%zu more lines like these",
			      rules->n_issues - SHOWN_MAX);
}

static void judge_given(const struct scene *s)
{
	char wanted[NP_MEMLOCK_STRLEN], source[NP_LIMIT_SOURCE];
	const char *group = s->cfg->limits_group;

	if (s->all.soft && s->all.limit.soft >= s->cfg->memlock)
		np_checks_add(s->out, "limits", "memlock", NP_CHECK_OK, "limits.memlock", NULL,
			      "%s%s gets %s at login (%s)", *group ? "group " : "every user", group,
			      np_memlock_str(s->all.limit.soft, wanted),
			      np_limit_source(s->all.soft, source));
	if (!s->facts->limits.group_known)
		np_checks_add(
			s->out, "limits", group, NP_CHECK_WARN, "limits.group_unknown",
			"correct [limits] group, or look why `getent group` does not know it",
			"[limits] group: no such group in the group database, so nobody gets the limit");
	if (s->facts->limits.refuses_login)
		np_checks_add(
			s->out, "limits", "memlock", NP_CHECK_WARN, "limits.not_raisable",
			"raise the limit of the container (its runtime's ulimit), or give it CAP_SYS_RESOURCE",
			"%s cannot be set here without CAP_SYS_RESOURCE, and pam_limits would refuse the login: nothing is written",
			np_memlock_str(s->cfg->memlock, wanted));
}

/* ---- services ---- */

static void judge_service(const struct np_config *cfg, const struct np_service *service,
			  struct np_checks *out)
{
	char limit[NP_MEMLOCK_STRLEN], value[24] = "infinity", hint[240];

	if (service->memlock.soft >= cfg->memlock)
		return;
	if (cfg->memlock != NP_UNLIMITED)
		snprintf(value, sizeof(value), "%" PRIu64 "K", cfg->memlock / 1024);
	if (service->is_unit)
		snprintf(hint, sizeof(hint),
			 "systemctl edit %.60s, add [Service] LimitMEMLOCK=%s, and restart it",
			 service->name, value);
	else
		snprintf(hint, sizeof(hint),
			 "set LimitMEMLOCK=%s in the unit that starts it, or ulimit -l before it",
			 value);
	np_checks_add(
		out, "limits", service->name, NP_CHECK_WARN, "limits.service_memlock", hint,
		"%s (process %d) has memlock %s, and so has what it starts: limits.conf does not reach services",
		service->comm, (int)service->pid, np_memlock_str(service->memlock.soft, limit));
}

void np_judge_limits(const struct np_config *cfg, const struct np_facts *facts,
		     struct np_checks *out)
{
	static const struct np_memlock nothing = { 0 };
	np_auto_limit_rules struct np_limit_rules rules = { 0 };
	const struct np_limit_user who = { .group = cfg->limits_group[0] ? cfg->limits_group :
									   NULL };
	const struct np_limit_texts *texts = &facts->limits.texts;
	struct scene s = { .cfg = cfg, .facts = facts, .rules = &rules, .out = out };

	if (!facts->limits.looked)
		return;
	if (np_limit_rules_parse(texts, &rules) < 0) {
		out->failed = true;
		return;
	}
	np_login_limit(&rules, &who, NULL, &nothing, &nothing, &s.all);
	/* where the site gives enough nothing is written, and else it will be */
	s.ours = s.all.limit.soft < cfg->memlock || s.all.limit.hard < cfg->memlock;
	for (size_t i = 0; i < texts->n; i++) {
		s.ours |= strcmp(texts->v[i].path, NP_LIMITS_OURS) == 0;
		if (texts->v[i].num < 0)
			np_checks_add(out, "limits", texts->v[i].path, NP_CHECK_UNKNOWN,
				      "limits.unreadable", "run it as root", "cannot be read: %s",
				      strerror(-texts->v[i].num));
	}
	judge_given(&s);
	judge_overridden(&s);
	judge_lines(&s);
	for (size_t i = 0; i < facts->services.n; i++)
		judge_service(cfg, &facts->services.v[i], out);
}
