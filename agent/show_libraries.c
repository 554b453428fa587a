/* SPDX-License-Identifier: MIT */
/* `show libraries` for people: the essence of ucx_info -d, and the other libraries. */
#include <stdio.h>
#include <string.h>

#include "agent/show_help.h"

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* "8K", "64K", "inf", "-": whole binary units, as ucx_info prints them. */
static const char *size_str(const json_t *value, char out[24])
{
	static const char units[] = { '\0', 'K', 'M', 'G', 'T' };
	json_int_t n = json_integer_value(value);
	size_t unit = 0;

	if (!json_is_integer(value)) {
		snprintf(out, 24, "%s", json_is_string(value) ? "inf" : "-");
		return out;
	}
	while (unit + 1 < sizeof(units) && n >= 1024 && n % 1024 == 0) {
		n /= 1024;
		unit++;
	}
	snprintf(out, 24, "%lld%.1s", (long long)n, &units[unit]);
	return out;
}

/* "8K/8K/64K": short, bcopy, zcopy */
static const char *limits_str(const json_t *limits, char out[80])
{
	char s[24], b[24], z[24];

	if (json_is_null(limits))
		snprintf(out, 80, "?");
	else
		snprintf(out, 80, "%s/%s/%s", size_str(json_object_get(limits, "short"), s),
			 size_str(json_object_get(limits, "bcopy"), b),
			 size_str(json_object_get(limits, "zcopy"), z));
	return out;
}

static const char *figure_str(const json_t *value, char out[32])
{
	if (json_is_number(value))
		snprintf(out, 32, "%.0f", json_number_value(value));
	else
		snprintf(out, 32, "?");
	return out;
}

static void add_words(const json_t *list, struct np_buf *out)
{
	const json_t *word;
	size_t i;

	if (!json_is_array(list))
		np_buf_str(out, "?");
	else if (json_array_size(list) == 0)
		np_buf_str(out, "-");
	json_array_foreach (list, i, word)
		np_buf_printf(out, "%s%s", i ? ", " : "", json_string_value(word));
}

static void add_transport(const json_t *t, struct np_buf *out)
{
	char bandwidth[32], latency[32], overhead[32], priority[32], put[80], get[80], am[80];
	const char *failure = text_of(t, "failure");

	np_buf_printf(out, "\t%-12s %-16s ", text_of(t, "transport"), text_of(t, "device"));
	if (failure) {
		np_buf_printf(out, "cannot be opened: %s\n", failure);
		return;
	}
	np_buf_printf(out, "%9s %8s %8s %4s  %-16s %-16s %-16s ",
		      figure_str(json_object_get(t, "bandwidth_MBps"), bandwidth),
		      figure_str(json_object_get(t, "latency_ns"), latency),
		      figure_str(json_object_get(t, "overhead_ns"), overhead),
		      figure_str(json_object_get(t, "priority"), priority),
		      limits_str(json_object_get(t, "put"), put),
		      limits_str(json_object_get(t, "get"), get),
		      limits_str(json_object_get(t, "am"), am));
	add_words(json_object_get(t, "error_handling"), out);
	np_buf_str(out, "\n");
}

static void add_domain(const json_t *md, struct np_buf *out)
{
	const char *failure = text_of(md, "failure");
	char reg[24], alloc[24], rkey[32];

	np_buf_printf(out, "\t%-12s %-16s ", text_of(md, "name"),
		      text_of(md, "component") ? text_of(md, "component") : "?");
	if (failure) {
		np_buf_printf(out, "cannot be opened: %s\n", failure);
		return;
	}
	if (json_is_null(json_object_get(md, "rkey_bytes"))) {
		np_buf_str(out, "?\n");
		return;
	}
	np_buf_printf(out, "%9s %12s %8s  ", size_str(json_object_get(md, "register"), reg),
		      size_str(json_object_get(md, "allocate"), alloc),
		      figure_str(json_object_get(md, "rkey_bytes"), rkey));
	add_words(json_object_get(md, "register_types"), out);
	np_buf_str(out, "\n");
}

static void add_ucx(const json_t *ucx, struct np_buf *out)
{
	const json_t *one;
	size_t i;

	json_array_foreach (json_object_get(ucx, "verdicts"), i, one) {
		const char *reason = text_of(one, "reason");

		np_buf_printf(out, "\t%-12s %s%s%s\n", text_of(one, "transport"),
			      text_of(one, "status"), reason ? ": " : "", reason ? reason : "");
	}
	if (json_array_size(json_object_get(ucx, "transports")))
		np_buf_printf(out, "\n\t%-12s %-16s %9s %8s %8s %4s  %-16s %-16s %-16s %s\n",
			      "transport", "device", "MB/s", "lat ns", "ovh ns", "prio",
			      "put s/b/z", "get s/b/z", "am s/b/z", "error handling");
	json_array_foreach (json_object_get(ucx, "transports"), i, one)
		add_transport(one, out);
	if (json_array_size(json_object_get(ucx, "memory_domains")))
		np_buf_printf(out, "\n\t%-12s %-16s %9s %12s %8s  %s\n", "memory", "component",
			      "register", "allocate", "rkey B", "registers");
	json_array_foreach (json_object_get(ucx, "memory_domains"), i, one)
		add_domain(one, out);
}

static void add_gdrapi(const json_t *gdrapi, struct np_buf *out)
{
	const char *driver = text_of(gdrapi, "driver_version"),
		   *min = text_of(gdrapi, "min_library_version"),
		   *backend = text_of(gdrapi, "backend");

	if (driver)
		np_buf_printf(out, "\tgdrdrv %s: it takes libgdrapi %s or newer\n", driver,
			      min ? min : "?");
	else
		np_buf_str(out, "\tgdrdrv does not answer\n");
	np_buf_printf(out, "\tlibgdrapi takes gdrdrv %s or newer\n",
		      text_of(gdrapi, "min_driver_version"));
	np_buf_printf(out, "\tmaps GPU memory through %s\n", backend ? backend : "nothing");
	if (json_is_true(json_object_get(gdrapi, "standin")))
		np_buf_str(out, "\ta stand-in of the tests, not gdrcopy's own\n");
}

static void add_nvml(const json_t *nvml, struct np_buf *out)
{
	const json_t *nvlink = json_object_get(nvml, "nvlink");

	np_buf_printf(out, "\tNVLink between GPUs: %s\n",
		      json_is_null(nvlink) ? "unknown" :
		      json_is_true(nvlink) ? "active" :
					     "none");
}

void np_show_text_libraries(const json_t *list, struct np_buf *out)
{
	const json_t *one, *object;
	size_t i;

	json_array_foreach (list, i, one) {
		const char *path = text_of(one, "path"), *version = text_of(one, "version"),
			   *message = text_of(one, "message"), *hint = text_of(one, "hint");

		np_buf_printf(out, "%s: %s%s%s%s%s\n", text_of(one, "name"), text_of(one, "status"),
			      version ? ", version " : "", version ? version : "", path ? ", " : "",
			      path ? path : "");
		if (message)
			np_buf_printf(out, "\t%s\n", message);
		if (hint)
			np_buf_printf(out, "\t-> %s\n", hint);
		object = json_object_get(one, "ucx");
		if (json_is_object(object))
			add_ucx(object, out);
		object = json_object_get(one, "gdrapi");
		if (json_is_object(object))
			add_gdrapi(object, out);
		object = json_object_get(one, "nvml");
		if (json_is_object(object))
			add_nvml(object, out);
	}
}
