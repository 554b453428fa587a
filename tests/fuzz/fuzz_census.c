/* SPDX-License-Identifier: MIT */
/* Any bytes as a shared object, as the loader cache, as nccl.h, as ld.so.conf and as names of
 * files and packages. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/census_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "does not hold: %s\n", #condition); \
			abort(); \
		} \
	} while (0)

static bool is_version(const char *s)
{
	return strspn(s, "0123456789.") == strlen(s);
}

static int see(const char *name, const char *path, void *arg)
{
	*(size_t *)arg += strlen(name) + strlen(path);
	return 0;
}

static void try_elf(const uint8_t *data, size_t size)
{
	static const enum np_library_kind kinds[] = { NP_LIBRARY_NCCL, NP_LIBRARY_UCP,
						      NP_LIBRARY_UCT, NP_LIBRARY_GDRAPI };

	for (size_t i = 0; i < NP_ARRAY_SIZE(kinds); i++) {
		struct np_bytes b = np_bytes_data(data, size);
		struct np_elf elf;

		(void)!np_elf_read(&b, kinds[i], &elf);
		MUST(strnlen(elf.soname, sizeof(elf.soname)) < sizeof(elf.soname));
		MUST(strnlen(elf.version, sizeof(elf.version)) < sizeof(elf.version));
		MUST(is_version(elf.version));
		MUST(kinds[i] == NP_LIBRARY_UCP || elf.mt == NP_TRI_UNKNOWN);
	}
}

static void try_names(const char *text)
{
	enum np_library_kind kind;
	bool loadable;

	if (np_library_name(text, &kind, &loadable)) {
		char version[40] = "";

		MUST(kind < NP_LIBRARY_KINDS && !strchr(text, '/'));
		np_library_name_version(text, kind, version, sizeof(version));
		MUST(is_version(version));
	}
	for (int conda = 0; conda < 2; conda++) {
		struct np_packages p = { 0 };

		if (np_package_take(text, conda, &p))
			MUST(*np_package_version(&p, NP_LIBRARY_NCCL) || *p.ucx || *p.gdrcopy ||
			     *p.ucx_py || *p.ucxx || *p.distributed_ucxx);
		MUST(is_version(p.nccl) && is_version(p.ucxx));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	np_auto_strv struct np_strv folders = { 0 };
	char *text = malloc(size + 1), version[40] = "";
	size_t sum = 0;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	try_elf(data, size);
	(void)!np_ld_cache_each(data, size, see, &sum);
	if (np_nccl_header_version(text, size, version, sizeof(version)))
		MUST(is_version(version));
	try_names(text);
	if (np_dpkg_version_in(text, size, "a", version, sizeof(version)))
		MUST(is_version(version));
	MUST(np_ld_conf_folders(text, size, &folders) == 0);
	for (size_t i = 0; i < folders.n; i++)
		MUST(folders.v[i][0] == '/' && folders.v[i][1]);
	free(text);
	return 0;
}
