/* SPDX-License-Identifier: MIT */
#include "agent/services.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

/* By the names of their processes, and how their units' names begin. */
static const struct {
	const char *comm, *unit;
} known[] = {
	{ "slurmd", "slurmd" },		{ "dask-scheduler", "dask" }, { "dask-worker", "dask" },
	{ "dask-cuda-worker", "dask" }, { "dask", "dask" },	      { "kubelet", "kubelet" },
	{ "containerd", "containerd" }, { "dockerd", "docker" },      { "crio", "crio" },
	{ "k3s-server", "k3s" },	{ "k3s-agent", "k3s" },	      { "pbs_mom", "pbs" },
	{ "condor_master", "condor" },	{ "sge_execd", "sge" },
};

static bool is_job_starter(const char *comm)
{
	for (size_t i = 0; i < NP_ARRAY_SIZE(known); i++)
		if (strncmp(known[i].comm, comm, NP_COMM_SIZE - 1) == 0)
			return true;
	return false;
}

static bool is_job_unit(const char *name)
{
	const char *end = strrchr(name, '.');

	if (!end || strcmp(end, ".service") != 0)
		return false;
	for (size_t i = 0; i < NP_ARRAY_SIZE(known); i++)
		if (np_starts_with(name, known[i].unit))
			return true;
	return false;
}

static int add(struct np_services *list, const struct np_service *service)
{
	struct np_service *v;

	for (size_t i = 0; i < list->n; i++) {
		if (strcmp(list->v[i].name, service->name) != 0)
			continue;
		if (service->memlock.soft < list->v[i].memlock.soft)
			list->v[i] = *service;
		return 0;
	}
	v = reallocarray(list->v, list->n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	list->v = v;
	v[list->n++] = *service;
	return 0;
}

/* ---- units ---- */

/* The first process of a unit is its main one, or like it. */
static int add_unit(struct np_services *list, int slice, const char *unit)
{
	struct np_service service = { .is_unit = true };
	char path[NAME_MAX + 32], line[32];
	uint64_t pid;

	snprintf(path, sizeof(path), "%s/cgroup.procs", unit);
	if (np_file_read_line_at(slice, path, line, sizeof(line)) <= 0)
		return 0;
	line[strcspn(line, "\n")] = '\0';
	if (np_parse_u64(line, 10, INT32_MAX, &pid) < 0 ||
	    np_memlock_of((pid_t)pid, &service.memlock) < 0)
		return 0;
	service.pid = (pid_t)pid;
	np_process_comm(service.pid, service.comm);
	np_strcpy(service.name, sizeof(service.name), unit);
	return add(list, &service);
}

static int observe_units(struct np_services *list)
{
	_cleanup_closedir_ DIR *dir = NULL;
	struct dirent *entry;
	int r = 0;

	for (size_t i = 0; i < NP_SYSTEM_SLICES && !dir; i++)
		dir = opendir(np_system_slices[i]);
	while (dir && r == 0 && (entry = readdir(dir)))
		if (is_job_unit(entry->d_name))
			r = add_unit(list, dirfd(dir), entry->d_name);
	return r;
}

/* ---- processes ---- */

static int add_process(pid_t pid, const char *comm, void *arg)
{
	struct np_services *list = arg;
	struct np_service service = { .pid = pid };
	bool starter = is_job_starter(comm);

	/* a Dask worker may be called by the name of its interpreter: then its unit tells */
	if (!starter && !np_starts_with(comm, "python"))
		return 0;
	for (size_t i = 0; i < list->n; i++)
		if (list->v[i].pid == pid)
			return 0;
	/* what lies in a session's scope was started by hand: no unit to change */
	service.is_unit = np_process_unit(pid, service.name, sizeof(service.name)) &&
			  !strstr(service.name, ".scope");
	if (!starter && !(service.is_unit && is_job_unit(service.name)))
		return 0;
	if (!service.is_unit)
		np_strcpy(service.name, sizeof(service.name), comm);
	np_strcpy(service.comm, sizeof(service.comm), comm);
	if (np_memlock_of(pid, &service.memlock) < 0)
		return 0;
	return add(list, &service);
}

int np_services_observe(enum np_services_scope scope, struct np_services *out)
{
	struct np_services list = { 0 };
	int r = observe_units(&list);

	/* -ENOMEM alone: without /proc nothing can be seen */
	if (r == 0 && scope == NP_SERVICES_ALL)
		r = np_processes_each(add_process, &list) == -ENOMEM ? -ENOMEM : 0;
	if (r < 0) {
		np_services_done(&list);
		return r;
	}
	np_services_done(out);
	*out = list;
	return 0;
}

void np_services_done(struct np_services *services)
{
	if (!services)
		return;
	free(services->v);
	memset(services, 0, sizeof(*services));
}
