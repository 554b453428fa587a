/* SPDX-License-Identifier: MIT */
/* Libraries and packages by their names. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "agent/census_read.h"

static const struct {
	const char *stem;
	enum np_library_kind kind;
} stems[] = {
	{ "libnccl.so", NP_LIBRARY_NCCL },
	{ "libucp.so", NP_LIBRARY_UCP },
	{ "libuct.so", NP_LIBRARY_UCT },
	{ "libgdrapi.so", NP_LIBRARY_GDRAPI },
};

/* ".2", ".2.28.3": dots and numbers in turn. */
static bool is_suffix(const char *s, int *numbers)
{
	for (*numbers = 0; *s; ++*numbers) {
		size_t n;

		if (*s++ != '.')
			return false;
		n = strspn(s, "0123456789");
		if (n == 0)
			return false;
		s += n;
	}
	return true;
}

bool np_library_name(const char *name, enum np_library_kind *kind, bool *loadable)
{
	int numbers;

	*loadable = false;
	if (strcmp(name, "nccl.h") == 0 || strcmp(name, "libnccl_static.a") == 0) {
		*kind = name[0] == 'n' ? NP_LIBRARY_NCCL_HEADER : NP_LIBRARY_NCCL_STATIC;
		return true;
	}
	for (size_t i = 0; i < NP_ARRAY_SIZE(stems); i++) {
		if (!np_starts_with(name, stems[i].stem) ||
		    !is_suffix(name + strlen(stems[i].stem), &numbers))
			continue;
		*kind = stems[i].kind;
		/* programs ask for the soname, which has one number */
		*loadable = numbers == 1;
		return true;
	}
	return false;
}

bool np_library_name_version(const char *name, enum np_library_kind kind, char *out, size_t size)
{
	const char *so = strstr(name, ".so.");
	int numbers;

	/* UCX's libraries are all .so.0.0.0 */
	if (!so || kind == NP_LIBRARY_UCP || kind == NP_LIBRARY_UCT ||
	    !is_suffix(so + 3, &numbers) || numbers < 2)
		return false;
	return np_strcpy(out, size, so + 4);
}

/* The number behind "#define NAME". */
static bool defined(const char *text, size_t len, const char *name, char *out, size_t size)
{
	const char *s = text, *end = text + len;
	size_t n = strlen(name);

	while ((s = memmem(s, (size_t)(end - s), name, n))) {
		size_t digits = 0;

		s += n;
		while (s < end && (*s == ' ' || *s == '\t'))
			s++;
		while (s + digits < end && digits < size - 1 && isdigit((unsigned char)s[digits]))
			digits++;
		if (digits == 0)
			continue;
		memcpy(out, s, digits);
		out[digits] = '\0';
		return true;
	}
	return false;
}

bool np_nccl_header_version(const char *text, size_t len, char *out, size_t size)
{
	char major[6], minor[6], patch[6];

	if (!defined(text, len, "#define NCCL_MAJOR", major, sizeof(major)) ||
	    !defined(text, len, "#define NCCL_MINOR", minor, sizeof(minor)) ||
	    !defined(text, len, "#define NCCL_PATCH", patch, sizeof(patch)))
		return false;
	snprintf(out, size, "%s.%s.%s", major, minor, patch);
	return true;
}

/* ---- packages ---- */

/* "nvidia_nccl" and, of PyPI, "nvidia_nccl_cu12" */
static bool is_package(const char *name, size_t len, const char *wanted)
{
	size_t n = strlen(wanted);

	return len >= n && strncmp(name, wanted, n) == 0 &&
	       (len == n || (len > n + 3 && strncmp(name + n, "_cu", 3) == 0 &&
			     strspn(name + n + 3, "0123456789") == len - n - 3));
}

static char *slot_of(const char *name, size_t len, bool conda, struct np_packages *p)
{
	const struct {
		const char *python, *conda;
		char *slot;
	} known[] = {
		{ "nvidia_nccl", "nccl", p->nccl },
		{ "libucx", "ucx", p->ucx },
		{ "gdrcopy", "gdrcopy", p->gdrcopy },
		{ "ucx_py", "ucx-py", p->ucx_py },
		{ "ucxx", "ucxx", p->ucxx },
		{ "distributed_ucxx", "distributed-ucxx", p->distributed_ucxx },
	};

	for (size_t i = 0; i < NP_ARRAY_SIZE(known); i++)
		if (conda ? strlen(known[i].conda) == len && !strncmp(name, known[i].conda, len) :
			    is_package(name, len, known[i].python))
			return known[i].slot;
	return NULL;
}

bool np_package_take(const char *name, bool conda, struct np_packages *out)
{
	const char *end = strstr(name, conda ? ".json" : ".dist-info"), *dash;
	size_t stem, len;
	char *slot;

	if (!end)
		end = conda ? NULL : strstr(name, ".egg-info");
	if (!end)
		return false;
	if (conda) {
		/* NAME-VERSION-BUILD.json, and NAME may have dashes */
		dash = memrchr(name, '-', (size_t)(end - name));
		end = dash ? dash : name;
		dash = memrchr(name, '-', (size_t)(end - name));
	} else {
		dash = memchr(name, '-', (size_t)(end - name));
	}
	if (!dash)
		return false;
	stem = (size_t)(dash - name);
	slot = slot_of(name, stem, conda, out);
	/* up to "+ds.1", "-py3.11", "rc1" */
	len = strspn(dash + 1, "0123456789.");
	if (len > (size_t)(end - dash - 1))
		len = (size_t)(end - dash - 1);
	while (len > 0 && dash[len] == '.')
		len--;
	if (!slot || len == 0 || len >= sizeof(out->nccl))
		return false;
	memcpy(slot, dash + 1, len);
	slot[len] = '\0';
	return true;
}

const char *np_package_version(const struct np_packages *p, enum np_library_kind kind)
{
	switch (kind) {
	case NP_LIBRARY_NCCL:
	case NP_LIBRARY_NCCL_STATIC:
	case NP_LIBRARY_NCCL_HEADER:
		return p->nccl;
	case NP_LIBRARY_UCP:
	case NP_LIBRARY_UCT:
		return p->ucx;
	case NP_LIBRARY_GDRAPI:
		return p->gdrcopy;
	case NP_LIBRARY_UCX_PY:
		return p->ucx_py;
	case NP_LIBRARY_UCXX:
		return p->ucxx;
	case NP_LIBRARY_DISTRIBUTED_UCXX:
		return p->distributed_ucxx;
	default:
		return "";
	}
}
