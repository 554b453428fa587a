/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_ACTION_FIELDS_H
#define NP_AGENT_ACTION_FIELDS_H

#include <jansson.h>

#include "base/str.h"

/* Members of an action's JSON object (action_json.c). What is encoded here is read back the
 * same. encode: new reference, NULL when out of memory. decode: 0, -ENOMEM, or -EINVAL for what
 * cannot have been written here; outputs are untouched then, but for those of text. Bytes are
 * json_text.h's. */

/* A name from outside: a string, where that is not UTF-8 its bytes in hex, or null. Decoding:
 * *out is new, and stays NULL for null or no member. */
json_t *np_encode_text(const char *s);
int np_decode_text(const json_t *object, const char *key, char **out) np_must_check;

/* The same into a field of fixed size; a value that does not fit is -EINVAL. */
int np_decode_name(const json_t *object, const char *key, char *out, size_t size) np_must_check;

/* A whole number from 0 to @max. */
int np_decode_number(const json_t *object, const char *key, json_int_t max,
		     json_int_t *out) np_must_check;
int np_decode_u32(const json_t *object, const char *key, uint32_t *out) np_must_check;

int np_decode_bool(const json_t *object, const char *key, bool *out) np_must_check;

#endif
