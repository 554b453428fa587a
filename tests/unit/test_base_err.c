/* SPDX-License-Identifier: MIT */
#include "facts_build.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/err.h"
#include "base/log.h"

static void test_set(void **state)
{
	struct np_err err;

	(void)state;
	memset(&err, 0x55, sizeof(err));
	assert_int_equal(np_err_set(&err, -EBUSY, "a.b", "%s %d", "x", 7), -EBUSY);
	assert_int_equal(err.num, -EBUSY);
	assert_string_equal(err.code, "a.b");
	assert_string_equal(err.message, "x 7");
	assert_string_equal(err.hint, "");
	np_err_hint(&err, "do %s", "this");
	assert_string_equal(err.hint, "do this");
	np_err_set(&err, -EIO, NULL, "other"); /* an old hint is not for the new error */
	assert_string_equal(err.hint, "");
	assert_string_equal(err.code, "");
	np_err_context(&err, "in %s", "here");
	assert_string_equal(err.message, "in here: other");
	assert_int_equal(err.num, -EIO);
	assert_int_equal(np_err_nomem(&err), -ENOMEM);
	np_err_clear(&err);
	assert_int_equal(err.num, 0);
	assert_string_equal(err.message, "");
}

static void test_null(void **state)
{
	(void)state;
	np_err_clear(NULL);
	assert_int_equal(np_err_set(NULL, -EBUSY, "a.b", "x"), -EBUSY);
	np_err_hint(NULL, "x");
	np_err_context(NULL, "x");
	assert_int_equal(np_err_nomem(NULL), -ENOMEM);
}

static void test_cut(void **state)
{
	struct np_err err;
	char big[2000];

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	np_err_set(&err, -EIO, big, "%s", big);
	np_err_hint(&err, "%s", big);
	np_err_context(&err, "first");
	assert_int_equal(strlen(err.code), sizeof(err.code) - 1);
	assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
	assert_int_equal(strlen(err.hint), sizeof(err.hint) - 1);
	assert_true(np_starts_with(err.message, "first: xxx"));
	np_err_context(&err, "%s", big);
	assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
}

/* What the log writes to stderr, by a file in its place. */
static void logged(enum np_log_level max, enum np_log_level level, const char *text, char *out,
		   size_t size)
{
	char path[] = "/tmp/test_base_err.XXXXXX";
	int saved = dup(2), fd = mkstemp(path);
	ssize_t len;

	assert_true(saved >= 0 && fd >= 0);
	unlink(path);
	fflush(stderr);
	dup2(fd, 2);
	np_log_set_level(max);
	np_progress("never shown where there is no terminal");
	np_log(level, "%s", text);
	np_progress_done();
	fflush(stderr);
	dup2(saved, 2);
	close(saved);
	len = pread(fd, out, size - 1, 0);
	out[len > 0 ? len : 0] = '\0';
	close(fd);
	np_log_set_level(NP_LOG_WARNING);
}

static void test_log(void **state)
{
	char out[4000], big[3000];

	(void)state;
	logged(NP_LOG_WARNING, NP_LOG_WARNING, "a\033[2J\nb", out, sizeof(out));
	assert_string_equal(out, "nodeprep: warning: a\\x1b[2J\\x0ab\n");
	logged(NP_LOG_WARNING, NP_LOG_INFO, "x", out, sizeof(out));
	assert_string_equal(out, "");
	logged(NP_LOG_ERROR, NP_LOG_WARNING, "x", out, sizeof(out));
	assert_string_equal(out, "");
	logged(NP_LOG_DEBUG, NP_LOG_DEBUG, "x", out, sizeof(out));
	assert_string_equal(out, "nodeprep: x\n");
	memset(big, '\1', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	logged(NP_LOG_ERROR, NP_LOG_ERROR, big, out, sizeof(out));
	assert_true(out[strlen(out) - 1] == '\n' && !strchr(out, '\1'));
}

/* What a terminal of @columns is sent while @fn runs. */
static void on_terminal(int columns, const char *term, void (*fn)(void), char *out, size_t size)
{
	struct winsize window = { .ws_row = 24, .ws_col = (unsigned short)columns };
	int terminal = -1, ours = -1, status;
	ssize_t len = 0, n;
	pid_t pid;

	assert_int_equal(openpty(&terminal, &ours, NULL, NULL, &window), 0);
	pid = fork(); /* the clock of the first half second is the process's */
	if (pid == 0) {
		if (term)
			setenv("TERM", term, 1);
		else
			unsetenv("TERM");
		dup2(ours, 2);
		fn();
		_exit(0);
	}
	close(ours);
	while ((n = read(terminal, out + len, size - 1 - (size_t)len)) > 0)
		len += n;
	out[len] = '\0';
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(terminal);
}

static void slow(void)
{
	np_progress("a line that is longer than %s", "the terminal is wide");
	np_sleep_ms(700);
	np_progress_tick();
	np_progress_tick();
	np_progress("short\033[2J");
	np_warning("x");
	np_progress("%s", "again");
	np_progress_done();
	np_progress_done();
	np_progress_tick();
}

static void fast(void)
{
	np_progress("over at once");
	np_progress_tick();
	np_progress_done();
}

static void quiet(void)
{
	np_log_set_level(NP_LOG_ERROR);
	slow();
}

static void test_progress(void **state)
{
	char out[4000];

	(void)state;
	on_terminal(24, "xterm", slow, out, sizeof(out));
	assert_string_equal(out, "\ra line that is longer t\033[K"
				 "\rshort\\x1b[2J\033[K"
				 "\r\033[K"
				 "nodeprep: warning: x\r\n"
				 "\ragain\033[K"
				 "\r\033[K");
	on_terminal(0, "xterm", slow, out, sizeof(out)); /* one that does not tell its width */
	assert_true(np_starts_with(out, "\ra line that is longer than the terminal is wide\033[K"));
	on_terminal(24, "xterm", fast, out, sizeof(out));
	assert_string_equal(out, "");
	on_terminal(24, "xterm", quiet, out, sizeof(out));
	assert_string_equal(out, "");
	on_terminal(24, "dumb", slow, out, sizeof(out));
	assert_string_equal(out, "nodeprep: warning: x\r\n");
	on_terminal(24, NULL, slow, out, sizeof(out));
	assert_string_equal(out, "nodeprep: warning: x\r\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set),	 cmocka_unit_test(test_null),
		cmocka_unit_test(test_cut),	 cmocka_unit_test(test_log),
		cmocka_unit_test(test_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
