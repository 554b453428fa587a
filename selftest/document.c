/* SPDX-License-Identifier: MIT */
#include "selftest/document.h"

#include <jansson.h>
#include <math.h>

#ifndef NP_VERSION
#define NP_VERSION "0"
#endif

static const char *status_str(enum np_rung_status status)
{
	switch (status) {
	case NP_RUNG_OK:
		return "ok";
	case NP_RUNG_WARN:
		return "warn";
	case NP_RUNG_SKIP:
		return "skip";
	default:
		return "fail";
	}
}

/* To three places: finer is noise. */
static json_t *rounded(double value)
{
	return json_real(round(value * 1000) / 1000);
}

json_t *np_document_text(const char *s)
{
	char shown[4 * 640 + 1];
	json_t *value = json_string(s);

	return value ? value : json_string(np_printable(s, shown, sizeof(shown)));
}

/* No rung moves data at 0 bytes a second: it did not measure that. */
static json_t *bandwidth(const struct np_rung_size *size)
{
	return size->bandwidth_MBps > 0 ? rounded(size->bandwidth_MBps) : json_null();
}

static json_t *size_json(const struct np_rung_size *size)
{
	return json_pack("{s:I, s:o, s:o}", "size_bytes", (json_int_t)size->size_bytes,
			 "latency_us", rounded(size->latency_us), "bandwidth_MBps",
			 bandwidth(size));
}

/* Only where counters were looked at. */
static void add_counters(const struct np_rung_result *result, json_t *entry)
{
	const struct np_port_growth *growth = &result->growth;

	if (growth->known)
		json_object_set_new(entry, "counters",
				    json_pack("{s:I, s:I, s:I}", "xmit_bytes",
					      (json_int_t)growth->xmit, "rcv_bytes",
					      (json_int_t)growth->rcv, "moved_bytes",
					      (json_int_t)growth->moved));
}

static json_t *result_json(const struct np_rung_result *result)
{
	size_t n = result->n_sizes;
	json_t *sizes = json_array(), *entry;

	for (size_t i = 0; i < n; i++)
		json_array_append_new(sizes, size_json(&result->sizes[i]));
	entry = json_pack("{s:s, s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "rung",
			  result->rung, "device", np_document_text(result->device), "transport",
			  np_document_text(result->transport), "status", status_str(result->status),
			  "code", result->code, "message", np_document_text(result->message),
			  "hint", np_document_text(result->hint), "size_bytes",
			  n ? json_integer((json_int_t)result->sizes[n - 1].size_bytes) :
			      json_null(),
			  "latency_us", n ? rounded(result->sizes[0].latency_us) : json_null(),
			  "bandwidth_MBps", n ? bandwidth(&result->sizes[n - 1]) : json_null(),
			  "sizes", sizes);
	if (entry)
		add_counters(result, entry);
	return entry;
}

/* One line; takes the reference. */
static char *line_of(json_t *document)
{
	char *out = NULL, *line = NULL;

	if (document)
		out = json_dumps(document, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(12));
	json_decref(document);
	if (out)
		line = np_asprintf("%s\n", out);
	free(out);
	return line;
}

char *np_document_of(json_t *entries, bool ready, json_t *error)
{
	json_t *document = json_pack("{s:i, s:s, s:s, s:b, s:b, s:[], s:[], s:o}", "schema", 1,
				     "verb", "selftest", "version", NP_VERSION, "changed", 0,
				     "ready", ready, "actions", "checks", "selftest", entries);

	if (document && error)
		json_object_set(document, "error", error);
	json_decref(error);
	return line_of(document);
}

char *np_document(const struct np_rung_report *report, const struct np_err *error)
{
	json_t *list = json_array(), *what = NULL;

	for (size_t i = 0; i < report->n; i++)
		json_array_append_new(list, result_json(&report->v[i]));
	if (error)
		what = json_pack("{s:s, s:o, s:o}", "code", error->code, "message",
				 np_document_text(error->message), "hint",
				 np_document_text(error->hint));
	return np_document_of(list, !error && np_rung_report_ok(report), what);
}

char *np_document_libraries(json_t *libraries)
{
	if (!libraries)
		return NULL;
	return line_of(json_pack("{s:i, s:s, s:s, s:b, s:b, s:[], s:[], s:[], s:{s:o}}", "schema",
				 1, "verb", "show", "version", NP_VERSION, "changed", 0, "ready", 1,
				 "actions", "checks", "selftest", "show", "libraries", libraries));
}
