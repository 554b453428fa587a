/* SPDX-License-Identifier: MIT */
/* Any bytes as the document of nodeprep-selftest --libraries. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/libraries.h"
#include "agent/nvlink.h"
#include "agent/show_help.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "does not hold: %s\n", #condition); \
			abort(); \
		} \
	} while (0)

/* What was taken once is taken as it is; it can be printed and learnt from. */
static void try_list(const char *text, size_t len, const char *const *names)
{
	json_t *list = np_libraries_take(text, len, names), *again;
	np_auto_buf struct np_buf shown = { 0 };
	struct np_libraries learnt = { 0 };
	const char *why;
	char *copy;
	json_t *doc;

	if (!list)
		return;
	doc = json_pack("{s:{s:O}}", "show", "libraries", list);
	copy = json_dumps(doc, 0);
	MUST(copy);
	again = np_libraries_take(copy, strlen(copy), names);
	MUST(again && json_equal(list, again));
	np_show_text_libraries(list, &shown);
	MUST(shown.len > 0);
	np_libraries_learn(list, &learnt);
	MUST(learnt.n_transports <= NP_LIBRARY_TRANSPORTS);
	MUST(np_nvlink_active(list, "0000:17:00.0", &why) >= 0 ? !why : why != NULL);
	MUST(np_nvlink_between(list, "0000:17:00.0", "0000:18:00.0") >= -1);
	free(copy);
	json_decref(doc);
	json_decref(again);
	json_decref(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_list((const char *)data, size, np_library_names);
	try_list((const char *)data, size, np_library_names_brief);
	try_list((const char *)data, size, np_library_names_nvlink);
	return 0;
}
