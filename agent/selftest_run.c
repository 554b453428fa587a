/* SPDX-License-Identifier: MIT */
#include "agent/selftest_run.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/login_limits.h"
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

const char *const np_rung_names[] = { "tcp", "rc", NULL };

struct runner {
	const struct np_rung_options *options;
	int program_fd;
	bool switch_user;
	uid_t uid;
	gid_t gid;
	char user[33]; /* whom the rungs run as */
	bool has_limit;
	struct np_user_limit limit; /* that user's at login */
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
	if (run->options->as_root || geteuid() != 0) {
		if (np_user_by_uid(geteuid(), &user, NULL) == 0)
			np_strcpy(run->user, sizeof(run->user), user.name);
		return 0;
	}
	r = np_user_by_name(name, &user, run->err);
	if (r < 0) {
		if (run->options->run_as)
			np_err_context(run->err, "--run-as");
		return r;
	}
	run->switch_user = true;
	run->uid = user.uid;
	run->gid = user.gid;
	np_strcpy(run->user, sizeof(run->user), user.name);
	return 0;
}

/* What the user's jobs can pin is what counts, not what the caller can: a service that
 * starts nodeprep often has another limit than a login. */
static void choose_limit(struct runner *run)
{
	char soft[NP_MEMLOCK_STRLEN];
	struct np_err err = { 0 };

	run->has_limit = *run->user && np_user_limit(run->user, &run->limit, &err) == 0;
	if (run->has_limit)
		np_debug("user %s gets memlock %s at login (%s)", run->user,
			 np_memlock_str(run->limit.limit.soft, soft), run->limit.source);
	else
		np_debug("the rungs keep the memlock limit of nodeprep itself: %s",
			 *run->user ? err.message : "this user is not in the password database");
}

/* UCX reads ./ucx.conf: the rungs start in a directory that holds nothing. */
static const char *empty_dir(void)
{
	mkdir("/run/nodeprep", 0755);
	if (mkdir(EMPTY_DIR, 0555) == 0 || errno == EEXIST)
		return EMPTY_DIR;
	return "/";
}

static int add_failed(struct runner *run, const char *rung, const char *device, const char *status,
		      const char *code, const char *message, const char *hint)
{
	json_t *entry = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:n, s:n, s:n, s:[]}",
				  "rung", rung, "device", device, "transport", "", "status", status,
				  "code", code, "message", message, "hint", hint, "size_bytes",
				  "latency_us", "bandwidth_MBps", "sizes");

	return json_array_append_new(run->entries, entry) < 0 ? np_err_nomem(run->err) : 0;
}

static bool is_one_of(const char *word, const char *const *words)
{
	for (; word && *words; words++)
		if (strcmp(word, *words) == 0)
			return true;
	return false;
}

/* Copies member @key when it has the type of the schema. */
static bool copy_member(json_t *to, const json_t *from, const char *key, bool is_text)
{
	json_t *value = json_object_get(from, key);

	if (is_text ? !json_is_string(value) : !(json_is_number(value) || json_is_null(value)))
		return false;
	return json_object_set(to, key, value) == 0;
}

static bool copy_sizes(json_t *to, const json_t *from)
{
	static const char *const numbers[] = { "size_bytes", "latency_us", "bandwidth_MBps" };
	const json_t *list = json_object_get(from, "sizes"), *row;
	json_t *sizes = json_array();
	bool good = json_is_array(list) && json_array_size(list) <= 64;
	size_t i;

	json_array_foreach (list, i, row) {
		json_t *copy = json_object();

		for (size_t k = 0; good && k < NP_ARRAY_SIZE(numbers); k++)
			good = copy_member(copy, row, numbers[k], false);
		json_array_append_new(sizes, copy);
		if (!good)
			break;
	}
	return json_object_set_new(to, "sizes", sizes) == 0 && good;
}

/* The child is not trusted: its entry is taken member by member, for the rung and the
 * device that were asked for. NULL when it is not what it must be. */
static json_t *clean_entry(const json_t *entry, const char *rung, const char *device)
{
	static const char *const texts[] = { "rung", "device",	"transport", "status",
					     "code", "message", "hint" };
	static const char *const numbers[] = { "size_bytes", "latency_us", "bandwidth_MBps" };
	static const char *const states[] = { "ok", "fail", "skip", NULL };
	json_t *clean = json_object();
	bool good = clean != NULL;

	for (size_t i = 0; good && i < NP_ARRAY_SIZE(texts); i++)
		good = copy_member(clean, entry, texts[i], true);
	for (size_t i = 0; good && i < NP_ARRAY_SIZE(numbers); i++)
		good = copy_member(clean, entry, numbers[i], false);
	good = good && copy_sizes(clean, entry) &&
	       np_streq(json_string_value(json_object_get(clean, "rung")), rung) &&
	       np_streq(json_string_value(json_object_get(clean, "device")), device) &&
	       is_one_of(json_string_value(json_object_get(clean, "status")), states);
	/* what is ok was measured */
	if (good && np_streq(json_string_value(json_object_get(clean, "status")), "ok"))
		good = json_array_size(json_object_get(clean, "sizes")) > 0;
	if (good)
		return clean;
	json_decref(clean);
	return NULL;
}

/* The child knows its limit alone; where that comes from is known here. */
static int explain_memlock(struct runner *run, const struct np_child_result *result)
{
	json_t *entry = json_array_get(run->entries, json_array_size(run->entries) - 1), *text;
	const char *code = json_string_value(json_object_get(entry, "code"));
	const char *said = json_string_value(json_object_get(entry, "message"));
	size_t len = code ? strlen(code) : 0;
	char login[NP_MEMLOCK_STRLEN];

	if (!run->has_limit || len < 8 || strcmp(code + len - 8, ".memlock") != 0)
		return 0;
	if (result->memlock_less)
		text = json_sprintf("%s, all that can be given here; user %s gets %s at login (%s)",
				    said, run->user, np_memlock_str(run->limit.limit.soft, login),
				    run->limit.source);
	else
		text = json_sprintf("%s, as user %s gets it at login (%s)", said, run->user,
				    run->limit.source);
	if (json_object_set_new(entry, "message", text) < 0)
		return -ENOMEM;
	if (result->memlock_less)
		text = json_string("raise the memlock limit of what starts nodeprep, or give it "
				   "CAP_SYS_RESOURCE");
	else if (*run->limit.source == '/')
		text = json_sprintf("correct %s, or set [limits] memlock = unlimited and run "
				    "nodeprep apply",
				    run->limit.source);
	else
		text = json_string("set [limits] memlock = unlimited and run nodeprep apply");
	return json_object_set_new(entry, "hint", text) < 0 ? -ENOMEM : 0;
}

/* The child's document, if it is one: exactly one entry, and an exit code that says
 * the same. Returns 0, -EPROTO or -ENOMEM. */
static int take_document(struct runner *run, const char *rung, const char *device,
			 const struct np_child_result *result)
{
	json_error_t error;
	json_t *doc =
		json_loadb(result->out.data ? result->out.data : "", result->out.len, 0, &error);
	json_t *entries = json_object_get(doc, "selftest"), *clean = NULL;
	int r = -EPROTO;

	if (json_array_size(entries) == 1)
		clean = clean_entry(json_array_get(entries, 0), rung, device);
	if (clean) {
		bool ok = np_streq(json_string_value(json_object_get(clean, "status")), "ok");

		r = result->exit_status == (ok ? 0 : 1) ? 0 : -EPROTO;
	}
	if (r == 0)
		r = json_array_append_new(run->entries, clean) < 0 ? -ENOMEM :
								     explain_memlock(run, result);
	else
		json_decref(clean);
	json_decref(doc);
	return r;
}

static int add_crash(struct runner *run, const char *rung, const char *device,
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
	return add_failed(run, rung, device, "fail",
			  result->timed_out ? "selftest.timeout" : "selftest.crashed", message,
			  "run nodeprep selftest --verbose and read its log");
}

static void pass_log(const char *rung, const struct np_buf *log)
{
	np_auto_strv struct np_strv lines = { 0 };

	if (log->len == 0 || np_strv_split(&lines, log->data, "\n") < 0)
		return;
	for (size_t i = 0; i < lines.n; i++)
		np_debug("selftest %s: %s", rung, lines.v[i]);
}

static int run_rung(struct runner *run, const char *rung, const char *device, const char *netdev,
		    const char *address)
{
	np_auto_strv struct np_strv env = { 0 };
	np_auto_child_result struct np_child_result result = { 0 };
	const char *argv[16 + 2 * ENV_MAX] = { PROGRAM, rung };
	char timeout[16], memlock[NP_MEMLOCK_STRLEN];
	size_t n = 2;
	struct np_child_spec spec = {
		.exec_fd = run->program_fd,
		.argv = argv,
		.cwd = empty_dir(),
		.switch_user = run->switch_user,
		.uid = run->uid,
		.gid = run->gid,
		.memlock = run->has_limit ? &run->limit.limit : NULL,
		.timeout_ms = run->options->timeout_ms,
		.stdout_max = DOCUMENT_MAX,
		.stderr_max = 1 << 16,
	};
	int r;

	if (device) {
		argv[n++] = "--device";
		argv[n++] = device;
	}
	if (netdev) {
		argv[n++] = "--netdev";
		argv[n++] = netdev;
	}
	if (address) {
		argv[n++] = "--address";
		argv[n++] = address;
	}
	argv[n++] = run->options->full ? "--full" : "--quick";
	/* its own deadline comes first (its alarm 3 s after that), so that it can still
	 * say what hung */
	snprintf(timeout, sizeof(timeout), "%d",
		 run->options->timeout_ms > 12000 ? run->options->timeout_ms - 5000 :
						    run->options->timeout_ms / 2);
	argv[n++] = "--timeout-ms";
	argv[n++] = timeout;
	/* not by its environment: it drops what could lead UCX astray */
	for (size_t i = 0; run->options->env && i < run->options->env->n && i < ENV_MAX; i++) {
		argv[n++] = "--env";
		argv[n++] = run->options->env->v[i];
	}
	if (np_strv_add(&env, "PATH=/usr/sbin:/usr/bin:/sbin:/bin") < 0 ||
	    np_strv_add(&env, "LC_ALL=C") < 0)
		return np_err_nomem(run->err);
	spec.envp = (const char *const *)env.v;
	np_progress("selftest %s %s", rung, device ? device : netdev ? netdev : "");
	r = np_child_run(&spec, &result, run->err);
	np_progress_done();
	if (r < 0)
		return r;
	pass_log(rung, &result.log);
	if (result.memlock_less)
		np_debug("selftest %s: memlock %s is all that can be given here", rung,
			 np_memlock_str(result.memlock.soft, memlock));
	if (result.interrupted)
		return np_err_set(run->err, -EINTR, "internal.interrupted",
				  "interrupted during the self-test");
	r = result.timed_out || result.term_signal ? -EPROTO :
						     take_document(run, rung,
								   device ? device :
								   netdev ? netdev :
									    "",
								   &result);
	if (r == -EPROTO)
		return add_crash(run, rung, device ? device : netdev ? netdev : "", &result);
	return r < 0 ? np_err_nomem(run->err) : 0;
}

static int run_tcp(struct runner *run, const struct np_selection *sel)
{
	const struct np_netdev *dev = sel->primary;
	char address[NP_INET_STRLEN];

	for (size_t i = 0; dev && i < dev->n_addrs; i++)
		if (dev->addrs[i].scope != RT_SCOPE_LINK)
			return run_rung(run, "tcp", NULL, dev->name,
					np_inet_addr_str(&dev->addrs[i].inet, address));
	return add_failed(run, "tcp", dev ? dev->name : "", "skip", "selftest.tcp.no_address",
			  dev ? "the IPoIB netdev has no IP address" :
				"no IPoIB netdev, or several that could be meant",
			  dev ? "give it an address: nodeprep apply --ip ADDR/LEN" :
				"name it with --ifname");
}

static int run_rc(struct runner *run, const struct np_config *cfg, const struct np_facts *facts)
{
	size_t n = 0;

	for (size_t i = 0; i < facts->cas.n; i++) {
		const struct np_ca *ca = &facts->cas.v[i];

		for (size_t p = 0; p < ca->n_ports; p++) {
			char name[80];
			int r;

			if (np_port_role(cfg, ca, &ca->ports[p]) != NP_PORT_WANTED)
				continue;
			n++;
			snprintf(name, sizeof(name), "%s:%d", ca->name, ca->ports[p].num);
			if (np_port_usable(cfg, ca, &ca->ports[p]))
				r = run_rung(run, "rc", name, NULL, NULL);
			else
				r = add_failed(
					run, "rc", name, "skip", "selftest.rc.port_not_active",
					"the port is not usable, so there is no data path to try",
					"bring the port to ACTIVE first");
			if (r < 0)
				return r;
		}
	}
	if (n == 0)
		return add_failed(run, "rc", "", "skip", "selftest.rc.no_port",
				  "no InfiniBand port to try", "load the driver of the adapter");
	return 0;
}

int np_selftest_run(const struct np_config *cfg, const struct np_facts *facts,
		    const struct np_selection *sel, const struct np_rung_options *options,
		    json_t *entries, struct np_err *err)
{
	_cleanup_close_ int program_fd = open_program(err);
	struct runner run = {
		.options = options, .program_fd = program_fd, .entries = entries, .err = err
	};
	bool all = options->rungs->n == 0;
	int r;

	if (program_fd < 0)
		return program_fd;
	r = choose_user(&run);
	if (r == 0)
		choose_limit(&run);
	if (r == 0 && (all || np_strv_has(options->rungs, "tcp")))
		r = run_tcp(&run, sel);
	if (r == 0 && (all || np_strv_has(options->rungs, "rc")))
		r = run_rc(&run, cfg, facts);
	return r;
}
