/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "selftest/document.h"
#include "selftest/gpu_workers.h"
#include "selftest/watch.h"

/* Until a worker's own alarm has rung for certain (watch.c). */
#define LATE_MS	      4000
#define LOOK_EVERY_MS 10
#define EXIT_FAILED   1

/* ---- what they write ---- */

/* False at the end. */
static bool read_some(struct np_gpu_worker *worker)
{
	char text[4096];
	ssize_t n = read(worker->fd, text, sizeof(text));

	if (n > 0) {
		np_buf_add(&worker->out, text, (size_t)n);
		worker->spoke |= memchr(text, '\n', (size_t)n) != NULL;
	}
	return n > 0 || (n < 0 && errno == EINTR);
}

/* Waits for a word of one of them. */
static void listen_to_all(struct np_gpu_workers *workers, int timeout_ms)
{
	struct pollfd fds[NP_GPU_WORKERS_MAX];

	for (size_t i = 0; i < workers->n; i++)
		fds[i] = (struct pollfd){ .fd = workers->v[i].fd, .events = POLLIN };
	if (poll(fds, workers->n, timeout_ms) <= 0)
		return;
	for (size_t i = 0; i < workers->n; i++)
		if (fds[i].revents && !read_some(&workers->v[i])) {
			close(workers->v[i].fd);
			workers->v[i].fd = -1;
		}
}

/* ---- their end ---- */

/* The number of those that have not ended. */
static size_t reap(struct np_gpu_workers *workers, size_t from, size_t to)
{
	size_t n = 0;

	for (size_t i = from; i < to; i++) {
		struct np_gpu_worker *worker = &workers->v[i];

		if (worker->exit_status >= 0)
			continue;
		if (worker->fd >= 0 ||
		    waitpid(worker->pid, &worker->exit_status, WNOHANG) != worker->pid)
			n++;
	}
	return n;
}

/* Not even its alarm came: a kernel driver holds it. It may stay for ever. */
static void give_up(const struct np_gpu_workers *workers, struct np_gpu_worker *worker)
{
	np_auto_rung_report struct np_rung_report report = { 0 };
	struct np_rung_result *result;
	_cleanup_free_ char *document = NULL;
	struct np_err hang;

	kill(worker->pid, SIGKILL);
	if (worker->fd >= 0)
		close(worker->fd);
	worker->fd = -1;
	if (worker->spoke)
		return;
	worker->out.len = 0;
	result = np_rung_add(&report, workers->rung, worker->pci);
	if (!result)
		return;
	np_watch_hang(workers->rung, workers->timeout_ms, &hang);
	np_rung_fail(result, &hang);
	document = np_document(&report, NULL);
	if (document)
		np_buf_str(&worker->out, document);
}

/* ---- what is told of it ---- */

/* Whole lines, as they are. */
static int pass_on(struct np_gpu_worker *worker)
{
	char *newline = worker->out.len ? memrchr(worker->out.data, '\n', worker->out.len) : NULL;
	_cleanup_free_ char *lines = NULL;
	size_t n;

	if (!newline)
		return 0;
	n = (size_t)(newline + 1 - worker->out.data);
	lines = strndup(worker->out.data, n);
	if (!lines)
		return -ENOMEM;
	memmove(worker->out.data, newline + 1, worker->out.len - n);
	worker->out.len -= n;
	return np_watch_write(lines);
}

static int pass_all_on(struct np_gpu_workers *workers)
{
	int ret = 0;

	for (size_t i = 0; i < workers->n && workers->lines; i++)
		ret = pass_on(&workers->v[i]) < 0 ? -EIO : ret;
	return ret;
}

/* The entries of its documents; the first error of one becomes that of all. */
static void add_entries(const struct np_gpu_worker *worker, json_t *entries, json_t **error)
{
	const char *at = worker->out.data, *end = at ? at + worker->out.len : NULL, *newline;

	for (; at < end && (newline = memchr(at, '\n', (size_t)(end - at))); at = newline + 1) {
		json_t *document = json_loadb(at, (size_t)(newline - at), 0, NULL);

		json_array_extend(entries, json_object_get(document, "selftest"));
		if (!*error)
			*error = json_incref(json_object_get(document, "error"));
		json_decref(document);
	}
}

static int write_one_document(const struct np_gpu_workers *workers, bool ready)
{
	json_t *entries = json_array(), *error = NULL;
	_cleanup_free_ char *document = NULL;

	for (size_t i = 0; i < workers->n; i++)
		add_entries(&workers->v[i], entries, &error);
	document = np_document_of(entries, ready, error);
	return document ? np_watch_write(document) : -ENOMEM;
}

/* Of those that ended by themselves; 1 for the others. */
static int exit_code(const struct np_gpu_workers *workers)
{
	int highest = 0;

	for (size_t i = 0; i < workers->n; i++) {
		int status = workers->v[i].exit_status,
		    code = status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;

		highest = code > highest ? code : highest;
	}
	return highest;
}

/* Who started this process learns from its end that one crashed. */
static void end_as_they_did(const struct np_gpu_workers *workers)
{
	const struct rlimit no_second_core = { 0 };

	for (size_t i = 0; i < workers->n; i++) {
		int status = workers->v[i].exit_status;

		if (status < 0 || !WIFSIGNALED(status))
			continue;
		setrlimit(RLIMIT_CORE, &no_second_core);
		signal(WTERMSIG(status), SIG_DFL);
		raise(WTERMSIG(status));
	}
}

int np_gpu_workers_wait(struct np_gpu_workers *workers, size_t from, size_t to)
{
	int64_t until = np_now_ms() + workers->timeout_ms + LATE_MS;
	int ret = 0;

	while (reap(workers, from, to) > 0 && np_now_ms() < until && ret == 0) {
		listen_to_all(workers, LOOK_EVERY_MS);
		ret = pass_all_on(workers);
	}
	listen_to_all(workers, 0);
	for (size_t i = from; i < to; i++)
		if (workers->v[i].exit_status < 0)
			give_up(workers, &workers->v[i]);
	return ret == 0 ? pass_all_on(workers) : ret;
}

int np_gpu_workers_tell(struct np_gpu_workers *workers)
{
	int ret = 0;

	workers->code = exit_code(workers);
	if (!workers->lines)
		ret = write_one_document(workers, workers->code == 0);
	if (ret == 0)
		end_as_they_did(workers);
	return ret;
}
