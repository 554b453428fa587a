/* SPDX-License-Identifier: MIT */
/* The child that loads: what is needed, in order, each step told to the parent. It
 * only ends by _exit, so it frees what it takes only where that is no trouble. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/child.h"
#include "base/confine.h"
#include "modules/kmod_lib.h"
#include "modules/private.h"

struct insert {
	const struct np_kmod_job *job;
	const struct np_kmod_lib *lib;
	struct kmod_ctx *ctx;
};

/* ---- the parent's ear ---- */

static void tell(const struct np_kmod_job *job, enum np_kmod_event event, enum np_kmod_stage stage,
		 int num, const char *name)
{
	struct np_kmod_record record = { .event = event, .stage = stage, .num = num };

	np_strcpy(record.name, sizeof(record.name), name);
	/* nobody listens any more: then nothing more is loaded */
	if (write(job->out_fd, &record, sizeof(record)) != (ssize_t)sizeof(record))
		_exit(1);
}

static void __attribute__((noreturn))
fail(const struct np_kmod_job *job, enum np_kmod_stage stage, int num, const char *name)
{
	tell(job, NP_KMOD_FAILED, stage, num, name);
	_exit(0);
}

/* ---- one module ---- */

/* Those of modprobe.d, then ours: the kernel takes the last. */
static char *options_of(const struct insert *in, const struct np_kmod_step *step)
{
	const char *config = in->lib->module_get_options(step->mod);
	const char *own = strcmp(in->lib->module_get_name(step->mod), in->job->name) == 0 ?
				  in->job->options :
				  "";
	char *text = np_asprintf("%s%s%s", config ? config : "", config && *own ? " " : "", own);

	if (!text)
		fail(in->job, NP_KMOD_STAGE_CHILD, ENOMEM, in->job->name);
	return text;
}

static void insert_step(const struct insert *in, const struct np_kmod_step *step)
{
	const char *name = in->lib->module_get_name(step->mod);
	int state = in->lib->module_get_initstate(step->mod), r;
	enum np_kmod_stage no;
	char *options;

	if (state == KMOD_MODULE_LIVE || state == KMOD_MODULE_BUILTIN)
		return;
	no = np_kmod_forbidden(in->lib, in->ctx, step->mod, in->job->ignore_blacklist);
	if (no != NP_KMOD_STAGE_NONE) {
		if (step->required)
			fail(in->job, no, 0, name);
		tell(in->job, NP_KMOD_PASSED, no, 0, name);
		return;
	}
	if (np_now_ms() >= in->job->deadline_ms)
		_exit(1); /* the parent has given up, or is about to */
	options = options_of(in, step);
	tell(in->job, NP_KMOD_BEGIN, NP_KMOD_STAGE_NONE, 0, name);
	r = in->lib->module_insert_module(step->mod, 0, options);
	free(options);
	if (r == 0)
		tell(in->job, NP_KMOD_INSERTED, NP_KMOD_STAGE_NONE, 0, name);
	else if (r == -EEXIST || !step->required) /* somebody else was faster; or not needed */
		tell(in->job, NP_KMOD_PASSED, NP_KMOD_STAGE_INSERT, -r, name);
	else
		fail(in->job, NP_KMOD_STAGE_INSERT, -r, name);
}

/* Nothing of the caller's stays with a child that may outlive it. */
static void detach(struct np_kmod_job *job)
{
	struct rlimit no_core = { 0, 0 };
	sigset_t all;
	int null_fd;

	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGPIPE, SIG_IGN);
	setrlimit(RLIMIT_CORE, &no_core);
	clearenv(); /* KMOD_LOG, and what libraries may look for */
	if (chdir("/") < 0)
		_exit(1);
	job->out_fd = fcntl(job->out_fd, F_DUPFD_CLOEXEC, 3);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	/* without /dev/null they are closed: the caller's must not stay open */
	for (int fd = 0; fd < 3; fd++)
		if (fd != null_fd && (null_fd < 0 || dup2(null_fd, fd) < 0))
			close(fd);
	if (job->out_fd < 0)
		_exit(1);
	if (job->out_fd > 3)
		close_range(3, (unsigned int)job->out_fd - 1, 0);
	close_range((unsigned int)job->out_fd + 1, ~0U, 0);
	np_caps_keep(NP_CAP(SYS_MODULE) | NP_CAP(DAC_READ_SEARCH));
	np_confine(NP_CONFINE_LOADER);
}

void np_kmod_insert_all(struct np_kmod_job *job)
{
	struct insert in = { .job = job };
	struct np_kmod_steps steps = { 0 };

	detach(job);
	in.lib = np_kmod_lib_open(NULL);
	in.ctx = in.lib ? np_kmod_ctx_new(in.lib, job->place, NULL) : NULL;
	if (!in.ctx || np_kmod_order(in.lib, in.ctx, job->name, &steps) < 0)
		fail(job, NP_KMOD_STAGE_CHILD, ENOMEM, job->name);
	for (size_t i = 0; i < steps.n; i++)
		insert_step(&in, &steps.v[i]);
	tell(job, NP_KMOD_END, NP_KMOD_STAGE_NONE, 0, job->name);
	_exit(0);
}
