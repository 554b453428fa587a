/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_LOGIN_LIMITS_H
#define NP_AGENT_LOGIN_LIMITS_H

#include <sys/types.h>

#include "base/memlock.h"
#include "base/str.h"

/*
 * Which memlock limit a user gets at login: the rules of pam_limits (limits.conf(5),
 * Linux-PAM 1.5.2 and 1.7, Debian's variant) over /etc/security/limits.conf and
 * limits.d. The parser and the evaluation are pure.
 */

#define NP_LIMITS_CONF	"/etc/security/limits.conf"
#define NP_LIMITS_DIR	"/etc/security/limits.d"
#define NP_LIMITS_OURS	NP_LIMITS_DIR "/nodeprep.conf"
#define NP_LIMIT_SOURCE 320 /* bytes of "FILE:LINE" */

/* ---- the files ---- */

struct np_limit_text {
	char *path;
	struct np_buf content;
	int num; /* negative errno: it is there and cannot be read */
};

struct np_limit_texts {
	struct np_limit_text *v;
	size_t n;
};

/* Reads limits.conf, then limits.d's files in pam_limits' order (names that end in
 * ".conf", byte order); those that are absent are left out. Returns 0 or -ENOMEM. */
int np_limit_texts_read(struct np_limit_texts *out) np_must_check;
/* Adds one, for tests and readers of other trees. Returns 0 or -ENOMEM. */
int np_limit_texts_add(struct np_limit_texts *texts, const char *path, const char *data,
		       size_t len) np_must_check;
void np_limit_texts_done(struct np_limit_texts *texts);
#define np_auto_limit_texts np_auto(np_limit_texts_done)

/* ---- the rules in them ---- */

enum np_limit_domain {
	NP_LIMIT_USER,	     /* a user's name */
	NP_LIMIT_UID_RANGE,  /* 1000:2000, 1000:, :1000 (this one alone) */
	NP_LIMIT_GROUP,	     /* @name */
	NP_LIMIT_GROUP_GID,  /* @:1000, members of that group */
	NP_LIMIT_GID_RANGE,  /* @1000:2000, @1000:, of the primary group */
	NP_LIMIT_ALL,	     /* * */
	NP_LIMIT_LOGINS_ONLY /* %, %name: means nothing for memlock */
};

struct np_limit_rule {
	const char *path; /* of the texts, which have to outlive the rules */
	int line;
	enum np_limit_domain domain;
	char *name; /* the domain as written */
	uint32_t min, max;
	bool off;	 /* "alice -": no limit is set at all for whom it fits */
	bool soft, hard; /* which of the two it sets; both: "-" */
	uint64_t value;	 /* bytes or NP_UNLIMITED */
};

/* A line that pam_limits skips, or reads otherwise than it looks. */
struct np_limit_issue {
	const char *path;
	int line;
	char what[120];
};

struct np_limit_rules {
	struct np_limit_rule *v;
	size_t n;
	struct np_limit_issue *issues; /* at most NP_LIMIT_ISSUES_MAX */
	size_t n_issues;
};

#define NP_LIMIT_ISSUES_MAX 100

/* Every memlock rule and every "DOMAIN -" of @texts, in order. Returns 0 or -ENOMEM. */
int np_limit_rules_parse(const struct np_limit_texts *texts,
			 struct np_limit_rules *out) np_must_check;
void np_limit_rules_done(struct np_limit_rules *rules);
#define np_auto_limit_rules np_auto(np_limit_rules_done)

/* "FILE:LINE". Returns @out. */
const char *np_limit_source(const struct np_limit_rule *rule, char out[NP_LIMIT_SOURCE]);

/* Priority of a rule, 0 the highest; a later one of the same priority wins. */
int np_limit_priority(const struct np_limit_rule *rule);

/* ---- who is asked about ---- */

struct np_limit_user {
	const char *name; /* NULL: any user who is in no other domain than * and @group */
	uid_t uid;
	gid_t gid;
	const gid_t *gids; /* with the primary one */
	size_t n_gids;
	int (*group_gid)(const char *name, gid_t *out); /* 0 when there is such a group */
	const char *group; /* with name NULL: the members of this group; NULL: everybody */
	bool root_by_name; /* Debian's pam_limits: to root only rules that name it apply */
};

/* The priority that the rule has for that user, or -1: it does not apply. */
int np_limit_fits(const struct np_limit_rule *rule, const struct np_limit_user *user);

/* What the rules make of @base. */
struct np_login_limit {
	struct np_memlock limit;
	/* the rule behind each; NULL: none, it is the base's */
	const struct np_limit_rule *soft, *hard;
	const struct np_limit_rule *switched_off; /* the "DOMAIN -" that fits, or NULL */
};

/* Rules of the file @skip_or_null are left out. What no rule sets is that of @base; where
 * one switches pam_limits off, the limit is @untouched, what the login service has. */
void np_login_limit(const struct np_limit_rules *rules, const struct np_limit_user *user,
		    const char *skip_or_null, const struct np_memlock *base,
		    const struct np_memlock *untouched, struct np_login_limit *out);

/* ---- this system ---- */

struct np_user_limit {
	struct np_memlock limit;
	char source[NP_LIMIT_SOURCE]; /* FILE:LINE, or whose limit it inherits */
};

/* Elsewhere than in Debian pam_limits ends the session when a limit cannot be set. True:
 * @hard would do that here, since it is above the caller's own and CAP_SYS_RESOURCE is
 * out of reach, as in a container. */
bool np_limit_refuses_login(uint64_t hard);

/* The limit that a user of the password database gets at login on this system:
 * limits.conf and limits.d, and where they say nothing what Debian's pam_limits takes
 * from PID 1, elsewhere what a login service has: sshd's listener, else another service
 * of PID 1 that starts sessions, else PID 1, else the caller.
 * Returns 0, or a negative errno with message: "usage.user", -ENOENT; "limits.unreadable"
 * for a file that is there and cannot be read. */
int np_user_limit(const char *user, struct np_user_limit *out, struct np_err *err) np_must_check;

#endif
