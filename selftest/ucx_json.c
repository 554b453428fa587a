/* SPDX-License-Identifier: MIT */
#include "selftest/ucx_json.h"

#include <math.h>

#include "selftest/document.h"

static json_t *size_or_word(uint64_t max)
{
	if (max == 0)
		return json_null();
	return max == NP_UCX_UNLIMITED ? json_string("unlimited") : json_integer((json_int_t)max);
}

/* A library that knows no figure says 0, infinite or no number at all. */
static json_t *figure(bool known, double value)
{
	return known && isfinite(value) && value >= 0 ? json_real(round(value * 1000) / 1000) :
							json_null();
}

static json_t *limits(bool known, const struct np_ucx_limits *l)
{
	if (!known)
		return json_null();
	return json_pack("{s:o, s:o, s:o}", "short", size_or_word(l->short_max), "bcopy",
			 size_or_word(l->bcopy_max), "zcopy", size_or_word(l->zcopy_max));
}

static json_t *words(bool known, const char *const *list)
{
	json_t *array;

	if (!known)
		return json_null();
	array = json_array();
	for (; *list; list++)
		json_array_append_new(array, np_document_text(*list));
	return array;
}

static json_t *text_or_null(const char *s)
{
	return s && *s ? np_document_text(s) : json_null();
}

static json_t *transport(const struct np_ucx_transport *t)
{
	bool known = t->opened;

	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"transport", np_document_text(t->name), "device", np_document_text(t->device),
		"memory_domain", text_or_null(t->md), "type", text_or_null(t->type),
		"bandwidth_MBps", figure(known, t->dedicated_MBps + t->shared_MBps), "shared_MBps",
		figure(known, t->shared_MBps), "latency_ns", figure(known, t->latency_ns),
		"latency_per_ep_ns", figure(known, t->latency_per_ep_ns), "overhead_ns",
		figure(known, t->overhead_ns), "put", limits(known, &t->put), "get",
		limits(known, &t->get), "am", limits(known, &t->am), "priority",
		known ? json_integer(t->priority) : json_null(), "error_handling",
		words(known, t->error_handling), "failure", text_or_null(t->failure));
}

json_t *np_ucx_json_transports(const struct np_ucx_view *view)
{
	json_t *list = json_array();

	for (size_t i = 0; i < view->n_transports; i++)
		if (json_array_append_new(list, transport(&view->transports[i])) < 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

static json_t *md_json(const struct np_ucx_md *md)
{
	bool known = md->opened;

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
			 np_document_text(md->name), "component", text_or_null(md->component),
			 "register", known ? size_or_word(md->register_max) : json_null(),
			 "allocate", known ? size_or_word(md->allocate_max) : json_null(),
			 "rkey_bytes",
			 known ? json_integer((json_int_t)md->rkey_bytes) : json_null(),
			 "register_types", words(known, md->register_types), "access_types",
			 words(known, md->access_types), "failure", text_or_null(md->failure));
}

json_t *np_ucx_json_mds(const struct np_ucx_view *view)
{
	json_t *list = json_array();

	for (size_t i = 0; i < view->n_mds; i++)
		if (json_array_append_new(list, md_json(&view->mds[i])) < 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}
