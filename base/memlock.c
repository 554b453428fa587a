/* SPDX-License-Identifier: MIT */
#include "base/memlock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/file.h"
#include "base/str.h"

#define LINE	   "Max locked memory"
#define LIMITS_MAX 16384

const char *np_memlock_str(uint64_t bytes, char out[NP_MEMLOCK_STRLEN])
{
	if (bytes == NP_UNLIMITED)
		np_strcpy(out, NP_MEMLOCK_STRLEN, "unlimited");
	else if (bytes % 1024 == 0)
		snprintf(out, NP_MEMLOCK_STRLEN, "%" PRIu64 " KiB", bytes / 1024);
	else
		snprintf(out, NP_MEMLOCK_STRLEN, "%" PRIu64 " bytes", bytes);
	return out;
}

static int one_limit(const char *word, uint64_t *out)
{
	if (strcmp(word, "unlimited") == 0) {
		*out = NP_UNLIMITED;
		return 0;
	}
	return np_parse_u64(word, 10, UINT64_MAX, out);
}

int np_memlock_parse(const char *text, struct np_memlock *out)
{
	const char *at = np_starts_with(text, LINE) ? text : strstr(text, "\n" LINE);
	np_auto_strv struct np_strv words = { 0 };
	_cleanup_free_ char *line = NULL;
	struct np_memlock limit;
	int r;

	if (!at)
		return -ENOENT;
	at = strstr(at, LINE) + strlen(LINE);
	line = strndup(at, strcspn(at, "\n"));
	if (!line || np_strv_split(&words, line, " \t") < 0)
		return -ENOMEM;
	if (words.n < 2)
		return -EINVAL;
	r = one_limit(words.v[0], &limit.soft);
	if (r == 0)
		r = one_limit(words.v[1], &limit.hard);
	if (r < 0)
		return -EINVAL;
	*out = limit;
	return 0;
}

int np_memlock_of(pid_t pid, struct np_memlock *out)
{
	np_auto_buf struct np_buf text = { 0 };
	struct rlimit64 own;
	char path[48];
	int r;

	if (pid == 0) {
		if (getrlimit64(RLIMIT_MEMLOCK, &own) < 0)
			return -errno;
		*out = (struct np_memlock){ .soft = own.rlim_cur, .hard = own.rlim_max };
		return 0;
	}
	snprintf(path, sizeof(path), "/proc/%d/limits", (int)pid);
	r = np_file_read_at(AT_FDCWD, path, LIMITS_MAX, &text);
	if (r < 0)
		return r == -ESRCH ? -ENOENT : r;
	return np_memlock_parse(text.data, out);
}

int np_memlock_set(const struct np_memlock *want, struct np_memlock *got)
{
	struct rlimit64 limit = { .rlim_cur = want->soft, .rlim_max = want->hard };
	struct np_memlock has = { 0 };
	int r = np_memlock_of(0, &has);

	if (r < 0)
		return r;
	if (limit.rlim_cur > limit.rlim_max)
		limit.rlim_cur = limit.rlim_max;
	*got = (struct np_memlock){ .soft = limit.rlim_cur, .hard = limit.rlim_max };
	if (setrlimit64(RLIMIT_MEMLOCK, &limit) == 0)
		return 0;
	if (errno != EPERM)
		return -errno;
	if (limit.rlim_max > has.hard)
		limit.rlim_max = has.hard;
	if (limit.rlim_cur > limit.rlim_max)
		limit.rlim_cur = limit.rlim_max;
	if (setrlimit64(RLIMIT_MEMLOCK, &limit) < 0)
		return -errno;
	*got = (struct np_memlock){ .soft = limit.rlim_cur, .hard = limit.rlim_max };
	return -EPERM;
}
