/* SPDX-License-Identifier: MIT */
/* What a running process has, as /proc shows it. Nothing of it is run. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/consumer_look.h"
#include "base/process.h"
#include "base/user.h"

#define ENVIRON_MAX (4 * 1024 * 1024)
#define MAPS_MAX    (16 * 1024 * 1024)

struct process {
	struct np_consumer *c;
	int dir; /* /proc/PID: stays that process, whatever gets its number */
	pid_t pid;
	char ucx_lib[PATH_MAX]; /* directory of libucs */
	bool old_nccl;
};

/* ---- libraries ---- */

/* "2.28.3" of "libnccl.so.2.28.3"; "" where the name has but an ABI number. */
static void version_of(const char *name, char out[32])
{
	const char *so = strstr(name, ".so.");
	size_t n = so ? strspn(so + 4, "0123456789.") : 0;

	out[0] = '\0';
	if (so && so[4 + n] == '\0' && memchr(so + 4, '.', n) && n < 32)
		np_strcpy(out, n + 1, so + 4);
}

/* 2.23 is the first that reads NCCL_CONF_FILE. */
static bool is_old_nccl(const char *version)
{
	np_auto_strv struct np_strv parts = { 0 };
	uint64_t major, minor;

	if (np_strv_split(&parts, version, ".") < 0 || parts.n < 2 ||
	    np_parse_u64(parts.v[0], 10, 1000, &major) < 0 ||
	    np_parse_u64(parts.v[1], 10, 1000, &minor) < 0)
		return false;
	return major < 2 || (major == 2 && minor < 23);
}

static int add_library(struct process *p, const char *name, const char *path)
{
	struct np_consumer *c = p->c;
	struct np_consumer_library *v;

	for (size_t i = 0; i < c->n_libraries; i++)
		if (np_streq(c->libraries[i].path, path))
			return 0;
	if (c->n_libraries >= 64)
		return 0;
	v = reallocarray(c->libraries, c->n_libraries + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	c->libraries = v;
	v += c->n_libraries;
	memset(v, 0, sizeof(*v));
	v->path = strdup(path);
	if (!v->path)
		return -ENOMEM;
	c->n_libraries++;
	np_strcpy(v->name, sizeof(v->name), name);
	version_of(strrchr(path, '/') + 1, v->version);
	if (np_streq(name, "libnccl"))
		p->old_nccl |= is_old_nccl(v->version);
	if (np_streq(name, "libucs") && np_strcpy(p->ucx_lib, sizeof(p->ucx_lib), path))
		*strrchr(p->ucx_lib, '/') = '\0';
	return 0;
}

static int take_mapping(struct process *p, char *line)
{
	static const char *const names[] = { "libnccl", "libucp",    "libuct",	   "libucs",
					     "libcuda", "libgdrapi", "libibverbs", NULL };
	char *path = strchr(line, '/'), *base;

	if (!path)
		return 0;
	base = strrchr(path, '/') + 1;
	for (size_t i = 0; names[i]; i++) {
		size_t n = strlen(names[i]);

		/* "libnccl.so.2", and a wheel's "libucp-1a2b.so.0.0.0" */
		if (strncmp(base, names[i], n) == 0 && (base[n] == '.' || base[n] == '-') &&
		    strstr(base + n, ".so"))
			return add_library(p, names[i], path);
	}
	return 0;
}

static int read_libraries(struct process *p)
{
	np_auto_buf struct np_buf maps = { 0 };
	int r = np_file_read_at(p->dir, "maps", MAPS_MAX, &maps);
	char *line, *rest = maps.data;

	if (r < 0) {
		np_consumer_note(p->c, "libraries", "its maps cannot be read: %s", strerror(-r));
		return r == -ENOMEM ? r : 0;
	}
	while (rest && (line = strsep(&rest, "\n")))
		if (take_mapping(p, line) < 0)
			return -ENOMEM;
	return 0;
}

/* ---- the rest ---- */

static void read_limits(struct process *p)
{
	struct np_consumer *c = p->c;

	if (np_memlock_of(p->pid, &c->memlock.limit) < 0)
		return;
	c->memlock.known = true;
	snprintf(c->memlock.source, sizeof(c->memlock.source), "/proc/%d/limits", (int)p->pid);
}

static bool same_namespace(const struct process *p, const char *name)
{
	char path[40];
	struct stat mine, its;

	snprintf(path, sizeof(path), "/proc/self/%s", name);
	return fstatat(p->dir, name, &its, 0) < 0 || stat(path, &mine) < 0 ||
	       (mine.st_ino == its.st_ino && mine.st_dev == its.st_dev);
}

static int read_files(struct process *p, struct np_err *err)
{
	char root[40] = "", cwd[PATH_MAX];
	np_auto_user struct np_user user = { 0 };
	struct np_reader reader = { .consumer = p->c, .root = root };
	struct stat st;
	ssize_t n;

	if (fstat(p->dir, &st) < 0)
		return np_err_set(err, -ESRCH, "show.no_process", "process %d has ended",
				  (int)p->pid);
	if (!same_namespace(p, "ns/mnt"))
		snprintf(root, sizeof(root), "/proc/%d/root", (int)p->pid);
	if (np_user_by_uid(st.st_uid, &user, NULL) < 0) {
		np_consumer_note(p->c, "home", "user %u is not in the password database",
				 (unsigned int)st.st_uid);
		np_strcpy(user.name, sizeof(user.name), "");
	}
	reader.user = user.name;
	reader.uid = st.st_uid;
	reader.gid = st.st_gid;
	reader.home = user.home ? user.home : "/nonexistent";
	n = readlinkat(p->dir, "cwd", cwd, sizeof(cwd) - 1);
	if (n < 0)
		np_consumer_note(p->c, "working directory", "cannot be read: %s", strerror(errno));
	else
		cwd[n] = '\0';
	return np_consumer_read_texts(&reader, n < 0 ? NULL : cwd,
				      p->ucx_lib[0] ? p->ucx_lib : NULL, p->old_nccl) < 0 ?
		       np_err_nomem(err) :
		       0;
}

static int read_environ(struct process *p, struct np_err *err)
{
	np_auto_buf struct np_buf data = { 0 };
	int r = np_file_read_at(p->dir, "environ", ENVIRON_MAX, &data);
	char file[40];

	if (r == -ENOMEM)
		return np_err_nomem(err);
	if (r == -EACCES || r == -EPERM) {
		np_err_set(err, -EACCES, "show.process_denied",
			   "the environment of process %d may not be read", (int)p->pid);
		np_err_hint(err, "run nodeprep as root, or as the user of that process");
		return -EACCES;
	}
	if (r < 0)
		return np_err_set(err, -ESRCH, "show.no_process", "process %d has ended: %s",
				  (int)p->pid, strerror(-r));
	snprintf(file, sizeof(file), "/proc/%d/environ", (int)p->pid);
	np_settings_environ(&p->c->env, file, data.data ? data.data : "", data.len);
	if (p->c->env.failed)
		np_consumer_note(p->c, file, "too much to be read as a whole");
	p->c->env.failed = false;
	return 0;
}

int np_consumer_process(pid_t pid, struct np_consumer *out, struct np_err *err)
{
	struct process p = { .c = out, .pid = pid };
	char path[32], comm[NP_COMM_SIZE], shown[64];
	_cleanup_close_ int dir = -1;
	int r;

	memset(out, 0, sizeof(*out));
	out->kind = NP_CONSUMER_PROCESS;
	out->pid = pid;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0) {
		np_err_set(err, -ESRCH, "show.no_process", "there is no process %d", (int)pid);
		np_err_hint(err, "see `ps -e`");
		return -ESRCH;
	}
	p.dir = dir;
	np_process_comm(pid, comm);
	snprintf(out->name, sizeof(out->name), "process %d (%s)", (int)pid,
		 np_printable(comm, shown, sizeof(shown)));
	r = read_environ(&p, err);
	if (r < 0)
		return r;
	out->other_netns = !same_namespace(&p, "ns/net");
	if (out->other_netns)
		np_consumer_note(
			out, "network",
			"it has network interfaces of its own: values are not held against this node");
	if (read_libraries(&p) < 0)
		return np_err_nomem(err);
	read_limits(&p);
	return read_files(&p, err);
}
