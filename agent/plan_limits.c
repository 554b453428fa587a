/* SPDX-License-Identifier: MIT */
/* /etc/security/limits.d/nodeprep.conf: memlock for logins. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/plan.h"

/* The site's own files give every user, or that group, as much. Root does not count: it
 * has CAP_IPC_LOCK, and then memlock does not matter (Linux mm/mlock.c can_do_mlock,
 * drivers/infiniband/core/umem.c ib_umem_get). Returns 1, 0, or -ENOMEM. */
static int site_gives_enough(const struct np_config *cfg, const struct np_facts *facts)
{
	static const struct np_memlock nothing = { 0 };
	np_auto_limit_rules struct np_limit_rules rules = { 0 };
	const struct np_limit_user who = { .group = cfg->limits_group[0] ? cfg->limits_group :
									   NULL };
	struct np_login_limit limit;

	if (np_limit_rules_parse(&facts->limits.texts, &rules) < 0)
		return -ENOMEM;
	np_login_limit(&rules, &who, NP_LIMITS_OURS, &nothing, &nothing, &limit);
	return limit.limit.soft >= cfg->memlock && limit.limit.hard >= cfg->memlock;
}

static void add_lines(struct np_buf *content, const char *domain, const char *value)
{
	np_buf_printf(content, "%s\tsoft\tmemlock\t%s\n%s\thard\tmemlock\t%s\n", domain, value,
		      domain, value);
}

static int render(const struct np_config *cfg, struct np_buf *content)
{
	char value[24], domain[sizeof(cfg->limits_group) + 1];

	if (cfg->memlock == NP_UNLIMITED)
		np_strcpy(value, sizeof(value), "unlimited");
	else
		snprintf(value, sizeof(value), "%" PRIu64, cfg->memlock / 1024);
	np_buf_str(content,
		   "# Written by nodeprep; changes made here are lost. To change the values, edit\n"
		   "# the [limits] section of /etc/nodeprep/nodeprep.conf and run: nodeprep apply\n"
		   "# For logins. Services need LimitMEMLOCK= in their units.\n");
	if (cfg->limits_group[0]) {
		snprintf(domain, sizeof(domain), "@%s", cfg->limits_group);
		add_lines(content, domain, value);
	} else {
		add_lines(content, "*", value);
		/* which * does not reach everywhere */
		add_lines(content, "root", value);
	}
	return content->failed ? -ENOMEM : 0;
}

int np_limits_file_content(const struct np_config *cfg, const struct np_facts *facts,
			   const struct np_file_fact *fact, bool *wanted, struct np_buf *content)
{
	int enough;

	*wanted = facts->limits.looked && !cfg->memlock_keep && !facts->limits.refuses_login;
	if (!*wanted)
		return 0;
	/* one that is there stays, and right: others may count on it by now */
	if (fact->file.status != NP_TARGET_PRESENT) {
		enough = site_gives_enough(cfg, facts);
		if (enough < 0)
			return enough;
		*wanted = !enough;
	}
	return *wanted ? render(cfg, content) : 0;
}
