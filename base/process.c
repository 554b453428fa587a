/* SPDX-License-Identifier: MIT */
#include "base/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

#define CGROUP_MAX 65536

const char *const np_system_slices[NP_SYSTEM_SLICES] = {
	"/sys/fs/cgroup/system.slice",
	"/sys/fs/cgroup/systemd/system.slice",
};

/* It ended meanwhile, or is nobody's to look at. All else, as no descriptor left to look with,
 * must not be taken for an answer. */
static bool is_out_of_sight(int num)
{
	return num == ENOENT || num == ESRCH || num == EACCES || num == EPERM;
}

int np_processes_each(int (*fn)(pid_t pid, const char *comm, void *arg), void *arg)
{
	_cleanup_closedir_ DIR *dir = opendir("/proc");
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && (errno = 0, entry = readdir(dir))) {
		char path[sizeof(entry->d_name) + 8], comm[NP_COMM_SIZE + 1];
		uint64_t pid;
		int len;

		if (*entry->d_name < '1' || *entry->d_name > '9' ||
		    np_parse_u64(entry->d_name, 10, INT32_MAX, &pid) < 0)
			continue;
		snprintf(path, sizeof(path), "%s/comm", entry->d_name);
		/* anybody may have an empty name */
		len = np_file_read_line_at(dirfd(dir), path, comm, sizeof(comm));
		if (len >= 0)
			r = fn((pid_t)pid, comm, arg);
		else if (!is_out_of_sight(-len))
			r = len;
	}
	return r == 0 && !entry ? -errno : r;
}

struct descriptors {
	int (*fn)(pid_t pid, const char *target, void *arg);
	void *arg;
	size_t left;
};

static int each_of_process(pid_t pid, const char *comm, void *arg)
{
	struct descriptors *d = arg;
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	char path[32];
	int r = 0;

	(void)comm;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return is_out_of_sight(errno) ? 0 : -errno;
	while (r == 0 && (errno = 0, entry = readdir(dir))) {
		char target[128];
		ssize_t len;

		if (*entry->d_name == '.')
			continue;
		if (d->left-- == 0)
			return -E2BIG;
		/* longer ones are nothing that is looked for */
		len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		if (len < 0)
			continue;
		target[len] = '\0';
		r = d->fn(pid, target, d->arg);
	}
	return r == 0 && !entry && !is_out_of_sight(errno) ? -errno : r;
}

int np_descriptors_each(int (*fn)(pid_t pid, const char *target, void *arg), void *arg)
{
	struct descriptors d = { .fn = fn, .arg = arg, .left = NP_DESCRIPTORS_MAX };

	return np_processes_each(each_of_process, &d);
}

int np_process_comm(pid_t pid, char out[NP_COMM_SIZE])
{
	char path[48], comm[NP_COMM_SIZE + 1];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	r = np_file_read_line_at(AT_FDCWD, path, comm, sizeof(comm));
	np_strcpy(out, NP_COMM_SIZE, r < 0 ? "" : comm);
	return r < 0 ? -ENOENT : 0;
}

pid_t np_process_parent(pid_t pid)
{
	char path[48], line[512], word[16];
	const char *at;
	uint64_t parent;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	r = np_file_read_line_at(AT_FDCWD, path, line, sizeof(line));
	if (r < 0)
		return r;
	/* "PID (any name) STATE PARENT ..." */
	at = strrchr(line, ')');
	if (!at || strlen(at) < 4)
		return -EINVAL;
	at += 4;
	snprintf(word, sizeof(word), "%.*s", (int)strspn(at, "0123456789"), at);
	return np_parse_u64(word, 10, INT32_MAX, &parent) < 0 ? -EINVAL : (pid_t)parent;
}

static bool is_unit(const char *name, size_t len)
{
	static const char *const kinds[] = { ".service", ".scope" };

	for (size_t i = 0; i < NP_ARRAY_SIZE(kinds); i++) {
		size_t kind = strlen(kinds[i]);

		if (len > kind && memcmp(name + len - kind, kinds[i], kind) == 0)
			return true;
	}
	return false;
}

/* "0::/system.slice/slurmd.service", or with controllers, "1:name=systemd:/..." */
bool np_cgroup_unit(const char *text, char *out, size_t size)
{
	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n"), end = len;

		while (end > 0) {
			size_t start = end;

			while (start > 0 && line[start - 1] != '/')
				start--;
			if (start == 0)
				break;
			if (is_unit(line + start, end - start) && end - start < size) {
				memcpy(out, line + start, end - start);
				out[end - start] = '\0';
				return true;
			}
			end = start - 1;
		}
		line += len + (line[len] == '\n');
	}
	return false;
}

bool np_process_unit(pid_t pid, char *out, size_t size)
{
	np_auto_buf struct np_buf text = { 0 };
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	return np_file_read_at(AT_FDCWD, path, CGROUP_MAX, &text) == 0 &&
	       np_cgroup_unit(text.data, out, size);
}
