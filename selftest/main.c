/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Not in every distribution's package: then --env sets only what UCX reads later. */
#if defined(__has_include)
#if __has_include("ucs/config/global_opts.h")
#include <ucs/config/global_opts.h>
#define HAVE_UCS_GLOBAL_OPTS 1
#endif
#endif

#include "base/child.h"
#include "base/log.h"
#include "selftest/cuda_lib.h"
#include "selftest/document.h"
#include "selftest/early.h"
#include "selftest/gpu_workers.h"
#include "selftest/libraries.h"
#include "selftest/options.h"
#include "selftest/ucp_engine.h"
#include "selftest/ucx_build.h"
#include "selftest/watch.h"

#ifndef NP_VERSION
#define NP_VERSION "0"
#endif

enum { EXIT_READY = 0, EXIT_NOT_READY = 1, EXIT_USAGE = 2, EXIT_INTERNAL = 5 };

/* --env; what UCX read when it was loaded is set once more. */
static int set_environment(const struct np_options *options, struct np_err *err)
{
	for (size_t i = 0; i < options->n_env; i++) {
		const char *value = strchr(options->env[i], '=') + 1;
		char name[128];

		np_strcpy(name, sizeof(name), options->env[i]);
		if ((size_t)(value - options->env[i]) > sizeof(name))
			return np_err_set(err, -EINVAL, "usage", "--env: the name is too long");
		name[value - options->env[i] - 1] = '\0';
		if (setenv(name, value, 1) < 0)
			return np_err_nomem(err);
#ifdef HAVE_UCS_GLOBAL_OPTS
		if (np_starts_with(name, "UCX_"))
			(void)ucs_global_opts_set_value(name + strlen("UCX_"), value);
#endif
		if (np_streq(name, "UCX_TLS") || np_streq(name, "UCX_NET_DEVICES"))
			np_warning("%s has no effect: the rung chooses its transport and device",
				   name);
	}
	return 0;
}

static int list_rungs(void)
{
	np_auto_buf struct np_buf text = { 0 };

	for (const struct np_rung *rung = np_rungs; rung->name; rung++)
		np_buf_printf(&text, "%-10s %s\n", rung->name, rung->purpose);
	return text.data && !text.failed && np_watch_write(text.data) == 0 ? EXIT_READY :
									     EXIT_INTERNAL;
}

static int run(struct np_options *options)
{
	np_auto_rung_report struct np_rung_report report = { 0 };
	struct np_rung_options *rung = &options->rung_options;
	static struct np_gpu_workers workers;
	struct np_err err;
	int ret, role;

	np_err_clear(&err);
	role = np_gpu_workers(options->rung, rung, options->lines, &workers, &err);
	if (role == NP_GPU_WORKERS_DONE)
		return workers.code;
	if (role == NP_GPU_WORKERS_WORKER) {
		rung->device = workers.v[0].pci;
		options->lines = true;
	}
	rung->deadline_ms = np_now_ms() + rung->timeout_ms;
	ret = np_watch_start(options->rung->name, rung->device ? rung->device : rung->netdev,
			     rung->timeout_ms, options->lines, &err);
	if (ret == 0)
		ret = role < 0 ? role : options->rung->run(rung, &report, &err);
	if (ret < 0 && np_starts_with(err.code, "usage")) {
		np_error("%s", err.message);
		return EXIT_USAGE;
	}
	if (np_watch_end(&report, ret < 0 ? &err : NULL) < 0) {
		np_error("cannot write the report");
		return EXIT_INTERNAL;
	}
	if (ret < 0)
		return EXIT_INTERNAL;
	return np_rung_report_ok(&report) ? EXIT_READY : EXIT_NOT_READY;
}

static int libraries(struct np_options *options)
{
	int timeout_ms = options->rung_options.timeout_ms;
	_cleanup_free_ char *document = NULL;
	struct np_err err = { 0 }, hang;

	np_watch_hang("--libraries", timeout_ms, &hang);
	document =
		np_document_libraries(np_libraries_unknown(options->brief, options->nvml, &hang));
	if (np_watch_start_with(document, timeout_ms, &err) == 0)
		document = np_document_libraries(np_libraries(options->brief, options->nvml));
	alarm(0);
	if (!document || np_watch_write(document) < 0) {
		np_error("cannot write the report");
		return EXIT_INTERNAL;
	}
	return EXIT_READY;
}

/* One line, the path, where there is one. */
static int look_at_ucx(const char *folder)
{
	const char *stray = np_ucx_not_from(folder);
	_cleanup_free_ char *line = stray ? np_asprintf("%s\n", stray) : NULL;

	if (!stray)
		return EXIT_READY;
	return line && np_watch_write(line) == 0 ? EXIT_NOT_READY : EXIT_INTERNAL;
}

static int act(int argc, char **argv)
{
	np_auto_options struct np_options options = { 0 };
	struct np_err err;
	int ret;

	np_err_clear(&err);
	ret = np_options_parse(argc, argv, &options, &err);
	if (ret == 0 && options.verbose)
		np_log_set_level(NP_LOG_DEBUG);
	if (ret == 0)
		ret = set_environment(&options, &err);
	if (ret < 0) {
		np_error("%s%s%s", err.message, err.hint[0] ? "; " : "", err.hint);
		return ret == -EINVAL ? EXIT_USAGE : EXIT_INTERNAL;
	}
	switch (options.action) {
	case NP_OPTIONS_LIBRARIES:
		return libraries(&options);
	case NP_OPTIONS_UCX_AT:
		return look_at_ucx(options.ucx_at);
	case NP_OPTIONS_LIST:
		return list_rungs();
	case NP_OPTIONS_VERSION:
		return np_watch_write("nodeprep-selftest " NP_VERSION "\n") < 0 ? EXIT_INTERNAL : 0;
	case NP_OPTIONS_HELP:
		return np_watch_write(np_options_help) < 0 ? EXIT_INTERNAL : 0;
	default:
		return run(&options);
	}
}

/* Before the constructors of every library (System V gABI, "Initialization and
 * Termination Functions"). */
__attribute__((section(".preinit_array"),
	       used)) static void (*const early_hook)(int, char **, char **) = np_early;

int main(int argc, char **argv)
{
	int ret = act(argc, argv);

	if (np_ucp_abandoned() || np_cuda_started())
		_exit(ret);
	return ret;
}
