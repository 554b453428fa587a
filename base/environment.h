/* SPDX-License-Identifier: MIT */
#ifndef NP_BASE_ENVIRONMENT_H
#define NP_BASE_ENVIRONMENT_H

/* To be called first of all. Where the process is root's, leaves SUDO_USER, TERM and
 * NO_COLOR (all that nodeprep itself reads) in the environment and removes the rest, before
 * any library reads it: RES_OPTIONS, GCONV_PATH, HOSTALIASES. Where the dynamic linker, the C
 * library or libnl have read theirs by now (LD_*, GLIBC_TUNABLES, MALLOC_*, NLDBG, NLCB), the program
 * is started anew without them; if that fails it goes on. An ordinary user's environment is
 * the user's own. */
void np_environment_clean(char **argv);

#endif
