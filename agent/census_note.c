/* SPDX-License-Identifier: MIT */
/* A run of apply that finds nothing to do is a matter of a millisecond and takes no census.
 * Where the last one found what makes the node not ready, a note says so, and the next run
 * looks again: the same node is not ready with one run and ready with the next. */
#include <fcntl.h>
#include <unistd.h>

#include "agent/census.h"
#include "agent/result.h"
#include "agent/state.h"
#include "base/log.h"

/* What it says is for people; that it is there is what counts. */
#define NOTE NP_STATE_LIBRARIES

bool np_census_noted(void)
{
	return faccessat(AT_FDCWD, NP_STATE_DIR "/" NOTE, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	       faccessat(AT_FDCWD, NP_STATE_DIR_RUN "/" NOTE, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int write_note(const struct np_checks *checks, struct np_err *err)
{
	np_auto_state struct np_state state = NP_STATE_INIT;
	np_auto_buf struct np_buf text = { 0 };
	int r;

	for (size_t i = 0; i < checks->n; i++)
		if (np_streq(checks->v[i].id, "library") && checks->v[i].status == NP_CHECK_FAIL)
			np_buf_printf(&text, "%s %s\n", checks->v[i].code, checks->v[i].target);
	if (text.failed)
		return np_err_nomem(err);
	if (text.len == 0) {
		np_state_remove(NOTE);
		return 0;
	}
	r = np_state_open(&state, err);
	return r < 0 ? r : np_state_write(&state, NOTE, text.data, text.len, err);
}

void np_census_note(const struct np_checks *checks)
{
	struct np_err err = { 0 };

	if (write_note(checks, &err) < 0)
		np_debug("cannot note what the census found: %s", err.message);
}
