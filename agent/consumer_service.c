/* SPDX-License-Identifier: MIT */
/* What a systemd unit gets, by its files: systemd is not asked. */
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/consumer_look.h"
#include "agent/consumer_unit.h"
#include "base/user.h"

/* systemd.unit(5), "System Unit Search Path"; /lib of systems that did not merge /usr. */
static const char *const search[] = {
	"/etc/systemd/system.control", "/run/systemd/system.control",
	"/run/systemd/transient",      "/run/systemd/generator.early",
	"/etc/systemd/system",	       "/etc/systemd/system.attached",
	"/run/systemd/system",	       "/run/systemd/system.attached",
	"/run/systemd/generator",      "/usr/local/lib/systemd/system",
	"/usr/lib/systemd/system",     "/lib/systemd/system",
	"/run/systemd/generator.late",
};

struct service {
	struct np_reader reader;
	struct np_unit unit;
	struct np_unit_names names;
	char name[128];	    /* "dask-worker@3.service" */
	char template[128]; /* "dask-worker@.service", or "" */
	char host[65];
};

static void scan_note(void *arg, const char *file, int line, const char *what)
{
	char target[128];

	snprintf(target, sizeof(target), "%.110s:%d", file, line);
	np_consumer_note(arg, target, "%s", what);
}

/* ---- names ---- */

static int set_name(struct service *s, const char *unit, struct np_err *err)
{
	const char *dot = strrchr(unit, '.'), *at;
	char shown[80];

	if (!*unit || strchr(unit, '/') || strlen(unit) + sizeof(".service") > sizeof(s->name) ||
	    unit[0] == '.') {
		np_err_set(err, -ENOENT, "show.no_unit", "\"%s\" is not the name of a unit",
			   np_printable(unit, shown, sizeof(shown)));
		np_err_hint(err, "see `systemctl list-units`");
		return -ENOENT;
	}
	snprintf(s->name, sizeof(s->name), "%s%s", unit,
		 dot && np_streq(dot, ".service") ? "" : ".service");
	at = strchr(s->name, '@');
	dot = strrchr(s->name, '.');
	if (at && at + 1 < dot)
		snprintf(s->template, sizeof(s->template), "%.*s%s", (int)(at - s->name) + 1,
			 s->name, dot);
	s->names.unit = s->name;
	return 0;
}

/* ---- the unit's own file ---- */

static int find_fragment(struct service *s, const char *name, char path[PATH_MAX])
{
	for (size_t i = 0; i < NP_ARRAY_SIZE(search); i++) {
		snprintf(path, PATH_MAX, "%s/%s", search[i], name);
		if (access(path, F_OK) == 0)
			return 0;
	}
	(void)s;
	return -ENOENT;
}

static int read_fragment(struct service *s, struct np_err *err)
{
	np_auto_buf struct np_buf text = { 0 };
	char path[PATH_MAX], target[PATH_MAX];
	int r = find_fragment(s, s->name, path);
	ssize_t n;

	if (r < 0 && s->template[0])
		r = find_fragment(s, s->template, path);
	if (r < 0) {
		np_err_set(err, r, "show.no_unit", "no unit %s in the folders of systemd", s->name);
		np_err_hint(err, "see `systemctl list-unit-files`");
		return r;
	}
	n = readlink(path, target, sizeof(target) - 1);
	if (n > 0) {
		target[n] = '\0';
		if (np_streq(target, "/dev/null")) {
			np_consumer_note(s->reader.consumer, path,
					 "the unit is masked: it cannot be started");
			return 0;
		}
	}
	r = np_reader_read(&s->reader, path, &text);
	if (r == 0)
		np_unit_parse(&s->unit, &s->names, path, text.data ? text.data : "", text.len);
	return r == -ENOMEM ? np_err_nomem(err) : 0;
}

/* ---- drop-ins ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(strrchr(*(char *const *)a, '/') + 1, strrchr(*(char *const *)b, '/') + 1);
}

/* Of one name the file in the folder that comes first. */
static int add_dropin(struct np_strv *list, const char *dir, const char *name)
{
	_cleanup_free_ char *path = np_asprintf("%s/%s", dir, name);

	for (size_t i = 0; i < list->n; i++)
		if (np_streq(strrchr(list->v[i], '/') + 1, name))
			return 0;
	return path ? np_strv_add(list, path) : -ENOMEM;
}

static int add_dropins(struct np_strv *list, const char *unit)
{
	int r = 0;

	for (size_t i = 0; i < NP_ARRAY_SIZE(search) && r == 0; i++) {
		np_auto_strv struct np_strv names = { 0 };
		char dir[PATH_MAX];

		snprintf(dir, sizeof(dir), "%s/%s.d", search[i], unit);
		if (np_reader_files.list(NULL, dir, &names) < 0)
			continue;
		for (size_t k = 0; k < names.n && r == 0; k++) {
			const char *end = strrchr(names.v[k], '.');

			if (names.v[k][0] != '.' && end && np_streq(end, ".conf"))
				r = add_dropin(list, dir, names.v[k]);
		}
	}
	return r;
}

/* Folders of the unit, of its template, of each "foo-" that its name begins with, of all
 * services; the more special one first. */
static int read_dropins(struct service *s)
{
	np_auto_strv struct np_strv list = { 0 };
	int r = add_dropins(&list, s->name);

	if (r == 0 && s->template[0])
		r = add_dropins(&list, s->template);
	for (size_t n = strcspn(s->name, "@."); n > 0 && r == 0; n--) {
		char prefix[160];

		if (s->name[n - 1] != '-' || n < 2)
			continue;
		snprintf(prefix, sizeof(prefix), "%.*s%s", (int)n, s->name, strrchr(s->name, '.'));
		r = add_dropins(&list, prefix);
	}
	if (r == 0)
		r = add_dropins(&list, "service");
	if (list.n)
		qsort(list.v, list.n, sizeof(*list.v), by_name);
	for (size_t i = 0; i < list.n && r == 0; i++) {
		np_auto_buf struct np_buf text = { 0 };

		/* a link to /dev/null masks it */
		if (np_reader_read(&s->reader, list.v[i], &text) == 0)
			np_unit_parse(&s->unit, &s->names, list.v[i], text.data ? text.data : "",
				      text.len);
	}
	return r;
}

/* ---- the environment ---- */

static void read_defaults(struct service *s, struct np_unit *manager)
{
	np_auto_strv struct np_strv names = { 0 };
	np_auto_strv struct np_strv paths = { 0 };

	if (np_strv_add(&paths, "/etc/systemd/system.conf") < 0)
		manager->failed = true;
	if (np_reader_files.list(NULL, "/etc/systemd/system.conf.d", &names) == 0)
		for (size_t i = 0; i < names.n; i++)
			if (strstr(names.v[i], ".conf"))
				manager->failed |= add_dropin(&paths, "/etc/systemd/system.conf.d",
							      names.v[i]) < 0;
	for (size_t i = 0; i < paths.n; i++) {
		np_auto_buf struct np_buf text = { 0 };

		if (np_reader_read(&s->reader, paths.v[i], &text) == 0)
			np_unit_parse_defaults(manager, paths.v[i], text.data ? text.data : "",
					       text.len);
	}
}

static void read_env_file(struct service *s, const struct np_unit_file *f, const char *path)
{
	struct np_consumer *c = s->reader.consumer;
	np_auto_buf struct np_buf text = { 0 };
	char at[128];
	int r = np_reader_read(&s->reader, path, &text);

	if (r == 0)
		np_settings_env_file(&c->env, path, text.data ? text.data : "", text.len);
	snprintf(at, sizeof(at), "%.110s:%d", f->from, f->line);
	if (r == -ENOENT && !f->may_lack)
		np_consumer_note(c, at, "%.120s is not there: the service cannot be started", path);
}

static void read_env_files(struct service *s)
{
	for (size_t i = 0; i < s->unit.n_files; i++) {
		const struct np_unit_file *f = &s->unit.files[i];
		glob_t found = { 0 };

		/* a pattern is the system's to answer where no user can hang it */
		if (strpbrk(f->path, "*?[") && np_starts_with(f->path, "/etc/") &&
		    glob(f->path, 0, NULL, &found) == 0) {
			for (size_t k = 0; k < found.gl_pathc; k++)
				read_env_file(s, f, found.gl_pathv[k]);
			globfree(&found);
		} else if (!strpbrk(f->path, "*?[")) {
			read_env_file(s, f, f->path);
		}
	}
}

static void append(struct np_settings *to, const struct np_settings *from)
{
	for (size_t i = 0; i < from->n; i++)
		np_settings_add(to, from->v[i].name, from->v[i].value, from->v[i].file,
				from->v[i].line, from->v[i].state);
}

static void take_away(struct np_consumer *c, const struct np_settings *unset)
{
	for (size_t i = 0; i < unset->n; i++) {
		const char *now = np_settings_value(&c->env, unset->v[i].name);

		if (now && (!unset->v[i].value || np_streq(now, unset->v[i].value)))
			np_settings_add(&c->env, unset->v[i].name, NULL, unset->v[i].file,
					unset->v[i].line, NP_SETTING_TAKEN);
	}
}

static void make_environment(struct service *s)
{
	struct np_unit manager = { 0 };
	struct np_consumer *c = s->reader.consumer;

	read_defaults(s, &manager);
	append(&c->env, &manager.env);
	append(&c->env, &s->unit.env);
	read_env_files(s);
	take_away(c, &s->unit.unset);
	for (size_t i = 0; i < s->unit.pass.n; i++)
		if (np_setting_matters(s->unit.pass.v[i]))
			np_consumer_note(c, s->unit.pass.v[i],
					 "the unit passes on what systemd itself was given");
	c->env.failed |= manager.failed;
	np_unit_done(&manager);
}

static void set_memlock(struct service *s)
{
	struct np_consumer *c = s->reader.consumer;

	if (!s->unit.memlock)
		return;
	snprintf(c->memlock.text, sizeof(c->memlock.text), "%.60s", s->unit.memlock);
	snprintf(c->memlock.source, sizeof(c->memlock.source), "%.300s", s->unit.memlock_file);
	c->memlock.line = s->unit.memlock_line;
	c->memlock.known = true;
}

int np_consumer_unit(const char *unit, struct np_consumer *out, struct np_err *err)
{
	struct service s = { .reader = { .consumer = out, .root = "", .home = "/root" } };
	np_auto_user struct np_user user = { 0 };
	int r;

	memset(out, 0, sizeof(*out));
	out->kind = NP_CONSUMER_UNIT;
	s.unit.note = scan_note;
	s.unit.arg = out;
	r = set_name(&s, unit, err);
	if (r < 0)
		return r;
	if (gethostname(s.host, sizeof(s.host) - 1) == 0)
		s.names.host = s.host;
	snprintf(out->name, sizeof(out->name), "unit %s", s.name);
	s.reader.user = "root";
	/* %h is the home of the user of the service manager: root's */
	s.names.home = "/root";
	r = read_fragment(&s, err);
	if (r == 0 && read_dropins(&s) < 0)
		r = np_err_nomem(err);
	if (r == 0 && s.unit.user && np_user_by_name(s.unit.user, &user, NULL) < 0)
		np_consumer_note(out, s.unit.user,
				 "the user of the unit is not in the password database");
	else if (r == 0)
		r = s.unit.user ? 0 : np_user_by_uid(0, &user, err);
	if (r == 0)
		make_environment(&s);
	if (r == 0 && user.home) {
		s.reader.user = user.name;
		s.reader.uid = user.uid;
		s.reader.gid = user.gid;
		s.reader.home = user.home;
		/* with User= systemd sets HOME; a system service without has none */
		if (np_consumer_read_texts(&s.reader,
					   np_streq(s.unit.directory, "~") ? user.home :
					   s.unit.directory		   ? s.unit.directory :
									     "/",
					   NULL, false) < 0)
			r = np_err_nomem(err);
	}
	if (r == 0 && (s.unit.failed || out->env.failed))
		r = np_err_nomem(err);
	set_memlock(&s);
	np_unit_done(&s.unit);
	return r;
}
