/* SPDX-License-Identifier: MIT */
/* Which folders a login's environment names. Nothing of the user is run. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/census_read.h"
#include "agent/consumer_look.h"

#define PARTS_MAX 64

/* ---- settings ---- */

/* The one that is most likely in force: what stands under a condition that cannot be told
 * from here is better looked at than not. */
static const struct np_setting *find(const struct np_settings *env, const char *name)
{
	for (size_t i = env->n; i > 0; i--) {
		const struct np_setting *s = &env->v[i - 1];

		if (s->state != NP_SETTING_SKIPPED && np_streq(s->name, name))
			return s->value && !s->is_local ? s : NULL;
	}
	return NULL;
}

static void source_of(const struct np_setting *s, char *out, size_t size)
{
	snprintf(out, size, "%s:%d", s->file, s->line);
}

/* Absolute, and known: a part that depends on a variable or on where a program starts
 * names nothing. */
static bool is_folder(const char *part)
{
	return part[0] == '/' && part[1] && strlen(part) < 250 && !strchr(part, '$') &&
	       !strchr(part, '`');
}

/* The dynamic linker takes an empty part for the working directory: so it is with what
 * "/folder:$LD_LIBRARY_PATH" leaves behind where the variable was not set. */
static void find_relative(const char *value, char out[64])
{
	char part[40], shown[44];

	for (;; value++) {
		size_t len = strcspn(value, ":;");

		if (len == 0) {
			np_strcpy(out, 64, "an empty part");
			return;
		}
		snprintf(part, sizeof(part), "%.*s", (int)len, value);
		if (value[0] != '/' && !memchr(value, '$', len) && !memchr(value, '`', len)) {
			snprintf(out, 64, "\"%s\"", np_printable(part, shown, sizeof(shown)));
			return;
		}
		value += len;
		if (!*value)
			return;
	}
}

static int take_path(const struct np_settings *env, struct np_census_login *out)
{
	const struct np_setting *s = find(env, "LD_LIBRARY_PATH");
	np_auto_strv struct np_strv parts = { 0 };
	int r;

	if (!s)
		return 0;
	/* the dynamic linker takes both */
	r = np_strv_split(&parts, s->value, ":;");
	for (size_t i = 0; i < parts.n && i < PARTS_MAX && r == 0; i++)
		if (is_folder(parts.v[i]) && !np_strv_has(&out->path, parts.v[i]))
			r = np_strv_add(&out->path, parts.v[i]);
	if (s->value[0])
		find_relative(s->value, out->relative);
	if (out->path.n || out->relative[0])
		source_of(s, out->source, sizeof(out->source));
	return r;
}

int np_census_login_take(const struct np_settings *env, struct np_census_login *out)
{
	int r = take_path(env, out);

	for (size_t i = 0; np_library_variables[i] && r == 0; i++) {
		const struct np_setting *s = find(env, np_library_variables[i]);
		char source[160], text[200];

		if (!s || np_streq(s->name, "LD_LIBRARY_PATH") || !is_folder(s->value))
			continue;
		source_of(s, source, sizeof(source));
		snprintf(text, sizeof(text), "%s, %s", s->name, source);
		r = np_strv_add(&out->prefixes, s->value);
		if (r == 0)
			r = np_strv_add(&out->sources, text);
	}
	return r;
}

int np_census_login(const struct np_user *user, struct np_census_login *out)
{
	/* nobody has no start files of its own */
	static const struct np_user system = { .name = "nobody",
					       .uid = 65534,
					       .gid = 65534,
					       .home = (char *)"/nonexistent",
					       .shell = (char *)"/bin/bash" };
	np_auto_consumer struct np_consumer c = { 0 };
	struct np_reader reader = { .consumer = &c, .root = "" };

	if (!user)
		user = &system;
	reader.user = user->name;
	reader.uid = user->uid;
	reader.gid = user->gid;
	reader.home = user->home;
	np_consumer_login(&reader, user->shell);
	return np_census_login_take(&c.env, out);
}

void np_census_login_done(struct np_census_login *login)
{
	if (!login)
		return;
	np_strv_done(&login->path);
	np_strv_done(&login->prefixes);
	np_strv_done(&login->sources);
	memset(login, 0, sizeof(*login));
}

/* ---- ld.so.conf ---- */

int np_ld_conf_folders(const char *text, size_t len, struct np_strv *out)
{
	np_auto_strv struct np_strv lines = { 0 };
	_cleanup_free_ char *copy = strndup(text, len);
	int r = copy ? np_strv_split(&lines, copy, "\r\n") : -ENOMEM;

	for (size_t i = 0; i < lines.n && r == 0; i++) {
		char *line = lines.v[i];

		/* "/folder # why", and of libc5's times "/folder=TYPE" */
		line[strcspn(line, "#=")] = '\0';
		line = np_strip(line);
		if (is_folder(line) && !np_strv_has(out, line))
			r = np_strv_add(out, line);
	}
	return r;
}
