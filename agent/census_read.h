/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_CENSUS_READ_H
#define NP_AGENT_CENSUS_READ_H

#include "agent/census.h"
#include "agent/consumer_env.h"
#include "base/user.h"

/* What the files that read for the census share. All that they read may be hostile. */

/* ---- ELF (census_elf.c) ---- */

/* Bytes that are asked for one piece at a time: a file may shrink while it is read, so that
 * it is never mapped. */
struct np_bytes {
	/* Fills @buf with up to @len bytes at @offset; returns how many, or a negative errno */
	ssize_t (*read)(const struct np_bytes *b, uint64_t offset, void *buf, size_t len);
	uint64_t size;
	int fd;		  /* of np_bytes_fd */
	const void *data; /* of np_bytes_data */
};
struct np_bytes np_bytes_fd(int fd, uint64_t size);
struct np_bytes np_bytes_data(const void *data, size_t len);

struct np_elf {
	bool other_machine; /* the dynamic linker of this node passes it over */
	char soname[64];
	char version[40];	     /* by a string in it: of NCCL and UCP */
	enum np_tri verbs, cuda, mt; /* of UCT and UCP: how it was built */
};

/* Reads a shared object of @kind. Returns 0, -ENOEXEC when it is none, -EIO or another
 * negative errno. At most 16 MiB of it are read. */
int np_elf_read(const struct np_bytes *b, enum np_library_kind kind,
		struct np_elf *out) np_must_check;

/* The version that NCCL has in its messages ("NCCL version 2.28.3+cuda12.9"), somewhere in
 * @data. */
bool np_nccl_version_in(const void *data, size_t len, char *out, size_t size);

/* ---- the loader cache (census_cache.c) ---- */

/* Calls fn(name, path, arg) for each entry of this machine, in the order of the cache, until
 * it returns other than 0. @bytes: /etc/ld.so.cache, alone ("glibc-ld.so.cache1.1",
 * glibc's sysdeps/generic/dl-cache.h) or behind the old format ("ld.so-1.7.0"). Returns
 * what fn returned, 0, or -EBADMSG. */
int np_ld_cache_each(const void *bytes, size_t len,
		     int (*fn)(const char *name, const char *path, void *arg),
		     void *arg) np_must_check;

/* ---- names (census_names.c) ---- */

/* A file by its name: "libnccl.so.2". *loadable: programs ask for it by that name. */
bool np_library_name(const char *name, enum np_library_kind *kind, bool *loadable);
/* "2.28.3" of "libnccl.so.2.28.3"; false where the name says too little. */
bool np_library_name_version(const char *name, enum np_library_kind kind, char *out, size_t size);
/* "2.28.3" of an nccl.h. */
bool np_nccl_header_version(const char *text, size_t len, char *out, size_t size);

/* What a folder's packages are: Python's metadata folders and Conda's records. */
struct np_packages {
	char nccl[40], ucx[40], gdrcopy[40], ucx_py[40], ucxx[40], distributed_ucxx[40];
};
/* One name: "nvidia_nccl_cu12-2.28.3.dist-info", "ucx-1.18.0-hfb8ada1_0.json" (@conda).
 * False: none of ours. */
bool np_package_take(const char *name, bool conda, struct np_packages *out);
const char *np_package_version(const struct np_packages *p, enum np_library_kind kind);

/* ---- Debian's packages (census_dpkg.c) ---- */

/* The upstream version of the package that brought @path, one of those that @kind comes
 * with. False: none of them did. */
bool np_dpkg_version(const char *path, enum np_library_kind kind, char *out, size_t size);
/* The same of a text in the form of /var/lib/dpkg/status; pure. */
bool np_dpkg_version_in(const char *status, size_t len, const char *package, char *out,
			size_t size);

/* ---- folders (census_folder.c, census_prefix.c) ---- */

/* One walk, in a child that has the identity to walk by. */
struct np_census_walk {
	int base; /* where it starts; no step leaves it unless @trusted */
	const char *base_path;
	bool trusted; /* root's own: symlinks are followed */
	enum np_library_place place;
	const char *where;	     /* of the rows; may be NULL */
	const char *environment;     /* or NULL */
	struct np_packages packages; /* of that environment */
	unsigned int names_left;     /* of folders, all together */
	unsigned int files_left;
	unsigned int folders_left;
	struct np_buf *out; /* struct np_library_file, one after the other */
};
#define NP_CENSUS_WALK_NAMES   100000
#define NP_CENSUS_WALK_FOLDERS 400
#define NP_CENSUS_WALK_FILES   256

/* Opens a folder below the base ("" = the base). A symlink in a home is none. Returns a
 * descriptor or a negative errno. */
int np_census_open(struct np_census_walk *w, const char *below) np_must_check;
/* A folder of libraries and headers. */
void np_census_folder(struct np_census_walk *w, const char *below);
/* An environment or installation: lib, lib64, include, Python's packages, conda-meta, and
 * with @inner the environments in its envs. */
void np_census_prefix(struct np_census_walk *w, const char *below, bool inner);
/* A home: what Conda's list names, installations and environments under their usual names,
 * and whatever right in it is an environment. */
void np_census_home(struct np_census_walk *w);
/* A row for @f, with what the walk knows of it; dropped over the bound. */
void np_census_send(struct np_census_walk *w, struct np_library_file *f);

/* Real @path, every folder above it and itself: root's, and nobody else may write there (a
 * sticky folder above will do). Else false, and *owner is by whose identity to go there:
 * the first other owner, or nobody. */
bool np_census_is_roots(const char *path, uid_t *owner);
/* A row that says why a folder was not looked into. */
void np_census_say(struct np_census_walk *w, const char *below, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- who looks where (census_login.c) ---- */

/* What a login has to do with libraries: its LD_LIBRARY_PATH in parts, and NCCL_HOME and
 * the like. @user NULL: the system's own scripts alone. */
struct np_census_login {
	struct np_strv path;
	char source[200];	 /* file:line of LD_LIBRARY_PATH */
	char relative[64];	 /* its first part that is not absolute, in quotes, or "an empty
				  * part": the folder where a program starts; "" = none */
	struct np_strv prefixes; /* of the variables */
	struct np_strv sources;	 /* for each of them: "NCCL_HOME, FILE:LINE" */
};
int np_census_login(const struct np_user *user, struct np_census_login *out) np_must_check;
/* The same of settings that were read; pure. Returns 0 or -ENOMEM. */
int np_census_login_take(const struct np_settings *env, struct np_census_login *out) np_must_check;
void np_census_login_done(struct np_census_login *login);
#define np_auto_census_login np_auto(np_census_login_done)

/* The folders that a text in the form of ld.so.conf names. Returns 0 or -ENOMEM. */
int np_ld_conf_folders(const char *text, size_t len, struct np_strv *out) np_must_check;

/* The names in a folder below the base that @wanted takes, sorted, at most @max. */
int np_census_list(struct np_census_walk *w, const char *below, bool (*wanted)(const char *name),
		   size_t max, struct np_strv *out) np_must_check;

#endif
