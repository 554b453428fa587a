/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_SHOW_HELP_H
#define NP_AGENT_SHOW_HELP_H

#include <jansson.h>

#include "agent/facts.h"
#include "agent/json_text.h"
#include "base/str.h"

/* What the files behind show.h share. New references; NULL when out of memory. */

json_t *np_show_modules(const struct np_facts *facts);
json_t *np_show_gpus(const struct np_facts *facts);
/* Needs np_observe_pci. @libraries as in np_show_add. */
json_t *np_show_topology(const struct np_config *cfg, const struct np_facts *facts,
			 const json_t *libraries);
void np_show_topology_text(const json_t *list, struct np_buf *out);

/* The text of "libraries": a line a library, and of UCX a table as ucx_info -d has it. */
void np_show_text_libraries(const json_t *list, struct np_buf *out);

#endif
