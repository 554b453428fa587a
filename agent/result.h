/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_RESULT_H
#define NP_AGENT_RESULT_H

#include <jansson.h>

#include "agent/action.h"
#include "agent/facts.h"

/* What a verb has to tell; rendered by report.h, and by nothing else. */

enum np_check_status { NP_CHECK_OK, NP_CHECK_FAIL, NP_CHECK_WARN, NP_CHECK_UNKNOWN, NP_CHECK_SKIP };

struct np_check {
	const char *id; /* static: "port", "netdev", "module", "file", ... */
	char target[128];
	enum np_check_status status;
	char code[48];
	char message[320];
	char hint[240];
};

struct np_checks {
	struct np_check *v;
	size_t n;
	bool failed; /* out of memory: a check was lost */
};

/* Adds one. @id is not copied. */
void np_checks_add(struct np_checks *list, const char *id, const char *target,
		   enum np_check_status status, const char *code, const char *hint, const char *fmt,
		   ...) __attribute__((format(printf, 7, 8)));
void np_checks_done(struct np_checks *list);
const char *np_check_status_str(enum np_check_status s);

/* Exit codes of the program (design: contracts). */
enum np_exit {
	NP_EXIT_READY = 0,
	NP_EXIT_NOT_READY = 1,
	NP_EXIT_USAGE = 2,
	NP_EXIT_REFUSED = 3,
	NP_EXIT_ROLLED_BACK = 4,
	NP_EXIT_INTERNAL = 5,
};

struct np_result {
	const char *verb;
	bool changed;
	bool converged;	   /* the plan was empty at the end */
	enum np_exit exit; /* set where the verb ended early; else by np_result_finish */
	struct np_actions actions;
	struct np_checks checks;
	json_t *selftest;    /* array of the rungs' entries; NULL = none ran */
	json_t *show;	     /* object; NULL = not a show */
	struct np_err error; /* num 0 = none */
};

void np_result_done(struct np_result *r);
#define np_auto_result np_auto(np_result_done)

/* No check and no rung failed, and the plan was empty. */
bool np_result_ready(const struct np_result *r);

#endif
