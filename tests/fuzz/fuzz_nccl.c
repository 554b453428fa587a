/* SPDX-License-Identifier: MIT */
/* Any bytes as an nccl.conf, and as lists and names of NCCL. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/nccl_conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "does not hold: %s\n", #condition); \
			abort(); \
		} \
	} while (0)

static void try_edit(const char *text, size_t len, const char *value)
{
	struct np_nccl_key keys[] = { { "NCCL_SOCKET_IFNAME", value }, { "NCCL_IB_HCA", NULL } };
	np_auto_buf struct np_buf once = { 0 };
	np_auto_buf struct np_buf twice = { 0 };
	char *got;

	if (np_nccl_conf_edit(text, len, keys, 2, &once, NULL) < 0)
		return;
	got = np_nccl_conf_get(once.data, once.len, "NCCL_SOCKET_IFNAME");
	MUST(got && strcmp(got, value) == 0);
	free(got);
	MUST(!np_nccl_conf_get(once.data, once.len, "NCCL_IB_HCA"));
	MUST(np_nccl_conf_edit(once.data, once.len, keys, 2, &twice, NULL) == 0);
	MUST(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
}

static void try_lists(const char *text)
{
	np_auto_strv struct np_strv all = { 0 };
	np_auto_strv struct np_strv some = { 0 };
	char *value = NULL;

	MUST(np_strv_split(&all, text, " \n") == 0);
	for (size_t i = 0; i < all.n; i += 2)
		MUST(np_strv_add(&some, all.v[i]) == 0);
	value = np_nccl_ifname_value(&some, &all);
	for (size_t i = 0; value && i < some.n; i++)
		MUST(np_nccl_matches(value, some.v[i], -1));
	free(value);
	value = NULL;
	if (np_nccl_hca_value(&some, &all, &value) == 0)
		free(value);
	for (size_t i = 0; i + 1 < all.n; i++)
		(void)np_nccl_matches(all.v[i], all.v[i + 1], (int)i % 3 - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct np_nccl_issues issues = { 0 };
	size_t value_len = size ? data[0] % 40 : 0;
	char *text = malloc(size + 1), value[41];

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	value_len = value_len < size ? value_len : 0;
	memcpy(value, text, value_len);
	value[value_len] = '\0';
	try_edit(text, size, value);
	try_edit(text, size, "=ib0");
	MUST(np_nccl_conf_lint(text, size, &issues) == 0 && issues.n <= 100);
	np_nccl_issues_done(&issues);
	try_lists(text);
	free(text);
	return 0;
}
