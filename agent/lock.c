/* SPDX-License-Identifier: MIT */
#include "agent/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/child.h"
#include "base/file.h"
#include "base/log.h"

#define LOCK_DIR  "/run/nodeprep"
#define LOCK_FILE LOCK_DIR "/lock"

/* Made by the first run; later ones find it. */
static int open_lock(struct np_err *err)
{
	int fd = open(LOCK_FILE, O_RDWR | O_NOFOLLOW | O_CLOEXEC), r;

	if (fd < 0 && errno == ENOENT && (mkdir(LOCK_DIR, 0755) == 0 || errno == EEXIST))
		fd = open(LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	r = -errno;
	np_err_set(err, r, "lock.unavailable", LOCK_FILE ": %s", strerror(-r));
	np_err_hint(err, "make " LOCK_DIR " writable");
	return r;
}

int np_lock(int timeout_s, struct np_err *err)
{
	int64_t deadline = np_now_ms() + (int64_t)timeout_s * 1000;
	int fd = open_lock(err), r;

	if (fd < 0)
		return fd;
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR) {
			r = -errno;
			np_err_set(err, r, "lock.unavailable", LOCK_FILE ": %s", strerror(-r));
			close(fd);
			return r;
		}
		if (np_interrupted()) {
			close(fd);
			np_err_set(err, -EINTR, "internal.interrupted",
				   "interrupted while waiting for another nodeprep to end");
			np_err_hint(err, "run it again");
			return -EINTR;
		}
		if (np_now_ms() >= deadline) {
			np_err_set(err, -EBUSY, "lock.busy",
				   "another nodeprep has been at work for %d s (lock " LOCK_FILE
				   ")",
				   timeout_s);
			np_err_hint(err, "wait for it to end; `fuser " LOCK_FILE "` names it");
			close(fd);
			return -EBUSY;
		}
		np_progress("waiting for another nodeprep to end");
		np_sleep_ms(50);
	}
	np_progress_done();
	return fd;
}
