/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_SHOW_H
#define NP_AGENT_SHOW_H

#include <jansson.h>

#include "agent/facts.h"

/* The facts as the JSON object `show`, and that object as text: one source. */

extern const char *const np_show_nouns[]; /* NULL-terminated */

/* Adds the member @noun ("ports", ...). @libraries: what np_libraries_show gave, with NVML, of
 * which topology takes NVLink; NULL = nobody was asked. Returns 0, -EINVAL (no such noun, or
 * "libraries", which is no fact: np_libraries_show) or -ENOMEM. */
int np_show_add(json_t *show, const char *noun, const struct np_config *cfg,
		const struct np_facts *facts, const json_t *libraries) np_must_check;

void np_show_text(const json_t *show, struct np_buf *out);

#endif
