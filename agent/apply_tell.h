/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_APPLY_TELL_H
#define NP_AGENT_APPLY_TELL_H

#include "agent/result.h"

/* Puts what failed without ending the run into the checks, once they are there: why a module
 * did not load is better told by the attempt, and a file that could not be written, though
 * nothing spoke against it before, is a failed check. */
void np_tell_failures(struct np_result *result);

#endif
