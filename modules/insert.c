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

struct step {
	struct kmod_module *mod;
	bool required;
};

struct insert {
	const struct np_kmod_job *job;
	const struct np_kmod_lib *lib;
	struct kmod_ctx *ctx;
	const struct kmod_list *dependencies; /* hard ones of the module asked for, all levels */
	struct step *steps;
	size_t n;
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

/* ---- the order: as modprobe's, soft dependencies around each module ---- */

static bool is_required(const struct insert *in, const char *name)
{
	const struct kmod_list *entry;
	bool found = strcmp(name, in->job->name) == 0;

	np_kmod_foreach(in->lib, entry, in->dependencies)
	{
		struct kmod_module *dep = in->lib->module_get_module(entry);

		found |= strcmp(in->lib->module_get_name(dep), name) == 0;
		in->lib->module_unref(dep);
	}
	return found;
}

static bool has_step(const struct insert *in, const struct kmod_module *mod)
{
	for (size_t i = 0; i < in->n; i++)
		if (strcmp(in->lib->module_get_name(in->steps[i].mod),
			   in->lib->module_get_name(mod)) == 0)
			return true;
	return false;
}

static void add_step(struct insert *in, struct kmod_module *mod)
{
	struct step *steps = reallocarray(in->steps, in->n + 1, sizeof(*steps));

	if (!steps)
		fail(in->job, NP_KMOD_STAGE_CHILD, ENOMEM, in->job->name);
	in->steps = steps;
	steps[in->n++] = (struct step){
		.mod = in->lib->module_ref(mod),
		.required = is_required(in, in->lib->module_get_name(mod)),
	};
}

static void add_with_softdeps(struct insert *in, struct kmod_module *mod, int depth);

static void add_list(struct insert *in, const struct kmod_list *list, int depth)
{
	const struct kmod_list *entry;

	np_kmod_foreach(in->lib, entry, list)
	{
		struct kmod_module *mod = in->lib->module_get_module(entry);

		add_with_softdeps(in, mod, depth);
		in->lib->module_unref(mod);
	}
}

/* Soft dependencies may name each other: @depth ends what has no end. */
static void add_with_softdeps(struct insert *in, struct kmod_module *mod, int depth)
{
	struct kmod_list *before = NULL, *after = NULL, *needs;

	if (depth > 16 || has_step(in, mod))
		return;
	if (in->lib->module_get_softdeps(mod, &before, &after) < 0)
		before = after = NULL;
	add_list(in, before, depth + 1);
	needs = in->lib->module_get_dependencies(mod); /* in order of loading */
	add_list(in, needs, depth + 1);
	if (!has_step(in, mod))
		add_step(in, mod);
	add_list(in, after, depth + 1);
	in->lib->module_unref_list(needs);
	in->lib->module_unref_list(before);
	in->lib->module_unref_list(after);
}

/* ---- one module ---- */

/* Those of modprobe.d, then ours: the kernel takes the last. */
static char *options_of(const struct insert *in, const struct step *step)
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

/* What forbids it; NONE = nothing. The module asked for was judged by the parent. */
static enum np_kmod_stage forbidden(const struct insert *in, const struct step *step)
{
	const char *name = in->lib->module_get_name(step->mod);
	const char *path = in->lib->module_get_path(step->mod);

	if (!path || access(path, F_OK) < 0) /* removed since depmod ran */
		return NP_KMOD_STAGE_MISSING;
	if (in->lib->module_get_install_commands(step->mod))
		return NP_KMOD_STAGE_COMMAND;
	if (!in->job->ignore_blacklist && np_kmod_blacklisted(in->lib, in->ctx, name))
		return NP_KMOD_STAGE_BLACKLIST;
	return NP_KMOD_STAGE_NONE;
}

static void insert_step(const struct insert *in, const struct step *step)
{
	const char *name = in->lib->module_get_name(step->mod);
	int state = in->lib->module_get_initstate(step->mod), r;
	enum np_kmod_stage no;
	char *options;

	if (state == KMOD_MODULE_LIVE || state == KMOD_MODULE_BUILTIN)
		return;
	no = forbidden(in, step);
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
	struct kmod_module *mod = NULL;

	detach(job);
	in.lib = np_kmod_lib_open(NULL);
	in.ctx = in.lib ? np_kmod_ctx_new(in.lib, job->place, NULL) : NULL;
	if (!in.ctx || in.lib->module_new_from_name(in.ctx, job->name, &mod) < 0)
		fail(job, NP_KMOD_STAGE_CHILD, ENOMEM, job->name);
	in.dependencies = in.lib->module_get_dependencies(mod);
	add_with_softdeps(&in, mod, 0);
	for (size_t i = 0; i < in.n; i++)
		insert_step(&in, &in.steps[i]);
	tell(job, NP_KMOD_END, NP_KMOD_STAGE_NONE, 0, job->name);
	_exit(0);
}
