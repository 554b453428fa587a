/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_DOCUMENT_H
#define NP_SELFTEST_DOCUMENT_H

#include "selftest/rung.h"

/* The JSON document of a report, one line with a newline. What was not measured
 * is null. @error (may be NULL) becomes the member "error". NULL when out of
 * memory; the caller frees. */
char *np_document(const struct np_rung_report *report, const struct np_err *error);

#endif
