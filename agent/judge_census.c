/* SPDX-License-Identifier: MIT */
/* What the census means for NCCL, UCX and libgdrapi. Pure. */
#include <stdio.h>
#include <string.h>

#include "agent/judge.h"

static bool is_library(const struct np_library_file *f)
{
	return f->kind == NP_LIBRARY_NCCL || f->kind == NP_LIBRARY_UCP ||
	       f->kind == NP_LIBRARY_UCT || f->kind == NP_LIBRARY_GDRAPI;
}

static void path_of(const struct np_library_file *f, char out[128])
{
	snprintf(out, 128, "%.90s/%.30s", f->folder, f->name);
}

static void add_name(struct np_buf *names, const char *name)
{
	np_buf_printf(names, "%s%s", names->len ? ", " : "", name);
}

static bool is_systems(const struct np_census_consumer *who)
{
	return who->who == NP_CENSUS_SERVICES || who->who == NP_CENSUS_LOGINS;
}

/* ---- NCCL's floor ---- */

/* Who gets it, and who has it behind another one on the way. */
static void who_finds(const struct np_census *c, const struct np_library_file *f,
		      struct np_buf *users, struct np_buf *behind, bool *systems)
{
	*systems = false;
	for (size_t i = 0; i < c->n_consumers; i++) {
		const struct np_census_consumer *who = &c->consumers[i];

		for (size_t nth = 0; f->loadable; nth++) {
			const struct np_library_file *one = np_census_find(c, who, f->name, nth);

			if (!one)
				break;
			if (one != f)
				continue;
			add_name(nth == 0 ? users : behind, who->name);
			*systems |= nth == 0 && is_systems(who);
			break;
		}
	}
}

/* Left behind under its full name, as libnccl.so.2.3.7: the next ldconfig, or a link, brings
 * it back. */
static bool is_on_path(const struct np_census *c, const struct np_library_file *f)
{
	for (size_t i = 0; i < c->n_consumers; i++)
		if (np_strv_has(&c->consumers[i].folders, f->folder))
			return true;
	return np_strv_has(&c->standard, f->folder) || np_strv_has(&c->listed, f->folder);
}

static void judge_floor(const struct np_config *cfg, const struct np_census *c,
			const struct np_library_file *f, struct np_checks *out)
{
	np_auto_buf struct np_buf users = { 0 }, behind = { 0 };
	char path[128];
	bool systems;

	if (f->kind != NP_LIBRARY_NCCL || !f->version[0] ||
	    np_natural_cmp(f->version, cfg->nccl_version_min) >= 0)
		return;
	who_finds(c, f, &users, &behind, &systems);
	if (!users.len && !behind.len && !is_on_path(c, f))
		return;
	path_of(f, path);
	/* of the users' own programs the node is no less ready */
	np_checks_add(out, "library", path, systems ? NP_CHECK_FAIL : NP_CHECK_WARN,
		      "nccl.library_too_old",
		      users.len && !systems ?
			      "update it there, or take it out of that LD_LIBRARY_PATH" :
			      "remove it from the search path, or install NCCL in its place",
		      "NCCL %s is older than the %s that is needed; %s%.120s", f->version,
		      cfg->nccl_version_min,
		      users.len	 ? "used by " :
		      behind.len ? "on the search path, behind another, of " :
				   "lies on the search path",
		      users.len	 ? users.data :
		      behind.len ? behind.data :
				   "");
}

/* ---- one that hides another ---- */

/* An environment brings its own, and is meant to. */
static bool may_hide(const struct np_census_consumer *who)
{
	return who->who == NP_CENSUS_LOGINS || who->who == NP_CENSUS_USER;
}

static void judge_shadow(const struct np_census *c, const struct np_census_consumer *who,
			 const struct np_library_file *hidden, struct np_checks *out)
{
	const struct np_library_file *first = np_census_find(c, who, hidden->name, 0);
	bool older;
	char path[128];

	if (!first || first == hidden || first->damaged ||
	    !np_strv_has(&who->folders, first->folder) ||
	    np_streq(first->version, hidden->version) || hidden->kind == NP_LIBRARY_UCT)
		return;
	older = !first->version[0] || !hidden->version[0] ||
		np_natural_cmp(first->version, hidden->version) < 0;
	path_of(first, path);
	np_checks_add(
		out, "library", path, older ? NP_CHECK_WARN : NP_CHECK_OK, "library.shadowing",
		older ? "take its folder out of LD_LIBRARY_PATH, or update what is in it" : NULL,
		"%s %s hides %.60s/%.30s %s, which services get, from %.60s (%.80s)",
		np_library_kind_str(first->kind),
		first->version[0] ? first->version : "of unknown version", hidden->folder,
		hidden->name, hidden->version[0] ? hidden->version : "of unknown version",
		who->name, who->source);
}

static void judge_shadows(const struct np_census *c, struct np_checks *out)
{
	const struct np_census_consumer *services = NULL;

	for (size_t i = 0; i < c->n_consumers; i++)
		if (c->consumers[i].who == NP_CENSUS_SERVICES)
			services = &c->consumers[i];
	for (size_t i = 0; services && i < c->n; i++) {
		const struct np_library_file *f = &c->files[i];

		if (!is_library(f) || !f->loadable || np_census_find(c, services, f->name, 0) != f)
			continue;
		for (size_t k = 0; k < c->n_consumers; k++)
			if (may_hide(&c->consumers[k]))
				judge_shadow(c, &c->consumers[k], f, out);
	}
}

/* ---- what depends on where a program starts ---- */

static void judge_relative(const struct np_census *c, struct np_checks *out)
{
	for (size_t i = 0; i < c->n_consumers; i++) {
		const struct np_census_consumer *who = &c->consumers[i];
		char source[128];

		if (!who->relative[0])
			continue;
		np_strcpy(source, sizeof(source), who->source);
		np_checks_add(
			out, "library", source, NP_CHECK_WARN, "library.path_relative",
			"name absolute folders alone; behind one write ${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
			"LD_LIBRARY_PATH of %s has %s: a program takes libraries from the folder that it is started in",
			who->name, who->relative);
	}
}

/* ---- the loader cache ---- */

/* The dynamic linker looks into its own folders without the cache, too. */
static void judge_cache(const struct np_census *c, struct np_checks *out)
{
	char path[128];

	for (size_t i = 0; i < c->n && c->cache_known; i++) {
		const struct np_library_file *f = &c->files[i];

		if (!is_library(f) || !f->loadable || f->problem[0] || f->cached != NP_TRI_NO ||
		    !np_strv_has(&c->listed, f->folder) || np_strv_has(&c->standard, f->folder))
			continue;
		path_of(f, path);
		np_checks_add(
			out, "library", path, NP_CHECK_WARN, "library.not_in_cache", "run ldconfig",
			"on disk, in a folder of ld.so.conf, but the loader cache does not know it: services do not find it");
	}
	for (size_t i = 0; i < c->n_cache; i++) {
		const struct np_cache_entry *e = &c->cache[i];

		if (!e->gone)
			continue;
		snprintf(path, sizeof(path), "%.90s/%.30s", e->folder, e->name);
		np_checks_add(out, "library", path, NP_CHECK_WARN, "library.stale_cache",
			      "run ldconfig",
			      "the loader cache names it, but there is no such file");
	}
}

/* ---- what could not be read ---- */

static void judge_unread_library(const struct np_census *c, const struct np_library_file *f,
				 struct np_checks *out)
{
	np_auto_buf struct np_buf users = { 0 };
	bool systems = false;
	char path[128];

	for (size_t i = 0; f->loadable && i < c->n_consumers; i++) {
		const struct np_census_consumer *who = &c->consumers[i];

		if (who->who == NP_CENSUS_ENVIRONMENT || np_census_find(c, who, f->name, 0) != f)
			continue;
		add_name(&users, who->name);
		systems |= is_systems(who);
	}
	if (!users.len)
		return;
	path_of(f, path);
	if (f->damaged) {
		np_checks_add(
			out, "library", path, systems ? NP_CHECK_FAIL : NP_CHECK_WARN,
			"library.damaged", "install it again, or remove it",
			"the first of its name for %.80s, and %s: their programs do not start",
			users.data, f->problem);
		return;
	}
	np_checks_add(out, "library", path, NP_CHECK_UNKNOWN, "library.unread",
		      "look at it, and give root access to it",
		      "used by %.80s, and its version is not known: %s", users.data,
		      f->problem[0] ? f->problem : "it does not tell");
}

static void judge_unread(const struct np_census *c, struct np_checks *out)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct np_library_file *f = &c->files[i];

		if (f->kind == NP_LIBRARY_FOLDER)
			np_checks_add(out, "library", f->folder, NP_CHECK_UNKNOWN, "library.unread",
				      "correct who names it, or give root access to it",
				      "not looked into: %s", f->problem);
		else if (is_library(f) &&
			 (f->problem[0] || (f->kind == NP_LIBRARY_NCCL && !f->version[0])))
			judge_unread_library(c, f, out);
	}
	if (c->cut)
		np_checks_add(out, "library", "node", NP_CHECK_UNKNOWN, "library.unread",
			      "remove what is not used, or name fewer places",
			      "there is more than the census looks at");
}

void np_judge_census(const struct np_config *cfg, const struct np_census *c, struct np_checks *out)
{
	if (!c->looked)
		return;
	for (size_t i = 0; i < c->n; i++)
		judge_floor(cfg, c, &c->files[i], out);
	judge_shadows(c, out);
	judge_relative(c, out);
	judge_cache(c, out);
	judge_unread(c, out);
}
