/* SPDX-License-Identifier: MIT */
#include "selftest/gpu_workers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "modules/gpu.h"
#include "selftest/early.h"
#include "selftest/turn.h"

/* Of the time that a GPU has: who hangs with the turn must not cost its neighbours more. */
#define TURN_SHARE 4

/* A pipe that says when the last worker has closed its end. */
static int meeting[2] = { -1, -1 };

static void close_end(int i)
{
	if (meeting[i] >= 0)
		close(meeting[i]);
	meeting[i] = -1;
}

void np_gpu_workers_leave(void)
{
	close_end(0);
	close_end(1);
}

void np_gpu_workers_meet(int64_t deadline_ms)
{
	struct pollfd others = { .fd = meeting[0] };
	int64_t until = np_now_ms() + (deadline_ms - np_now_ms()) / 2, left;

	close_end(1);
	while (meeting[0] >= 0 && (left = until - np_now_ms()) > 0)
		if (poll(&others, 1, (int)left) > 0)
			break;
	close_end(0);
}

/* ---- which GPUs ---- */

/* All of @names are there, each once. */
static bool are_all_of(const struct np_gpu_names *names, const struct np_gpus *gpus)
{
	for (size_t k = 0; k < names->n; k++) {
		size_t found = 0;

		for (size_t i = 0; i < gpus->n; i++)
			if (np_gpu_name_is(&names->v[k], gpus->v[i].pci_address, i))
				for (size_t other = 0; other < names->n; other++)
					found += np_gpu_name_is(&names->v[other],
								gpus->v[i].pci_address, i);
		if (found != 1)
			return false;
	}
	return true;
}

static void choose(const struct np_gpus *gpus, const struct np_gpu_names *names,
		   struct np_gpu_workers *workers)
{
	for (size_t i = 0; i < gpus->n && workers->n < NP_GPU_WORKERS_MAX; i++) {
		bool wanted = names->n == 0;

		for (size_t k = 0; k < names->n; k++)
			wanted |= np_gpu_name_is(&names->v[k], gpus->v[i].pci_address, i);
		if (wanted)
			np_strcpy(workers->v[workers->n++].pci, sizeof(workers->v[0].pci),
				  gpus->v[i].pci_address);
	}
}

/* What cannot be done here becomes no worker: the rung then says what is wrong. */
static void list(const struct np_rung_options *options, struct np_gpu_workers *workers)
{
	np_auto_gpu_names struct np_gpu_names names = { 0 };
	struct np_gpus gpus = { 0 };
	struct np_err unused;

	if (options->device && np_gpu_names_parse(options->device, &names, &unused) < 0)
		return;
	if (np_gpus_observe(&gpus, &unused) == 0 && gpus.n <= NP_GPU_WORKERS_MAX &&
	    are_all_of(&names, &gpus))
		choose(&gpus, &names, workers);
	np_gpus_done(&gpus);
}

/* ---- the processes ---- */

static size_t processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
}

/* In the child. */
static void become(struct np_gpu_workers *workers, size_t which, int out, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || dup2(out, np_early_stdout()) < 0)
		_exit(EXIT_FAILURE);
	close(out);
	for (size_t i = 0; i < which; i++) {
		if (workers->v[i].fd >= 0)
			close(workers->v[i].fd);
		np_buf_done(&workers->v[i].out);
	}
	workers->v[0] = workers->v[which];
	workers->n = 1;
}

/* Returns 1 in the child, 0 in the parent, or a negative errno. */
static int start_one(struct np_gpu_workers *workers, size_t which)
{
	struct np_gpu_worker *worker = &workers->v[which];
	pid_t parent = getpid();
	int fds[2], ret;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	worker->pid = fork();
	ret = worker->pid < 0 ? -errno : worker->pid == 0;
	if (ret == 1) {
		close(fds[0]);
		become(workers, which, fds[1], parent);
		return ret;
	}
	close(fds[1]);
	if (ret < 0)
		close(fds[0]);
	worker->fd = ret < 0 ? -1 : fds[0];
	worker->exit_status = -1;
	return ret;
}

/* Those from @from up to @to. Returns as start_one; after an error none of them is there. */
static int start_some(struct np_gpu_workers *workers, size_t from, size_t to, struct np_err *err)
{
	size_t i = from;
	int ret = pipe2(meeting, O_CLOEXEC) < 0 ? -errno : 0;

	while (i < to && ret == 0)
		ret = start_one(workers, i++);
	if (ret == 1)
		return ret;
	np_gpu_workers_leave();
	if (ret == 0)
		return 0;
	np_err_set(err, ret, "internal", "cannot start a process for each GPU: %s", strerror(-ret));
	while (i-- > from) {
		if (workers->v[i].fd < 0)
			continue;
		kill(workers->v[i].pid, SIGKILL);
		waitpid(workers->v[i].pid, NULL, 0);
		close(workers->v[i].fd);
	}
	return ret;
}

static int run(struct np_gpu_workers *workers, size_t at_once, struct np_err *err)
{
	for (size_t from = 0; from < workers->n; from += at_once) {
		size_t to = from + at_once < workers->n ? from + at_once : workers->n;
		int ret = start_some(workers, from, to, err);

		if (ret == 0)
			ret = np_gpu_workers_wait(workers, from, to);
		if (ret != 0)
			return ret;
	}
	return np_gpu_workers_tell(workers);
}

int np_gpu_workers(const struct np_rung *rung, const struct np_rung_options *options, bool lines,
		   struct np_gpu_workers *workers, struct np_err *err)
{
	size_t at_once = rung->gpu_processes ? processors() / rung->gpu_processes : 0;
	int ret;

	memset(workers, 0, sizeof(*workers));
	workers->rung = rung->name;
	workers->timeout_ms = options->timeout_ms;
	workers->lines = lines;
	for (size_t i = 0; i < NP_GPU_WORKERS_MAX; i++)
		workers->v[i].fd = -1;
	if (at_once > 1)
		list(options, workers);
	if (workers->n < 2)
		return NP_GPU_WORKERS_NONE;
	ret = np_turn_make(options->timeout_ms / TURN_SHARE, err);
	if (ret == 0) {
		np_err_set(err, -EIO, "internal", "cannot write the report");
		ret = run(workers, at_once, err);
	}
	if (ret == 1)
		return NP_GPU_WORKERS_WORKER;
	for (size_t i = 0; i < workers->n; i++)
		np_buf_done(&workers->v[i].out);
	return ret < 0 ? ret : NP_GPU_WORKERS_DONE;
}
