/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_EARLY_H
#define NP_SELFTEST_EARLY_H

/*
 * UCX reads UCX_* and its configuration files ($HOME/ucx.conf, ./ucx.conf) when
 * it is loaded, before main, and writes its log to stdout. So np_early, which main.c
 * puts before every library's constructor, takes UCX_* and HOME out of the
 * environment (and what NCCL, CUDA and gdrcopy would read later: NCCL_*, CUDA_*,
 * GDRCOPY_*), leaves a directory that holds a ucx.conf, and lets stdout be stderr
 * for everybody but the report.
 */
void np_early(int argc, char **argv, char **envp);

/* Where the report goes: the stdout that this program was started with. */
int np_early_stdout(void);

/* True for an environment entry ("NAME=VALUE") that is taken out. */
int np_early_dropped(const char *entry);

/* Takes those entries out of @envp in place; returns how many. */
int np_early_clean(char **envp);

#endif
