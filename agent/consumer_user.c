/* SPDX-License-Identifier: MIT */
/* What a user's login shell gets. Nothing of the user is run. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/consumer_look.h"
#include "base/user.h"

static bool scan(struct np_scan_spec *spec, const char *path, bool certain, struct np_settings *env)
{
	return np_shell_scan(spec, path, certain, env) == 0;
}

static bool scan_home(struct np_scan_spec *spec, const char *name, bool certain,
		      struct np_settings *env)
{
	_cleanup_free_ char *path = np_asprintf("%s/%s", spec->home, name);

	env->failed |= !path;
	return path && scan(spec, path, certain, env);
}

static void scan_bash(struct np_scan_spec *spec, struct np_settings *env)
{
	scan(spec, "/etc/profile", true, env);
	/* the first of them alone */
	if (spec->shell == NP_SHELL_BASH && (scan_home(spec, ".bash_profile", true, env) ||
					     scan_home(spec, ".bash_login", true, env)))
		return;
	scan_home(spec, ".profile", true, env);
}

/* Debian has the system's files in /etc/zsh, others in /etc. */
static void scan_zsh(struct np_scan_spec *spec, struct np_settings *env)
{
	static const struct {
		const char *name;
		bool certain;
	} files[] = { { "zshenv", true },
		      { "zprofile", true },
		      { "zshrc", false }, /* interactive shells alone */
		      { "zlogin", true } };

	for (size_t i = 0; i < NP_ARRAY_SIZE(files); i++) {
		char path[32];

		snprintf(path, sizeof(path), "/etc/zsh/%s", files[i].name);
		if (!scan(spec, path, files[i].certain, env)) {
			snprintf(path, sizeof(path), "/etc/%s", files[i].name);
			scan(spec, path, files[i].certain, env);
		}
		snprintf(path, sizeof(path), ".%s", files[i].name);
		scan_home(spec, path, files[i].certain, env);
	}
}

/* Debian's csh is tcsh or not, by a link. */
static bool is_csh(const char *shell, struct np_scan_spec *spec)
{
	char real[PATH_MAX];
	const char *name = realpath(shell, real) ? strrchr(real, '/') + 1 :
			   strrchr(shell, '/')	 ? strrchr(shell, '/') + 1 :
						   shell;

	spec->shell = np_streq(name, "tcsh") ? NP_SHELL_TCSH : NP_SHELL_CSH;
	return np_streq(name, "tcsh") || np_streq(name, "csh") || np_streq(name, "bsd-csh");
}

static void scan_shell(const struct np_reader *reader, const char *shell)
{
	struct np_consumer *c = reader->consumer;
	struct np_scan_files files = np_reader_files;
	struct np_scan_spec spec = { .user = reader->user, .home = reader->home, .files = &files };
	const char *name = strrchr(shell, '/') ? strrchr(shell, '/') + 1 : shell;

	files.arg = (void *)reader;
	if (np_streq(name, "bash")) {
		spec.shell = NP_SHELL_BASH;
		scan_bash(&spec, &c->env);
	} else if (!*name || np_streq(name, "sh") || np_streq(name, "dash") ||
		   np_streq(name, "ksh")) {
		spec.shell = NP_SHELL_SH;
		scan_bash(&spec, &c->env);
	} else if (np_streq(name, "zsh")) {
		spec.shell = NP_SHELL_ZSH;
		scan_zsh(&spec, &c->env);
	} else if (is_csh(shell, &spec)) {
		np_csh_scan_login(&spec, &c->env);
	} else {
		np_consumer_note(c, shell,
				 "what the start files of this login shell set is not known");
	}
}

void np_consumer_login(const struct np_reader *reader, const char *shell)
{
	np_auto_buf struct np_buf text = { 0 };
	struct np_settings *env = &reader->consumer->env;

	if (np_reader_read(reader, "/etc/environment", &text) == 0)
		np_settings_pam_env(env, "/etc/environment", text.data ? text.data : "", text.len);
	scan_shell(reader, shell);
	/* a hostile script can go on for ever: what was read up to there counts */
	if (env->failed)
		np_consumer_note(reader->consumer, "login shell",
				 "its scripts set too much to be followed");
	env->failed = false;
}

int np_consumer_user(const char *user_name, struct np_consumer *out, struct np_err *err)
{
	np_auto_user struct np_user user = { 0 };
	struct np_reader reader = { .consumer = out, .root = "" };
	struct np_user_limit limit;
	int r;

	memset(out, 0, sizeof(*out));
	r = np_user_by_name(user_name, &user, err);
	if (r < 0)
		return r;
	out->kind = NP_CONSUMER_USER;
	snprintf(out->name, sizeof(out->name), "user %s", user.name);
	reader.user = user.name;
	reader.uid = user.uid;
	reader.gid = user.gid;
	reader.home = user.home;
	np_consumer_login(&reader, user.shell);
	if (np_consumer_read_texts(&reader, NULL, NULL, false) < 0)
		return np_err_nomem(err);
	if (np_user_limit(user.name, &limit, err) == 0) {
		out->memlock.known = true;
		out->memlock.limit = limit.limit;
		np_strcpy(out->memlock.source, sizeof(out->memlock.source), limit.source);
	} else {
		np_consumer_note(out, "memlock", "%.200s", err ? err->message : "not known");
		np_err_clear(err);
	}
	return 0;
}
