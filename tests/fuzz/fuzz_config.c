/* SPDX-License-Identifier: MIT */
/* Any bytes as a configuration file: an error that says where, or a configuration
 * whose rows read back as the same. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "does not hold: %s\n", #condition); \
			abort(); \
		} \
	} while (0)

static int read_bytes(struct np_config *cfg, const void *data, size_t size, struct np_err *err)
{
	int fd = memfd_create("fuzz_config", MFD_CLOEXEC), r;
	char path[64];

	MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	np_config_init(cfg);
	np_err_clear(err);
	r = np_config_read(cfg, path, err);
	close(fd);
	return r;
}

static void rows_of(const struct np_config *cfg, struct np_buf *out)
{
	struct np_config_row *rows = NULL;
	size_t n = 0;

	MUST(np_config_rows(cfg, &rows, &n) == 0);
	for (size_t i = 0; i < n; i++)
		np_buf_printf(out, "[%s]\n%s = %s\n", rows[i].section, rows[i].key, rows[i].value);
	np_config_rows_free(rows, n);
}

/* A list that was given over several lines may make one line that is too long. */
static bool has_long_line(const char *text)
{
	for (; *text; text += strcspn(text, "\n") + 1)
		if (strcspn(text, "\n") > 198)
			return true;
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	np_auto_buf struct np_buf first = { 0 };
	np_auto_buf struct np_buf second = { 0 };
	struct np_config cfg;
	struct np_err err;
	int r = read_bytes(&cfg, data, size, &err);

	if (r < 0) {
		MUST(err.num == r && err.code[0] && strstr(err.message, "/proc/self/fd/"));
		np_config_done(&cfg);
		return 0;
	}
	rows_of(&cfg, &first);
	np_config_done(&cfg);
	if (has_long_line(first.data))
		return 0;
	r = read_bytes(&cfg, first.data, first.len, &err);
	if (r < 0) {
		fprintf(stderr, "%s\n%s", err.message, first.data);
		abort();
	}
	rows_of(&cfg, &second);
	MUST(strcmp(first.data, second.data) == 0);
	(void)!np_config_finish(&cfg, &err);
	np_config_done(&cfg);
	return 0;
}
