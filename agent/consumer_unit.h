/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_CONSUMER_UNIT_H
#define NP_AGENT_CONSUMER_UNIT_H

#include "agent/consumer_env.h"

/* The lines of a systemd unit that decide on a service's environment. Pure. */

/* An EnvironmentFile=; the environment of a service is made of Environment= first, then
 * of these in order, then UnsetEnvironment= takes away (systemd.exec(5)). */
struct np_unit_file {
	char *path; /* without the '-' that lets it be absent */
	bool may_lack;
	char *from; /* the file that names it */
	int line;
};

struct np_unit {
	struct np_settings env; /* of Environment= */
	struct np_unit_file *files;
	size_t n_files;
	struct np_settings unset; /* of UnsetEnvironment=: names, or NAME=VALUE with a value */
	struct np_strv pass;	  /* PassEnvironment= */
	char *user, *directory, *memlock; /* User=, WorkingDirectory=, LimitMEMLOCK=; or NULL */
	char *memlock_file;
	int memlock_line;
	bool failed; /* out of memory */
	/* something that is not worked out; may be NULL */
	void (*note)(void *arg, const char *file, int line, const char *what);
	void *arg;
};

/* What %i, %n and their kin stand for. */
struct np_unit_names {
	const char *unit;	 /* "dask-worker@3.service" */
	const char *host, *home; /* NULL: not known */
};

/* Adds the [Service] section of one file of the unit: the unit itself first, then its
 * drop-ins. */
void np_unit_parse(struct np_unit *unit, const struct np_unit_names *names, const char *file,
		   const char *text, size_t len);
void np_unit_done(struct np_unit *unit);

/* The same for DefaultEnvironment= of system.conf. */
void np_unit_parse_defaults(struct np_unit *unit, const char *file, const char *text, size_t len);

#endif
