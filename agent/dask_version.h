/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_DASK_VERSION_H
#define NP_AGENT_DASK_VERSION_H

#include <stdbool.h>

/* Which Dask is installed, by the names of its packages' metadata folders (PEP 376,
 * NAME-VERSION.dist-info or .egg-info); no Python is run. */
struct np_dask_versions {
	bool looked;
	char distributed[32]; /* "2022.12.1"; "" = not there */
	char ucxx[32];	      /* distributed-ucxx, of whatever CUDA */
	char ucx_py[32];      /* its predecessor */
	char folder[256];     /* where distributed, or else one of the others, was found */
};

/* Looks in @prefix, or with "" where the system's Python has its packages. What cannot be
 * read is not there. */
void np_dask_versions_observe(const char *prefix, struct np_dask_versions *out);

/* One such name; takes what it knows of into @out. True when it was one of them. Pure. */
bool np_dask_versions_take(const char *name, struct np_dask_versions *out);

#endif
