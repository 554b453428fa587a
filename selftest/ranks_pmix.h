/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_RANKS_PMIX_H
#define NP_SELFTEST_RANKS_PMIX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

/*
 * PMIx, as little of it as there is in every launcher: values of a rank, fences, look-ups,
 * abort. Nothing here waits without end: what the server answers later sets a flag and
 * writes to an eventfd, and the caller waits for that beside everything else.
 */

/* True when a launcher with PMIx started this process. */
bool np_pmix_launched(void);

/* Returns 0 or a negative errno with message (code ranks.pmix). @wake: an eventfd that is
 * written to when something has been answered. */
int np_pmix_open(int wake, int *rank, int *size, struct np_err *err) np_must_check;
/* Ranks of this node, and which of them this one is; 0 and 1 when the launcher does not say. */
void np_pmix_local(int *local_rank, int *local_size);
/* The host of a rank by the launcher's word; "" = it does not say. */
void np_pmix_host(int rank, char *out, size_t size);
void np_pmix_close(void);

/* Gives a value to whoever asks for @key of this rank. 0 or a negative errno with message. */
int np_pmix_put(const char *key, const void *data, size_t len, struct np_err *err) np_must_check;

/* Starts a fence over all ranks; @collect: what they put is on every node when it ends.
 * *@state: 1 while it lasts, then 0 or a negative errno. It must live until then. */
int np_pmix_fence(bool collect, _Atomic int *state, struct np_err *err) np_must_check;

/* One value of one rank. *@state: 1 while it is asked for; then 0 (@out has it), -ENOENT (it
 * gave none yet), or another negative errno. At most one at a time for each; it must live until
 * then. @first: before others that wait for their turn. Returns 0, or what the state is. */
struct np_pmix_look {
	_Atomic int state;
	struct np_buf out;
};
int np_pmix_look(int rank, const char *key, bool first, struct np_pmix_look *look);

/* Starts look-ups whose turn has come. To be called after each wake. */
void np_pmix_go_on(void);
/* True when this PMIx can take but one look-up at a time: one for a value that is not there yet
 * holds up the others for up to two seconds. */
bool np_pmix_one_at_a_time(void);

/* Ends all processes of the job with @status. Returns when the launcher was told. */
void np_pmix_abort(int status, const char *message);

#endif
