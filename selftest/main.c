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
#include "selftest/libraries.h"
#include "selftest/options.h"
#include "selftest/ucp_engine.h"

#ifndef NP_VERSION
#define NP_VERSION "0"
#endif

enum { EXIT_READY = 0, EXIT_NOT_READY = 1, EXIT_USAGE = 2, EXIT_INTERNAL = 5 };

/* A call into a library that never returns is ended this long after the deadline. */
#define HANG_GRACE_MS 3000

static char *hang_document; /* what the handler of SIGALRM says */

static int write_all(const char *text)
{
	size_t len = strlen(text);

	while (len > 0) {
		ssize_t n = write(np_early_stdout(), text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

static void on_alarm(int signal_number)
{
	(void)signal_number;
	write_all(hang_document);
	_exit(EXIT_NOT_READY);
}

static char *hang_document_of(const struct np_options *options)
{
	const struct np_rung_options *o = &options->rung_options;
	np_auto_rung_report struct np_rung_report report = { 0 };
	const char *what = options->rung ? options->rung->name : "--libraries";
	struct np_rung_result *result;
	struct np_err hang;

	np_err_set(&hang, -ETIMEDOUT, "selftest.timeout",
		   "%s hung: a call into a library did not return within %d ms", what,
		   o->timeout_ms + HANG_GRACE_MS);
	np_err_hint(&hang, "read the kernel log for messages of the HCA's or the GPU's driver");
	if (!options->rung)
		return np_document_libraries(
			np_libraries_unknown(options->brief, options->nvml, &hang));
	result = np_rung_add(&report, options->rung->name, o->device ? o->device : o->netdev);
	if (!result)
		return NULL;
	np_rung_fail(result, &hang);
	return np_document(&report, NULL);
}

/* Even when a library hangs there is one document on stdout. */
static int arm(const struct np_options *options, struct np_err *err)
{
	struct sigaction action = { .sa_handler = on_alarm };

	hang_document = hang_document_of(options);
	if (!hang_document)
		return np_err_nomem(err);
	sigaction(SIGALRM, &action, NULL);
	alarm((unsigned int)(options->rung_options.timeout_ms + HANG_GRACE_MS + 999) / 1000);
	return 0;
}

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
	return text.data && !text.failed && write_all(text.data) == 0 ? EXIT_READY : EXIT_INTERNAL;
}

static int run(struct np_options *options)
{
	np_auto_rung_report struct np_rung_report report = { 0 };
	_cleanup_free_ char *document = NULL;
	struct np_err err;
	int ret;

	np_err_clear(&err);
	options->rung_options.deadline_ms = np_now_ms() + options->rung_options.timeout_ms;
	ret = arm(options, &err);
	if (ret == 0)
		ret = options->rung->run(&options->rung_options, &report, &err);
	alarm(0);
	if (ret < 0 && np_starts_with(err.code, "usage")) {
		np_error("%s", err.message);
		return EXIT_USAGE;
	}
	document = np_document(&report, ret < 0 ? &err : NULL);
	if (!document || write_all(document) < 0) {
		np_error("cannot write the report");
		return EXIT_INTERNAL;
	}
	if (ret < 0)
		return EXIT_INTERNAL;
	return np_rung_report_ok(&report) ? EXIT_READY : EXIT_NOT_READY;
}

static int libraries(struct np_options *options)
{
	_cleanup_free_ char *document = NULL;
	struct np_err err = { 0 };

	if (arm(options, &err) == 0)
		document = np_document_libraries(np_libraries(options->brief, options->nvml));
	alarm(0);
	if (!document || write_all(document) < 0) {
		np_error("cannot write the report");
		return EXIT_INTERNAL;
	}
	return EXIT_READY;
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
	case NP_OPTIONS_LIST:
		return list_rungs();
	case NP_OPTIONS_VERSION:
		return write_all("nodeprep-selftest " NP_VERSION "\n") < 0 ? EXIT_INTERNAL : 0;
	case NP_OPTIONS_HELP:
		return write_all(np_options_help) < 0 ? EXIT_INTERNAL : 0;
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
	free(hang_document);
	return ret;
}
