/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_CONSUMER_ENV_H
#define NP_AGENT_CONSUMER_ENV_H

#include "base/str.h"

/*
 * Who sets which variable: every assignment that a file, a unit or a process makes, in
 * the order in which they work, with file and line. Pure: text in, list out.
 */

enum np_setting_state {
	NP_SETTING_TAKEN,
	NP_SETTING_MAYBE,   /* under a condition that cannot be told from here */
	NP_SETTING_SKIPPED, /* under a condition that is not met: a value that was there stays */
};

struct np_setting {
	char *name;
	char *value; /* NULL: it is taken away */
	char *file;
	int line; /* 0: the file has none, as the environment of a process */
	enum np_setting_state state;
	bool opaque;   /* the value is not known; it is as the file has it */
	bool is_local; /* a shell's own variable, which its programs do not get */
};

struct np_settings {
	struct np_setting *v;
	size_t n;
	bool failed; /* out of memory, or over NP_SETTINGS_MAX: one was lost */
};

/* A hostile file may go round in loops. */
#define NP_SETTINGS_MAX 2048

/* Adds a copy; @value NULL takes the variable away. NULL when it was lost. */
struct np_setting *np_settings_add(struct np_settings *list, const char *name, const char *value,
				   const char *file, int line, enum np_setting_state state);
void np_settings_done(struct np_settings *list);
#define np_auto_settings np_auto(np_settings_done)

/* The setting that is in force: the last one that is taken. NULL: none, or the variable
 * was taken away; then *unset, where given, is it. */
const struct np_setting *np_settings_find(const struct np_settings *list, const char *name,
					  const struct np_setting **unset);
/* Its value, known for sure. NULL: not set, not known, or a shell's own. */
const char *np_settings_value(const struct np_settings *list, const char *name);

/* /etc/environment, as pam_env reads it (Linux-PAM 1.5: pam_env.c, _parse_env_file):
 * [export] NAME=VALUE, one pair of quotes around the value, '#' starts a comment. */
void np_settings_pam_env(struct np_settings *list, const char *file, const char *text, size_t len);

/* A systemd EnvironmentFile= (systemd.exec(5); src/basic/env-file.c): comments start with
 * '#' or ';', values may be quoted, a backslash at the end joins lines. */
void np_settings_env_file(struct np_settings *list, const char *file, const char *text, size_t len);

/* /proc/PID/environ: NAME=VALUE, each ended by a NUL byte. Of a name that stands there
 * twice getenv(3) takes the first. */
void np_settings_environ(struct np_settings *list, const char *file, const char *data, size_t len);

/* UCX_*, NCCL_* or DASK_*: what is shown. */
bool np_setting_matters(const char *name);

/* Variables by which libraries are found: LD_LIBRARY_PATH, and where NCCL, UCX, CUDA and
 * the like are installed. NULL ends. A login starts without them. */
extern const char *const np_library_variables[];
bool np_setting_finds_libraries(const char *name);

#endif
