/* SPDX-License-Identifier: MIT */
#include "selftest/watch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "selftest/document.h"
#include "selftest/early.h"

#define EXIT_NOT_READY 1

/* A call into a library that never returns is ended this long after the deadline. */
#define HANG_GRACE_MS 3000

static struct {
	const char *rung; /* NULL = not started */
	int timeout_ms;
	bool lines;
	size_t told;	/* entries written already */
	char *document; /* what the handler of SIGALRM says */
} watch;

int np_watch_write(const char *text)
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
	np_watch_write(watch.document);
	_exit(EXIT_NOT_READY);
}

/* @document replaces the one before. */
static void arm(char *document, int timeout_ms)
{
	struct sigaction action = { .sa_handler = on_alarm };

	alarm(0); /* the handler reads it */
	free(watch.document);
	watch.document = document;
	sigaction(SIGALRM, &action, NULL);
	alarm((unsigned int)(timeout_ms + HANG_GRACE_MS + 999) / 1000);
}

void np_watch_hang(const char *what, int timeout_ms, struct np_err *hang)
{
	np_err_set(hang, -ETIMEDOUT, "selftest.timeout",
		   "%s hung: a call into a library did not return within %d ms", what,
		   timeout_ms + HANG_GRACE_MS);
	np_err_hint(hang, "read the kernel log for messages of the HCA's or the GPU's driver");
}

/* What is said if @device hangs: beside it the entries that nobody has read yet. */
static char *hang_document(const struct np_rung_report *report, const char *device)
{
	np_auto_rung_report struct np_rung_report with = { 0 };
	size_t n = report && !watch.lines ? report->n : 0;
	struct np_rung_result *result;
	struct np_err hang;

	for (size_t i = 0; i < n; i++) {
		result = np_rung_add(&with, "", "");
		if (!result)
			return NULL;
		*result = report->v[i];
	}
	result = np_rung_add(&with, watch.rung, device);
	if (!result)
		return NULL;
	np_watch_hang(watch.rung, watch.timeout_ms, &hang);
	np_rung_fail(result, &hang);
	return np_document(&with, NULL);
}

int np_watch_start_with(char *document, int timeout_ms, struct np_err *err)
{
	if (!document)
		return np_err_nomem(err);
	arm(document, timeout_ms);
	return 0;
}

int np_watch_start(const char *rung, const char *device, int timeout_ms, bool lines,
		   struct np_err *err)
{
	watch.rung = rung;
	watch.timeout_ms = timeout_ms;
	watch.lines = lines;
	watch.told = 0;
	return np_watch_start_with(hang_document(NULL, device), timeout_ms, err);
}

/* Each entry not told yet in a document of its own. */
static int tell(const struct np_rung_report *report)
{
	for (; watch.told < report->n; watch.told++) {
		const struct np_rung_report one = { .v = &report->v[watch.told], .n = 1 };
		_cleanup_free_ char *document = np_document(&one, NULL);
		int ret = document ? np_watch_write(document) : -ENOMEM;

		if (ret < 0)
			return ret;
	}
	return 0;
}

int64_t np_watch_device(const struct np_rung_report *report, const char *device,
			int64_t deadline_ms)
{
	char *document;

	if (!watch.rung)
		return deadline_ms;
	if (watch.lines && tell(report) < 0)
		return 0; /* nobody reads it: the deadline is over */
	document = hang_document(report, device);
	if (document)
		arm(document, watch.timeout_ms);
	return np_now_ms() + watch.timeout_ms;
}

int np_watch_end(const struct np_rung_report *report, const struct np_err *error)
{
	_cleanup_free_ char *document = NULL;
	int ret = 0;

	alarm(0);
	if (watch.lines)
		ret = tell(report);
	if (ret == 0 && (!watch.lines || error)) {
		const struct np_rung_report none = { 0 };

		document = np_document(watch.lines ? &none : report, error);
		ret = document ? np_watch_write(document) : -ENOMEM;
	}
	free(watch.document);
	watch.document = NULL;
	watch.rung = NULL;
	return ret;
}
