/* SPDX-License-Identifier: MIT */
#include "modules/module.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "modules/lookup.h"
#include "modules/private.h"

#define MODULE_DIR "/sys/module"

const struct np_kmod_info np_kmod_known[] = {
	{ "ib_core", "RDMA core" },
	{ "ib_umad", "management datagrams: port queries, subnet manager" },
	{ "ib_uverbs", "RDMA from user space: UCX, NCCL" },
	{ "ib_ipoib", "IP over InfiniBand: ib0" },
	{ "rdma_cm", "RDMA connections by IP address" },
	{ "rdma_ucm", "RDMA connections by IP address from user space" },
	{ "mlx4_core", "ConnectX-3 driver" },
	{ "mlx4_ib", "ConnectX-3 RDMA" },
	{ "mlx5_core", "ConnectX-4 and newer driver" },
	{ "mlx5_ib", "ConnectX-4 and newer RDMA" },
	{ "gdrdrv", "GPU memory mapped to the CPU: gdr_copy" },
	{ "nvidia", "GPU driver" },
	{ "nvidia_uvm", "CUDA memory" },
	{ "nvidia_peermem", "GPU memory for the HCA: GPUDirect RDMA" },
	{ NULL, NULL },
};

const char *np_kmod_state_str(enum np_kmod_state s)
{
	switch (s) {
	case NP_KMOD_ABSENT:
		return "absent";
	case NP_KMOD_BUILTIN:
		return "builtin";
	case NP_KMOD_LIVE:
		return "live";
	case NP_KMOD_COMING:
		return "coming";
	case NP_KMOD_GOING:
		return "going";
	case NP_KMOD_UNKNOWN:
		break;
	}
	return "unknown";
}

bool np_kmod_normal_name(const char *name, char *out, size_t size)
{
	char text[64];

	if (!*name || *name == '.' || *name == '-' || !np_strcpy(text, sizeof(text), name))
		return false;
	for (char *c = text; *c; c++) {
		if (*c == '-')
			*c = '_';
		if (*c <= ' ' || *c > '~' || strchr("/\\\"'%*?[]=#:;$`", *c))
			return false;
	}
	return np_strcpy(out, size, text);
}

bool np_kmod_same_name(const char *a, const char *b)
{
	for (; *a && *b; a++, b++)
		if (*a != *b && !(strchr("-_", *a) && strchr("-_", *b)))
			return false;
	return *a == *b;
}

/* One look for a loaded module, a second for one that is built in or absent. */
static enum np_kmod_state read_state(int modules_fd, const char *name)
{
	char path[96], text[32];
	struct stat st;
	int len;

	snprintf(path, sizeof(path), "%s/initstate", name);
	len = np_file_read_line_at(modules_fd, path, text, sizeof(text));
	if (len == -ENOENT) {
		if (fstatat(modules_fd, name, &st, 0) == 0)
			return S_ISDIR(st.st_mode) ? NP_KMOD_BUILTIN : NP_KMOD_UNKNOWN;
		return errno == ENOENT ? NP_KMOD_ABSENT : NP_KMOD_UNKNOWN;
	}
	if (len < 0)
		return NP_KMOD_UNKNOWN;
	for (int s = NP_KMOD_LIVE; s <= NP_KMOD_GOING; s++)
		if (strcmp(text, np_kmod_state_str((enum np_kmod_state)s)) == 0)
			return (enum np_kmod_state)s;
	return NP_KMOD_UNKNOWN;
}

static void observe_at(int modules_fd, const char *name, bool whole, struct np_kmod *out)
{
	char text[32], path[96];
	uint64_t refcnt;

	memset(out, 0, sizeof(*out));
	out->refcnt = -1;
	if (!np_kmod_normal_name(name, out->name, sizeof(out->name))) {
		out->state = NP_KMOD_ABSENT;
		return;
	}
	out->state = read_state(modules_fd, out->name);
	if (!whole || out->state == NP_KMOD_ABSENT)
		return;
	snprintf(path, sizeof(path), "%s/version", out->name);
	if (np_file_read_line_at(modules_fd, path, out->version, sizeof(out->version)) < 0)
		out->version[0] = '\0';
	snprintf(path, sizeof(path), "%s/refcnt", out->name);
	if (out->state != NP_KMOD_BUILTIN &&
	    np_file_read_line_at(modules_fd, path, text, sizeof(text)) >= 0 &&
	    np_parse_u64(text, 10, INT_MAX, &refcnt) == 0)
		out->refcnt = (int)refcnt;
}

/* Without /sys/module there is nothing to be read: -1 makes everything unknown. */
static int open_modules(void)
{
	return open(MODULE_DIR, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

void np_kmod_observe(const char *name, struct np_kmod *out)
{
	_cleanup_close_ int fd = open_modules();

	observe_at(fd, name, true, out);
}

int np_kmods_observe(bool whole, struct np_kmods *out, struct np_err *err)
{
	_cleanup_close_ int fd = open_modules();
	size_t n = NP_ARRAY_SIZE(np_kmod_known) - 1;
	struct np_kmod *v = calloc(n, sizeof(*v));

	if (!v)
		return np_err_nomem(err);
	for (size_t i = 0; i < n; i++)
		observe_at(fd, np_kmod_known[i].name, whole, &v[i]);
	out->v = v;
	out->n = n;
	return 0;
}

void np_kmods_done(struct np_kmods *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->n; i++) {
		np_kmod_lookup_done(list->v[i].lookup);
		free(list->v[i].lookup);
	}
	free(list->v);
	memset(list, 0, sizeof(*list));
}

const struct np_kmod *np_kmods_find(const struct np_kmods *list, const char *name)
{
	char wanted[64];

	if (!np_kmod_normal_name(name, wanted, sizeof(wanted)))
		return NULL;
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i].name, wanted) == 0)
			return &list->v[i];
	return NULL;
}

int np_kmods_look_up(struct np_kmods *list, const char *name, struct np_err *err)
{
	for (size_t i = 0; i < list->n; i++) {
		struct np_kmod *mod = &list->v[i];
		struct np_kmod_lookup *lookup;
		int r;

		if (mod->lookup || (name && !np_kmod_same_name(mod->name, name)))
			continue;
		lookup = calloc(1, sizeof(*lookup));
		if (!lookup)
			return np_err_nomem(err);
		r = np_kmod_look_up(mod->name, lookup, err);
		if (r < 0) {
			free(lookup);
			return r;
		}
		mod->lookup = lookup;
	}
	return 0;
}
