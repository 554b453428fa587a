/* SPDX-License-Identifier: MIT */
#include "agent/consumer_look.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/child.h"

#define TIMEOUT_MS 10000
#define NOTES_MAX  64

void np_consumer_note(struct np_consumer *c, const char *target, const char *fmt, ...)
{
	char text[256], shown[128];
	va_list args;

	if (c->notes.n >= NOTES_MAX)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	for (size_t i = 0; i < c->notes.n; i++)
		if (np_streq(c->notes.v[i].target, target) && np_streq(c->notes.v[i].message, text))
			return;
	np_checks_add(&c->notes, "file", np_printable(target, shown, sizeof(shown)),
		      NP_CHECK_UNKNOWN, "consumer.unread", NULL, "%s", text);
}

/* ---- one file ---- */

/* Without a wait for a FIFO's writer, and without opening a device. */
static int read_plain(const char *path, struct np_buf *out)
{
	_cleanup_close_ int look = open(path, O_PATH | O_CLOEXEC), fd = -1;
	char self[40];
	struct stat st;

	if (look < 0 || fstat(look, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size > NP_CONSUMER_FILE_MAX)
		return -EFBIG;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", look);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	return np_file_read_fd(fd, NP_CONSUMER_FILE_MAX, out);
}

static int read_job(void *arg, struct np_buf *out)
{
	return read_plain(arg, out);
}

static bool is_systems(const char *path)
{
	static const char *const places[] = { "/etc/", "/usr/", "/run/systemd/", "/lib/" };

	if (strstr(path, "/../"))
		return false;
	for (size_t i = 0; i < NP_ARRAY_SIZE(places); i++)
		if (np_starts_with(path, places[i]))
			return true;
	return false;
}

static const char *name_in_home(const struct np_reader *r, const char *path)
{
	size_t n = strlen(r->home);

	if (n < 2 || strncmp(path, r->home, n) != 0 || path[n] != '/' || !path[n + 1] ||
	    strchr(path + n + 1, '/'))
		return NULL;
	return path + n + 1;
}

static int read_home(const struct np_reader *r, const char *name, const char *path,
		     struct np_buf *out, bool *network_fs)
{
	struct np_target_file f;
	int n = np_target_file_init_home(&f, r->user, r->uid, r->gid, r->home, name);

	if (n < 0)
		return n;
	np_target_file_read(&f);
	*network_fs = f.network_fs;
	if (f.status == NP_TARGET_PRESENT) {
		np_buf_done(out);
		*out = f.content;
		memset(&f.content, 0, sizeof(f.content));
	} else if (f.status == NP_TARGET_ABSENT || f.num == -ENOENT) {
		n = -ENOENT;
	} else {
		np_consumer_note(r->consumer, path, "not read: %s", f.reason);
		n = f.num < 0 ? f.num : -EIO;
	}
	np_target_file_done(&f);
	return n;
}

static int read_any(const struct np_reader *r, const char *path, struct np_buf *out,
		    bool *network_fs)
{
	const char *name = *r->root ? NULL : name_in_home(r, path);
	_cleanup_free_ char *full = np_asprintf("%s%s", r->root, path);
	struct np_err err;
	int n;

	*network_fs = false;
	if (!full)
		return -ENOMEM;
	if (name)
		return read_home(r, name, path, out, network_fs);
	if (!*r->root && is_systems(path))
		n = read_plain(full, out);
	else
		n = np_as_user(r->user, r->uid, r->gid, TIMEOUT_MS, read_job, full, out, &err);
	if (n < 0 && n != -ENOENT && n != -ENOTDIR && n != -EISDIR)
		np_consumer_note(r->consumer, path, "not read: %s",
				 n == -EINVAL ? "not a regular file" : strerror(-n));
	return n == -ENOTDIR ? -ENOENT : n;
}

int np_reader_read(const struct np_reader *r, const char *path, struct np_buf *out)
{
	bool network_fs;

	return read_any(r, path, out, &network_fs);
}

/* ---- for the scan of scripts ---- */

static int scan_read(void *arg, const char *path, struct np_buf *out)
{
	return np_reader_read(arg, path, out);
}

static int scan_exists(void *arg, const char *path)
{
	np_auto_buf struct np_buf text = { 0 };
	int n;

	if (is_systems(path))
		return access(path, F_OK) == 0 ? 1 : errno == ENOENT || errno == ENOTDIR ? 0 : -1;
	n = np_reader_read(arg, path, &text);
	return n == 0 || n == -EISDIR ? 1 : n == -ENOENT ? 0 : -1;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int scan_list(void *arg, const char *path, struct np_strv *out)
{
	struct dirent **names = NULL;
	int n, r = 0;

	(void)arg;
	/* a folder of a user may be anything, a dead network file system too */
	if (!is_systems(path))
		return -EPERM;
	n = scandir(path, &names, NULL, by_bytes);
	if (n < 0)
		return errno == ENOENT ? 0 : -errno;
	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = np_strv_add(out, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	return r;
}

static void scan_note(void *arg, const char *file, int line, const char *what)
{
	const struct np_reader *r = arg;
	char target[128];

	snprintf(target, sizeof(target), "%.110s:%d", file, line);
	np_consumer_note(r->consumer, target, "%s", what);
}

const struct np_scan_files np_reader_files = {
	.read = scan_read, .exists = scan_exists, .list = scan_list, .note = scan_note
};

/* ---- the files of the libraries ---- */

static int add_text(const struct np_reader *r, enum np_consumer_role role, const char *path,
		    struct np_consumer_text **added)
{
	struct np_consumer *c = r->consumer;
	np_auto_buf struct np_buf text = { 0 };
	struct np_consumer_text *v;
	bool network_fs;
	int n;

	*added = NULL;
	if (!path)
		return -ENOMEM;
	n = read_any(r, path, &text, &network_fs);
	if (n < 0)
		return n == -ENOMEM ? n : 0;
	v = reallocarray(c->texts, c->n_texts + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	c->texts = v;
	v += c->n_texts;
	*v = (struct np_consumer_text){
		.role = role, .path = strdup(path), .text = text, .network_fs = network_fs
	};
	if (!v->path)
		return -ENOMEM;
	c->n_texts++;
	memset(&text, 0, sizeof(text));
	*added = v;
	return 0;
}

static int read_nccl(const struct np_reader *r, bool old_nccl)
{
	const char *named = np_settings_value(&r->consumer->env, "NCCL_CONF_FILE");
	_cleanup_free_ char *own = NULL;
	struct np_consumer_text *text;
	size_t notes;
	int n = add_text(r, NP_TEXT_NCCL_ETC, "/etc/nccl.conf", &text);

	if (n < 0)
		return n;
	own = named && *named && !old_nccl ? strdup(named) : np_asprintf("%s/.nccl.conf", r->home);
	if (own && own[0] != '/') {
		np_consumer_note(
			r->consumer, "NCCL_CONF_FILE",
			"not read: no absolute path, so it depends on where a program starts");
		return 0;
	}
	notes = r->consumer->notes.n;
	n = add_text(r, NP_TEXT_NCCL_USER, own, &text);
	/* why it is not read is told, and so is that NCCL looks for no other in its place */
	if (n == 0 && !text && named && *named && !old_nccl && r->consumer->notes.n == notes)
		np_consumer_note(r->consumer, own,
				 "there is no such file: NCCL_CONF_FILE names it, and NCCL "
				 "does not read ~/.nccl.conf then");
	return n;
}

static int add_ucx(const struct np_reader *r, const char *dir, bool not_conda, bool not_system)
{
	_cleanup_free_ char *path = np_asprintf("%s/ucx.conf", dir);
	struct np_consumer_text *text;
	int n;

	if (path && path[0] != '/')
		return 0;
	n = add_text(r, NP_TEXT_UCX, path, &text);
	if (text) {
		text->not_conda = not_conda;
		text->not_system = not_system;
	}
	return n;
}

/* In UCX's order (src/ucs/config/parser.c, ucs_config_parse_config_files). */
static int read_ucx(const struct np_reader *r, const char *cwd, const char *ucx_lib)
{
	/* the folder that distributions compile in; <lib>/../etc/ucx of /usr/lib64 and of
	 * Debian's /usr/lib/TRIPLET */
	static const char *const systems[] = { "/etc/ucx", "/usr/etc/ucx", "/usr/lib/etc/ucx" };
	const struct np_settings *env = &r->consumer->env;
	const char *conda = np_settings_value(env, "CONDA_PREFIX"),
		   *dir = np_settings_value(env, "UCX_CONFIG_DIR"),
		   *home = np_settings_value(env, "HOME");
	_cleanup_free_ char *other =
		ucx_lib && !np_starts_with(ucx_lib, "/usr/") && !np_starts_with(ucx_lib, "/lib") ?
			np_asprintf("%s/../etc/ucx", ucx_lib) :
		conda ? np_asprintf("%s/etc/ucx", conda) :
			NULL;
	int n = 0;

	for (size_t i = 0; i < NP_ARRAY_SIZE(systems) && n == 0; i++)
		n = add_ucx(r, systems[i], true, false);
	if (n == 0 && other)
		n = add_ucx(r, other, false, true);
	if (n == 0)
		n = add_ucx(r, home ? home : r->home, false, false);
	if (n == 0 && dir)
		n = add_ucx(r, dir, false, false);
	if (n == 0 && cwd && !np_streq(cwd, home ? home : r->home))
		n = add_ucx(r, cwd, false, false);
	return n;
}

static int read_dask(const struct np_reader *r)
{
	np_auto_strv struct np_strv names = { 0 };
	struct np_consumer_text *text;
	int n = scan_list(NULL, "/etc/dask", &names);

	for (size_t i = 0; i < names.n && n == 0; i++) {
		const char *end = strrchr(names.v[i], '.');
		_cleanup_free_ char *path = NULL;

		if (!end || (strcmp(end, ".yaml") != 0 && strcmp(end, ".yml") != 0))
			continue;
		path = np_asprintf("/etc/dask/%s", names.v[i]);
		n = add_text(r, NP_TEXT_DASK, path, &text);
	}
	return n == -ENOMEM ? n : 0;
}

int np_consumer_read_texts(const struct np_reader *r, const char *cwd, const char *ucx_lib,
			   bool old_nccl)
{
	int n = read_nccl(r, old_nccl);

	if (n == 0)
		n = read_ucx(r, cwd, ucx_lib);
	return n == 0 ? read_dask(r) : n;
}

void np_consumer_done(struct np_consumer *c)
{
	if (!c)
		return;
	np_settings_done(&c->env);
	for (size_t i = 0; i < c->n_texts; i++) {
		free(c->texts[i].path);
		np_buf_done(&c->texts[i].text);
	}
	free(c->texts);
	for (size_t i = 0; i < c->n_libraries; i++)
		free(c->libraries[i].path);
	free(c->libraries);
	np_checks_done(&c->notes);
	memset(c, 0, sizeof(*c));
}
