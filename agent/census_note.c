/* SPDX-License-Identifier: MIT */
/* A run of apply that finds nothing to do is a matter of a millisecond and takes no census.
 * Where the last one found what makes the node not ready, a note says so, and the next run
 * looks again: the same node is not ready with one run and ready with the next. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/census.h"
#include "agent/result.h"
#include "base/file.h"
#include "base/log.h"

#define STATE_DIR "/var/lib/nodeprep"
#define NOTE	  "libraries"

bool np_census_noted(void)
{
	return faccessat(AT_FDCWD, STATE_DIR "/" NOTE, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int write_note(const struct np_checks *checks)
{
	struct np_file_attr attr = { .mode = 0600, .uid = geteuid(), .gid = getegid() };
	_cleanup_close_ int dirfd = -1;
	np_auto_buf struct np_buf text = { 0 };
	struct np_err err = { 0 };

	for (size_t i = 0; i < checks->n; i++)
		if (np_streq(checks->v[i].id, "library") && checks->v[i].status == NP_CHECK_FAIL)
			np_buf_printf(&text, "%s %s\n", checks->v[i].code, checks->v[i].target);
	if (text.failed)
		return -ENOMEM;
	if (text.len == 0)
		return np_census_noted() && unlink(STATE_DIR "/" NOTE) < 0 ? -errno : 0;
	if (np_file_mkdirs(STATE_DIR, &err) < 0)
		return err.num;
	dirfd = open(STATE_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dirfd < 0)
		return -errno;
	np_file_sweep_temp(dirfd, NOTE);
	return np_file_replace_at(dirfd, NOTE, text.data, text.len, &attr, &err);
}

void np_census_note(const struct np_checks *checks)
{
	int r = write_note(checks);

	if (r < 0)
		np_debug("cannot note what the census found in " STATE_DIR ": %s", strerror(-r));
}
