/* SPDX-License-Identifier: MIT */
#include "agent/libraries.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/json_text.h"

#define LIST_MAX 2048

const char *const np_library_names[] = { "ucx", "cuda", "gdrapi", "nccl", "ibverbs", "nvml", NULL };
const char *const np_library_names_brief[] = { "ucx", "cuda", "gdrapi", NULL };
const char *const np_library_names_nvlink[] = { "ucx", "cuda", "gdrapi", "nvml", NULL };

/* ---- one member ---- */

enum kind { TEXT, COUNT, FIGURE, FLAG, SIZE, WORD, TEXTS, OBJECT, LIST };

/* What an object must have. */
struct member {
	const char *key;
	enum kind kind;
	bool nullable;
	const char *const *words;    /* of WORD */
	const struct member *inside; /* of OBJECT and LIST; key NULL ends */
};

static json_t *take_object(const json_t *from, const struct member *members);

static bool is_one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(word, *words) == 0)
			return true;
	return false;
}

static bool are_lines(const json_t *list)
{
	const json_t *item;
	size_t i;

	if (!json_is_array(list) || json_array_size(list) > LIST_MAX)
		return false;
	json_array_foreach (list, i, item)
		if (!np_json_is_line(item))
			return false;
	return true;
}

static bool is_plain(const json_t *value, const struct member *m)
{
	switch (m->kind) {
	case TEXT:
		return np_json_is_line(value);
	case WORD:
		return json_is_string(value) && is_one_of(json_string_value(value), m->words);
	case COUNT:
		return json_is_integer(value) && json_integer_value(value) >= 0;
	case FIGURE:
		return json_is_number(value) && isfinite(json_number_value(value)) &&
		       json_number_value(value) >= 0;
	case FLAG:
		return json_is_boolean(value);
	case SIZE:
		return json_is_integer(value) ?
			       json_integer_value(value) > 0 :
			       json_is_string(value) &&
				       strcmp(json_string_value(value), "unlimited") == 0;
	case TEXTS:
		return are_lines(value);
	default:
		return false;
	}
}

static json_t *take_list(const json_t *from, const struct member *members)
{
	json_t *list;
	const json_t *item;
	size_t i;

	if (!json_is_array(from) || json_array_size(from) > LIST_MAX)
		return NULL;
	list = json_array();
	json_array_foreach (from, i, item) {
		if (json_array_append_new(list, take_object(item, members)) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *take_member(json_t *value, const struct member *m)
{
	if (json_is_null(value))
		return m->nullable ? json_null() : NULL;
	if (m->kind == OBJECT)
		return take_object(value, m->inside);
	if (m->kind == LIST)
		return take_list(value, m->inside);
	return is_plain(value, m) ? json_incref(value) : NULL;
}

/* NULL when a member is missing or wrong; what is not asked for is left behind. */
static json_t *take_object(const json_t *from, const struct member *members)
{
	json_t *to = json_is_object(from) ? json_object() : NULL;

	for (; to && members->key; members++)
		if (json_object_set_new(to, members->key,
					take_member(json_object_get(from, members->key), members)) <
		    0) {
			json_decref(to);
			return NULL;
		}
	return to;
}

/* ---- the schema ---- */

static const char *const statuses[] = { "loaded", "absent", "unusable", "unknown", NULL };
static const char *const verdict_words[] = { "usable", "built without", "device not usable",
					     "not tried", NULL };
static const char *const transport_words[] = { "rc",	   "cuda_copy", "cuda_ipc",
					       "gdr_copy", "tcp",	NULL };
static const char *const types[] = { "network", "intra-node", "accelerator", "loopback", NULL };
static const char *const backends[] = { "gdrdrv", "dma-buf", NULL };

static const struct member limits[] = {
	{ "short", SIZE, true, NULL, NULL },
	{ "bcopy", SIZE, true, NULL, NULL },
	{ "zcopy", SIZE, true, NULL, NULL },
	{ NULL, 0, false, NULL, NULL },
};

static const struct member transport[] = {
	{ "transport", TEXT, false, NULL, NULL },
	{ "device", TEXT, false, NULL, NULL },
	{ "memory_domain", TEXT, true, NULL, NULL },
	{ "type", WORD, true, types, NULL },
	{ "bandwidth_MBps", FIGURE, true, NULL, NULL },
	{ "shared_MBps", FIGURE, true, NULL, NULL },
	{ "latency_ns", FIGURE, true, NULL, NULL },
	{ "latency_per_ep_ns", FIGURE, true, NULL, NULL },
	{ "overhead_ns", FIGURE, true, NULL, NULL },
	{ "put", OBJECT, true, NULL, limits },
	{ "get", OBJECT, true, NULL, limits },
	{ "am", OBJECT, true, NULL, limits },
	{ "priority", COUNT, true, NULL, NULL },
	{ "error_handling", TEXTS, true, NULL, NULL },
	{ "failure", TEXT, true, NULL, NULL },
	{ NULL, 0, false, NULL, NULL },
};

static const struct member memory_domain[] = {
	{ "name", TEXT, false, NULL, NULL },
	{ "component", TEXT, true, NULL, NULL },
	{ "register", SIZE, true, NULL, NULL },
	{ "allocate", SIZE, true, NULL, NULL },
	{ "rkey_bytes", COUNT, true, NULL, NULL },
	{ "register_types", TEXTS, true, NULL, NULL },
	{ "access_types", TEXTS, true, NULL, NULL },
	{ "failure", TEXT, true, NULL, NULL },
	{ NULL, 0, false, NULL, NULL },
};

static const struct member verdict[] = {
	{ "transport", WORD, false, transport_words, NULL },
	{ "status", WORD, false, verdict_words, NULL },
	{ "reason", TEXT, true, NULL, NULL },
	{ NULL, 0, false, NULL, NULL },
};

static const struct member ucx[] = {
	{ "built_against", TEXT, false, NULL, NULL },
	{ "exact", FLAG, false, NULL, NULL },
	{ "components", TEXTS, false, NULL, NULL },
	{ "verdicts", LIST, false, NULL, verdict },
	{ "memory_domains", LIST, false, NULL, memory_domain },
	{ "transports", LIST, false, NULL, transport },
	{ NULL, 0, false, NULL, NULL },
};

static const struct member gdrapi[] = {
	{ "min_driver_version", TEXT, false, NULL, NULL },
	{ "driver_version", TEXT, true, NULL, NULL },
	{ "min_library_version", TEXT, true, NULL, NULL },
	{ "backend", WORD, true, backends, NULL },
	{ "standin", FLAG, false, NULL, NULL },
	{ NULL, 0, false, NULL, NULL },
};

static const struct member nvlink_peer[] = {
	{ "pci_address", TEXT, false, NULL, NULL },
	{ "links", COUNT, true, NULL, NULL },
	{ NULL, 0, false, NULL, NULL },
};

static const struct member nvlink_gpu[] = {
	{ "pci_address", TEXT, false, NULL, NULL },
	{ "active", COUNT, true, NULL, NULL },
	{ "peers", LIST, false, NULL, nvlink_peer },
	{ NULL, 0, false, NULL, NULL },
};

static const struct member nvml[] = {
	{ "nvlink", FLAG, true, NULL, NULL },
	{ "gpus", LIST, false, NULL, nvlink_gpu },
	{ NULL, 0, false, NULL, NULL },
};

static const struct member library[] = {
	{ "name", WORD, false, np_library_names, NULL },
	{ "status", WORD, false, statuses, NULL },
	{ "path", TEXT, true, NULL, NULL },
	{ "version", TEXT, true, NULL, NULL },
	{ "code", TEXT, true, NULL, NULL },
	{ "message", TEXT, true, NULL, NULL },
	{ "hint", TEXT, true, NULL, NULL },
	{ "ucx", OBJECT, true, NULL, ucx },
	{ "gdrapi", OBJECT, true, NULL, gdrapi },
	{ "nvml", OBJECT, true, NULL, nvml },
	{ NULL, 0, false, NULL, NULL },
};

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* What the schema asks beyond the members. */
static bool is_consistent(const json_t *one, const char *name)
{
	const char *code = text_of(one, "code");
	bool loaded = np_streq(text_of(one, "status"), "loaded");
	bool has_ucx = json_is_object(json_object_get(one, "ucx"));
	bool has_nvml = json_is_object(json_object_get(one, "nvml"));
	bool has_gdrapi = json_is_object(json_object_get(one, "gdrapi"));

	if (!np_streq(text_of(one, "name"), name) || (code && !np_json_is_code(code)) ||
	    (!code != !text_of(one, "message")))
		return false;
	if (!loaded && !code)
		return false;
	if (has_ucx != (loaded && np_streq(name, "ucx")))
		return false;
	if (has_nvml != (loaded && np_streq(name, "nvml")))
		return false;
	return !has_gdrapi || np_streq(name, "gdrapi");
}

static json_t *take_libraries(const json_t *from, const char *const *names)
{
	json_t *list = json_array();
	size_t n = 0;

	for (bool good = json_is_array(from); list && good && names[n]; n++) {
		json_t *one = take_object(json_array_get(from, n), library);

		good = one && is_consistent(one, names[n]);
		if (!good || json_array_append(list, one) < 0)
			good = false;
		json_decref(one);
		if (!good)
			break;
	}
	if (!names[n] && n > 0 && json_array_size(from) == n)
		return list;
	json_decref(list);
	return NULL;
}

json_t *np_libraries_take(const char *text, size_t len, const char *const *names)
{
	json_error_t error;
	json_t *doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
	json_t *list =
		take_libraries(json_object_get(json_object_get(doc, "show"), "libraries"), names);

	json_decref(doc);
	return list;
}

json_t *np_libraries_unknown(const char *const *names, const struct np_err *why)
{
	json_t *list = json_array();

	for (; list && *names; names++) {
		json_t *one = json_pack("{s:s, s:s, s:n, s:n, s:s, s:s, s:s, s:n, s:n, s:n}",
					"name", *names, "status", "unknown", "path", "version",
					"code", why->code[0] ? why->code : "internal", "message",
					why->message, "hint", why->hint, "ucx", "gdrapi", "nvml");

		if (json_array_append_new(list, one) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

/* ---- what the plan and the judgement look at ---- */

/* "13.3" */
static bool parse_version(const char *text, uint64_t *major, uint64_t *minor)
{
	char copy[32], *dot;

	if (!text || !np_strcpy(copy, sizeof(copy), text))
		return false;
	dot = strchr(copy, '.');
	if (!dot)
		return false;
	*dot = '\0';
	return np_parse_u64(copy, 10, 10000, major) == 0 &&
	       np_parse_u64(dot + 1, 10, 99, minor) == 0;
}

static void learn_transports(const json_t *verdicts, struct np_libraries *out)
{
	const json_t *v;
	size_t i;

	json_array_foreach (verdicts, i, v) {
		struct np_library_transport *t = &out->transports[out->n_transports];
		const char *status = text_of(v, "status"), *reason = text_of(v, "reason");

		if (out->n_transports == NP_LIBRARY_TRANSPORTS)
			return;
		out->n_transports++;
		np_strcpy(t->name, sizeof(t->name), text_of(v, "transport"));
		t->built = !np_streq(status, "built without");
		t->missing = !t->built || np_streq(status, "device not usable");
		np_strcpy(t->reason, sizeof(t->reason), reason ? reason : "");
	}
}

void np_libraries_learn(const json_t *list, struct np_libraries *out)
{
	uint64_t major, minor;
	const json_t *one;
	size_t i;

	out->known = true;
	json_array_foreach (list, i, one) {
		const char *name = text_of(one, "name"), *path = text_of(one, "path");
		const char *version = text_of(one, "version");
		const json_t *object = json_object_get(one, name);

		if (np_streq(text_of(one, "status"), "unknown")) {
			out->known = false;
			np_err_set(&out->err, -EIO, text_of(one, "code"), "%s",
				   text_of(one, "message"));
			np_err_hint(&out->err, "%s",
				    text_of(one, "hint") ? text_of(one, "hint") : "");
		} else if (np_streq(name, "ucx")) {
			np_strcpy(out->ucx_path, sizeof(out->ucx_path), path ? path : "");
			np_strcpy(out->ucx_version, sizeof(out->ucx_version),
				  version ? version : "");
			learn_transports(json_object_get(object, "verdicts"), out);
		} else if (np_streq(name, "cuda") && parse_version(version, &major, &minor)) {
			out->cuda = (int)(major * 1000 + minor * 10);
		} else if (np_streq(name, "gdrapi") && parse_version(version, &major, &minor) &&
			   !json_is_true(json_object_get(object, "standin"))) {
			out->gdrapi = (uint32_t)(major << 16 | minor);
			np_strcpy(out->gdrapi_path, sizeof(out->gdrapi_path), path ? path : "");
		} else if (np_streq(name, "nvml")) {
			const json_t *nvlink = json_object_get(object, "nvlink");

			if (json_is_boolean(nvlink))
				out->nvlink = json_is_true(nvlink) ? NP_TRI_YES : NP_TRI_NO;
		}
	}
}
