/* SPDX-License-Identifier: MIT */
/* Any bytes as scripts of login shells, which source each other, as a unit and as
 * environment files. The first byte says what they are; a form feed starts another file. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/consumer_unit.h"
#include "agent/shell_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "does not hold: %s\n", #condition); \
			abort(); \
		} \
	} while (0)

/* Where each part of the input lies. */
static const char *const places[] = { "/etc/profile", "/etc/csh.cshrc", "/etc/a",
				      "/home/alice/.cshrc", "/home/alice/.login" };

struct world {
	const char *parts[NP_ARRAY_SIZE(places)];
	size_t len[NP_ARRAY_SIZE(places)];
	size_t n;
};

static int part_of(const struct world *w, const char *path)
{
	for (size_t i = 0; i < w->n; i++)
		if (strcmp(places[i], path) == 0)
			return (int)i;
	return -1;
}

static int world_read(void *arg, const char *path, struct np_buf *out)
{
	const struct world *w = arg;
	int i = part_of(w, path);

	MUST(path[0] == '/');
	if (i < 0)
		return -ENOENT;
	np_buf_add(out, w->parts[i], w->len[i]);
	return out->failed ? -ENOMEM : 0;
}

static int world_exists(void *arg, const char *path)
{
	MUST(path[0] == '/');
	return part_of(arg, path) >= 0;
}

static int world_list(void *arg, const char *path, struct np_strv *out)
{
	const struct world *w = arg;

	if (strcmp(path, "/etc") != 0)
		return -ENOENT;
	for (size_t i = 0; i < w->n && i < 3; i++)
		if (np_strv_add(out, places[i] + strlen("/etc/")) < 0)
			return -ENOMEM;
	return 0;
}

static void take_note(void *arg, const char *file, int line, const char *what)
{
	(void)arg;
	MUST(file && line >= 1 && what && *what);
}

/* Each is whole, and what is in force is the last one that is taken. */
static void check_settings(const struct np_settings *list, int line_min)
{
	MUST(list->n <= NP_SETTINGS_MAX);
	for (size_t i = 0; i < list->n; i++) {
		const struct np_setting *s = &list->v[i], *found, *unset;

		MUST(s->name && s->file && s->line >= line_min);
		MUST(s->state <= NP_SETTING_SKIPPED && !(s->opaque && !s->value));
		found = np_settings_find(list, s->name, &unset);
		MUST(!found || (found->state == NP_SETTING_TAKEN && found->value));
		MUST(!unset || (!found && !unset->value));
		if (s->state == NP_SETTING_TAKEN)
			MUST(found || unset);
	}
}

static void try_script(enum np_shell shell, struct world *w)
{
	struct np_scan_files files = { world_read, world_exists, world_list, take_note, w };
	struct np_scan_spec spec = { shell, "alice", "/home/alice", &files };
	np_auto_settings struct np_settings out = { 0 };

	if (shell == NP_SHELL_CSH || shell == NP_SHELL_TCSH)
		np_csh_scan_login(&spec, &out);
	else
		MUST(np_shell_scan(&spec, places[0], true, &out) == 0);
	check_settings(&out, 1);
}

static void try_unit(const struct world *w)
{
	struct np_unit_names names = { .unit = "dask@3.service", .home = "/home/alice" };
	struct np_unit unit = { .note = take_note };

	for (size_t i = 0; i < w->n; i++)
		np_unit_parse(&unit, &names, places[i], w->parts[i], w->len[i]);
	np_unit_parse_defaults(&unit, places[0], w->parts[0], w->len[0]);
	check_settings(&unit.env, 1);
	for (size_t i = 0; i < unit.n_files; i++)
		MUST(unit.files[i].path[0] != '-' && unit.files[i].line >= 1);
	np_unit_done(&unit);
}

static void try_environment(const struct world *w)
{
	np_auto_settings struct np_settings out = { 0 };

	np_settings_pam_env(&out, places[0], w->parts[0], w->len[0]);
	np_settings_env_file(&out, places[0], w->parts[0], w->len[0]);
	np_settings_environ(&out, places[0], w->parts[0], w->len[0]);
	check_settings(&out, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world w = { .n = 0 };
	const char *at, *end;
	char *text;

	if (size == 0 || !(text = malloc(size)))
		return 0;
	/* on the heap and without a NUL behind it, so that a byte too far is seen */
	memcpy(text, data + 1, size - 1);
	end = text + size - 1;
	for (at = text; w.n < NP_ARRAY_SIZE(places); at++) {
		const char *next = memchr(at, '\f', (size_t)(end - at));

		w.parts[w.n] = at;
		w.len[w.n++] = (size_t)((next ? next : end) - at);
		if (!next)
			break;
		at = next;
	}
	switch (data[0] % 7) {
	case 5:
		try_unit(&w);
		break;
	case 6:
		try_environment(&w);
		break;
	default:
		try_script((enum np_shell)(data[0] % 7), &w);
	}
	free(text);
	return 0;
}
