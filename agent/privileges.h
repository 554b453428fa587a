/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_PRIVILEGES_H
#define NP_AGENT_PRIVILEGES_H

#include "agent/action.h"
#include "agent/cli.h"

/* What a run of root may do, less from stage to stage. For an ordinary user all of this
 * changes nothing but that no program started gains rights. None of it can fail a run:
 * where something cannot be given up it is kept. */

/* Before the configuration is read: what the verb can need, and no new privileges. */
void np_privileges_begin(const struct np_cli *cli);

/* It is read, and the root directory is what --root says: that may not be left again. */
void np_privileges_configured(const struct np_cli *cli);

/* Nothing new will be changed: what the judgement, the self-test and taking @done back need. */
void np_privileges_settle(const struct np_actions *done);

/* The result is known: no capability at all, and the filter NP_CONFINE_REPORT. Only
 * printing, freeing and the end of the process may follow. */
void np_privileges_end(void);

#endif
