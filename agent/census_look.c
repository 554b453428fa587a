/* SPDX-License-Identifier: MIT */
/* The census: by whose identity which place is looked into, and who finds what there. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/census_items.h"
#include "base/child.h"

#define TIMEOUT_MS 10000
#define HOMES_MAX  32
#define HOMES_MS   60000 /* for all of them */
#define NOBODY	   65534

/* ---- children ---- */

static int run_as(const struct np_user *user, int (*fn)(void *arg, struct np_buf *out), void *arg,
		  struct np_buf *out, struct np_err *err)
{
	/* one of root's own may lie on a file system that hangs, too */
	if (!user || user->uid == geteuid() || geteuid() != 0)
		return np_with_deadline("the census of libraries", TIMEOUT_MS, fn, arg, out, err);
	return np_as_user(user->name, user->uid, user->gid, TIMEOUT_MS, fn, arg, out, err);
}

struct batch {
	struct np_census_item *items;
	size_t n;
	bool trusted;
};

static int resolve_job(void *arg, struct np_buf *out)
{
	const struct batch *b = arg;

	for (size_t i = 0; i < b->n; i++) {
		struct np_census_item item = b->items[i];
		char real[PATH_MAX];
		struct stat st;

		if (realpath(item.path, real) && stat(real, &st) == 0 && S_ISDIR(st.st_mode) &&
		    np_strcpy(item.real, sizeof(item.real), real))
			item.roots = np_census_is_roots(real, &item.owner);
		else
			item.real[0] = '\0';
		np_buf_add(out, &item, sizeof(item));
	}
	return 0;
}

static int scan_job(void *arg, struct np_buf *out)
{
	const struct batch *b = arg;
	struct np_census_walk w = { .trusted = b->trusted,
				    .names_left = NP_CENSUS_WALK_NAMES,
				    .folders_left = NP_CENSUS_WALK_FOLDERS,
				    .files_left = NP_CENSUS_WALK_FILES,
				    .out = out };

	for (size_t i = 0; i < b->n; i++) {
		const struct np_census_item *item = &b->items[i];
		_cleanup_close_ int base =
			open(item->real, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);

		w.base = base;
		w.base_path = item->real;
		w.place = item->place;
		w.where = item->where;
		/* the dynamic linker passes over what is not there */
		if (base < 0 && errno != ENOENT && errno != ENOTDIR)
			np_census_say(&w, "", "cannot be looked into: %s", strerror(errno));
		else if (base < 0)
			continue;
		else if (item->prefix)
			np_census_prefix(&w, "", true);
		else
			np_census_folder(&w, "");
	}
	return 0;
}

static int take_files(struct np_census_look *l, const struct np_buf *data, const char *user)
{
	if (data->len % sizeof(struct np_library_file))
		return np_err_set(l->err, -EIO, "internal.child", "half a row of the census");
	l->out->cut |= data->len / sizeof(struct np_library_file) >= NP_CENSUS_WALK_FILES;
	for (size_t i = 0; i < data->len / sizeof(struct np_library_file); i++) {
		struct np_library_file f;

		memcpy(&f, data->data + i * sizeof(f), sizeof(f));
		np_strcpy(f.user, sizeof(f.user), user);
		if (!np_census_add(l->out, &f) && !l->out->cut)
			return np_err_nomem(l->err);
	}
	return 0;
}

/* A place that gave no answer, or where its owner cannot be acted as. */
static int add_problem(struct np_census_look *l, const char *path, const char *user,
		       const char *why)
{
	struct np_library_file f = { .kind = NP_LIBRARY_FOLDER };

	np_strcpy(f.folder, sizeof(f.folder), path);
	np_strcpy(f.user, sizeof(f.user), user);
	np_strcpy(f.problem, sizeof(f.problem), why);
	return np_census_add(l->out, &f) || l->out->cut ? 0 : np_err_nomem(l->err);
}

/* @fn for all of @b in one child; where that one hangs, for each half, down to the place
 * that does not answer. */
static int run_batch(struct np_census_look *l, const struct np_user *user, struct batch b,
		     int (*fn)(void *arg, struct np_buf *out), struct np_buf *out)
{
	struct batch half = b;
	struct np_err err = { 0 };
	np_auto_buf struct np_buf answer = { 0 };
	int r = b.n ? run_as(user, fn, &b, &answer, &err) : 0;

	if (r == -ETIMEDOUT && b.n > 1) {
		half.n = b.n / 2;
		r = run_batch(l, user, half, fn, out);
		half.items += half.n;
		half.n = b.n - half.n;
		return r < 0 ? r : run_batch(l, user, half, fn, out);
	}
	if (r == -ENOMEM || r == -EINTR) {
		*l->err = err;
		return r;
	}
	if (r < 0) {
		for (size_t i = 0; i < b.n && r != -ENOMEM; i++)
			r = add_problem(l, b.items[i].path, user ? user->name : "", err.message);
		return r == -ENOMEM ? r : 0;
	}
	np_buf_add(out, answer.data ? answer.data : "", answer.len);
	return out->failed ? np_err_nomem(l->err) : 0;
}

/* ---- the folders that the system names ---- */

static int resolve(struct np_census_look *l)
{
	np_auto_buf struct np_buf out = { 0 };
	int r = run_batch(l, NULL, (struct batch){ .items = l->items, .n = l->n }, resolve_job,
			  &out);

	if (r < 0)
		return r;
	l->n = out.len / sizeof(struct np_census_item);
	memcpy(l->items, out.data ? out.data : "", l->n * sizeof(struct np_census_item));
	return 0;
}

static bool came_before(const struct np_census_item *items, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (items[k].prefix == items[i].prefix && np_streq(items[k].real, items[i].real))
			return true;
	return false;
}

/* By the identity of its owner; a place that others may write to, by nobody's. */
static int scan_foreign(struct np_census_look *l, struct np_census_item *item)
{
	np_auto_user struct np_user user = { 0 };
	np_auto_buf struct np_buf out = { 0 };
	struct np_user nobody = { .name = "nobody", .uid = NOBODY, .gid = NOBODY };
	const struct np_user *as = &nobody;
	int r;

	if (item->owner != NOBODY && np_user_by_uid(item->owner, &user, NULL) == 0)
		as = &user;
	else
		nobody.uid = item->owner;
	r = run_batch(l, as, (struct batch){ .items = item, .n = 1 }, scan_job, &out);
	return r < 0 ? r : take_files(l, &out, "");
}

/* What the configuration names is meant to be there. */
static int tell_missing(struct np_census_look *l)
{
	int r = 0;

	for (size_t i = 0; i < l->n && r == 0; i++)
		if (l->items[i].place == NP_PLACE_CONFIG && !l->items[i].real[0])
			r = add_problem(l, l->items[i].path, "", "there is no such folder");
	return r;
}

/* What is root's in one child, then the others; the order of the list decides which of two
 * reasons to look at one place is told. */
static int scan_items(struct np_census_look *l)
{
	_cleanup_free_ struct np_census_item *own = calloc(l->n + 1, sizeof(*own));
	np_auto_buf struct np_buf out = { 0 };
	struct batch b = { .items = own, .trusted = true };
	int r;

	if (!own)
		return np_err_nomem(l->err);
	for (size_t i = 0; i < l->n; i++)
		if (l->items[i].real[0] && !came_before(l->items, i) && l->items[i].roots)
			own[b.n++] = l->items[i];
	r = run_batch(l, NULL, b, scan_job, &out);
	if (r == 0)
		r = take_files(l, &out, "");
	for (size_t i = 0; i < l->n && r == 0; i++)
		if (l->items[i].real[0] && !came_before(l->items, i) && !l->items[i].roots)
			r = scan_foreign(l, &l->items[i]);
	return r;
}

/* As the scan named it: /lib/x is /usr/lib/x. */
static const char *real_of(const struct np_census_look *l, const char *path)
{
	for (size_t i = 0; i < l->n; i++)
		if (!l->items[i].prefix && np_streq(l->items[i].path, path) && l->items[i].real[0])
			return l->items[i].real;
	return path;
}

static int name_folders(struct np_census_look *l)
{
	struct np_census *c = l->out;
	np_auto_strv struct np_strv listed = { 0 };
	int r = 0;

	for (size_t i = 0; i < l->n && r == 0; i++)
		if (l->items[i].place == NP_PLACE_STANDARD && l->items[i].real[0] &&
		    !np_strv_has(&c->standard, l->items[i].real))
			r = np_strv_add(&c->standard, l->items[i].real);
	for (size_t i = 0; i < c->n_cache; i++) {
		char folder[256];

		np_strcpy(folder, sizeof(folder), real_of(l, c->cache[i].folder));
		np_strcpy(c->cache[i].folder, sizeof(c->cache[i].folder), folder);
	}
	for (size_t i = 0; i < c->listed.n && r == 0; i++)
		r = np_strv_add(&listed, real_of(l, c->listed.v[i]));
	np_strv_done(&c->listed);
	c->listed = listed;
	memset(&listed, 0, sizeof(listed));
	return r < 0 ? np_err_nomem(l->err) : 0;
}

/* ---- logins ---- */

static int add_consumer(struct np_census_look *l, enum np_census_who who, const char *name,
			const struct np_census_login *login)
{
	struct np_census_consumer *c = np_census_consumer_add(l->out, who, name);

	if (!c)
		return np_err_nomem(l->err);
	np_strcpy(c->source, sizeof(c->source), login->source);
	np_strcpy(c->relative, sizeof(c->relative), login->relative);
	for (size_t i = 0; i < login->path.n; i++) {
		const char *real = real_of(l, login->path.v[i]);

		if (!np_strv_has(&c->folders, real) && np_strv_add(&c->folders, real) < 0)
			return np_err_nomem(l->err);
	}
	return 0;
}

/* ---- homes ---- */

struct home {
	const struct np_census_look *l;
	const struct np_user *user;
};

static bool is_item(const struct np_census_look *l, const char *path)
{
	for (size_t i = 0; i < l->n; i++)
		if (np_streq(l->items[i].path, path))
			return true;
	return false;
}

/* Places that the user's login names and the system's does not; @items has room for all. */
static size_t own_items(const struct home *h, const struct np_census_login *login,
			struct np_census_item *items)
{
	struct np_census census = { 0 };
	struct np_census_look own = { .out = &census, .items = items };
	size_t n = 0;

	np_census_items_login(&own, login);
	for (size_t i = 0; i < own.n; i++) {
		if (is_item(h->l, items[i].path))
			continue;
		if (n != i)
			items[n] = items[i];
		np_strcpy(items[n].real, sizeof(items[n].real), items[n].path);
		n++;
	}
	return n;
}

static void scan_home(const struct np_user *user, struct np_buf *out)
{
	_cleanup_close_ int base =
		open(user->home, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	struct np_census_walk w = { .base = base,
				    .base_path = user->home,
				    .place = NP_PLACE_KNOWN,
				    .names_left = NP_CENSUS_WALK_NAMES,
				    .folders_left = NP_CENSUS_WALK_FOLDERS,
				    .files_left = NP_CENSUS_WALK_FILES,
				    .out = out };
	struct stat st;

	if (base < 0 || fstat(base, &st) < 0)
		np_census_say(&w, "", "cannot be looked into: %s", strerror(errno));
	else if (st.st_uid != user->uid)
		np_census_say(&w, "", "the home is owned by uid %u", (unsigned int)st.st_uid);
	else
		np_census_home(&w);
}

/* One child for all of a user: its scripts are read here, too. In front of the rows goes
 * LD_LIBRARY_PATH: three strings, where it is set, what is relative in it, and what it is. */
static int home_job(void *arg, struct np_buf *out)
{
	const struct home *h = arg;
	_cleanup_free_ struct np_census_item *items = calloc(NP_CENSUS_ITEMS_MAX, sizeof(*items));
	np_auto_census_login struct np_census_login login = { 0 };
	struct batch b = { .items = items };

	if (!items || np_census_login(h->user, &login) < 0)
		return -ENOMEM;
	np_buf_add(out, login.source, strlen(login.source) + 1);
	np_buf_add(out, login.relative, strlen(login.relative) + 1);
	for (size_t i = 0; i < login.path.n; i++)
		np_buf_printf(out, "%s%s", i ? ":" : "", login.path.v[i]);
	np_buf_add(out, "", 1);
	b.n = own_items(h, &login, items);
	scan_home(h->user, out);
	return scan_job(&b, out);
}

/* The text at @*used, and where it ends; NULL: there is no end. */
static const char *take_text(const struct np_buf *out, size_t *used)
{
	const char *text = out->data ? out->data + *used : NULL;
	const char *end = text ? memchr(text, '\0', out->len - *used) : NULL;

	if (!end)
		return NULL;
	*used += (size_t)(end + 1 - text);
	return text;
}

static int take_login(const struct np_buf *out, struct np_census_login *login, size_t *used)
{
	const char *source = take_text(out, used);
	const char *relative = source ? take_text(out, used) : NULL;
	const char *path = relative ? take_text(out, used) : NULL;

	if (!path)
		return -EIO;
	np_strcpy(login->source, sizeof(login->source), source);
	np_strcpy(login->relative, sizeof(login->relative), relative);
	return np_strv_split(&login->path, path, ":");
}

static int look_into_home(struct np_census_look *l, const struct np_user *user,
			  struct np_census_login *login)
{
	struct home home = { .l = l, .user = user };
	np_auto_buf struct np_buf out = { 0 };
	struct np_buf rows = { 0 };
	struct np_err err = { 0 };
	size_t used = 0;
	int r = run_as(user, home_job, &home, &out, &err);

	if (r == 0)
		r = take_login(&out, login, &used);
	if (r == -ENOMEM)
		return np_err_nomem(l->err);
	if (r == -EINTR) {
		*l->err = err;
		return r;
	}
	if (r < 0)
		return add_problem(l, user->home, user->name,
				   err.message[0] ? err.message : "half an answer");
	rows.data = out.data + used;
	rows.len = out.len - used;
	return take_files(l, &rows, user->name);
}

static bool has_home(const struct np_user *user)
{
	return user->home[0] == '/' && user->home[strspn(user->home, "/")] &&
	       !np_streq(user->home, "/nonexistent");
}

static bool same_path(const struct np_census_login *a, const struct np_census_login *b)
{
	if (a->path.n != b->path.n || !np_streq(a->relative, b->relative))
		return false;
	for (size_t i = 0; i < a->path.n; i++)
		if (!np_streq(a->path.v[i], b->path.v[i]))
			return false;
	return true;
}

static int look_at_user(struct np_census_look *l, const char *name,
			const struct np_census_login *system)
{
	np_auto_census_login struct np_census_login login = { 0 };
	np_auto_user struct np_user user = { 0 };
	char text[64];
	int r;

	if (np_user_by_name(name, &user, NULL) < 0 || !has_home(&user))
		return 0;
	/* another's home is closed to an ordinary user */
	if (geteuid() != 0 && geteuid() != user.uid)
		return add_problem(l, user.home, user.name, "not looked into: run it as root");
	if (np_now_ms() > l->homes_until) {
		l->out->cut = true;
		return 0;
	}
	r = look_into_home(l, &user, &login);
	if (r < 0 || same_path(&login, system))
		return r;
	snprintf(text, sizeof(text), "user %s", user.name);
	return add_consumer(l, NP_CENSUS_USER, text, &login);
}

static int look_at_users(struct np_census_look *l, const struct np_census_login *system)
{
	const struct np_config *cfg = l->cfg;
	np_auto_user struct np_user self = { 0 };
	int r = 0;

	l->homes_until = np_now_ms() + HOMES_MS;
	for (size_t i = 0; i < cfg->users.n && r == 0; i++) {
		if (i == HOMES_MAX) {
			l->out->cut = true;
			break;
		}
		r = look_at_user(l, cfg->users.v[i], system);
	}
	/* root, and who called sudo, are in the list; who only looks is not */
	if (r == 0 && np_user_by_uid(geteuid(), &self, NULL) == 0 &&
	    !np_strv_has(&cfg->users, self.name))
		r = look_at_user(l, self.name, system);
	return r;
}

int np_census_look(const struct np_config *cfg, struct np_census *out, struct np_err *err)
{
	np_auto_census_login struct np_census_login system = { 0 }, none = { 0 };
	_cleanup_free_ struct np_census_item *items = calloc(NP_CENSUS_ITEMS_MAX, sizeof(*items));
	struct np_census_look l = { .cfg = cfg, .out = out, .items = items, .err = err };
	int r;

	if (!items)
		return np_err_nomem(err);
	memset(out, 0, sizeof(*out));
	out->looked = true;
	if (np_census_items(&l) < 0 || np_census_login(NULL, &system) < 0)
		return np_err_nomem(err);
	np_census_items_login(&l, &system);
	r = resolve(&l);
	if (r == 0)
		r = name_folders(&l);
	if (r == 0)
		r = scan_items(&l);
	if (r == 0)
		r = tell_missing(&l);
	if (r == 0)
		r = add_consumer(&l, NP_CENSUS_SERVICES, "services", &none);
	if (r == 0)
		r = add_consumer(&l, NP_CENSUS_LOGINS, "logins", &system);
	if (r == 0)
		r = look_at_users(&l, &system);
	if (r == 0 && np_census_settle(out) < 0)
		r = np_err_nomem(err);
	return r;
}
