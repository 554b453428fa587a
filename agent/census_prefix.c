/* SPDX-License-Identifier: MIT */
/* Installations, environments of Conda and Python, homes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/census_read.h"
#include "agent/target_open.h"

#define PYTHONS_MAX	 8
#define ENVIRONMENTS_MAX 64

static bool join(char *out, size_t size, const char *a, const char *b)
{
	return snprintf(out, size, "%s%s%s", a, *a && *b ? "/" : "", b) < (int)size;
}

static bool any(const char *name)
{
	(void)name;
	return true;
}

static bool is_python(const char *name)
{
	return np_starts_with(name, "python3");
}

static bool is_metadata(const char *name)
{
	struct np_packages p;

	return np_package_take(name, false, &p);
}

static bool is_record(const char *name)
{
	struct np_packages p;

	return np_package_take(name, true, &p);
}

static bool is_there(struct np_census_walk *w, const char *below)
{
	_cleanup_close_ int fd = w->trusted ? openat(w->base, below, O_PATH | O_CLOEXEC) :
					      np_target_open_beneath(w->base, below, O_PATH);

	return fd >= 0;
}

/* ---- Python's packages ---- */

static void tell_package(struct np_census_walk *w, enum np_library_kind kind, const char *site,
			 const char *name)
{
	struct np_library_file f = { .kind = kind };
	const char *version = np_package_version(&w->packages, kind);

	if (!*version)
		return;
	if (!join(f.folder, sizeof(f.folder), w->base_path, site))
		return;
	np_strcpy(f.name, sizeof(f.name), name);
	np_strcpy(f.version, sizeof(f.version), version);
	np_strcpy(f.version_by, sizeof(f.version_by), "package");
	np_census_send(w, &f);
}

/* site-packages: its metadata folders, and the libraries that wheels bring. */
static void look_into_site(struct np_census_walk *w, const char *site)
{
	static const char *const folders[] = { "nvidia/nccl/lib", "nvidia/nccl/include",
					       "libucx/lib" };
	struct np_packages outer = w->packages;
	enum np_library_place place = w->place;
	np_auto_strv struct np_strv names = { 0 };
	char below[512];

	memset(&w->packages, 0, sizeof(w->packages));
	if (np_census_list(w, site, is_metadata, 64, &names) == -ENOMEM)
		w->out->failed = true;
	for (size_t i = 0; i < names.n; i++)
		np_package_take(names.v[i], false, &w->packages);
	w->place = NP_PLACE_PYTHON;
	tell_package(w, NP_LIBRARY_UCX_PY, site, "ucp");
	tell_package(w, NP_LIBRARY_UCXX, site, "ucxx");
	tell_package(w, NP_LIBRARY_DISTRIBUTED_UCXX, site, "distributed_ucxx");
	for (size_t i = 0; i < NP_ARRAY_SIZE(folders); i++)
		if (join(below, sizeof(below), site, folders[i]))
			np_census_folder(w, below);
	w->place = place;
	w->packages = outer;
}

static void look_for_sites(struct np_census_walk *w, const char *lib)
{
	static const char *const folders[] = { "site-packages", "dist-packages" };
	np_auto_strv struct np_strv pythons = { 0 };
	char python[384], site[448];

	if (np_census_list(w, lib, is_python, PYTHONS_MAX, &pythons) == -ENOMEM)
		w->out->failed = true;
	for (size_t i = 0; i < pythons.n; i++)
		for (size_t k = 0; k < NP_ARRAY_SIZE(folders); k++)
			if (join(python, sizeof(python), lib, pythons.v[i]) &&
			    join(site, sizeof(site), python, folders[k]) && is_there(w, site))
				look_into_site(w, site);
}

/* ---- one installation ---- */

static void look_into_envs(struct np_census_walk *w, const char *prefix)
{
	np_auto_strv struct np_strv names = { 0 };
	char envs[400], below[512];

	if (!join(envs, sizeof(envs), prefix, "envs"))
		return;
	if (np_census_list(w, envs, any, ENVIRONMENTS_MAX, &names) == -ENOMEM)
		w->out->failed = true;
	for (size_t i = 0; i < names.n; i++)
		if (join(below, sizeof(below), envs, names.v[i]))
			np_census_prefix(w, below, false);
}

void np_census_prefix(struct np_census_walk *w, const char *below, bool inner)
{
	static const char *const folders[] = { "lib", "lib64", "include" };
	struct np_census_walk before = *w;
	np_auto_strv struct np_strv records = { 0 };
	char path[512], environment[256];
	_cleanup_close_ int top = np_census_open(w, below);
	bool conda, python;

	if (top == -ELOOP && !w->trusted)
		np_census_say(w, below, "a symbolic link; not followed");
	if (top < 0)
		return;
	if (!join(path, sizeof(path), below, "conda-meta"))
		return;
	conda = is_there(w, path);
	join(path, sizeof(path), below, "pyvenv.cfg");
	python = is_there(w, path);
	if (conda || python)
		w->place = conda ? NP_PLACE_CONDA : NP_PLACE_PYTHON;
	/* an installation without them has its wheels' libraries, and no more of its own */
	if (join(environment, sizeof(environment), w->base_path, below))
		w->environment = environment;
	join(path, sizeof(path), below, "conda-meta");
	if (conda && np_census_list(w, path, is_record, 64, &records) == -ENOMEM)
		w->out->failed = true;
	for (size_t i = 0; i < records.n; i++)
		np_package_take(records.v[i], true, &w->packages);
	for (size_t i = 0; i < 2; i++)
		if (join(path, sizeof(path), below, folders[i]))
			look_for_sites(w, path);
	if (!conda && !python)
		w->environment = NULL;
	for (size_t i = 0; i < NP_ARRAY_SIZE(folders); i++)
		if (join(path, sizeof(path), below, folders[i]))
			np_census_folder(w, path);
	w->place = before.place;
	w->environment = before.environment;
	w->packages = before.packages;
	if (inner)
		look_into_envs(w, below);
}

/* ---- a home ---- */

static bool is_visible(const char *name)
{
	return name[0] != '.';
}

/* A folder right in the home, or in one of those that tools keep environments in. */
static void look_into_child(struct np_census_walk *w, const char *child)
{
	static const char *const marks[] = { "conda-meta", "pyvenv.cfg" };
	char mark[384];

	for (size_t i = 0; i < NP_ARRAY_SIZE(marks); i++) {
		if (join(mark, sizeof(mark), child, marks[i]) && is_there(w, mark)) {
			np_census_prefix(w, child, true);
			return;
		}
	}
}

/* An environment of Conda's list that is not in the home. */
static void look_elsewhere(struct np_census_walk *home, const char *path)
{
	struct np_census_walk w = *home;
	_cleanup_close_ int base = -1;
	uid_t owner;

	w.base_path = path;
	/* root's own list may name a place that is not root's */
	if (geteuid() == 0 && !np_census_is_roots(path, &owner)) {
		np_census_say(&w, "", "others than root may change it; not looked into");
	} else {
		base = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
		w.base = base;
		if (base >= 0)
			np_census_prefix(&w, "", false);
	}
	home->names_left = w.names_left;
	home->files_left = w.files_left;
	home->folders_left = w.folders_left;
}

/* ~/.conda/environments.txt: a path a line, of every environment that Conda made. */
static void look_into_list(struct np_census_walk *w)
{
	np_auto_strv struct np_strv lines = { 0 };
	np_auto_buf struct np_buf text = { 0 };
	struct np_target_look look;
	_cleanup_close_ int conda =
		np_target_open_beneath(w->base, ".conda", O_RDONLY | O_DIRECTORY);
	size_t n = strlen(w->base_path);

	if (conda < 0)
		return;
	np_target_look_at(conda, "environments.txt", NULL, &look);
	if (look.status == NP_TARGET_PRESENT)
		np_target_read_at(conda, "environments.txt", &look, &text, NULL);
	if (!text.data)
		return;
	if (strlen(text.data) == text.len)
		w->out->failed |= np_strv_split(&lines, text.data, "\r\n") < 0;
	for (size_t i = 0; i < lines.n && i < ENVIRONMENTS_MAX; i++) {
		const char *path = lines.v[i];

		if (strncmp(path, w->base_path, n) == 0 && path[n] == '/' && path[n + 1])
			np_census_prefix(w, path + n + 1, false);
		else if (path[0] == '/' && strcmp(path, w->base_path) != 0)
			look_elsewhere(w, path);
	}
}

void np_census_home(struct np_census_walk *w)
{
	/* of Conda without an installation of its own, micromamba, virtualenvwrapper */
	static const char *const holders[] = { "", ".conda/envs", "micromamba/envs",
					       ".virtualenvs" };
	static const char *const usual[] = { "miniconda3", "miniforge3", "mambaforge",
					     "anaconda3" };

	np_census_prefix(w, ".local", false);
	for (size_t i = 0; i < NP_ARRAY_SIZE(usual); i++) {
		_cleanup_close_ int fd = np_target_open_beneath(w->base, usual[i], O_PATH);
		char link[160], shown[120];
		ssize_t n = fd < 0 ? -1 : readlinkat(fd, "", link, sizeof(link) - 1);

		/* a link to a scratch file system is common */
		if (n > 0) {
			link[n] = '\0';
			np_census_say(w, usual[i], "a symbolic link to %s; not followed",
				      np_printable(link, shown, sizeof(shown)));
		}
	}
	for (size_t i = 0; i < NP_ARRAY_SIZE(holders); i++) {
		np_auto_strv struct np_strv names = { 0 };
		char below[300];

		if (np_census_list(w, holders[i], is_visible, 256, &names) == -ENOMEM)
			w->out->failed = true;
		for (size_t k = 0; k < names.n; k++)
			if (join(below, sizeof(below), holders[i], names.v[k]))
				look_into_child(w, below);
	}
	look_into_list(w);
}
