/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_CONSUMER_LOOK_H
#define NP_AGENT_CONSUMER_LOOK_H

#include "agent/consumer.h"
#include "agent/shell_scan.h"

/* What the three readers of consumers share. */

#define NP_CONSUMER_FILE_MAX (256 * 1024)

/* By whose rights files are read that are not the system's own. */
struct np_reader {
	struct np_consumer *consumer; /* its notes get what cannot be read */
	const char *user;
	uid_t uid;
	gid_t gid;
	const char *home; /* by the password database */
	const char *root; /* in front of every path: "" or /proc/PID/root */
};

/* Reads a regular file of at most NP_CONSUMER_FILE_MAX bytes: one of /etc, /usr and /run
 * as the caller, one right in the home by target_file.h, any other by the identity of the
 * user. What is there and cannot be read gets a note. Returns 0 or a negative errno. */
int np_reader_read(const struct np_reader *r, const char *path, struct np_buf *out);
/* The functions of np_scan_files, with a struct np_reader as their argument. */
extern const struct np_scan_files np_reader_files;

/* What a login shell of r->user sets, @shell by the password database: /etc/environment and
 * the scripts that it reads, into the consumer's env. Nothing of it is run. */
void np_consumer_login(const struct np_reader *r, const char *shell);

/* Adds a note, status unknown, code consumer.unread. */
void np_consumer_note(struct np_consumer *c, const char *target, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Reads the files of NCCL, UCX and Dask that a process with c->env, that home and that
 * working directory reads. @ucx_lib: directory of the UCX that it has loaded, NULL = not
 * known. @old_nccl: NCCL_CONF_FILE is nothing to it. Returns 0 or -ENOMEM. */
int np_consumer_read_texts(const struct np_reader *r, const char *cwd, const char *ucx_lib,
			   bool old_nccl) np_must_check;

#endif
