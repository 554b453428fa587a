/* SPDX-License-Identifier: MIT */
#include "agent/selftest_entry.h"

#include <errno.h>
#include <string.h>

#include "agent/json_text.h"

json_t *np_selftest_entry(const char *rung, const char *device, const char *status,
			  const char *code, const char *message, const char *hint)
{
	return json_pack("{s:s, s:o, s:s, s:s, s:s, s:o, s:o, s:n, s:n, s:n, s:[]}", "rung", rung,
			 "device", np_json_text(device), "transport", "", "status", status, "code",
			 code, "message", np_json_text(message), "hint", np_json_text(hint),
			 "size_bytes", "latency_us", "bandwidth_MBps", "sizes");
}

static bool is_one_of(const char *word, const char *const *words)
{
	for (; word && *words; words++)
		if (strcmp(word, *words) == 0)
			return true;
	return false;
}

/* Copies text @key: a line of sensible length, or what can be made of it. */
static bool copy_text(json_t *to, const json_t *from, const char *key)
{
	json_t *value = json_object_get(from, key);
	const char *s = json_string_value(value);
	char shown[640];

	if (!s)
		return false;
	if (!*s || np_json_is_line(value))
		return json_object_set(to, key, value) == 0;
	return json_object_set_new(to, key, json_string(np_printable(s, shown, sizeof(shown)))) ==
	       0;
}

/* Copies number @key; what is counted has no fractions, nothing is below 0. */
static bool copy_number(json_t *to, const json_t *from, const char *key)
{
	static const char bytes[] = "_bytes";
	json_t *value = json_object_get(from, key);
	size_t len = strlen(key), tail = sizeof(bytes) - 1;
	bool whole = len > tail && strcmp(key + len - tail, bytes) == 0;

	if (!json_is_null(value) && !(whole ? json_is_integer(value) : json_is_number(value)))
		return false;
	if (json_number_value(value) < 0)
		return false;
	return json_object_set(to, key, value) == 0;
}

static bool copy_sizes(json_t *to, const json_t *from)
{
	static const char *const numbers[] = { "size_bytes", "latency_us", "bandwidth_MBps" };
	const json_t *list = json_object_get(from, "sizes"), *row;
	json_t *sizes = json_array();
	bool good = json_is_array(list) && json_array_size(list) <= 64;
	size_t i;

	json_array_foreach (list, i, row) {
		json_t *copy = json_object();

		for (size_t k = 0; good && k < NP_ARRAY_SIZE(numbers); k++)
			good = copy_number(copy, row, numbers[k]);
		json_array_append_new(sizes, copy);
		if (!good)
			break;
	}
	return json_object_set_new(to, "sizes", sizes) == 0 && good;
}

/* Optional: what the ports' own counters say. */
static bool copy_counters(json_t *to, const json_t *from)
{
	static const char *const numbers[] = { "xmit_bytes", "rcv_bytes", "moved_bytes" };
	const json_t *counters = json_object_get(from, "counters");
	json_t *copy;
	bool good = json_is_object(counters);

	if (!counters)
		return true;
	copy = json_object();
	for (size_t i = 0; good && i < NP_ARRAY_SIZE(numbers); i++)
		good = copy_number(copy, counters, numbers[i]);
	return json_object_set_new(to, "counters", copy) == 0 && good;
}

static bool is_good(const json_t *entry)
{
	static const char *const good[] = { "ok", "warn", NULL };

	return is_one_of(json_string_value(json_object_get(entry, "status")), good);
}

/* None for what works, and no other has none. */
static bool has_fitting_code(const json_t *entry)
{
	const char *code = json_string_value(json_object_get(entry, "code"));

	if (np_streq(json_string_value(json_object_get(entry, "status")), "ok"))
		return !*code;
	return np_json_is_code(code);
}

/* The kernel takes any bytes in the name of a netdev; JSON does not. */
static bool is_of_device(const json_t *entry, const char *device)
{
	const char *said = json_string_value(json_object_get(entry, "device"));
	char shown[640];

	return np_streq(said, device) || np_streq(said, np_printable(device, shown, sizeof(shown)));
}

/* The child is not trusted: its entry is taken member by member, for the rung and the
 * device that were asked for. NULL when it is not what it must be. */
static json_t *clean_entry(const json_t *entry, const char *rung, const char *device)
{
	static const char *const texts[] = { "rung", "device",	"transport", "status",
					     "code", "message", "hint" };
	static const char *const numbers[] = { "size_bytes", "latency_us", "bandwidth_MBps" };
	static const char *const states[] = { "ok", "warn", "fail", "skip", NULL };
	json_t *clean = json_object();
	bool good = clean != NULL;

	for (size_t i = 0; good && i < NP_ARRAY_SIZE(texts); i++)
		good = copy_text(clean, entry, texts[i]);
	for (size_t i = 0; good && i < NP_ARRAY_SIZE(numbers); i++)
		good = copy_number(clean, entry, numbers[i]);
	good = good && copy_sizes(clean, entry) && copy_counters(clean, entry) &&
	       np_streq(json_string_value(json_object_get(clean, "rung")), rung) &&
	       is_of_device(clean, device) &&
	       is_one_of(json_string_value(json_object_get(clean, "status")), states) &&
	       has_fitting_code(clean);
	/* what works was measured */
	if (good && is_good(clean))
		good = json_array_size(json_object_get(clean, "sizes")) > 0;
	if (good)
		return clean;
	json_decref(clean);
	return NULL;
}

/* The entry of a document, for one of the @steps that has none yet. */
static int take_line(const char *line, size_t len, const char *rung,
		     const struct np_ladder_step *steps, size_t n, json_t **got, size_t *which)
{
	json_error_t error;
	json_t *doc = json_loadb(line, len, 0, &error), *clean = NULL;
	const json_t *entries = json_object_get(doc, "selftest");

	for (size_t i = 0; i < n && !clean && json_array_size(entries) == 1; i++) {
		if (got[i])
			continue;
		clean = clean_entry(json_array_get(entries, 0), rung, steps[i].device);
		if (clean) {
			got[i] = clean;
			*which = i;
		}
	}
	json_decref(doc);
	return clean ? 0 : -EPROTO;
}

int np_selftest_take(const struct np_child_result *result, const char *rung,
		     const struct np_ladder_step *steps, size_t n, json_t **got,
		     const json_t **last)
{
	const char *at = result->out.data, *end = at ? at + result->out.len : NULL;
	bool good = true, all = true;
	size_t which = n;

	*last = NULL;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((newline ? newline : end) - at);

		if (len > 0 && take_line(at, len, rung, steps, n, got, &which) < 0)
			break;
		if (len > 0) {
			*last = got[which];
			good &= is_good(got[which]);
		}
		at += len + 1;
	}
	for (size_t i = 0; i < n; i++)
		all &= got[i] != NULL;
	if (!all)
		return -EPROTO;
	if (at >= end && !result->timed_out && !result->term_signal &&
	    result->exit_status == (good ? 0 : 1))
		return 0;
	/* said one thing and did another: what it said last does not count */
	if (which < n) {
		json_decref(got[which]);
		got[which] = NULL;
	}
	*last = NULL;
	return -EPROTO;
}

/* ---- floors ---- */

#define FULL_SPEED_BYTES (8 << 20)
#define PORT_SHARE	 0.8
/* Copies from pinned memory reach 76 to 90 % of the line rate (12 GB/s on x16 at 8 GT/s, 25 at
 * 16, 55 at 32), less the way to another socket. */
#define CUDA_SHARE 0.6
/* UCX's cuda_copy goes through memory that is not pinned, and one processor copies it there
 * and on: that sets the pace, some 2 to 8 GB/s whatever the link. Less than this is a link or
 * a processor that is broken. */
#define CUDA_COPY_SHARE 0.02

static void set_text(json_t *entry, const char *key, json_t *value)
{
	json_object_set_new(entry, key, value);
}

static void mark(json_t *entry, const char *status, const char *code, const char *hint,
		 double measured, double floor, const char *of)
{
	const char *message = json_string_value(json_object_get(entry, "message"));

	set_text(entry, "message",
		 json_sprintf("%.0f MB/s is less than %.0f MB/s, %s; %s", measured, floor, of,
			      message ? message : ""));
	set_text(entry, "status", json_string(status));
	set_text(entry, "code", json_string(code));
	set_text(entry, "hint", json_string(hint));
}

struct np_selftest_fair np_selftest_fair_port(double rate_gbps)
{
	return (struct np_selftest_fair){
		.MBps = rate_gbps * 1000 / 8 * PORT_SHARE,
		.of = "80 % of the port's rate",
		.hint = "look at the PCIe slot's width, the NUMA node and the power settings",
	};
}

struct np_selftest_fair np_selftest_fair_gpu(const char *rung, const struct np_pci *pci)
{
	struct np_selftest_fair fair = {
		.hint = "look at the PCIe slot's width, the NUMA node, the power settings, and "
			"IOMMU and ACS",
	};
	/* the lanes that it has; the speed is lowered while it is idle */
	struct np_pci_link link = { .width = pci->now.width, .speed = pci->max.speed };

	if (pci->slot.speed && pci->slot.speed < link.speed)
		link.speed = pci->slot.speed;
	if (np_streq(rung, "cuda")) {
		fair.MBps = np_pci_link_MBps(&link) * CUDA_SHARE;
		fair.of = "60 % of the GPU's PCIe link";
	} else if (np_streq(rung, "cuda_copy")) {
		fair.MBps = np_pci_link_MBps(&link) * CUDA_COPY_SHARE;
		fair.of = "2 % of the GPU's PCIe link";
	}
	return fair;
}

void np_selftest_judge_bandwidth(json_t *entry, double min_MBps,
				 const struct np_selftest_fair *fair)
{
	double measured = json_number_value(json_object_get(entry, "bandwidth_MBps"));
	json_int_t size = json_integer_value(json_object_get(entry, "size_bytes"));

	if (!np_streq(json_string_value(json_object_get(entry, "status")), "ok") || measured <= 0)
		return;
	if (min_MBps > 0) {
		if (measured < min_MBps)
			mark(entry, "fail", "selftest.below_floor",
			     "look at the port's width, speed and PCIe slot, or lower the floor",
			     measured, min_MBps, "the floor of [selftest] min_bandwidth_MBps");
		return;
	}
	if (size >= FULL_SPEED_BYTES && measured < fair->MBps)
		mark(entry, "warn", "selftest.slow", fair->hint, measured, fair->MBps, fair->of);
}
