/* SPDX-License-Identifier: MIT */
#include "agent/selftest_run.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/ladder.h"
#include "agent/selftest_entry.h"
#include "base/child.h"
#include "base/log.h"
#include "base/user.h"

#ifndef NP_LIBEXECDIR
#define NP_LIBEXECDIR "/usr/libexec/nodeprep"
#endif

#define PROGRAM	     "nodeprep-selftest"
#define DEFAULT_USER "nobody"
#define ENV_MAX	     64
#define DOCUMENT_MAX (1 << 20)
#define EMPTY_DIR    "/run/nodeprep/empty"

struct runner {
	const struct np_rung_options *options;
	int program_fd;
	bool switch_user;
	uid_t uid;
	gid_t gid;
	json_t *entries;
	struct np_err *err;
};

/* Beside the agent's own file (a build tree), else where it is installed. Opened
 * once and run through the descriptor. */
static int open_program(struct np_err *err)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - sizeof(PROGRAM) - 1);
	char *slash;
	int fd;

	if (len > 0) {
		path[len] = '\0';
		slash = strrchr(path, '/');
		if (slash) {
			snprintf(slash + 1, sizeof(path) - (size_t)(slash + 1 - path), PROGRAM);
			fd = open(path, O_RDONLY | O_CLOEXEC);
			if (fd >= 0)
				return fd;
		}
	}
	fd = open(NP_LIBEXECDIR "/" PROGRAM, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		int r = -errno;

		np_err_set(err, r, "selftest.not_installed", NP_LIBEXECDIR "/" PROGRAM ": %s",
			   strerror(-r));
		np_err_hint(err, "install the package nodeprep-selftest");
		return r;
	}
	return fd;
}

static int choose_user(struct runner *run)
{
	np_auto_user struct np_user user = { 0 };
	const char *name = run->options->run_as ? run->options->run_as : DEFAULT_USER;
	int r;

	/* only root can become someone else */
	if (run->options->as_root || geteuid() != 0)
		return 0;
	r = np_user_by_name(name, &user, run->err);
	if (r < 0) {
		if (run->options->run_as)
			np_err_context(run->err, "--run-as");
		return r;
	}
	run->switch_user = true;
	run->uid = user.uid;
	run->gid = user.gid;
	return 0;
}

/* UCX reads ./ucx.conf: the rungs start in a directory that holds nothing. */
static const char *empty_dir(void)
{
	mkdir("/run/nodeprep", 0755);
	if (mkdir(EMPTY_DIR, 0555) == 0 || errno == EEXIST)
		return EMPTY_DIR;
	return "/";
}

static int append(struct runner *run, json_t *entry)
{
	return json_array_append_new(run->entries, entry) < 0 ? np_err_nomem(run->err) : 0;
}

static int add_crash(struct runner *run, const struct np_ladder_step *step,
		     const struct np_child_result *result)
{
	char message[200], log[300] = "";
	const char *last = result->log.data;

	/* the last line of its log tells most */
	if (last && result->log.len) {
		char *end = result->log.data + strcspn(result->log.data, "");

		while (end > last && end[-1] == '\n')
			*--end = '\0';
		last = strrchr(last, '\n') ? strrchr(last, '\n') + 1 : last;
		np_printable(last, log, sizeof(log));
	}
	if (result->timed_out)
		snprintf(message, sizeof(message), "no verdict within %d s: killed",
			 run->options->timeout_ms / 1000);
	else if (result->term_signal)
		snprintf(message, sizeof(message), "the rung died of signal %d (%s)",
			 result->term_signal, strsignal(result->term_signal));
	else
		snprintf(message, sizeof(message),
			 "the rung ended with code %d and no result%s%.100s", result->exit_status,
			 *log ? ": " : "", log);
	return append(run, np_selftest_entry(
				   step->rung, step->device, "fail",
				   result->timed_out ? "selftest.timeout" : "selftest.crashed",
				   message, "run nodeprep selftest --verbose and read its log"));
}

static void pass_log(const char *rung, const struct np_buf *log)
{
	np_auto_strv struct np_strv lines = { 0 };

	if (log->len == 0 || np_strv_split(&lines, log->data, "\n") < 0)
		return;
	for (size_t i = 0; i < lines.n; i++)
		np_debug("selftest %s: %s", rung, lines.v[i]);
}

/* Its arguments. Not by its environment: the child drops what could lead UCX astray. */
struct arguments {
	const char *v[24 + 2 * ENV_MAX];
	size_t n;
	char timeout[16];
};

static void add_argument(struct arguments *args, const char *option, const char *value)
{
	if (!value || !*value)
		return;
	args->v[args->n++] = option;
	args->v[args->n++] = value;
}

static void make_arguments(const struct np_rung_options *options, const struct np_ladder_step *step,
			   struct arguments *args)
{
	args->v[args->n++] = PROGRAM;
	args->v[args->n++] = step->rung;
	add_argument(args, step->is_netdev ? "--netdev" : "--device", step->device);
	add_argument(args, "--peer", step->peer);
	add_argument(args, "--gpu", step->gpu);
	add_argument(args, "--address", step->address);
	args->v[args->n++] = options->full ? "--full" : "--quick";
	/* its own deadline comes first (its alarm 3 s after that), so that it can still
	 * say what hung */
	snprintf(args->timeout, sizeof(args->timeout), "%d",
		 options->timeout_ms > 12000 ? options->timeout_ms - 5000 :
					       options->timeout_ms / 2);
	add_argument(args, "--timeout-ms", args->timeout);
	for (size_t i = 0; options->env && i < options->env->n && i < ENV_MAX; i++)
		add_argument(args, "--env", options->env->v[i]);
}

static int run_step(struct runner *run, const struct np_ladder_step *step)
{
	static const char *const env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL };
	np_auto_child_result struct np_child_result result = { 0 };
	struct arguments args = { 0 };
	const struct np_child_spec spec = {
		.exec_fd = run->program_fd,
		.argv = args.v,
		.envp = env,
		.cwd = empty_dir(),
		.switch_user = run->switch_user && !step->as_root,
		.uid = run->uid,
		.gid = run->gid,
		.timeout_ms = run->options->timeout_ms,
		.stdout_max = DOCUMENT_MAX,
		.stderr_max = 1 << 16,
	};
	int r;

	make_arguments(run->options, step, &args);
	np_progress("selftest %s %s", step->rung, step->device);
	r = np_child_run(&spec, &result, run->err);
	np_progress_done();
	if (r < 0)
		return r;
	pass_log(step->rung, &result.log);
	if (result.interrupted)
		return np_err_set(run->err, -EINTR, "internal.interrupted",
				  "interrupted during the self-test");
	r = result.timed_out || result.term_signal ?
		    -EPROTO :
		    np_selftest_take(&result, step->rung, step->device, run->entries);
	if (r == -EPROTO)
		return add_crash(run, step, &result);
	return r < 0 ? np_err_nomem(run->err) : 0;
}

/* What failed below it in this run. NULL: nothing did. */
static const json_t *broken_below(const struct runner *run, const struct np_ladder_step *step)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (run->entries, i, entry)
		if (np_streq(json_string_value(json_object_get(entry, "status")), "fail") &&
		    np_ladder_is_below(json_string_value(json_object_get(entry, "rung")),
				       json_string_value(json_object_get(entry, "device")), step))
			return entry;
	return NULL;
}

static int skip_above(struct runner *run, const struct np_ladder_step *step, const json_t *broken)
{
	char message[240];

	snprintf(message, sizeof(message), "not tried: the rung below it is broken, %s on %s (%s)",
		 json_string_value(json_object_get(broken, "rung")),
		 json_string_value(json_object_get(broken, "device")),
		 json_string_value(json_object_get(broken, "code")));
	return append(run, np_selftest_entry(step->rung, step->device, "skip",
					     "selftest.below_broken", message, "mend that first"));
}

/* Each port works by itself, and there is no way from one to the other: that may be as
 * it was built. */
static void judge_pair(const struct np_ladder_step *step, json_t *entry)
{
	if (step->peer[0] &&
	    np_streq(json_string_value(json_object_get(entry, "code")), "selftest.verbs.no_path"))
		json_object_set_new(entry, "status", json_string("warn"));
}

static void judge(const struct np_config *cfg, const struct np_facts *facts,
		  const struct np_ladder_step *step, json_t *entry)
{
	double floor = np_config_floor(cfg, step->rung), rate = 0;

	judge_pair(step, entry);
	for (size_t i = 0; i < facts->cas.n; i++) {
		const struct np_ca *ca = &facts->cas.v[i];

		for (size_t p = 0; p < ca->n_ports; p++) {
			char name[80];

			snprintf(name, sizeof(name), "%s:%d", ca->name, ca->ports[p].num);
			if (np_streq(name, step->device))
				rate = ca->ports[p].rate_gbps;
		}
	}
	np_selftest_judge_bandwidth(entry, floor, rate);
}

int np_selftest_run(const struct np_config *cfg, const struct np_facts *facts,
		    const struct np_selection *sel, const struct np_rung_options *options,
		    json_t *entries, struct np_err *err)
{
	_cleanup_close_ int program_fd = open_program(err);
	np_auto_rdma_users struct np_rdma_users users = { 0 };
	np_auto_ladder struct np_ladder ladder = { 0 };
	struct runner run = {
		.options = options, .program_fd = program_fd, .entries = entries, .err = err
	};
	int r;

	if (program_fd < 0)
		return program_fd;
	r = choose_user(&run);
	if (r == 0)
		r = np_rdma_users_observe(0, &users, err);
	if (r == 0)
		r = np_ladder_make(cfg, facts, sel, options->rungs, &users, options->force, &ladder,
				   err);
	for (size_t i = 0; i < ladder.n && r == 0; i++) {
		const struct np_ladder_step *step = &ladder.v[i];
		const json_t *broken = broken_below(&run, step);

		if (step->code[0]) {
			r = append(&run, np_selftest_entry(step->rung, step->device, "skip",
							   step->code, step->message, step->hint));
		} else if (broken) {
			r = skip_above(&run, step, broken);
		} else {
			r = run_step(&run, step);
			if (r == 0)
				judge(cfg, facts, step,
				      json_array_get(entries, json_array_size(entries) - 1));
		}
	}
	return r;
}
