/* SPDX-License-Identifier: MIT */
#include "modules/gpu_services.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

#define CHANNELS       "/dev/nvidia-caps-imex-channels"	   /* of the GPU driver, 550 or newer */
#define NODES	       "/etc/nvidia-imex/nodes_config.cfg" /* of nvidia-imex: an address a line */
#define NODES_MAX      (1 << 20)
#define INITIAL_PID_NS "pid:[4026531836]" /* PROC_PID_INIT_INO, linux/proc_ns.h of the kernel */
#define COMM_LEN       15		  /* TASK_COMM_LEN less its NUL: a longer name is cut */

/* Unified hierarchy, and systemd's own of the older one. */
static const char *const slices[] = { "/sys/fs/cgroup/system.slice",
				      "/sys/fs/cgroup/systemd/system.slice" };

static bool in_cgroup(const char *unit)
{
	for (size_t i = 0; i < NP_ARRAY_SIZE(slices); i++) {
		char path[160], pid[32];

		snprintf(path, sizeof(path), "%s/%s/cgroup.procs", slices[i], unit);
		if (np_file_read_line_at(AT_FDCWD, path, pid, sizeof(pid)) > 0)
			return true;
	}
	return false;
}

static bool in_proc(const char *name)
{
	_cleanup_closedir_ DIR *proc = opendir("/proc");
	const struct dirent *entry;

	while (proc && (entry = readdir(proc))) {
		char path[sizeof(entry->d_name) + 8], comm[32];

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "%s/comm", entry->d_name);
		if (np_file_read_line_at(dirfd(proc), path, comm, sizeof(comm)) > 0 &&
		    strncmp(comm, name, COMM_LEN) == 0)
			return true;
	}
	return false;
}

/* Whether what is not found here is not there at all. */
static bool sees_the_machine(void)
{
	char ns[32];
	ssize_t len = readlink("/proc/self/ns/pid", ns, sizeof(ns) - 1);

	if (len > 0) {
		ns[len] = '\0';
		if (strcmp(ns, INITIAL_PID_NS) == 0)
			return true;
	}
	for (size_t i = 0; i < NP_ARRAY_SIZE(slices); i++)
		if (access(slices[i], F_OK) == 0)
			return true;
	return false;
}

static enum np_service look_for(const char *unit, const char *name)
{
	if (in_cgroup(unit) || in_proc(name))
		return NP_SERVICE_RUNNING;
	return sees_the_machine() ? NP_SERVICE_DOWN : NP_SERVICE_UNKNOWN;
}

static bool has_channel(void)
{
	_cleanup_closedir_ DIR *dir = opendir(CHANNELS);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			return true;
	return false;
}

static bool names_nodes(void)
{
	np_auto_buf struct np_buf text = { 0 };
	char *rest, *line;

	if (np_file_read_at(AT_FDCWD, NODES, NODES_MAX, &text) < 0)
		return false;
	rest = text.data;
	while ((line = strsep(&rest, "\n"))) {
		line = np_strip(line);
		if (*line && *line != '#')
			return true;
	}
	return false;
}

void np_gpu_services_observe(bool nvswitch, struct np_gpu_services *out)
{
	*out = (struct np_gpu_services){ .nvswitch = nvswitch,
					 .imex_channels = has_channel(),
					 .imex_domain = names_nodes() };
	if (nvswitch)
		out->fabricmanager = look_for("nvidia-fabricmanager.service", "nv-fabricmanager");
	if (out->imex_channels || out->imex_domain)
		out->imex = look_for("nvidia-imex.service", "nvidia-imex");
}
