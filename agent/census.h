/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_CENSUS_H
#define NP_AGENT_CENSUS_H

#include <jansson.h>

#include "agent/config.h"
#include "base/str.h"

/*
 * The census: every NCCL, UCX, libgdrapi, and Python package of UCX that a process of this
 * node may pick up, and who gets which. census_look*.c and what it calls read, and run
 * nothing of what they find; everything that stands here is pure.
 */

enum np_library_kind {
	NP_LIBRARY_NCCL,
	NP_LIBRARY_NCCL_STATIC, /* libnccl_static.a */
	NP_LIBRARY_NCCL_HEADER, /* nccl.h */
	NP_LIBRARY_UCP,
	NP_LIBRARY_UCT,
	NP_LIBRARY_GDRAPI,
	NP_LIBRARY_UCX_PY, /* Python's ucp */
	NP_LIBRARY_UCXX,
	NP_LIBRARY_DISTRIBUTED_UCXX,
	NP_LIBRARY_FOLDER, /* one that was not looked into: see problem */
	NP_LIBRARY_KINDS,
};

/* How a file came to be looked at. */
enum np_library_place {
	NP_PLACE_STANDARD, /* the dynamic linker's own folders */
	NP_PLACE_CACHE,	   /* the loader cache names it, or its folder stands in ld.so.conf */
	NP_PLACE_PATH,	   /* LD_LIBRARY_PATH of a login */
	NP_PLACE_VARIABLE, /* NCCL_HOME and the like, of a login */
	NP_PLACE_CONFIG,   /* [libraries] prefixes, [dask] prefix */
	NP_PLACE_KNOWN,	   /* where such things are installed as a rule */
	NP_PLACE_CONDA,
	NP_PLACE_PYTHON, /* wheels, virtual environments */
	NP_PLACES,
};

/* One file under one name in one folder; of several names of one file the one that the
 * dynamic linker looks for. Plain, to be copied: a child under another identity sends it. */
struct np_library_file {
	enum np_library_kind kind;
	enum np_library_place place;
	char folder[256], name[96]; /* folder absolute, without symlinks where root looked */
	char target[256];	    /* what the name is a link to in the end; "" = it is none */
	char soname[64];
	char version[40];      /* "" = not known */
	char version_by[16];   /* "contents", "file name", "header", "package", "libucp" */
	char environment[256]; /* of Conda or Python that it belongs to; "" = none */
	char where[200];       /* who names the folder: file:line, or a word; may be "" */
	char user[33];	       /* whose home or whose login; "" = the system's */
	enum np_tri verbs, cuda, gdr_copy, mt; /* of UCX */
	enum np_tri cached;		       /* the loader cache names it */
	bool loadable;	   /* its name is one that programs ask for: libnccl.so.2 */
	bool damaged;	   /* no shared object: where its turn comes the dynamic linker gives up */
	char problem[160]; /* why it was not read; "" = it was */
};

/* Of the loader cache. */
struct np_cache_entry {
	char name[96];
	char folder[256];
	bool gone; /* there is no such file any more */
};

#define NP_CENSUS_FILES_MAX 512

enum np_census_who { NP_CENSUS_SERVICES, NP_CENSUS_LOGINS, NP_CENSUS_USER, NP_CENSUS_ENVIRONMENT };

/* Somebody whose programs look for libraries in an order of their own. */
struct np_census_consumer {
	enum np_census_who who;
	char name[280];		/* "services", "logins", "user alice", "/opt/conda" */
	char source[200];	/* file:line of its LD_LIBRARY_PATH; "" = none */
	char relative[64];	/* a part of that which depends on where a program starts */
	struct np_strv folders; /* before the loader cache */
};

struct np_census {
	bool looked;
	bool cut; /* there was more than a bound allows */
	struct np_library_file *files;
	size_t n;
	bool cache_known;
	struct np_cache_entry *cache;
	size_t n_cache;
	struct np_strv standard; /* the dynamic linker's own folders, in its order */
	struct np_strv listed;	 /* those of ld.so.conf, and those that ldconfig knows itself */
	struct np_census_consumer *consumers;
	size_t n_consumers;
};

void np_census_done(struct np_census *c);
#define np_auto_census np_auto(np_census_done)

const char *np_library_kind_str(enum np_library_kind kind);
const char *np_library_place_str(enum np_library_place place);

/* Adds a copy, unless that name in that folder is there already. False when it was lost:
 * out of memory, or over the bound (then c->cut). */
bool np_census_add(struct np_census *c, const struct np_library_file *file);
/* A new consumer, zeroed but for its name. NULL when out of memory. */
struct np_census_consumer *np_census_consumer_add(struct np_census *c, enum np_census_who who,
						  const char *name);
/* Once everything was added: who is in the cache, versions of libuct, and a consumer for
 * each environment. Returns 0 or -ENOMEM. */
int np_census_settle(struct np_census *c) np_must_check;

/* The file that @who gets for @name, as a process that asks the dynamic linker for it; its
 * @nth in that order (0 = the one that it gets, 1 = the first that is hidden by it).
 * NULL: none. */
const struct np_library_file *np_census_find(const struct np_census *c,
					     const struct np_census_consumer *who, const char *name,
					     size_t nth);

/* The rows of show.census: new reference, NULL when out of memory. */
json_t *np_census_rows(const struct np_census *c);
void np_census_rows_text(const json_t *rows, struct np_buf *out);

/* ---- reading (census_look.c) ---- */

/* Looks at all of it: the system's folders as the caller, in a child with a deadline;
 * homes, and folders that others than root may change, by their owner's identity. What
 * cannot be looked into is in @out with its problem. Returns 0, -ENOMEM or -EINTR with
 * message. */
int np_census_look(const struct np_config *cfg, struct np_census *out,
		   struct np_err *err) np_must_check;

/* ---- from one apply to the next (census_note.c) ---- */

struct np_checks;

/* The last census that an apply took had a check that failed. */
bool np_census_noted(void);
/* Keeps that, or forgets it, by @checks, in which a census was judged. Where it cannot be
 * kept, the log says so. */
void np_census_note(const struct np_checks *checks);

#endif
