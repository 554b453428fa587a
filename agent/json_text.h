/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_JSON_TEXT_H
#define NP_AGENT_JSON_TEXT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/str.h"

/* Text from outside on its way into a document: names of devices and processes, contents of
 * files, what a helper program says. */

/* A string; what is not UTF-8 is made printable. New reference; NULL when out of memory. */
json_t *np_json_text(const char *s);
/* The same; null for NULL and "". */
json_t *np_json_text_or_null(const char *s);
/* A list of such; NULL when out of memory. */
json_t *np_json_strv(const struct np_strv *list);

/* A copy in which each string is printable ASCII, np_printable's \xNN for the rest: fit to be
 * laid out as lines for people. New reference; NULL when out of memory. */
json_t *np_json_printable(const json_t *value);

/* Any bytes, in at most twice as many: {"text": ...}, or where they are not UTF-8 or full of
 * control characters {"hex": ...}. New reference; NULL when out of memory. */
json_t *np_json_bytes(const struct np_buf *bytes);
/* Adds what np_json_bytes made to @out. Returns 0, -EINVAL or -ENOMEM. */
int np_json_take_bytes(const json_t *object, struct np_buf *out) np_must_check;

/* A string of one line: not empty, at most 700 bytes, no control characters. */
bool np_json_is_line(const json_t *value);

/* A code as the schema has it: "selftest.rc.no_port". */
bool np_json_is_code(const char *s);

#endif
