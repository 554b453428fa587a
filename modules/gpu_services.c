/* SPDX-License-Identifier: MIT */
#include "modules/gpu_services.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"
#include "base/str.h"

#define CHANNELS       "/dev/nvidia-caps-imex-channels"	   /* of the GPU driver, 550 or newer */
#define NODES	       "/etc/nvidia-imex/nodes_config.cfg" /* of nvidia-imex: an address a line */
#define NODES_MAX      (1 << 20)
#define INITIAL_PID_NS "pid:[4026531836]" /* PROC_PID_INIT_INO, linux/proc_ns.h of the kernel */

static bool in_cgroup(const char *unit)
{
	for (size_t i = 0; i < NP_SYSTEM_SLICES; i++) {
		char path[160], pid[32];

		snprintf(path, sizeof(path), "%s/%s/cgroup.procs", np_system_slices[i], unit);
		if (np_file_read_line_at(AT_FDCWD, path, pid, sizeof(pid)) > 0)
			return true;
	}
	return false;
}

static int same_name(pid_t pid, const char *comm, void *arg)
{
	(void)pid;
	return strncmp(comm, arg, NP_COMM_SIZE - 1) == 0;
}

static bool in_proc(const char *name)
{
	return np_processes_each(same_name, (void *)(uintptr_t)name) == 1;
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
	for (size_t i = 0; i < NP_SYSTEM_SLICES; i++)
		if (access(np_system_slices[i], F_OK) == 0)
			return true;
	return false;
}

static enum np_service_state look_for(const char *unit, const char *name)
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
