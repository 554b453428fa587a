/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_UCX_PREFIX_H
#define NP_AGENT_UCX_PREFIX_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/helper.h"
#include "base/cleanup.h"
#include "base/err.h"

/*
 * --ucx-prefix DIR: the UCX of a Conda environment, of HPC-X or of a build of one's own
 * for the self-test, in place of the one that is installed.
 */

/* The library path for @dir in @out: its lib or lib64, whichever has libucp.so.0.
 * @as_root: the rungs run as root, so that its lib, the ucx in there, the shared objects in
 * both, whatever they link to, and all folders above must be root's and writable by nobody
 * else (above, a sticky folder such as /tmp will do).
 * Returns 0; -EINVAL with usage.ucx_prefix (not absolute, a colon in it, no UCX there);
 * -EACCES with selftest.prefix_unsafe. */
int np_ucx_prefix_path(const char *dir, bool as_root, char *out, size_t size,
		       struct np_err *err) np_must_check;

/* Does the dynamic linker take UCX from there for the user of @helper? It passes over what
 * that user cannot read and what is for another machine, and takes the installed one. Asks
 * nodeprep-selftest, with @library_path as above and the LD_* of @env (may be NULL). Returns
 * 0; -EINVAL with usage.ucx_prefix; the error of np_helper_run. */
int np_ucx_prefix_try(const struct np_helper *helper, const char *library_path,
		      const struct np_strv *env, struct np_err *err) np_must_check;

#endif
