/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_REPORT_H
#define NP_AGENT_REPORT_H

#include "agent/result.h"

/* The only code that prints to stdout. */

enum np_format { NP_FORMAT_TEXT, NP_FORMAT_JSON, NP_FORMAT_PROMETHEUS };

/* Prints @r. Returns 0, or -EIO when stdout could not be written (a full disk must
 * not look like success). */
int np_report(const struct np_result *r, enum np_format format) np_must_check;

/* The JSON document; new reference, NULL when out of memory. */
json_t *np_report_json(const struct np_result *r);

/* The text for people; @color: escape sequences for states. */
void np_report_text(const struct np_result *r, bool color, struct np_buf *out);

/* Prometheus text exposition format, version 0.0.4. */
void np_report_prometheus(const struct np_result *r, struct np_buf *out);

#endif
