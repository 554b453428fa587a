/* SPDX-License-Identifier: MIT */
#ifndef NP_TEST_SCAN_WORLD_H
#define NP_TEST_SCAN_WORLD_H

/* Start files in memory, for the scanners of login shells. cmocka.h comes before it. */
#include <errno.h>
#include <string.h>

#include "agent/shell_scan.h"

struct world {
	const char *const (*files)[2]; /* path, text; ends with NULL */
	int notes;
};

static int world_read(void *arg, const char *path, struct np_buf *out)
{
	struct world *w = arg;

	for (size_t i = 0; w->files[i][0]; i++)
		if (strcmp(w->files[i][0], path) == 0) {
			np_buf_str(out, w->files[i][1]);
			return 0;
		}
	return -ENOENT;
}

static int world_exists(void *arg, const char *path)
{
	np_auto_buf struct np_buf text = { 0 };

	if (strcmp(path, "/etc/profile.d") == 0)
		return 1;
	return world_read(arg, path, &text) == 0;
}

static int world_list(void *arg, const char *path, struct np_strv *out)
{
	struct world *w = arg;
	size_t n = strlen(path);

	for (size_t i = 0; w->files[i][0]; i++)
		if (strncmp(w->files[i][0], path, n) == 0 && w->files[i][0][n] == '/')
			assert_int_equal(np_strv_add(out, w->files[i][0] + n + 1), 0);
	return 0;
}

static void world_note(void *arg, const char *file, int line, const char *what)
{
	struct world *w = arg;

	(void)file;
	(void)line;
	(void)what;
	w->notes++;
}

#endif
