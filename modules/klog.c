/* SPDX-License-Identifier: MIT */
/* The kernel's own word on a module: /dev/kmsg, from a moment on. Without the right
 * to read it (CAP_SYSLOG, where dmesg_restrict is set) there is none. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "modules/private.h"

#define RECORD_MAX 8192 /* CONSOLE_EXT_LOG_MAX of kernel/printk */
#define RECORDS	   4096 /* a storm of messages must not hold us */

int np_klog_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);

	/* only what comes from now on */
	if (fd >= 0 && lseek(fd, 0, SEEK_END) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Lower case, '-' as '_': "nvidia-uvm:" and "NVRM: No NVIDIA GPU" name their module. */
static void fold(const char *s, char *out, size_t size)
{
	size_t i = 0;

	for (; s[i] && i + 1 < size; i++)
		out[i] = (char)(s[i] == '-' ? '_' : tolower((unsigned char)s[i]));
	out[i] = '\0';
}

/* @name in @text as a word of its own: nvidia is not in nvidia_uvm. */
static bool has_word(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = strstr(text, name); at; at = strstr(at + 1, name)) {
		bool starts = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
		bool ends = !(isalnum((unsigned char)at[len]) || at[len] == '_');

		if (starts && ends)
			return true;
	}
	return false;
}

static bool has_any(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strstr(text, *words))
			return true;
	return false;
}

int np_klog_rank(const char *text, const char *module)
{
	/* kernel/module/ (main.c, version.c, signing.c), security/lockdown, kernel/params.c */
	static const char *const verdicts[] = {
		"version magic",
		"unknown symbol",
		"disagrees about version",
		"gpl_only symbols",
		"invalid for parameter",
		"no symbol version for",
		"should not have a",
		"invalid module",
		"exports duplicate",
		"unknown parameter",
		"does not import it",
		"failed to validate",
		NULL,
	};
	/* these name no module */
	static const char *const refusals[] = { "is rejected", "module loading is restricted",
						"invalid elf header", NULL };
	char line[1024], name[64];

	fold(text, line, sizeof(line));
	fold(module, name, sizeof(name));
	if (has_any(line, refusals))
		return 2;
	if (!has_word(line, name) || strstr(line, "taint"))
		return 0;
	return has_any(line, verdicts) ? 2 : 1;
}

/* "LEVEL,SEQUENCE,TIME,FLAGS;MESSAGE\n": Documentation/ABI/testing/dev-kmsg */
static char *message_of(char *record, int *level)
{
	char *text = strchr(record, ';');
	uint64_t prefix;

	record[strcspn(record, ",")] = '\0';
	if (!text || np_parse_u64(record, 10, INT_MAX, &prefix) < 0)
		return NULL;
	*level = (int)(prefix & 7); /* the rest is the facility */
	text++;
	text[strcspn(text, "\n")] = '\0';
	return text;
}

void np_klog_pick(int fd, const char *module, char *out, size_t size)
{
	char record[RECORD_MAX + 1];
	int best_rank = 0, best_level = 8;

	out[0] = '\0';
	for (int i = 0; fd >= 0 && i < RECORDS; i++) {
		ssize_t got = read(fd, record, RECORD_MAX);
		int level = 7, rank;
		const char *text;

		if (got < 0 && (errno == EPIPE || errno == EINTR)) /* EPIPE: overrun, goes on */
			continue;
		if (got <= 0)
			return;
		record[got] = '\0';
		text = message_of(record, &level);
		rank = text ? np_klog_rank(text, module) : 0;
		/* among equals the most severe, and of these the first: it is the cause */
		if (rank > best_rank || (rank && rank == best_rank && level < best_level)) {
			best_rank = rank;
			best_level = level;
			np_printable(text, out, size);
		}
	}
}
