/* SPDX-License-Identifier: MIT */
/* The parent's side of loading: looks before it forks, waits with a deadline, and
 * says what went wrong. */
#include "modules/load.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/file.h"
#include "modules/kmod_lib.h"
#include "modules/lookup.h"
#include "modules/module.h"
#include "modules/private.h"

#define OPTIONS_MAX 1024 /* far below the kernel's page for a module's arguments */
#define REAP_MS	    500	 /* a child that has said its last word is gone by then */
#define GRACE_MS    20	 /* after the deadline the child begins nothing: let it say so */

/* What the child has told so far. */
struct progress {
	struct np_kmod_record last; /* FAILED or END once @over */
	char current[64];	    /* module in hand */
	bool in_kernel;
	bool over;
	int r; /* -ENOMEM of this side */
};

/* ---- the system's own switches ---- */

static bool read_switch(const char *root, const char *path, const char *sign)
{
	char file[PATH_MAX], text[64];

	snprintf(file, sizeof(file), "%s%s", root, path);
	return np_file_read_line_at(AT_FDCWD, file, text, sizeof(text)) >= 0 && strstr(text, sign);
}

static bool modules_disabled(const char *root)
{
	return read_switch(root, "/proc/sys/kernel/modules_disabled", "1");
}

/* "none [integrity] confidentiality" */
static bool locked_down(const char *root)
{
	return read_switch(root, "/sys/kernel/security/lockdown", "[integrity]") ||
	       read_switch(root, "/sys/kernel/security/lockdown", "[confidentiality]");
}

static bool may_load(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (syscall(SYS_capget, &header, data) < 0)
		return true; /* the kernel will say */
	return data[CAP_TO_INDEX(CAP_SYS_MODULE)].effective & CAP_TO_MASK(CAP_SYS_MODULE);
}

/* ---- waiting for the child ---- */

static void take_record(const struct np_kmod_record *record, const char *name,
			struct np_kmod_load_result *result, struct progress *p)
{
	switch (record->event) {
	case NP_KMOD_BEGIN:
		np_strcpy(p->current, sizeof(p->current), record->name);
		p->in_kernel = true;
		break;
	case NP_KMOD_INSERTED:
		p->in_kernel = false;
		if (strcmp(record->name, name) == 0)
			result->loaded_now = true;
		else if (np_strv_add(&result->also_loaded, record->name) < 0)
			p->r = -ENOMEM;
		break;
	case NP_KMOD_PASSED:
		p->in_kernel = false;
		break;
	case NP_KMOD_FAILED:
	case NP_KMOD_END:
		p->in_kernel = false;
		p->over = true;
		p->last = *record;
		break;
	}
}

/* Until its last word, its end or the deadline. False = deadline. */
static bool listen_to(int fd, int64_t deadline, const char *name,
		      struct np_kmod_load_result *result, struct progress *p)
{
	while (!p->over) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		int64_t left = deadline - np_now_ms();
		struct np_kmod_record record;
		ssize_t got;

		/* what it said in time is heard, also when we are late */
		if (poll(&wait, 1, left > 0 ? (int)left : 0) <= 0) {
			if (left <= 0)
				return false;
			continue;
		}
		got = read(fd, &record, sizeof(record)); /* a record is below PIPE_BUF */
		if (got < 0 && errno == EINTR)
			continue;
		if (got != (ssize_t)sizeof(record))
			return true; /* it ended without a word */
		record.name[sizeof(record.name) - 1] = '\0';
		take_record(&record, name, result, p);
	}
	return true;
}

/* False: still there after @ms. */
static bool reap(pid_t pid, int ms)
{
	int64_t until = np_now_ms() + ms;

	for (;;) {
		pid_t got = waitpid(pid, NULL, WNOHANG);

		if (got == pid || (got < 0 && errno != EINTR))
			return true;
		if (np_now_ms() >= until)
			return false;
		np_sleep_ms(1);
	}
}

/* A child inside the kernel is left alone: a SIGKILL would break an init that waits
 * killably in the middle. Elsewhere (a hung file system) it is stopped. */
static void part_with(pid_t pid, bool in_kernel, struct np_kmod_load_result *result)
{
	if (!in_kernel)
		kill(pid, SIGKILL);
	if (!reap(pid, in_kernel ? 0 : REAP_MS))
		result->abandoned = pid;
}

/* ---- loading ---- */

static int check_options(const char *options, struct np_err *err)
{
	size_t len = strlen(options);

	for (size_t i = 0; i < len; i++)
		if (options[i] < ' ' || options[i] > '~')
			return np_err_set(err, -EINVAL, "module.option",
					  "module options may hold printable ASCII only");
	if (len > OPTIONS_MAX)
		return np_err_set(err, -EINVAL, "module.option",
				  "module options of %zu bytes are too long (%d at most)", len,
				  OPTIONS_MAX);
	return 0;
}

static int start(struct np_kmod_job *job, int *read_fd, pid_t *pid, struct np_err *err)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return np_err_set(err, -errno, "internal.child", "cannot make a pipe: %s",
				  strerror(errno));
	job->out_fd = fds[1];
	*pid = fork();
	if (*pid == 0)
		np_kmod_insert_all(job);
	close(fds[1]);
	*read_fd = fds[0];
	if (*pid < 0)
		return np_err_set(err, -errno, "internal.child", "cannot fork to load %s: %s",
				  job->name, strerror(errno));
	return 0;
}

static int explain(const struct np_kmod_place *place, const struct np_kmod_load_spec *spec,
		   const struct np_kmod_lookup *lookup, const struct progress *p, bool timed_out,
		   int log_fd, struct np_kmod_load_result *result, struct np_err *err)
{
	const char *root = place->root ? place->root : "";
	struct np_kmod_failure f = {
		.stage = timed_out ? NP_KMOD_STAGE_TIMEOUT :
			 p->over   ? p->last.stage :
				     NP_KMOD_STAGE_CHILD,
		.num = timed_out ? ETIMEDOUT : p->last.num,
		.name = lookup->name,
		.module = result->module,
		.log = result->log_line,
		.lookup = lookup,
		.options = spec->options ? spec->options : "",
		.timeout_ms = spec->timeout_ms,
		.in_kernel = p->in_kernel,
		.modules_disabled = modules_disabled(root),
		.locked_down = locked_down(root),
		.may_load = may_load(),
	};

	np_strcpy(result->module, sizeof(result->module),
		  p->over     ? p->last.name :
		  *p->current ? p->current :
				lookup->name);
	if (f.stage == NP_KMOD_STAGE_INSERT) {
		result->load_errno = f.num;
		np_klog_pick(log_fd, result->module, result->log_line, sizeof(result->log_line));
	} else if (f.stage == NP_KMOD_STAGE_TIMEOUT) {
		np_klog_pick(log_fd, result->module, result->log_line, sizeof(result->log_line));
	}
	return np_kmod_load_error(&f, err);
}

static int load(const struct np_kmod_place *place, const struct np_kmod_load_spec *spec,
		const struct np_kmod_lookup *lookup, struct np_kmod_load_result *result,
		struct np_err *err)
{
	struct np_kmod_job job = {
		.place = place,
		.name = lookup->name,
		.options = spec->options ? spec->options : "",
		.ignore_blacklist = spec->ignore_blacklist,
		.deadline_ms = np_now_ms() + spec->timeout_ms,
	};
	char kmsg[PATH_MAX];
	_cleanup_close_ int log_fd = -1;
	_cleanup_close_ int read_fd = -1;
	struct progress p = { 0 };
	bool in_time;
	pid_t pid = 0;
	int r;

	snprintf(kmsg, sizeof(kmsg), "%s/dev/kmsg", place->root ? place->root : "");
	log_fd = np_klog_open(kmsg);
	r = start(&job, &read_fd, &pid, err);
	if (r < 0)
		return r;
	in_time = listen_to(read_fd, job.deadline_ms + GRACE_MS, lookup->name, result, &p);
	if (!in_time)
		part_with(pid, p.in_kernel, result);
	else if (!reap(pid, REAP_MS))
		result->abandoned = pid;
	if (p.r < 0)
		return np_err_nomem(err);
	if (in_time && p.over && p.last.event == NP_KMOD_END)
		return 0;
	return explain(place, spec, lookup, &p, !in_time, log_fd, result, err);
}

int np_kmod_load_at(const struct np_kmod_place *place, const struct np_kmod_load_spec *spec,
		    struct np_kmod_load_result *result, struct np_err *err)
{
	np_auto_kmod_lookup struct np_kmod_lookup lookup = { 0 };
	struct np_kmod now;
	int r;

	memset(result, 0, sizeof(*result));
	np_kmod_observe(spec->name, &now);
	if (now.state == NP_KMOD_LIVE || now.state == NP_KMOD_BUILTIN)
		return 0;
	r = check_options(spec->options ? spec->options : "", err);
	if (r == 0)
		r = np_kmod_look_up_at(place, spec->name, &lookup, err);
	if (r == 0 && lookup.builtin)
		return 0;
	if (r == 0)
		r = np_kmod_loadable(&lookup, spec->ignore_blacklist, err);
	if (r == 0)
		return load(place, spec, &lookup, result, err);
	np_strcpy(result->module, sizeof(result->module), *lookup.name ? lookup.name : spec->name);
	return r;
}

int np_kmod_load(const struct np_kmod_load_spec *spec, struct np_kmod_load_result *result,
		 struct np_err *err)
{
	const struct np_kmod_place here = { 0 };

	return np_kmod_load_at(&here, spec, result, err);
}

void np_kmod_load_result_done(struct np_kmod_load_result *result)
{
	if (!result)
		return;
	np_strv_done(&result->also_loaded);
	memset(result, 0, sizeof(*result));
}
