/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_DOCUMENT_H
#define NP_SELFTEST_DOCUMENT_H

#include <jansson.h>

#include "selftest/rung.h"

/* The JSON document of a report, one line with a newline. What was not measured
 * is null. @error (may be NULL) becomes the member "error". NULL when out of
 * memory; the caller frees. */
char *np_document(const struct np_rung_report *report, const struct np_err *error);

/* The same of entries that are JSON already. Takes the references of @entries and of @error
 * (may be NULL). NULL when out of memory; the caller frees. */
char *np_document_of(json_t *entries, bool ready, json_t *error);

/* The document of --libraries; takes the reference of @libraries, a list (libraries.h).
 * NULL when that is NULL or out of memory; the caller frees. */
char *np_document_libraries(json_t *libraries);

/* A string that is valid UTF-8 whatever came from outside. New reference, or NULL. */
json_t *np_document_text(const char *s);

#endif
