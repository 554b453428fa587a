/* SPDX-License-Identifier: MIT */
/*
 * What libkmod does not tell: which other kernels have a module, files that depmod
 * has not seen, DKMS sources, and the file a configuration line is in. Looked at only
 * when something is wrong.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "modules/private.h"

#define INDEX_MAX  (32 << 20) /* modules.dep; half a MiB on a distribution's kernel */
#define CONFIG_MAX (1 << 20)

/* "kernel/drivers/net/mlx5-core.ko.xz" is of module mlx5_core. */
static bool file_is_of(const char *path, const char *name)
{
	const char *base = strrchr(path, '/'), *dot;
	char text[128];

	base = base ? base + 1 : path;
	dot = strstr(base, ".ko");
	if (!dot || (dot[3] && dot[3] != '.') || (size_t)(dot - base) >= sizeof(text))
		return false;
	memcpy(text, base, (size_t)(dot - base));
	text[dot - base] = '\0';
	return np_kmod_same_name(text, name);
}

/* A line "PATH.ko: ..." (modules.dep) or "PATH.ko" (modules.builtin) of @name. */
static bool index_has(int tree_fd, const char *index, const char *name)
{
	np_auto_buf struct np_buf text = { 0 };
	char *rest, *line;

	if (np_file_read_at(tree_fd, index, INDEX_MAX, &text) < 0)
		return false;
	rest = text.data;
	while ((line = strsep(&rest, "\n"))) {
		line[strcspn(line, ":")] = '\0';
		if (file_is_of(line, name))
			return true;
	}
	return false;
}

int np_kmod_other_kernels(const char *modules_dir, const char *release, const char *name,
			  struct np_strv *out)
{
	_cleanup_closedir_ DIR *dir = opendir(modules_dir);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		_cleanup_close_ int fd = -1;

		if (entry->d_name[0] == '.' || strcmp(entry->d_name, release) == 0)
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 || (!index_has(fd, "modules.dep", name) &&
			       !index_has(fd, "modules.builtin", name)))
			continue;
		if (np_strv_add(out, entry->d_name) < 0)
			return -ENOMEM;
	}
	np_strv_sort_natural(out);
	return 0;
}

char *np_kmod_find_file(const char *tree, const char *name)
{
	static const char *const folders[] = { "updates", "extra", "weak-updates" };
	char paths[NP_ARRAY_SIZE(folders)][PATH_MAX], *roots[NP_ARRAY_SIZE(folders) + 1] = { 0 };
	char *found = NULL;
	FTSENT *entry;
	FTS *walk;

	for (size_t i = 0; i < NP_ARRAY_SIZE(folders); i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/%s", tree, folders[i]);
		roots[i] = paths[i];
	}
	walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, NULL);
	while (walk && !found && (entry = fts_read(walk)))
		if (entry->fts_info != FTS_D && entry->fts_info != FTS_DP &&
		    file_is_of(entry->fts_name, name))
			found = strdup(entry->fts_path);
	if (walk)
		fts_close(walk);
	return found;
}

/* ---- DKMS ---- */

/* The value of KEY="value" (shell assignments, in a file that is never executed). */
static bool assigned(char *line, const char *key, const char **value)
{
	char *text = np_strip(line), *equal = strchr(text, '=');
	size_t len = strlen(key);

	if (!equal || strncmp(text, key, len) != 0 || (text[len] != '=' && text[len] != '['))
		return false;
	text = np_strip(equal + 1);
	if (*text == '"' || *text == '\'') {
		text[1 + strcspn(text + 1, "\"'")] = '\0';
		text++;
	}
	*value = text;
	return true;
}

/* The dkms.conf of @name-providing sources names them; else the folder does. */
static bool dkms_conf_has(int src_fd, const char *folder, const char *name, char *out, size_t size)
{
	np_auto_buf struct np_buf text = { 0 };
	char path[PATH_MAX], package[64] = "", version[64] = "";
	const char *value;
	char *rest, *line;
	bool builds = false;

	snprintf(path, sizeof(path), "%s/dkms.conf", folder);
	if (np_file_read_at(src_fd, path, CONFIG_MAX, &text) < 0)
		return false;
	rest = text.data;
	while ((line = strsep(&rest, "\n"))) {
		if (assigned(line, "PACKAGE_NAME", &value))
			np_strcpy(package, sizeof(package), value);
		else if (assigned(line, "PACKAGE_VERSION", &value))
			np_strcpy(version, sizeof(version), value);
		else if (assigned(line, "BUILT_MODULE_NAME", &value))
			builds |= np_kmod_same_name(value, name);
	}
	if (!builds && !np_kmod_same_name(package, name))
		return false;
	if (!*package || !*version || strchr(package, '$') || strchr(version, '$') ||
	    strchr(version, '@')) /* filled in when it is built: the folder is NAME-VERSION */
		return np_strcpy(out, size, folder);
	snprintf(out, size, "%s/%s", package, version);
	return true;
}

/* /var/lib/dkms/NAME/VERSION: what was added, even where the sources are gone. */
static bool dkms_state_has(const char *root, const char *name, char *out, size_t size)
{
	_cleanup_closedir_ DIR *dir = NULL;
	char path[PATH_MAX];
	const struct dirent *entry;

	snprintf(path, sizeof(path), "%s/var/lib/dkms/%s", root, name);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		char source[PATH_MAX + 300];

		if (entry->d_name[0] == '.' || np_starts_with(entry->d_name, "kernel-"))
			continue;
		snprintf(source, sizeof(source), "%s/%s/source", path, entry->d_name);
		if (faccessat(AT_FDCWD, source, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		snprintf(out, size, "%s/%s", name, entry->d_name);
		return true;
	}
	return false;
}

bool np_kmod_find_dkms(const char *root, const char *name, char *out, size_t size)
{
	_cleanup_closedir_ DIR *dir = NULL;
	char path[PATH_MAX];
	const struct dirent *entry;

	snprintf(path, sizeof(path), "%s/usr/src", root);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' &&
		    dkms_conf_has(dirfd(dir), entry->d_name, name, out, size))
			return true;
	return dkms_state_has(root, name, out, size);
}

/* ---- modprobe.d ---- */

static bool config_has(int dir_fd, const char *file, const char *word, const char *name)
{
	np_auto_buf struct np_buf text = { 0 };
	char *rest, *line;

	if (np_file_read_at(dir_fd, file, CONFIG_MAX, &text) < 0)
		return false;
	rest = text.data;
	while ((line = strsep(&rest, "\n"))) {
		char *fields = line, *first, *second;

		do
			first = strsep(&fields, " \t\r");
		while (first && !*first);
		do
			second = fields ? strsep(&fields, " \t\r") : NULL;
		while (second && !*second);
		if (first && second && strcmp(first, word) == 0 && np_kmod_same_name(second, name))
			return true;
	}
	return false;
}

bool np_kmod_find_config(const char *root, const char *word, const char *name, char *out,
			 size_t size)
{
	for (size_t i = 0; np_modprobe_dirs[i]; i++) {
		_cleanup_closedir_ DIR *dir = NULL;
		char path[PATH_MAX];
		const struct dirent *entry;

		snprintf(path, sizeof(path), "%s%s", root, np_modprobe_dirs[i]);
		dir = opendir(path);
		while (dir && (entry = readdir(dir))) {
			const char *dot = strrchr(entry->d_name, '.');

			if (entry->d_name[0] == '.' || !dot || strcmp(dot, ".conf") != 0 ||
			    !config_has(dirfd(dir), entry->d_name, word, name))
				continue;
			snprintf(out, size, "%s/%s", np_modprobe_dirs[i], entry->d_name);
			return true;
		}
	}
	return false;
}
