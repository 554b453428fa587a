/* SPDX-License-Identifier: MIT */
#include "agent/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define STATE_DIR      "/var/lib/nodeprep"
#define JOURNAL_NAME   "journal.json"
#define LAST_NAME      "last-run.json"
#define JOURNAL_FORMAT 1

json_t *np_journal_encode(const struct np_actions *actions, const char *machine_id)
{
	json_t *list = json_array(), *journal;

	for (size_t i = 0; list && i < actions->n; i++) {
		if (json_array_append_new(list, np_action_encode(&actions->v[i])) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	journal = json_pack("{s:i, s:s, s:s, s:o}", "format", JOURNAL_FORMAT, "version", NP_VERSION,
			    "machine_id", machine_id, "actions", list);
	return journal;
}

int np_journal_decode(const json_t *journal, const char *machine_id, struct np_actions *out)
{
	np_auto_actions struct np_actions actions = { 0 };
	const char *machine;
	json_t *list;
	int format;

	if (json_unpack((json_t *)journal, "{s:i, s:s, s:o}", "format", &format, "machine_id",
			&machine, "actions", &list) < 0 ||
	    format != JOURNAL_FORMAT || !json_is_array(list))
		return -EINVAL;
	if (strcmp(machine, machine_id) != 0)
		return -EXDEV;
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct np_action a, *slot;
		int r = np_action_decode(json_array_get(list, i), &a);

		if (r < 0)
			return r;
		slot = np_actions_add(&actions, a.kind);
		if (!slot) {
			np_action_done(&a);
			return -ENOMEM;
		}
		*slot = a;
	}
	*out = actions;
	memset(&actions, 0, sizeof(actions));
	return 0;
}

static void read_machine_id(char *out, size_t size)
{
	char raw[64];

	if (np_file_read_line_at(AT_FDCWD, "/etc/machine-id", raw, sizeof(raw)) <= 0)
		np_strcpy(raw, sizeof(raw), "unknown");
	np_printable(raw, out, size);
}

static int open_state_dir(struct np_err *err)
{
	int fd, r = np_file_mkdirs(STATE_DIR, err);
	struct stat st;

	if (r < 0)
		return r;
	fd = open(STATE_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		r = -errno;
		np_err_set(err, r, "state.unwritable", STATE_DIR ": %s", strerror(-r));
		np_err_hint(err, "make " STATE_DIR " a directory of root");
	} else if (st.st_uid != geteuid() || (st.st_mode & 022)) {
		r = -EPERM;
		np_err_set(err, r, "state.unsafe",
			   STATE_DIR " can be written by others than root (owner %u, mode %04o)",
			   (unsigned int)st.st_uid, (unsigned int)st.st_mode & 07777);
		np_err_hint(err,
			    "look at what is in it, then chown root " STATE_DIR " and chmod 755");
	}
	if (r < 0 && fd >= 0)
		close(fd);
	return r < 0 ? r : fd;
}

int np_journal_write(const struct np_actions *actions, struct np_err *err)
{
	struct np_file_attr attr = { .mode = 0600, .uid = geteuid(), .gid = getegid() };
	_cleanup_close_ int dirfd = open_state_dir(err);
	_cleanup_free_ char *text = NULL;
	char machine_id[256];
	json_t *journal;
	int r;

	if (dirfd < 0)
		return dirfd;
	read_machine_id(machine_id, sizeof(machine_id));
	journal = np_journal_encode(actions, machine_id);
	text = journal ? json_dumps(journal, JSON_INDENT(1)) : NULL;
	json_decref(journal);
	if (!text)
		return np_err_nomem(err);
	np_file_sweep_temp(dirfd, JOURNAL_NAME);
	r = np_file_replace_at(dirfd, JOURNAL_NAME, text, strlen(text), &attr, err);
	if (r < 0) {
		np_err_set(err, r, "state.unwritable",
			   "cannot record the undo in " STATE_DIR ": %s", strerror(-r));
		np_err_hint(err, "make " STATE_DIR " writable");
	}
	return r;
}

void np_journal_set_aside(void)
{
	_cleanup_close_ int dirfd = open(STATE_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dirfd < 0 || faccessat(dirfd, JOURNAL_NAME, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	for (int n = 1; n < 100; n++) {
		char name[40];

		snprintf(name, sizeof(name), "interrupted-%d.json", n);
		if (renameat2(dirfd, JOURNAL_NAME, dirfd, name, RENAME_NOREPLACE) == 0 ||
		    errno != EEXIST)
			return;
	}
}

void np_journal_close(void)
{
	_cleanup_close_ int dirfd = open(STATE_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dirfd >= 0)
		renameat(dirfd, JOURNAL_NAME, dirfd, LAST_NAME);
}
