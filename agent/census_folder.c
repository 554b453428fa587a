/* SPDX-License-Identifier: MIT */
/* One folder of libraries, in the child that may look into it. Nothing but regular files is
 * opened, and no symlink of a home is followed but one to a neighbour. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/census_read.h"
#include "agent/target_open.h"
#include "base/file.h"

#define NAMES_MAX   64 /* of one folder's libraries */
#define LINKS_MAX   8
#define NOBODY	    65534
#define HEADER_MAX  (64 * 1024)
#define ARCHIVE_MAX (16U << 20)

/* One name of interest, and the file that it leads to. */
struct seen {
	char name[96];
	enum np_library_kind kind;
	bool loadable;
	int fd; /* O_PATH; -1 = see problem */
	dev_t dev;
	ino_t ino;
	uint64_t size;
	char target[256];
	bool damaged; /* no regular file */
	char problem[160];
};

/* ---- places ---- */

static bool path_of(const struct np_census_walk *w, const char *below, char *out, size_t size)
{
	return snprintf(out, size, "%s%s%s", w->base_path, *below ? "/" : "", below) < (int)size;
}

/* The folder that is open, and has but one name where symlinks may have led there. */
static bool name_of(const struct np_census_walk *w, int fd, const char *below, char *out,
		    size_t size)
{
	char self[40];
	ssize_t n;

	if (!w->trusted)
		return path_of(w, below, out, size);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	n = readlink(self, out, size);
	if (n <= 0 || (size_t)n == size)
		return false;
	out[n] = '\0';
	return true;
}

int np_census_open(struct np_census_walk *w, const char *below)
{
	int flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC, fd;

	if (w->folders_left == 0)
		return -EMFILE;
	w->folders_left--;
	if (!*below || w->trusted)
		fd = openat(w->base, *below ? below : ".", flags);
	else
		return np_target_open_beneath(w->base, below, flags);
	return fd < 0 ? -errno : fd;
}

void np_census_send(struct np_census_walk *w, struct np_library_file *f)
{
	if (w->files_left == 0)
		return;
	w->files_left--;
	f->place = w->place;
	if (w->environment)
		np_strcpy(f->environment, sizeof(f->environment), w->environment);
	if (w->where)
		np_strcpy(f->where, sizeof(f->where), w->where);
	np_buf_add(w->out, f, sizeof(*f));
}

void np_census_say(struct np_census_walk *w, const char *below, const char *fmt, ...)
{
	struct np_library_file f = { .kind = NP_LIBRARY_FOLDER };
	va_list args;

	if (!path_of(w, below, f.folder, sizeof(f.folder)))
		return;
	va_start(args, fmt);
	vsnprintf(f.problem, sizeof(f.problem), fmt, args);
	va_end(args);
	np_census_send(w, &f);
}

/* ---- names ---- */

static int by_order(const void *a, const void *b)
{
	return np_natural_cmp(*(char *const *)a, *(char *const *)b);
}

/* Adds to @out what @wanted takes of the names in @fd. */
static int list_names(struct np_census_walk *w, int fd, bool (*wanted)(const char *name),
		      size_t max, struct np_strv *out)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0), r = 0;
	_cleanup_closedir_ DIR *dir = own < 0 ? NULL : fdopendir(own);
	const struct dirent *entry;

	if (!dir) {
		r = -errno;
		if (own >= 0)
			close(own);
		return r;
	}
	while (r == 0 && out->n < max && w->names_left > 0 && (entry = readdir(dir))) {
		w->names_left--;
		if (entry->d_name[0] != '.' && wanted(entry->d_name))
			r = np_strv_add(out, entry->d_name);
	}
	if (out->n > 1)
		qsort(out->v, out->n, sizeof(*out->v), by_order);
	return r;
}

int np_census_list(struct np_census_walk *w, const char *below, bool (*wanted)(const char *name),
		   size_t max, struct np_strv *out)
{
	_cleanup_close_ int fd = np_census_open(w, below);

	return fd < 0 ? fd : list_names(w, fd, wanted, max, out);
}

static bool is_ours(const char *name)
{
	enum np_library_kind kind;
	bool loadable;

	return strlen(name) < sizeof(((struct seen *)0)->name) &&
	       np_library_name(name, &kind, &loadable);
}

/* ---- the file behind a name ---- */

bool np_census_is_roots(const char *path, uid_t *owner)
{
	char part[PATH_MAX];
	bool above = false, good = true;

	*owner = NOBODY;
	if (!np_strcpy(part, sizeof(part), path))
		return false;
	for (;; above = true) {
		char *slash = strrchr(part, '/');
		struct stat st;

		if (stat(*part ? part : "/", &st) < 0)
			return false;
		/* the one nearest to / has the say over all below it */
		if (st.st_uid != 0) {
			*owner = st.st_uid;
			good = false;
		} else if (st.st_mode & 022 && !(above && st.st_mode & S_ISVTX)) {
			*owner = NOBODY;
			good = false;
		}
		if (!*part || !slash)
			return good;
		*slash = '\0';
	}
}

/* Where the link in a folder of root's leads: anywhere that is root's as well. */
static int follow_trusted(int folder, struct seen *s)
{
	char self[PATH_MAX], real[PATH_MAX];
	uid_t owner;
	int fd;

	snprintf(self, sizeof(self), "/proc/self/fd/%d/%s", folder, s->name);
	if (!realpath(self, real))
		return -errno;
	np_strcpy(s->target, sizeof(s->target), real);
	if (geteuid() == 0 && !np_census_is_roots(real, &owner)) {
		snprintf(s->problem, sizeof(s->problem),
			 "a symbolic link to a place that others than root may change");
		return -EPERM;
	}
	fd = open(real, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int follow(const struct np_census_walk *w, int folder, const char *where, struct seen *s)
{
	char name[256], link[256];

	np_strcpy(name, sizeof(name), s->name);
	for (int i = 0; i < LINKS_MAX; i++) {
		_cleanup_close_ int fd = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		struct stat st;
		ssize_t n;

		if (fd < 0 || fstat(fd, &st) < 0)
			return -errno;
		if (!S_ISLNK(st.st_mode)) {
			if (i > 0 && snprintf(s->target, sizeof(s->target), "%s/%s", where, name) >=
					     (int)sizeof(s->target))
				return -ENAMETOOLONG;
			return np_steal_fd(&fd);
		}
		n = readlinkat(fd, "", link, sizeof(link) - 1);
		if (n <= 0)
			return -EINVAL;
		link[n] = '\0';
		if (strchr(link, '/')) {
			char shown[100];

			if (w->trusted)
				return follow_trusted(folder, s);
			snprintf(s->problem, sizeof(s->problem),
				 "a symbolic link to %s; not followed",
				 np_printable(link, shown, sizeof(shown)));
			return -ELOOP;
		}
		np_strcpy(name, sizeof(name), link);
	}
	return -ELOOP;
}

static void look_at(const struct np_census_walk *w, int folder, const char *where, struct seen *s)
{
	struct stat st;

	s->fd = follow(w, folder, where, s);
	if (s->fd < 0) {
		if (!s->problem[0])
			snprintf(s->problem, sizeof(s->problem), "cannot be looked at: %s",
				 strerror(-s->fd));
		s->fd = -1;
		return;
	}
	if (fstat(s->fd, &st) == 0 && S_ISREG(st.st_mode)) {
		s->dev = st.st_dev;
		s->ino = st.st_ino;
		s->size = (uint64_t)st.st_size;
		return;
	}
	snprintf(s->problem, sizeof(s->problem), "%s", np_file_kind(st.st_mode));
	s->damaged = true;
	close(s->fd);
	s->fd = -1;
}

/* ---- its contents ---- */

/* The very file that was looked at: a name may have got another one since. */
static int reopen(int look)
{
	char self[40];
	int fd;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", look);
	fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int read_start(int fd, uint64_t size, size_t max, struct np_buf *out)
{
	_cleanup_free_ char *data = NULL;
	struct np_bytes b = np_bytes_fd(fd, size);
	ssize_t n;

	if (max > size)
		max = size;
	data = malloc(max + 1);
	if (!data)
		return -ENOMEM;
	n = b.read(&b, 0, data, max);
	if (n < 0)
		return (int)n;
	np_buf_add(out, data, (size_t)n);
	return out->failed ? -ENOMEM : 0;
}

static int read_elf(int fd, const struct seen *s, struct np_library_file *f)
{
	struct np_bytes b = np_bytes_fd(fd, s->size);
	struct np_elf elf;
	int r = np_elf_read(&b, s->kind, &elf);

	if (r == -ENOEXEC) {
		/* the linker script that some packages have in place of libX.so */
		np_strcpy(f->problem, sizeof(f->problem), "not a shared object");
		f->damaged = true;
		return 0;
	}
	if (r < 0)
		return r;
	if (elf.other_machine) {
		np_strcpy(f->problem, sizeof(f->problem), "for another kind of machine");
		f->loadable = false;
	}
	np_strcpy(f->soname, sizeof(f->soname), elf.soname);
	if (elf.version[0]) {
		np_strcpy(f->version, sizeof(f->version), elf.version);
		np_strcpy(f->version_by, sizeof(f->version_by), "contents");
	}
	f->verbs = elf.verbs;
	f->cuda = elf.cuda;
	f->mt = elf.mt;
	return 0;
}

static int read_text(int fd, const struct seen *s, struct np_library_file *f)
{
	bool header = s->kind == NP_LIBRARY_NCCL_HEADER;
	np_auto_buf struct np_buf text = { 0 };
	int r = read_start(fd, s->size, header ? HEADER_MAX : ARCHIVE_MAX, &text);
	const char *data = text.data ? text.data : "";

	if (r < 0)
		return r;
	if (header ? np_nccl_header_version(data, text.len, f->version, sizeof(f->version)) :
		     np_nccl_version_in(data, text.len, f->version, sizeof(f->version)))
		np_strcpy(f->version_by, sizeof(f->version_by), header ? "header" : "contents");
	return 0;
}

/* ---- UCX's modules ---- */

static enum np_tri module_is_there(int folder, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "ucx/libuct_%s.so", name);
	if (faccessat(folder, path, F_OK, 0) == 0)
		return NP_TRI_YES;
	snprintf(path, sizeof(path), "ucx/libuct_%s.so.0", name);
	if (faccessat(folder, path, F_OK, 0) == 0)
		return NP_TRI_YES;
	return errno == ENOENT ? NP_TRI_NO : NP_TRI_UNKNOWN;
}

/* The modules lie beside libuct in the folder ucx. What is a module and not there is not
 * usable, whatever libuct was built with; without the folder they may be built in. */
static void look_for_modules(int folder, struct np_library_file *f)
{
	struct stat st;

	if (fstatat(folder, "ucx", &st, 0) < 0 || !S_ISDIR(st.st_mode))
		return;
	f->verbs = module_is_there(folder, "ib");
	f->cuda = module_is_there(folder, "cuda");
	f->gdr_copy = module_is_there(folder, "cuda_gdrcopy");
	/* of UCX 1.11 and older */
	if (f->gdr_copy == NP_TRI_NO)
		f->gdr_copy = module_is_there(folder, "gdrcopy");
}

/* ---- rows ---- */

static void ask_dpkg(struct np_library_file *f)
{
	char path[360];

	snprintf(path, sizeof(path), "%s/%s", f->folder, f->name);
	if (np_dpkg_version(f->target[0] ? f->target : path, f->kind, f->version,
			    sizeof(f->version)))
		np_strcpy(f->version_by, sizeof(f->version_by), "package");
}

static void tell(struct np_census_walk *w, int folder, const char *where, const struct seen *s)
{
	struct np_library_file f = { .kind = s->kind,
				     .loadable = s->loadable,
				     .damaged = s->damaged };
	const char *package = np_package_version(&w->packages, s->kind);
	_cleanup_close_ int fd = -1;
	int r = 0;

	np_strcpy(f.folder, sizeof(f.folder), where);
	np_strcpy(f.name, sizeof(f.name), s->name);
	np_strcpy(f.target, sizeof(f.target), s->target);
	np_strcpy(f.problem, sizeof(f.problem), s->problem);
	if (s->fd >= 0) {
		const char *file = s->target[0] ? strrchr(s->target, '/') + 1 : s->name;

		fd = reopen(s->fd);
		r = fd < 0 ? fd :
		    s->kind == NP_LIBRARY_NCCL_HEADER || s->kind == NP_LIBRARY_NCCL_STATIC ?
			     read_text(fd, s, &f) :
			     read_elf(fd, s, &f);
		if (r < 0)
			snprintf(f.problem, sizeof(f.problem), "cannot be read: %s", strerror(-r));
		if (!f.version[0] &&
		    np_library_name_version(file, s->kind, f.version, sizeof(f.version)))
			np_strcpy(f.version_by, sizeof(f.version_by), "file name");
		if (!f.version[0] && *package) {
			np_strcpy(f.version, sizeof(f.version), package);
			np_strcpy(f.version_by, sizeof(f.version_by), "package");
		}
		/* libuct has the version of its libucp */
		if (!f.version[0] && w->trusted && s->kind != NP_LIBRARY_UCT)
			ask_dpkg(&f);
		if (s->kind == NP_LIBRARY_UCP || s->kind == NP_LIBRARY_UCT)
			look_for_modules(folder, &f);
	}
	np_census_send(w, &f);
}

/* Several names lead to one file: the one that programs ask for stands for all. */
static bool stands_for(const struct seen *all, size_t n, size_t i)
{
	const struct seen *s = &all[i];

	for (size_t k = 0; k < n; k++) {
		const struct seen *o = &all[k];

		if (k == i || o->fd < 0 || s->fd < 0 || o->dev != s->dev || o->ino != s->ino ||
		    o->kind != s->kind)
			continue;
		if (o->loadable != s->loadable ? o->loadable : k < i)
			return false;
	}
	return true;
}

void np_census_folder(struct np_census_walk *w, const char *below)
{
	np_auto_strv struct np_strv names = { 0 };
	_cleanup_close_ int folder = np_census_open(w, below);
	_cleanup_free_ struct seen *all = NULL;
	char where[256];

	if (folder == -ELOOP && !w->trusted)
		np_census_say(w, below, "a symbolic link; not followed");
	if (folder < 0 || !name_of(w, folder, below, where, sizeof(where)))
		return;
	w->out->failed |= list_names(w, folder, is_ours, NAMES_MAX, &names) == -ENOMEM;
	if (names.n == 0)
		return;
	all = calloc(names.n, sizeof(*all));
	if (!all) {
		w->out->failed = true;
		return;
	}
	for (size_t i = 0; i < names.n; i++) {
		np_strcpy(all[i].name, sizeof(all[i].name), names.v[i]);
		np_library_name(names.v[i], &all[i].kind, &all[i].loadable);
		look_at(w, folder, where, &all[i]);
	}
	for (size_t i = 0; i < names.n; i++)
		if (stands_for(all, names.n, i))
			tell(w, folder, where, &all[i]);
	for (size_t i = 0; i < names.n; i++)
		if (all[i].fd >= 0)
			close(all[i].fd);
}
