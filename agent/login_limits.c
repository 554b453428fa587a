/* SPDX-License-Identifier: MIT */
/* The rules of pam_limits, as data and as an answer; no I/O here. */
#include "agent/login_limits.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define WORDS 4
/* Linux-PAM up to 1.5 reads 1023 bytes at a time */
#define OLD_LINE_MAX 1023

int np_limit_texts_add(struct np_limit_texts *texts, const char *path, const char *data, size_t len)
{
	struct np_limit_text *v = reallocarray(texts->v, texts->n + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	texts->v = v;
	v += texts->n;
	memset(v, 0, sizeof(*v));
	v->path = strdup(path);
	np_buf_add(&v->content, data, len);
	if (!v->path || v->content.failed) {
		free(v->path);
		np_buf_done(&v->content);
		return -ENOMEM;
	}
	texts->n++;
	return 0;
}

void np_limit_texts_done(struct np_limit_texts *texts)
{
	if (!texts)
		return;
	for (size_t i = 0; i < texts->n; i++) {
		free(texts->v[i].path);
		np_buf_done(&texts->v[i].content);
	}
	free(texts->v);
	memset(texts, 0, sizeof(*texts));
}

/* ---- one line ---- */

struct parser {
	struct np_limit_rules *rules;
	const char *path;
	int line;
};

static int add_issue(struct parser *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int add_issue(struct parser *p, const char *fmt, ...)
{
	struct np_limit_rules *rules = p->rules;
	struct np_limit_issue *v;
	char text[240];
	va_list args;

	if (rules->n_issues >= NP_LIMIT_ISSUES_MAX)
		return 0;
	v = reallocarray(rules->issues, rules->n_issues + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	rules->issues = v;
	v += rules->n_issues++;
	v->path = p->path;
	v->line = p->line;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	np_printable(text, v->what, sizeof(v->what));
	return 0;
}

static void lower(char *s)
{
	for (; *s; s++)
		*s = (char)tolower((unsigned char)*s);
}

/* "1000:2000", "1000:", ":1000". False when it is no range. */
static bool parse_range(const char *text, struct np_limit_rule *rule, bool *alone)
{
	const char *colon = strchr(text, ':');
	char first[24] = "";
	uint64_t min = 0, max = UINT32_MAX;

	if ((size_t)(colon - text) >= sizeof(first))
		return false;
	memcpy(first, text, (size_t)(colon - text));
	*alone = !*first;
	if (*first && np_parse_u64(first, 10, UINT32_MAX, &min) < 0)
		return false;
	if (*++colon ? np_parse_u64(colon, 10, UINT32_MAX, &max) < 0 : *alone)
		return false;
	rule->min = (uint32_t)(*alone ? max : min);
	rule->max = (uint32_t)max;
	return true;
}

/* False: a range that cannot be read; pam_limits skips the line. */
static bool parse_domain(const char *word, struct np_limit_rule *rule)
{
	bool group = *word == '@', alone = false;

	if (strchr(word, ':')) {
		if (!parse_range(word + (group || *word == '%'), rule, &alone))
			return false;
		rule->domain = !group ? NP_LIMIT_UID_RANGE :
			       alone  ? NP_LIMIT_GROUP_GID :
					NP_LIMIT_GID_RANGE;
	} else if (group) {
		rule->domain = NP_LIMIT_GROUP;
	} else {
		rule->domain = strcmp(word, "*") == 0 ? NP_LIMIT_ALL : NP_LIMIT_USER;
	}
	if (*word == '%')
		rule->domain = NP_LIMIT_LOGINS_ONLY;
	return true;
}

/* Digits at its start count, what follows them is dropped, as strtoull does; KiB.
 * Returns 0, -EINVAL (no number), or 1: read, but not all of it. */
static int parse_value(const char *word, uint64_t *out)
{
	static const char *const unlimited[] = { "-1", "-", "unlimited", "infinity" };
	bool negative = *word == '-';
	char digits[24];
	size_t len;
	uint64_t kib;

	for (size_t i = 0; i < NP_ARRAY_SIZE(unlimited); i++) {
		if (strcmp(word, unlimited[i]) == 0) {
			*out = NP_UNLIMITED;
			return 0;
		}
	}
	word += negative || *word == '+';
	len = strspn(word, "0123456789");
	if (len == 0)
		return -EINVAL;
	memcpy(digits, word, len < sizeof(digits) ? len : sizeof(digits) - 1);
	digits[len < sizeof(digits) ? len : sizeof(digits) - 1] = '\0';
	/* what is too large, or negative and so wraps around, is no limit */
	if (len >= sizeof(digits) || np_parse_u64(digits, 10, UINT64_MAX, &kib) < 0 ||
	    (negative && kib > 0) || kib >= NP_UNLIMITED / 1024)
		*out = NP_UNLIMITED;
	else
		*out = kib * 1024;
	return word[len] || negative ? 1 : 0;
}

static int keep_rule(struct parser *p, struct np_limit_rule *rule, const char *domain)
{
	struct np_limit_rule *v = reallocarray(p->rules->v, p->rules->n + 1, sizeof(*p->rules->v));

	if (!v)
		return -ENOMEM;
	p->rules->v = v;
	rule->path = p->path;
	rule->line = p->line;
	rule->name = strdup(domain);
	if (!rule->name)
		return -ENOMEM;
	v[p->rules->n++] = *rule;
	return 0;
}

static int parse_limit(struct parser *p, struct np_limit_rule *rule, char *const *words)
{
	const char *type = words[1];
	int r;

	lower(words[3]);
	rule->soft = strcmp(type, "soft") == 0 || strcmp(type, "-") == 0;
	rule->hard = strcmp(type, "hard") == 0 || strcmp(type, "-") == 0;
	if (!rule->soft && !rule->hard)
		return add_issue(p, "skipped: the type \"%s\" is neither soft, hard nor -", type);
	if (rule->domain == NP_LIMIT_LOGINS_ONLY)
		return add_issue(p, "skipped: %s is for the number of logins only, write @ or *",
				 words[0]);
	r = parse_value(words[3], &rule->value);
	if (r == -EINVAL)
		return add_issue(p, "skipped: the value \"%s\" is no number of KiB", words[3]);
	if (r > 0) {
		char text[NP_MEMLOCK_STRLEN];

		r = add_issue(p, "the value \"%s\" is read as %s", words[3],
			      np_memlock_str(rule->value, text));
		if (r < 0)
			return r;
	}
	return keep_rule(p, rule, words[0]);
}

static int parse_line(struct parser *p, char *line)
{
	struct np_limit_rule rule = { 0 };
	bool too_long = strlen(line) > OLD_LINE_MAX;
	char *words[WORDS] = { NULL };
	size_t n = 0;

	line[strcspn(line, "#")] = '\0';
	for (char *at = line; n < WORDS; n++) {
		while (isspace((unsigned char)*at))
			at++;
		if (!*at)
			break;
		words[n] = at;
		while (*at && !isspace((unsigned char)*at))
			at++;
		if (*at)
			*at++ = '\0';
	}
	if (n == 0)
		return 0;
	if (too_long && add_issue(p, "longer than %d bytes: older versions read it in pieces",
				  OLD_LINE_MAX) < 0)
		return -ENOMEM;
	if (n > 1)
		lower(words[1]);
	if (!parse_domain(words[0], &rule))
		return add_issue(p, "skipped: \"%s\" is no range of numbers", words[0]);
	if (n == WORDS) {
		lower(words[2]);
		return strcmp(words[2], "memlock") == 0 ? parse_limit(p, &rule, words) : 0;
	}
	if (n != 2 || *words[1] != '-')
		return add_issue(p, "skipped: not DOMAIN TYPE ITEM VALUE");
	/* * and % switch nothing off */
	if (rule.domain == NP_LIMIT_ALL || rule.domain == NP_LIMIT_LOGINS_ONLY)
		return add_issue(p, "has no effect: \"%s -\" switches nothing off", words[0]);
	rule.off = true;
	return keep_rule(p, &rule, words[0]);
}

int np_limit_rules_parse(const struct np_limit_texts *texts, struct np_limit_rules *out)
{
	np_auto_limit_rules struct np_limit_rules rules = { 0 };

	for (size_t i = 0; i < texts->n; i++) {
		const struct np_buf *text = &texts->v[i].content;
		struct parser p = { .rules = &rules, .path = texts->v[i].path };

		for (size_t at = 0; at < text->len;) {
			const char *end = memchr(text->data + at, '\n', text->len - at);
			size_t len = end ? (size_t)(end - text->data) - at : text->len - at;
			_cleanup_free_ char *line = strndup(text->data + at, len);

			p.line++;
			if (!line || parse_line(&p, line) < 0)
				return -ENOMEM;
			at += len + 1;
		}
	}
	*out = rules;
	memset(&rules, 0, sizeof(rules));
	return 0;
}

void np_limit_rules_done(struct np_limit_rules *rules)
{
	if (!rules)
		return;
	for (size_t i = 0; i < rules->n; i++)
		free(rules->v[i].name);
	free(rules->v);
	free(rules->issues);
	memset(rules, 0, sizeof(*rules));
}

const char *np_limit_source(const struct np_limit_rule *rule, char out[NP_LIMIT_SOURCE])
{
	snprintf(out, NP_LIMIT_SOURCE, "%.300s:%d", rule->path, rule->line);
	return out;
}

/* ---- what they come to ---- */

int np_limit_priority(const struct np_limit_rule *rule)
{
	switch (rule->domain) {
	case NP_LIMIT_USER:
	case NP_LIMIT_UID_RANGE:
		return 0;
	case NP_LIMIT_GROUP:
	case NP_LIMIT_GROUP_GID:
	case NP_LIMIT_GID_RANGE:
		return 1;
	case NP_LIMIT_ALL:
	case NP_LIMIT_LOGINS_ONLY:
		break;
	}
	return 2;
}

static bool is_member(const struct np_limit_user *user, gid_t gid)
{
	for (size_t i = 0; i < user->n_gids; i++)
		if (user->gids[i] == gid)
			return true;
	return gid == user->gid;
}

static bool in_group(const struct np_limit_user *user, const char *name)
{
	gid_t gid;

	if (!user->name)
		return user->group && strcmp(user->group, name) == 0;
	return user->group_gid && user->group_gid(name, &gid) == 0 && is_member(user, gid);
}

/* By number: the user's own, or that of a group. */
static bool in_range(const struct np_limit_rule *rule, const struct np_limit_user *user,
		     bool as_user)
{
	if (as_user)
		return user->uid >= rule->min && user->uid <= rule->max;
	if (rule->domain == NP_LIMIT_GROUP_GID)
		return is_member(user, rule->min);
	return user->gid >= rule->min && user->gid <= rule->max;
}

int np_limit_fits(const struct np_limit_rule *rule, const struct np_limit_user *user)
{
	bool nameless_root = user->name && user->root_by_name && user->uid == 0 && !rule->off;
	int priority = np_limit_priority(rule);

	/* a name with a colon in it is a name all the same */
	if (user->name && strcmp(rule->name, user->name) == 0)
		return 0;
	switch (rule->domain) {
	case NP_LIMIT_GROUP:
		return !nameless_root && in_group(user, rule->name + 1) ? priority : -1;
	case NP_LIMIT_ALL:
		return nameless_root ? -1 : priority;
	case NP_LIMIT_UID_RANGE:
		return user->name && in_range(rule, user, true) ? 0 : -1;
	case NP_LIMIT_GROUP_GID:
	case NP_LIMIT_GID_RANGE:
		/* Debian's has root pass by its groups, and then takes the numbers for users */
		if (!user->name || !in_range(rule, user, nameless_root))
			return -1;
		return nameless_root ? 0 : priority;
	case NP_LIMIT_USER:
	case NP_LIMIT_LOGINS_ONLY:
		break;
	}
	return -1;
}

void np_login_limit(const struct np_limit_rules *rules, const struct np_limit_user *user,
		    const char *skip_or_null, const struct np_memlock *base,
		    const struct np_memlock *untouched, struct np_login_limit *out)
{
	int soft = INT32_MAX, hard = INT32_MAX;

	*out = (struct np_login_limit){ .limit = *base };
	for (size_t i = 0; i < rules->n; i++) {
		const struct np_limit_rule *rule = &rules->v[i];
		int priority = np_limit_fits(rule, user);

		if ((skip_or_null && strcmp(rule->path, skip_or_null) == 0) || priority < 0)
			continue;
		if (rule->off) {
			*out = (struct np_login_limit){ .limit = *untouched, .switched_off = rule };
			return;
		}
		if (rule->soft) {
			/* with "-" the hard limit is given up, too: so does pam_limits */
			if (priority > soft)
				continue;
			soft = priority;
			out->soft = rule;
			out->limit.soft = rule->value;
		}
		if (rule->hard && priority <= hard) {
			hard = priority;
			out->hard = rule;
			out->limit.hard = rule->value;
		}
	}
	if (out->limit.soft > out->limit.hard)
		out->limit.soft = out->limit.hard;
}
