/* SPDX-License-Identifier: MIT */
#include "agent/selftest_child.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "agent/selftest_entry.h"

#define ENV_MAX	  64
#define HANGS_MAX 2u
#define ALARM_MS  5000 /* until the child's alarm has rung for certain */

/* What is to be done, and how far it has come. */
struct work {
	const struct np_rung_options *options;
	const struct np_helper *helper;
	const struct np_ladder_step *steps;
	json_t **got;
	size_t n;
	unsigned int hangs;
	int limit_ms; /* what the last child had for each device */
	struct np_err *err;
};

static size_t left(const struct work *work, size_t *first)
{
	size_t n = 0;

	for (size_t i = work->n; i-- > 0;)
		if (!work->got[i]) {
			n++;
			*first = i;
		}
	return n;
}

static int set(struct work *work, size_t i, const char *code, const char *message, const char *hint)
{
	const struct np_ladder_step *step = &work->steps[i];

	work->got[i] = np_selftest_entry(step->rung, step->device, "fail", code, message, hint);
	return work->got[i] ? 0 : np_err_nomem(work->err);
}

/* The child knows its limit alone; where that comes from is known here. */
static int explain_memlock(const struct np_helper *helper, const struct np_child_result *result,
			   json_t *entry)
{
	const char *code = json_string_value(json_object_get(entry, "code"));
	const char *said = json_string_value(json_object_get(entry, "message"));
	json_t *text;
	size_t len = code ? strlen(code) : 0;
	char login[NP_MEMLOCK_STRLEN], source[sizeof(helper->limit.source)];

	if (!helper->has_limit || len < 8 || strcmp(code + len - 8, ".memlock") != 0)
		return 0;
	/* the name of a file of limits.d need not be UTF-8 */
	np_printable(helper->limit.source, source, sizeof(source));
	if (result->memlock_less)
		text = json_sprintf("%s, all that can be given here; user %s gets %s at login (%s)",
				    said, helper->user,
				    np_memlock_str(helper->limit.limit.soft, login), source);
	else
		text = json_sprintf("%s, as user %s gets it at login (%s)", said, helper->user,
				    source);
	if (json_object_set_new(entry, "message", text) < 0)
		return -ENOMEM;
	if (result->memlock_less)
		text = json_string("raise the memlock limit of what starts nodeprep, or give it "
				   "CAP_SYS_RESOURCE");
	else if (*source == '/')
		text = json_sprintf("correct %s, or set [limits] memlock = unlimited and run "
				    "nodeprep apply",
				    source);
	else
		text = json_string("set [limits] memlock = unlimited and run nodeprep apply");
	return json_object_set_new(entry, "hint", text) < 0 ? -ENOMEM : 0;
}

/* Its arguments. Not by its environment: the child drops what could lead UCX astray. */
struct arguments {
	const char *v[24 + 2 * ENV_MAX];
	size_t n;
	int timeout_ms; /* of each device */
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
			   const char *devices, struct arguments *args)
{
	args->v[args->n++] = NP_HELPER_PROGRAM;
	args->v[args->n++] = step->rung;
	add_argument(args, step->is_netdev ? "--netdev" : "--device", devices);
	add_argument(args, "--peer", step->peer);
	add_argument(args, "--gpu", step->gpu);
	add_argument(args, "--address", step->address);
	if (step->each_gpu)
		args->v[args->n++] = "--lines";
	args->v[args->n++] = options->full ? "--full" : "--quick";
	if (options->force)
		args->v[args->n++] = "--force";
	/* its own deadline comes first (its alarm 3 s after that), so that it can still
	 * say what hung */
	args->timeout_ms = options->timeout_ms > 12000 ? options->timeout_ms - ALARM_MS :
							 options->timeout_ms / 2;
	snprintf(args->timeout, sizeof(args->timeout), "%d", args->timeout_ms);
	add_argument(args, "--timeout-ms", args->timeout);
	for (size_t i = 0; options->env && i < options->env->n && i < ENV_MAX; i++)
		add_argument(args, "--env", options->env->v[i]);
}

/* "0000:17:00.0,0000:18:00.0": those without an entry. */
static int list_devices(const struct work *work, struct np_buf *out)
{
	for (size_t i = 0; i < work->n; i++)
		if (!work->got[i])
			np_buf_printf(out, "%s%s", out->len ? "," : "", work->steps[i].device);
	return out->failed ? -ENOMEM : 0;
}

static int run_child(struct work *work, struct np_child_result *result)
{
	np_auto_buf struct np_buf devices = { 0 };
	const struct np_ladder_step *step = work->steps;
	struct arguments args = { 0 };
	char name[160], more[32] = "";
	size_t first = 0, n = left(work, &first);

	if (list_devices(work, &devices) < 0)
		return np_err_nomem(work->err);
	make_arguments(work->options, step, devices.data ? devices.data : "", &args);
	if (n > 1)
		snprintf(more, sizeof(more), " and %zu more", n - 1);
	snprintf(name, sizeof(name), "selftest %s %s%s", step->rung, work->steps[first].device,
		 more);
	/* each device of many has a deadline of its own, and tells when it is done */
	work->limit_ms = n > 1 ? args.timeout_ms + ALARM_MS : work->options->timeout_ms;
	return np_helper_run(
		work->helper,
		&(const struct np_helper_job){
			.name = name,
			.argv = args.v,
			.as_root = step->as_root,
			.login_limit = true,
			.library_path = step->as_root ? NULL : work->options->library_path,
			/* what the user's rungs load is not for root */
			.env = step->as_root ? NULL : work->options->env,
			.make_directory = true,
			.timeout_ms = work->limit_ms < INT_MAX / (int)n ? work->limit_ms * (int)n :
									  INT_MAX,
			.line_timeout_ms = work->limit_ms },
		result, work->err);
}

/* It said itself that a library's call does not return, and ended. */
static bool ended_by_alarm(const struct np_child_result *result, const json_t *last)
{
	return result->exit_status == 1 &&
	       np_streq(json_string_value(json_object_get(last, "code")), "selftest.timeout");
}

/* The first device without an entry is the one that it was at work on. */
static int judge_end(struct work *work, const struct np_child_result *result, const json_t *last)
{
	struct np_err why;
	size_t first = 0;

	if (left(work, &first) == 0)
		return 0;
	if (!result->timed_out && !result->term_signal && ended_by_alarm(result, last)) {
		work->hangs++;
		return 0;
	}
	work->hangs += result->timed_out;
	np_helper_failure(result, "the rung", work->limit_ms, &why);
	return set(work, first, why.code, why.message, why.hint);
}

/* Time is for others. */
static int give_up(struct work *work)
{
	char message[200], on[2][80] = { "", "" };
	size_t hung = 0;

	for (size_t i = 0; i < work->n && hung < 2; i++)
		if (work->got[i] &&
		    np_streq(json_string_value(json_object_get(work->got[i], "code")),
			     "selftest.timeout"))
			np_strcpy(on[hung++], sizeof(on[0]), work->steps[i].device);
	snprintf(message, sizeof(message), "not tried: the rung hung on %s and on %s", on[0],
		 on[1]);
	for (size_t i = 0; i < work->n; i++)
		if (!work->got[i] &&
		    set(work, i, "selftest.timeout", message, "mend those first") < 0)
			return -ENOMEM;
	return 0;
}

static int one_child(struct work *work)
{
	np_auto_child_result struct np_child_result result = { 0 };
	_cleanup_free_ json_t **got = calloc(work->n, sizeof(json_t *));
	const char *rung = work->steps[0].rung;
	const json_t *last = NULL;
	int r;

	if (!got)
		return np_err_nomem(work->err);
	r = run_child(work, &result);
	if (r < 0)
		return r;
	memcpy(got, work->got, work->n * sizeof(json_t *));
	if (np_selftest_take(&result, rung, work->steps, work->n, work->got, &last) == -ENOMEM)
		return np_err_nomem(work->err);
	for (size_t i = 0; i < work->n; i++)
		if (work->got[i] && !got[i] &&
		    explain_memlock(work->helper, &result, work->got[i]) < 0)
			return np_err_nomem(work->err);
	return judge_end(work, &result, last);
}

int np_selftest_child(const struct np_rung_options *options, const struct np_helper *helper,
		      const struct np_ladder_step *steps, size_t n, json_t **got,
		      struct np_err *err)
{
	struct work work = {
		.options = options, .helper = helper, .steps = steps, .got = got, .n = n, .err = err
	};
	size_t first;

	/* each child takes one device off at least */
	while (left(&work, &first) > 0) {
		int r = work.hangs < HANGS_MAX ? one_child(&work) : give_up(&work);

		if (r < 0)
			return r;
	}
	return 0;
}
