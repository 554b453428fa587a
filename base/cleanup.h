/* SPDX-License-Identifier: MIT */
#ifndef NP_BASE_CLEANUP_H
#define NP_BASE_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Cleanup attributes: fds start at -1, pointers at NULL. */

static inline void np_cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void np_cleanup_free(void *pointer)
{
	free(*(void **)pointer);
}

static inline void np_cleanup_fclose(FILE **stream)
{
	if (*stream)
		fclose(*stream);
}

static inline void np_cleanup_closedir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

#define np_auto(fn)	   __attribute__((cleanup(fn)))
#define _cleanup_close_	   np_auto(np_cleanup_close)
#define _cleanup_free_	   np_auto(np_cleanup_free)
#define _cleanup_fclose_   np_auto(np_cleanup_fclose)
#define _cleanup_closedir_ np_auto(np_cleanup_closedir)

#define np_must_check __attribute__((warn_unused_result))

#define NP_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Takes the value out of a cleanup variable. */
static inline int np_steal_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

static inline void *np_steal_pointer(void *pointer)
{
	void *taken = *(void **)pointer;

	*(void **)pointer = NULL;
	return taken;
}

#endif
