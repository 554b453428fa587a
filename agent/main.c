/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/cli.h"
#include "agent/privileges.h"
#include "base/child.h"
#include "base/environment.h"
#include "base/log.h"

/* A closed 0, 1 or 2 would be given to the next file that is opened. It is filled
 * so that a write still fails: a report that nobody got is an error. */
static void open_standard_fds(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) < 0)
			_exit(NP_EXIT_INTERNAL);
}

static int print_text(const struct np_buf *out)
{
	if (!out->failed && fwrite(out->data, 1, out->len, stdout) == out->len &&
	    fflush(stdout) == 0)
		return 0;
	np_error("cannot write to stdout");
	return NP_EXIT_INTERNAL;
}

static int exit_code(const struct np_result *result)
{
	/* whatever it was doing: it has been stopped, and nothing of it is left */
	if (result->error.num == -EINTR && np_interrupted())
		return NP_EXIT_ROLLED_BACK;
	if (result->error.num)
		return result->exit ? (int)result->exit : NP_EXIT_INTERNAL;
	return (int)result->exit;
}

/* One line for people on stderr: what, where, how to fix it. */
static void say_error(const struct np_err *err)
{
	np_error("%s%s%s", err->message, err->hint[0] ? "; " : "", err->hint);
}

static int run(const struct np_cli *cli, struct np_result *result)
{
	struct np_config cfg;
	int r;

	np_config_init(&cfg);
	np_privileges_begin(cli);
	/* a fault in a file must not stand in the way of taking back what came of it */
	r = cli->verb->bit == NP_VERB_REVERT || cli->verb->bit == NP_VERB_CONFIRM ?
		    0 :
		    np_cli_config(cli, &cfg, &result->error);
	np_privileges_configured(cli);
	if (r < 0)
		result->exit = r == -ENOMEM				      ? NP_EXIT_INTERNAL :
			       np_streq(result->error.code, "privilege.root") ? NP_EXIT_REFUSED :
										NP_EXIT_USAGE;
	else
		cli->verb->run(cli, &cfg, result);
	np_config_done(&cfg);
	np_privileges_end();
	return 0;
}

int main(int argc, char **argv)
{
	np_auto_result struct np_result result = { .verb = "" };
	np_auto_buf struct np_buf text = { 0 };
	struct np_cli cli;
	int code;

	np_environment_clean(argv);
	open_standard_fds();
	umask(022);
	np_signals_install();
	if (np_cli_parse(argc, argv, &cli, &result.error) < 0) {
		result.exit = result.error.num == -ENOMEM ? NP_EXIT_INTERNAL : NP_EXIT_USAGE;
	} else if (cli.version) {
		np_buf_str(&text, "nodeprep " NP_VERSION "\n");
	} else if (cli.help) {
		np_cli_help(&cli, &text);
	} else {
		np_log_set_level(cli.verbose ? NP_LOG_DEBUG :
				 cli.quiet   ? NP_LOG_ERROR :
					       NP_LOG_WARNING);
		run(&cli, &result);
	}
	if (text.data) {
		code = print_text(&text);
		np_cli_done(&cli);
		return code;
	}
	result.verb = cli.verb ? cli.verb->name : "";
	np_progress_done();
	if (result.error.num)
		say_error(&result.error);
	code = exit_code(&result);
	/* an error has no report in text: the line on stderr says it all, unless
	 * actions were run and taken back */
	if ((!result.error.num || cli.format == NP_FORMAT_JSON ||
	     (cli.format == NP_FORMAT_PROMETHEUS && code != NP_EXIT_USAGE) || result.actions.n) &&
	    np_report(&result, cli.format) < 0) {
		np_error("cannot write the report to stdout");
		code = NP_EXIT_INTERNAL;
	}
	np_cli_done(&cli);
	return code;
}
