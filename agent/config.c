/* SPDX-License-Identifier: MIT */
#include "agent/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"

#ifndef NP_SYSCONFDIR
#define NP_SYSCONFDIR "/etc"
#endif

#define CONFIG_FILE NP_SYSCONFDIR "/nodeprep/nodeprep.conf"
#define CONFIG_DIR  NP_SYSCONFDIR "/nodeprep/conf.d"
#define CONFIG_MAX  (1 << 20)
/* inih hands out 200 bytes a line with newline and NUL, and 50 a section name */
#define LINE_MAX_LEN	198
#define SECTION_MAX_LEN 48
#define DEFAULT_WAIT_S	30

void np_config_init(struct np_config *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->wait_s = DEFAULT_WAIT_S;
	cfg->ucx.profile = NP_UCX_STANDARD;
	cfg->memlock = NP_UNLIMITED;
	/* the guide's: it reads .nccl.conf in this form */
	np_strcpy(cfg->nccl_version_min, sizeof(cfg->nccl_version_min), "2.4");
}

void np_config_done(struct np_config *cfg)
{
	for (size_t i = 0; i < cfg->n_netdevs; i++) {
		free(cfg->netdevs[i].addrs);
		free(cfg->netdevs[i].sources);
	}
	free(cfg->netdevs);
	free(cfg->modules);
	free(cfg->floors);
	free(cfg->nccl_socket_ifname);
	free(cfg->nccl_ib_hca);
	free(cfg->ucx_tls);
	free(cfg->ucx_net_devices);
	free(cfg->ucx_modulefile);
	np_strv_done(&cfg->files);
	np_strv_done(&cfg->port_devices);
	np_strv_done(&cfg->port_ignore);
	np_strv_done(&cfg->users);
	np_strv_done(&cfg->library_prefixes);
	np_strv_done(&cfg->unknown_users);
	np_strv_done(&cfg->warnings);
	memset(cfg, 0, sizeof(*cfg));
}

struct np_want_netdev *np_config_netdev(struct np_config *cfg, const char *name)
{
	struct np_want_netdev *v;

	for (size_t i = 0; i < cfg->n_netdevs; i++)
		if (strcmp(cfg->netdevs[i].name, name) == 0)
			return &cfg->netdevs[i];
	v = reallocarray(cfg->netdevs, cfg->n_netdevs + 1, sizeof(*v));
	if (!v)
		return NULL;
	cfg->netdevs = v;
	v += cfg->n_netdevs++;
	memset(v, 0, sizeof(*v));
	np_strcpy(v->name, sizeof(v->name), name);
	return v;
}

int np_config_add_ip(struct np_config *cfg, const char *text, struct np_err *err)
{
	const char *equals = strchr(text, '=');
	char name[IFNAMSIZ] = "";
	struct np_want_netdev *want;
	struct np_inet inet, *addrs;
	int r;

	if (equals) {
		size_t len = (size_t)(equals - text);

		if (len == 0 || len >= IFNAMSIZ) {
			char shown[80];

			np_err_set(err, -EINVAL, "usage.address",
				   "--ip \"%s\": the interface name must have 1 to %d characters",
				   np_printable(text, shown, sizeof(shown)), IFNAMSIZ - 1);
			np_err_hint(err, "write IFNAME=ADDR/LEN, for example ib1=10.0.1.50/24");
			return -EINVAL;
		}
		memcpy(name, text, len);
		text = equals + 1;
	}
	r = np_inet_parse(text, &inet, err);
	if (r < 0) {
		np_err_context(err, "--ip");
		return r;
	}
	want = np_config_netdev(cfg, name);
	if (!want)
		return np_err_nomem(err);
	if (!want->from_flags) {
		want->from_flags = true;
		want->n_addrs = 0;
		want->n_sources = 0;
	}
	addrs = reallocarray(want->addrs, want->n_addrs + 1, sizeof(*addrs));
	if (!addrs)
		return np_err_nomem(err);
	want->addrs = addrs;
	want->addrs[want->n_addrs++] = inet;
	return 0;
}

static int merge_netdev(struct np_want_netdev *into, struct np_want_netdev *from)
{
	struct np_inet *addrs;

	if (from->n_addrs == 0)
		return 0;
	if (!into->from_flags) {
		into->from_flags = true;
		into->n_addrs = 0;
		into->n_sources = 0;
	}
	addrs = reallocarray(into->addrs, into->n_addrs + from->n_addrs, sizeof(*addrs));
	if (!addrs)
		return -ENOMEM;
	memcpy(addrs + into->n_addrs, from->addrs, from->n_addrs * sizeof(*addrs));
	into->addrs = addrs;
	into->n_addrs += from->n_addrs;
	return 0;
}

/* --ip ADDR/LEN together with --ifname NAME means --ip NAME=ADDR/LEN. */
static int place_default_netdev(struct np_config *cfg, struct np_err *err)
{
	size_t i;

	if (!cfg->ifname[0])
		return 0;
	for (i = 0; i < cfg->n_netdevs && cfg->netdevs[i].name[0]; i++)
		;
	if (i == cfg->n_netdevs)
		return np_config_netdev(cfg, cfg->ifname) ? 0 : np_err_nomem(err);
	for (size_t j = 0; j < cfg->n_netdevs; j++) {
		if (strcmp(cfg->netdevs[j].name, cfg->ifname) != 0)
			continue;
		if (merge_netdev(&cfg->netdevs[j], &cfg->netdevs[i]) < 0)
			return np_err_nomem(err);
		free(cfg->netdevs[i].addrs);
		memmove(&cfg->netdevs[i], &cfg->netdevs[i + 1],
			(cfg->n_netdevs - i - 1) * sizeof(cfg->netdevs[0]));
		cfg->n_netdevs--;
		return 0;
	}
	np_strcpy(cfg->netdevs[i].name, IFNAMSIZ, cfg->ifname);
	return 0;
}

/* --ip without a name will take the place of what the files say of the same netdev;
 * which one that is shows only on the node (np_select). */
static bool replaces(const struct np_want_netdev *flags, const struct np_want_netdev *file)
{
	return !flags->name[0] && flags->from_flags && file->name[0] && !file->from_flags;
}

int np_config_finish(struct np_config *cfg, struct np_err *err)
{
	int r = place_default_netdev(cfg, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < cfg->n_netdevs; i++) {
		const struct np_want_netdev *a = &cfg->netdevs[i];

		for (size_t k = 0; k < a->n_addrs; k++) {
			for (size_t j = 0; j <= i; j++) {
				const struct np_want_netdev *b = &cfg->netdevs[j];
				char text[NP_INET_STRLEN];

				if (replaces(a, b) || replaces(b, a))
					continue;
				for (size_t m = 0; m < (j == i ? k : b->n_addrs); m++) {
					if (!np_inet_same_addr(&a->addrs[k], &b->addrs[m]))
						continue;
					np_err_set(err, -EINVAL, "usage.address",
						   "address %s is asked for twice",
						   np_inet_addr_str(&a->addrs[k], text));
					np_err_hint(err, "give each address once");
					return -EINVAL;
				}
			}
		}
	}
	cfg->ucx.tls = cfg->ucx_tls;
	cfg->ucx.net_devices = cfg->ucx_net_devices;
	return 0;
}

/* ---- reading a file through inih ---- */

struct reader {
	struct np_config *cfg;
	const char *path;
	const char *text, *end;
	int line;
	struct np_err *err;
	int failed; /* negative errno of the first fault */
};

static int reader_fault(struct reader *rd, const char *code, const char *what, const char *hint)
{
	if (!rd->failed) {
		rd->failed =
			np_err_set(rd->err, -EINVAL, code, "%s:%d: %s", rd->path, rd->line, what);
		np_err_hint(rd->err, "%s", hint);
	}
	return rd->failed;
}

/* A [section] is judged here, since inih tells of it only when a key follows. */
static void check_section(struct reader *rd, const char *line)
{
	const char *close = strchr(line, ']');
	char name[SECTION_MAX_LEN + 1], where[512];

	if (!close) {
		reader_fault(rd, "config.syntax",
			     "neither [section] nor key = value: a section without its ]",
			     "write [SECTION]");
		return;
	}
	if (close - line - 1 > SECTION_MAX_LEN) {
		reader_fault(rd, "config.line_too_long", "the section name is longer than 48 bytes",
			     "use a name from nodeprep.conf(5)");
		return;
	}
	np_strcpy(name, (size_t)(close - line), line + 1);
	snprintf(where, sizeof(where), "%s:%d", rd->path, rd->line);
	rd->failed = np_config_section(rd->cfg, name, where, rd->err);
}

/* inih takes an indented line for more of the value above; one that is a section or
 * a key of its own is moved to the left. */
static void check_line(struct reader *rd, char *line)
{
	const char *start = line + strspn(line, " \t");

	if (start > line && (*start == '[' || strchr(start, '=')))
		memmove(line, start, strlen(start) + 1);
	if (line[0] == '[')
		check_section(rd, line);
}

/* inih's fgets: one line, checked before inih can cut it. */
static char *read_line(char *out, int size, void *stream)
{
	struct reader *rd = stream;
	const char *newline;
	size_t len;

	if (rd->text >= rd->end || rd->failed)
		return NULL;
	rd->line++;
	newline = memchr(rd->text, '\n', (size_t)(rd->end - rd->text));
	len = (size_t)((newline ? newline : rd->end) - rd->text);
	if (len > LINE_MAX_LEN || (int)len + 2 > size) {
		reader_fault(rd, "config.line_too_long", "the line is longer than 198 bytes",
			     "repeat the key on further lines; lists add up");
		return NULL;
	}
	if (memchr(rd->text, '\0', len)) {
		reader_fault(rd, "config.syntax", "the line contains a NUL byte",
			     "write plain text");
		return NULL;
	}
	memcpy(out, rd->text, len);
	out[len] = '\0';
	rd->text = newline ? newline + 1 : rd->end;
	check_line(rd, out);
	if (rd->failed)
		return NULL;
	len = strlen(out);
	out[len] = '\n';
	out[len + 1] = '\0';
	return out;
}

static int on_key(void *user, const char *section, const char *key, const char *value)
{
	struct reader *rd = user;
	char where[512];

	if (rd->failed)
		return 0;
	snprintf(where, sizeof(where), "%s:%d", rd->path, rd->line);
	rd->failed = np_config_set(rd->cfg, section, key, value, where, rd->err);
	return rd->failed == 0;
}

/* A FIFO or a device would make a boot wait for ever. */
static int read_regular(const char *path, struct np_buf *text)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	/* --config /dev/null: the defaults */
	if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
		return 0;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENOTSUP;
	return np_file_read_fd(fd, CONFIG_MAX, text);
}

int np_config_read(struct np_config *cfg, const char *path, struct np_err *err)
{
	np_auto_buf struct np_buf text = { 0 };
	struct reader rd = { .cfg = cfg, .path = path, .err = err };
	int r = read_regular(path, &text);

	if (r < 0) {
		np_err_set(err, r, "config.unreadable", "%s: %s", path,
			   r == -ENOTSUP ? "not a regular file" : strerror(-r));
		np_err_hint(err, "make the file readable, or name another with --config");
		return r;
	}
	if (np_strv_add(&cfg->files, path) < 0)
		return np_err_nomem(err);
	rd.text = text.data;
	rd.end = text.data + text.len;
	/* a byte order mark, as some editors leave it */
	if (text.len >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0)
		rd.text += 3;
	r = ini_parse_stream(read_line, &rd, on_key, &rd);
	if (!rd.failed && r != 0) {
		rd.line = r > 0 ? r : rd.line;
		reader_fault(&rd, "config.syntax", "neither [section] nor key = value",
			     "see nodeprep.conf(5)");
	}
	if (rd.failed && err && !err->hint[0])
		np_err_hint(err, "see nodeprep.conf(5)");
	return rd.failed;
}

static int only_conf(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return entry->d_name[0] != '.' && len > 5 && strcmp(entry->d_name + len - 5, ".conf") == 0;
}

int np_config_load(struct np_config *cfg, const char *path, struct np_err *err)
{
	struct dirent **entries = NULL;
	int n, r = 0;

	if (path)
		return np_config_read(cfg, path, err);
	if (access(CONFIG_FILE, F_OK) == 0 || errno != ENOENT) {
		r = np_config_read(cfg, CONFIG_FILE, err);
		if (r < 0)
			return r;
	}
	n = scandir(CONFIG_DIR, &entries, only_conf, alphasort);
	if (n < 0 && errno != ENOENT) {
		r = -errno;
		np_err_set(err, r, "config.unreadable", "%s: %s", CONFIG_DIR, strerror(-r));
		np_err_hint(err, "make the directory readable");
		return r;
	}
	for (int i = 0; i < n; i++) {
		_cleanup_free_ char *file = np_asprintf(CONFIG_DIR "/%s", entries[i]->d_name);

		if (r == 0)
			r = file ? np_config_read(cfg, file, err) : np_err_nomem(err);
		free(entries[i]);
	}
	free(entries);
	return r;
}
