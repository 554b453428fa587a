/* SPDX-License-Identifier: MIT */
#include "agent/nvlink.h"

#include <limits.h>

#include "base/str.h"

static const json_t *find(const json_t *list, const char *key, const char *value)
{
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item)
		if (np_streq(json_string_value(json_object_get(item, key)), value))
			return item;
	return NULL;
}

static const json_t *find_gpu(const json_t *libraries, const char *pci)
{
	const json_t *nvml = json_object_get(find(libraries, "name", "nvml"), "nvml");

	return find(json_object_get(nvml, "gpus"), "pci_address", pci);
}

static int count(const json_t *value)
{
	json_int_t n = json_integer_value(value);

	return json_is_integer(value) && n >= 0 && n <= INT_MAX ? (int)n : -1;
}

int np_nvlink_active(const json_t *libraries, const char *gpu, const char **why)
{
	const json_t *nvml = find(libraries, "name", "nvml");
	const json_t *found = find_gpu(libraries, gpu);
	const char *message = json_string_value(json_object_get(nvml, "message"));
	int n = count(json_object_get(found, "active"));

	*why = NULL;
	if (n < 0)
		*why = !nvml   ? "NVML was not asked" :
		       message ? message :
		       !found  ? "NVML does not list this GPU" :
				 "NVML does not tell of each link whether it is active";
	return n;
}

int np_nvlink_between(const json_t *libraries, const char *a, const char *b)
{
	const json_t *peers = json_object_get(find_gpu(libraries, a), "peers");

	return count(json_object_get(find(peers, "pci_address", b), "links"));
}
