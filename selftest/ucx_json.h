/* SPDX-License-Identifier: MIT */
#ifndef NP_SELFTEST_UCX_JSON_H
#define NP_SELFTEST_UCX_JSON_H

#include <jansson.h>

#include "selftest/ucx_view.h"

/* Lists of the schema's show.libraries[].ucx. New references; NULL when out of memory. */
json_t *np_ucx_json_transports(const struct np_ucx_view *view);
json_t *np_ucx_json_mds(const struct np_ucx_view *view);

#endif
