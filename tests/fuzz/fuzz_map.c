/* SPDX-License-Identifier: MIT */
/* Any bytes as the file of map:FILE, for a node whose name is their first line, and as
 * an address source. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/address_map.h"
#include "agent/address_source.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "does not hold: %s\n", #condition); \
			abort(); \
		} \
	} while (0)

static bool is_clean(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

/* What is found is on the line that is named; a failure says why, in clean text. */
static void try_map(const char *text, size_t len, const char *node)
{
	struct np_inet inet = { 0 }, again = { 0 };
	struct np_err err = { 0 };
	const char *at = text;
	char shown[NP_INET_STRLEN];
	int line = 0, other = 0, r = np_address_map_find("/m", text, len, node, &inet, &line, &err);

	if (r < 0) {
		MUST(r == -EBADMSG || r == -ENOENT);
		MUST(np_starts_with(err.code, "address.map_") && err.hint[0]);
		MUST(is_clean(err.message) && is_clean(err.hint));
		MUST(line == 0 && inet.family == 0);
		return;
	}
	MUST(np_inet_parse(np_inet_str(&inet, shown), &again, NULL) == 0);
	MUST(np_inet_equal(&inet, &again));
	for (int i = 1; i < line; i++) {
		at = memchr(at, '\n', len - (size_t)(at - text));
		MUST(at++);
	}
	/* that line alone says the same */
	len -= (size_t)(at - text);
	if (memchr(at, '\n', len))
		len = (size_t)((const char *)memchr(at, '\n', len) - at);
	MUST(np_address_map_find("/m", at, len, node, &again, &other, NULL) == 0);
	MUST(other == 1 && np_inet_equal(&inet, &again));
}

static void try_source(const char *text, const char *node)
{
	struct np_inet nic = { .family = AF_INET, .bytes = { 192, 168, 3, 7 }, .prefix_len = 16 };
	struct np_address_source src = { 0 }, again;
	char name[NP_HOST_NAME_LEN];
	const char *expected;
	struct np_err err;
	struct np_inet out;

	if (np_address_source_parse(text, &src, &expected) < 0) {
		MUST(expected && src.text[0] == '\0');
		return;
	}
	MUST(np_is_address_source(text) && is_clean(src.subject));
	MUST(np_address_source_parse(src.text, &again, &expected) == 0);
	MUST(again.kind == src.kind && strcmp(again.subject, src.subject) == 0);
	if (src.kind == NP_SOURCE_HOSTS && np_address_source_name(&src, node, name, &err) == 0)
		MUST(name[0] && is_clean(name));
	if (src.kind == NP_SOURCE_OFFSET && np_address_source_offset(&src, &nic, &out, &err) == 0)
		MUST(np_inet_contains(&src.prefix, &out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *newline = size ? memchr(data, '\n', size) : NULL;
	size_t first = newline ? (size_t)(newline - data) : 0;
	char *text = malloc(size + 1), node[65];

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	/* as uname gives it: 64 bytes at most */
	first = first < sizeof(node) ? first : sizeof(node) - 1;
	memcpy(node, text, first);
	node[first] = '\0';
	if (newline) {
		try_map(text + (newline - data) + 1, size - (size_t)(newline - data) - 1, node);
		try_source(text + (newline - data) + 1, node);
	}
	try_source(text, "node01.example.org");
	free(text);
	return 0;
}
