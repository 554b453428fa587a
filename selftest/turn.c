/* SPDX-License-Identifier: MIT */
#include "selftest/turn.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/child.h"
#include "base/log.h"

#define LOOK_EVERY_US 500

static int file = -1;
static int64_t patience; /* ms that are left */

int np_turn_make(int patience_ms, struct np_err *err)
{
	file = memfd_create("nodeprep-turn", MFD_CLOEXEC);
	if (file < 0)
		return np_err_set(err, -errno, "internal", "memfd_create: %s", strerror(errno));
	patience = patience_ms;
	return 0;
}

static bool lock(short type)
{
	struct flock whole = { .l_type = type, .l_whence = SEEK_SET };

	return fcntl(file, F_SETLK, &whole) == 0;
}

void np_turn_take(bool alone)
{
	int64_t since;

	if (file < 0 || lock(alone ? F_WRLCK : F_RDLCK))
		return;
	since = np_now_ms();
	while (np_now_ms() - since < patience) {
		usleep(LOOK_EVERY_US);
		if (lock(alone ? F_WRLCK : F_RDLCK))
			break;
	}
	patience -= np_now_ms() - since;
	if (patience <= 0)
		np_debug("measuring beside others: one of them has not ended its turn");
}

void np_turn_give(void)
{
	if (file >= 0)
		lock(F_UNLCK);
}
