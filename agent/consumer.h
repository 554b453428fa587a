/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_CONSUMER_H
#define NP_AGENT_CONSUMER_H

#include <jansson.h>

#include "agent/consumer_env.h"
#include "agent/facts.h"
#include "agent/result.h"

/*
 * A consumer of the configuration, and what it gets: a user's login shell, a systemd
 * unit, or a process. consumer_look*.c reads; consumer_rows.c and what it calls are pure.
 */

enum np_consumer_kind { NP_CONSUMER_USER, NP_CONSUMER_UNIT, NP_CONSUMER_PROCESS };

enum np_consumer_role {
	NP_TEXT_NCCL_USER, /* ~/.nccl.conf, or what NCCL_CONF_FILE names */
	NP_TEXT_NCCL_ETC,
	NP_TEXT_UCX,  /* a ucx.conf, in the order in which UCX reads them */
	NP_TEXT_DASK, /* of /etc/dask */
};

/* A file that was read. */
struct np_consumer_text {
	enum np_consumer_role role;
	char *path;
	struct np_buf text;
	bool not_conda;	 /* of UCX: a Conda environment's does not read it */
	bool not_system; /* of UCX: the system's does not read it */
	bool network_fs;
};

struct np_consumer_library {
	char name[24]; /* "libnccl" */
	char *path;
	char version[32]; /* by the name of its file; "" = not to be seen there */
};

struct np_consumer {
	enum np_consumer_kind kind;
	char name[160]; /* "user alice", "unit slurmd.service", "process 123 (python)" */
	pid_t pid;
	bool other_netns; /* it sees other netdevs than nodeprep */

	struct np_settings env;
	struct np_consumer_text *texts;
	size_t n_texts;
	struct np_consumer_library *libraries;
	size_t n_libraries;
	struct {
		bool known;
		struct np_memlock limit;
		char text[64]; /* as a unit has it, in place of limit */
		char source[NP_LIMIT_SOURCE];
		int line;
	} memlock;
	struct np_checks notes; /* what could not be read or told; target: a file */
};

/* What @user gets at login. -ENOENT with usage.user. */
int np_consumer_user(const char *user, struct np_consumer *out, struct np_err *err) np_must_check;
/* What the system unit @unit gets; ".service" may be left out. -ENOENT with
 * "show.no_unit". */
int np_consumer_unit(const char *unit, struct np_consumer *out, struct np_err *err) np_must_check;
/* What a running process has. -ESRCH with "show.no_process", -EACCES with
 * "show.process_denied". */
int np_consumer_process(pid_t pid, struct np_consumer *out, struct np_err *err) np_must_check;
/* For all three: @out is filled from scratch; np_consumer_done frees, also after a
 * failure. */
void np_consumer_done(struct np_consumer *c);
#define np_auto_consumer np_auto(np_consumer_done)

/* Adds to the array of show.config a row for each variable that is set anywhere, for the
 * four that decide on devices in any case, and for libraries, limits and notes. Returns 0
 * or -ENOMEM. */
int np_consumer_rows(const struct np_consumer *c, const struct np_facts *facts,
		     json_t *rows) np_must_check;
/* The rows for people. */
void np_consumer_rows_text(const json_t *rows, struct np_buf *out);

#endif
