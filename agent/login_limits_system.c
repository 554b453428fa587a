/* SPDX-License-Identifier: MIT */
/* The limits of logins on this system: its files, users and processes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/login_limits.h"
#include "base/file.h"
#include "base/process.h"
#include "base/user.h"

#define TEXT_MAX (256 * 1024)

/* ---- the files ---- */

static int read_text(struct np_limit_texts *texts, const char *path)
{
	np_auto_buf struct np_buf content = { 0 };
	int num = np_file_read_at(AT_FDCWD, path, TEXT_MAX, &content), r;

	if (num == -ENOENT || num == -EISDIR)
		return 0;
	r = np_limit_texts_add(texts, path, content.data ? content.data : "", content.len);
	if (r == 0)
		texts->v[texts->n - 1].num = num;
	return r;
}

static int is_conf(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return *entry->d_name != '.' && len > 5 && strcmp(entry->d_name + len - 5, ".conf") == 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

int np_limit_texts_read(struct np_limit_texts *out)
{
	np_auto_limit_texts struct np_limit_texts texts = { 0 };
	int r = read_text(&texts, NP_LIMITS_CONF), n;
	struct dirent **names = NULL;

	n = scandir(NP_LIMITS_DIR, &names, is_conf, by_bytes);
	if (n < 0 && errno == ENOMEM)
		r = -ENOMEM;
	for (int i = 0; i < n; i++) {
		char path[sizeof(NP_LIMITS_DIR) + sizeof(names[i]->d_name) + 1];

		snprintf(path, sizeof(path), NP_LIMITS_DIR "/%s", names[i]->d_name);
		if (r == 0)
			r = read_text(&texts, path);
		free(names[i]);
	}
	free(names);
	if (r < 0)
		return r;
	*out = texts;
	memset(&texts, 0, sizeof(texts));
	return 0;
}

/* ---- where nothing is said ---- */

struct login_service {
	pid_t pid;
	char comm[NP_COMM_SIZE];
};

/* sshd's listener; a session's own sshd has that user's limits. Else what else PID 1
 * starts and starts sessions, or is started like that. */
static int consider(pid_t pid, const char *comm, void *arg)
{
	static const char *const others[] = { "systemd-logind", "login", "agetty",
					      "crond",		"cron",	 NULL };
	struct login_service *found = arg;
	bool sshd = strcmp(comm, "sshd") == 0, other = false;

	for (size_t i = 0; others[i]; i++)
		other |= strcmp(comm, others[i]) == 0;
	if ((!sshd && !(other && !found->pid)) || np_process_parent(pid) != 1)
		return 0;
	found->pid = pid;
	np_strcpy(found->comm, sizeof(found->comm), comm);
	return sshd ? 1 : 0;
}

static void limit_of_service(struct np_memlock *out, char *source, size_t size)
{
	struct login_service found = { 0 };

	if (np_processes_each(consider, &found) >= 0 && found.pid &&
	    np_memlock_of(found.pid, out) == 0) {
		snprintf(source, size, "the limit of %s (process %d)", found.comm, (int)found.pid);
		return;
	}
	if (np_memlock_of(1, out) == 0) {
		np_strcpy(source, size, "the limit of PID 1");
		return;
	}
	np_strcpy(source, size, "the limit of nodeprep itself");
	if (np_memlock_of(0, out) < 0)
		*out = (struct np_memlock){ 0 };
}

/* Debian and what is made of it have a pam_limits of their own. */
static bool is_debian(void)
{
	return access("/etc/debian_version", F_OK) == 0;
}

bool np_limit_refuses_login(uint64_t hard)
{
	struct np_memlock own;

	if (is_debian() || np_memlock_of(0, &own) < 0 || own.hard >= hard)
		return false;
	return prctl(PR_CAPBSET_READ, CAP_SYS_RESOURCE) == 0;
}

/* ---- one user ---- */

static int fill_user(const char *name, struct np_user *entry, gid_t **gids,
		     struct np_limit_user *out, struct np_err *err)
{
	int r = np_user_by_name(name, entry, err);

	if (r < 0)
		return r;
	r = np_user_groups(entry->name, entry->gid, gids, &out->n_gids);
	if (r < 0)
		return np_err_nomem(err);
	out->name = entry->name;
	out->uid = entry->uid;
	out->gid = entry->gid;
	out->gids = *gids;
	out->group_gid = np_group_by_name;
	out->root_by_name = is_debian();
	return 0;
}

static const struct np_limit_rule *decisive(const struct np_login_limit *limit)
{
	const struct np_limit_rule *soft = limit->soft;

	/* a hard limit below the soft one is what counts */
	return limit->hard && (!soft || limit->hard->value < soft->value) ? limit->hard : soft;
}

/* What cannot be read is unknown, and so is the limit. */
static int refuse_guess(const struct np_limit_texts *texts, struct np_err *err)
{
	for (size_t i = 0; i < texts->n; i++)
		if (texts->v[i].num < 0)
			return np_err_set(err, texts->v[i].num, "limits.unreadable",
					  "%s cannot be read: %s", texts->v[i].path,
					  strerror(-texts->v[i].num));
	return 0;
}

int np_user_limit(const char *user, struct np_user_limit *out, struct np_err *err)
{
	np_auto_limit_texts struct np_limit_texts texts = { 0 };
	np_auto_limit_rules struct np_limit_rules rules = { 0 };
	np_auto_user struct np_user entry = { 0 };
	_cleanup_free_ gid_t *gids = NULL;
	char service[NP_LIMIT_SOURCE], source[NP_LIMIT_SOURCE];
	struct np_limit_user who = { 0 };
	struct np_memlock base, untouched;
	struct np_login_limit limit;
	int r = fill_user(user, &entry, &gids, &who, err);

	if (r < 0)
		return r;
	if (np_limit_texts_read(&texts) < 0 || np_limit_rules_parse(&texts, &rules) < 0)
		return np_err_nomem(err);
	limit_of_service(&untouched, service, sizeof(service));
	base = untouched;
	np_strcpy(source, sizeof(source), service);
	/* Debian's pam_limits starts from /proc/1/limits */
	if (who.root_by_name && np_memlock_of(1, &base) == 0)
		np_strcpy(source, sizeof(source), "the limit of PID 1");
	np_login_limit(&rules, &who, NULL, &base, &untouched, &limit);
	out->limit = limit.limit;
	if (limit.switched_off)
		snprintf(out->source, sizeof(out->source), "%.120s, since %.120s:%d sets none",
			 service, limit.switched_off->path, limit.switched_off->line);
	else if (decisive(&limit))
		np_limit_source(decisive(&limit), out->source);
	else
		np_strcpy(out->source, sizeof(out->source), source);
	return refuse_guess(&texts, err);
}
