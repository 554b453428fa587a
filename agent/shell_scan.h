/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_SHELL_SCAN_H
#define NP_AGENT_SHELL_SCAN_H

#include "agent/consumer_env.h"

/*
 * Which variables the scripts of a login shell set, told without running anything: sh
 * scripts are read with the conditions, loops and expansions that profile scripts are
 * made of. What depends on more than these files (a command's output, the terminal) makes
 * a value opaque or a setting a maybe. Pure but for the files, which the caller reads.
 */

enum np_shell { NP_SHELL_SH, NP_SHELL_BASH, NP_SHELL_ZSH, NP_SHELL_CSH, NP_SHELL_TCSH };

/* How the scan gets at files. */
struct np_scan_files {
	/* Contents of @path; 0 or a negative errno (-ENOENT: none) */
	int (*read)(void *arg, const char *path, struct np_buf *out);
	/* 1 it exists, 0 it does not, -1 unknown */
	int (*exists)(void *arg, const char *path);
	/* names in the directory @path; 0 or a negative errno */
	int (*list)(void *arg, const char *path, struct np_strv *out);
	/* something of @file:@line was not followed; may be NULL */
	void (*note)(void *arg, const char *file, int line, const char *what);
	void *arg;
};

struct np_scan_spec {
	enum np_shell shell;
	const char *user, *home; /* HOME, USER, LOGNAME */
	const struct np_scan_files *files;
};

/* Scans @path as the shell would source it, and what it sources, after what @settings have
 * already. @certain false: the shell may not read it (interactive ones alone). Everything
 * that was lost for want of memory or by a limit is in settings->failed. Returns 0, or
 * -ENOENT and the like when @path cannot be read. */
int np_shell_scan(const struct np_scan_spec *spec, const char *path, bool certain,
		  struct np_settings *settings);

/* What a login of csh or tcsh (spec->shell) gets: /etc/csh.cshrc, /etc/csh.login, ~/.tcshrc
 * or ~/.cshrc, ~/.login, read in the same manner. */
void np_csh_scan_login(const struct np_scan_spec *spec, struct np_settings *settings);

#endif
