/* SPDX-License-Identifier: MIT */
/* Who gets which library. Pure. */
#include "agent/census.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const kinds[NP_LIBRARY_KINDS] = {
	[NP_LIBRARY_NCCL] = "nccl",
	[NP_LIBRARY_NCCL_STATIC] = "nccl-static",
	[NP_LIBRARY_NCCL_HEADER] = "nccl-header",
	[NP_LIBRARY_UCP] = "ucp",
	[NP_LIBRARY_UCT] = "uct",
	[NP_LIBRARY_GDRAPI] = "gdrapi",
	[NP_LIBRARY_UCX_PY] = "ucx-py",
	[NP_LIBRARY_UCXX] = "ucxx",
	[NP_LIBRARY_DISTRIBUTED_UCXX] = "distributed-ucxx",
	[NP_LIBRARY_FOLDER] = "folder",
};

static const char *const places[NP_PLACES] = {
	[NP_PLACE_STANDARD] = "standard",    [NP_PLACE_CACHE] = "loader cache",
	[NP_PLACE_PATH] = "LD_LIBRARY_PATH", [NP_PLACE_VARIABLE] = "variable",
	[NP_PLACE_CONFIG] = "config",	     [NP_PLACE_KNOWN] = "known",
	[NP_PLACE_CONDA] = "conda",	     [NP_PLACE_PYTHON] = "python",
};

const char *np_library_kind_str(enum np_library_kind kind)
{
	return kinds[kind];
}

const char *np_library_place_str(enum np_library_place place)
{
	return places[place];
}

static void consumer_done(struct np_census_consumer *who)
{
	np_strv_done(&who->folders);
}

void np_census_done(struct np_census *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_consumers; i++)
		consumer_done(&c->consumers[i]);
	free(c->consumers);
	free(c->files);
	free(c->cache);
	np_strv_done(&c->standard);
	np_strv_done(&c->listed);
	memset(c, 0, sizeof(*c));
}

static const struct np_library_file *in_folder(const struct np_census *c, const char *folder,
					       const char *name)
{
	for (size_t i = 0; i < c->n; i++)
		if (np_streq(c->files[i].folder, folder) && np_streq(c->files[i].name, name))
			return &c->files[i];
	return NULL;
}

bool np_census_add(struct np_census *c, const struct np_library_file *file)
{
	struct np_library_file *v;

	if (in_folder(c, file->folder, file->name))
		return true;
	if (c->n >= NP_CENSUS_FILES_MAX) {
		c->cut = true;
		return false;
	}
	v = reallocarray(c->files, c->n + 1, sizeof(*v));
	if (!v)
		return false;
	c->files = v;
	v[c->n++] = *file;
	return true;
}

struct np_census_consumer *np_census_consumer_add(struct np_census *c, enum np_census_who who,
						  const char *name)
{
	struct np_census_consumer *v = reallocarray(c->consumers, c->n_consumers + 1, sizeof(*v));

	if (!v)
		return NULL;
	c->consumers = v;
	v += c->n_consumers++;
	memset(v, 0, sizeof(*v));
	v->who = who;
	np_strcpy(v->name, sizeof(v->name), name);
	return v;
}

/* ---- once all is there ---- */

static void settle_cache(struct np_census *c)
{
	for (size_t i = 0; i < c->n; i++) {
		struct np_library_file *f = &c->files[i];

		f->cached = !c->cache_known || !f->loadable ? NP_TRI_UNKNOWN : NP_TRI_NO;
		for (size_t k = 0; k < c->n_cache; k++)
			if (f->loadable && np_streq(c->cache[k].folder, f->folder) &&
			    np_streq(c->cache[k].name, f->name))
				f->cached = NP_TRI_YES;
	}
	/* libnccl.so is no row of its own beside libnccl.so.2: only what has one number */
	for (size_t k = 0; k < c->n_cache && !c->cut; k++) {
		const char *number = strstr(c->cache[k].name, ".so.");

		c->cache[k].gone = number && !strchr(number + 4, '.') &&
				   !in_folder(c, c->cache[k].folder, c->cache[k].name);
	}
}

/* libuct has no version of its own; mt is told by libucp, the other features by libuct. */
static void settle_ucx(struct np_census *c)
{
	for (size_t i = 0; i < c->n; i++) {
		struct np_library_file *uct = &c->files[i];

		for (size_t k = 0; k < c->n && uct->kind == NP_LIBRARY_UCT; k++) {
			struct np_library_file *ucp = &c->files[k];

			if (ucp->kind != NP_LIBRARY_UCP || !np_streq(ucp->folder, uct->folder))
				continue;
			if (!uct->version[0] && ucp->version[0]) {
				memcpy(uct->version, ucp->version, sizeof(uct->version));
				np_strcpy(uct->version_by, sizeof(uct->version_by), "libucp");
			}
			ucp->verbs = uct->verbs;
			ucp->cuda = uct->cuda;
			ucp->gdr_copy = uct->gdr_copy;
			uct->mt = ucp->mt;
		}
	}
}

static int settle_environments(struct np_census *c)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct np_library_file *f = &c->files[i];
		struct np_census_consumer *who = NULL;

		if (!f->environment[0] || !f->loadable)
			continue;
		for (size_t k = 0; k < c->n_consumers; k++)
			if (c->consumers[k].who == NP_CENSUS_ENVIRONMENT &&
			    np_streq(c->consumers[k].name, f->environment))
				who = &c->consumers[k];
		if (!who)
			who = np_census_consumer_add(c, NP_CENSUS_ENVIRONMENT, f->environment);
		if (!who || (!np_strv_has(&who->folders, f->folder) &&
			     np_strv_add(&who->folders, f->folder) < 0))
			return -ENOMEM;
	}
	return 0;
}

int np_census_settle(struct np_census *c)
{
	settle_cache(c);
	settle_ucx(c);
	return settle_environments(c);
}

/* ---- the dynamic linker's search ---- */

struct search {
	const struct np_census *c;
	const char *name;
	const struct np_library_file *found[64];
	size_t n;
};

static void take(struct search *s, const char *folder)
{
	const struct np_library_file *f = in_folder(s->c, folder, s->name);

	if (!f || !f->loadable || s->n == NP_ARRAY_SIZE(s->found))
		return;
	for (size_t i = 0; i < s->n; i++)
		if (s->found[i] == f)
			return;
	s->found[s->n++] = f;
}

const struct np_library_file *np_census_find(const struct np_census *c,
					     const struct np_census_consumer *who, const char *name,
					     size_t nth)
{
	struct search s = { .c = c, .name = name };

	for (size_t i = 0; i < who->folders.n; i++)
		take(&s, who->folders.v[i]);
	for (size_t i = 0; i < c->n_cache; i++)
		if (np_streq(c->cache[i].name, name))
			take(&s, c->cache[i].folder);
	for (size_t i = 0; i < c->standard.n; i++)
		take(&s, c->standard.v[i]);
	return nth < s.n ? s.found[nth] : NULL;
}
