/* SPDX-License-Identifier: MIT */
/* Where the census looks. */
#include "agent/census_items.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

#define CACHE_MAX   (16 << 20)
#define CONF_MAX    (64 * 1024)
#define LD_SO_CACHE "/etc/ld.so.cache"

#if defined(__x86_64__)
#define TRIPLET "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define TRIPLET "aarch64-linux-gnu"
#else
#define TRIPLET "unknown"
#endif

void np_census_item_add(struct np_census_look *l, enum np_library_place place, bool prefix,
			const char *path, const char *where)
{
	struct np_census_item *item = &l->items[l->n];

	for (size_t i = 0; i < l->n; i++)
		if (l->items[i].prefix == prefix && np_streq(l->items[i].path, path))
			return;
	if (l->n == NP_CENSUS_ITEMS_MAX) {
		l->out->cut = true;
		return;
	}
	*item = (struct np_census_item){ .place = place, .prefix = prefix };
	if (path[0] == '/' && np_strcpy(item->path, sizeof(item->path), path)) {
		np_strcpy(item->where, sizeof(item->where), where);
		l->n++;
	}
}

/* In the order of the dynamic linker; a symlink such as /lib is told apart later. */
static void add_standard(struct np_census_look *l)
{
	static const char *const folders[] = { "/lib/" TRIPLET, "/usr/lib/" TRIPLET,
					       "/lib64",	"/usr/lib64",
					       "/lib",		"/usr/lib" };

	for (size_t i = 0; i < NP_ARRAY_SIZE(folders); i++)
		np_census_item_add(l, NP_PLACE_STANDARD, false, folders[i], "");
}

static int take_entry(const char *name, const char *path, void *arg)
{
	struct np_census_look *l = arg;
	struct np_census *c = l->out;
	const char *slash = strrchr(path, '/');
	enum np_library_kind kind;
	struct np_cache_entry *v;
	bool loadable;

	if (!slash || slash == path || !np_library_name(name, &kind, &loadable) ||
	    (size_t)(slash - path) >= sizeof(v->folder) || strlen(name) >= sizeof(v->name))
		return 0;
	if (c->n_cache >= NP_CENSUS_ITEMS_MAX) {
		c->cut = true;
		return 0;
	}
	v = reallocarray(c->cache, c->n_cache + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	c->cache = v;
	v += c->n_cache++;
	memset(v, 0, sizeof(*v));
	np_strcpy(v->name, sizeof(v->name), name);
	memcpy(v->folder, path, (size_t)(slash - path));
	np_census_item_add(l, NP_PLACE_CACHE, false, v->folder, LD_SO_CACHE);
	return 0;
}

static int read_cache(struct np_census_look *l)
{
	np_auto_buf struct np_buf data = { 0 };
	int r = np_file_read_at(AT_FDCWD, LD_SO_CACHE, CACHE_MAX, &data);

	if (r == 0)
		r = np_ld_cache_each(data.data, data.len, take_entry, l);
	l->out->cache_known = r == 0;
	return r == -ENOMEM ? r : 0;
}

static bool is_conf(const char *name)
{
	const char *end = strrchr(name, '.');

	return end && np_streq(end, ".conf") && name[0] != '.';
}

static int add_conf(struct np_census_look *l, const char *path)
{
	np_auto_buf struct np_buf text = { 0 };
	np_auto_strv struct np_strv folders = { 0 };
	int r;

	if (np_file_read_at(AT_FDCWD, path, CONF_MAX, &text) < 0)
		return 0;
	r = np_ld_conf_folders(text.data, text.len, &folders);
	for (size_t i = 0; i < folders.n && r == 0; i++) {
		np_census_item_add(l, NP_PLACE_CACHE, false, folders.v[i], path);
		if (!np_strv_has(&l->out->listed, folders.v[i]))
			r = np_strv_add(&l->out->listed, folders.v[i]);
	}
	return r;
}

/* Its "include" is /etc/ld.so.conf.d/ *.conf everywhere. */
static int add_ld_conf(struct np_census_look *l)
{
	_cleanup_closedir_ DIR *dir = opendir("/etc/ld.so.conf.d");
	const struct dirent *entry;
	int r = add_conf(l, "/etc/ld.so.conf");

	while (r == 0 && dir && (entry = readdir(dir))) {
		char path[300];

		snprintf(path, sizeof(path), "/etc/ld.so.conf.d/%s", entry->d_name);
		if (is_conf(entry->d_name))
			r = add_conf(l, path);
	}
	return r;
}

static void add_known(struct np_census_look *l)
{
	static const char *const prefixes[] = { "/usr/local",	   "/usr",
						"/usr/local/cuda", "/opt/conda",
						"/opt/miniconda3", "/opt/miniforge3",
						"/opt/anaconda3" };

	for (size_t i = 0; i < l->cfg->library_prefixes.n; i++)
		np_census_item_add(l, NP_PLACE_CONFIG, true, l->cfg->library_prefixes.v[i],
				   "[libraries] prefixes");
	if (l->cfg->dask.prefix[0])
		np_census_item_add(l, NP_PLACE_CONFIG, true, l->cfg->dask.prefix, "[dask] prefix");
	for (size_t i = 0; i < NP_ARRAY_SIZE(prefixes); i++)
		np_census_item_add(l, NP_PLACE_KNOWN, true, prefixes[i], "");
}

void np_census_items_login(struct np_census_look *l, const struct np_census_login *login)
{
	for (size_t i = 0; i < login->path.n; i++)
		np_census_item_add(l, NP_PLACE_PATH, false, login->path.v[i], login->source);
	for (size_t i = 0; i < login->prefixes.n; i++)
		np_census_item_add(l, NP_PLACE_VARIABLE, true, login->prefixes.v[i],
				   login->sources.v[i]);
}

int np_census_items(struct np_census_look *l)
{
	int r;

	add_standard(l);
	r = read_cache(l);
	if (r == 0)
		r = add_ld_conf(l);
	add_known(l);
	return r;
}
