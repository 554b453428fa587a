/* SPDX-License-Identifier: MIT */
#ifndef NP_BASE_PROCESS_H
#define NP_BASE_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/str.h"

/* Other processes, as /proc shows them. */

#define NP_COMM_SIZE 16 /* TASK_COMM_LEN, linux/sched.h: longer names are cut there */

/* Calls fn(pid, comm, arg) for every process that can be seen (comm may be ""), until it returns other
 * than 0. One open, read and close each: about 2 us. Returns what fn returned, 0, or a
 * negative errno when /proc cannot be read, or one that is there could not be looked at for
 * another reason than its rights (-EMFILE). */
int np_processes_each(int (*fn)(pid_t pid, const char *comm, void *arg), void *arg) np_must_check;

/* The name of one; "" and -ENOENT when it is gone. */
int np_process_comm(pid_t pid, char out[NP_COMM_SIZE]);

/* Its parent, or a negative errno. */
pid_t np_process_parent(pid_t pid);

/* Calls fn(pid, target, arg) for every open descriptor of every process that can be seen,
 * with what /proc/PID/fd says of it ("socket:[4711]", "/dev/gdrdrv"), until it returns other
 * than 0. About 2 us each; ends with -E2BIG after NP_DESCRIPTORS_MAX. What may not be looked
 * at is left out. Returns what fn returned, 0, or a negative errno. */
#define NP_DESCRIPTORS_MAX 1000000
int np_descriptors_each(int (*fn)(pid_t pid, const char *target, void *arg),
			void *arg) np_must_check;

/* The systemd unit that it belongs to by its control group: the innermost ".service" or
 * ".scope" of /proc/PID/cgroup. False: none to be seen, as in a container. */
bool np_process_unit(pid_t pid, char *out, size_t size);

/* The same of the text of that file. Pure. */
bool np_cgroup_unit(const char *text, char *out, size_t size);

/* Where the control groups of system units lie: the unified hierarchy, and systemd's own
 * tree beside those of version 1. */
#define NP_SYSTEM_SLICES 2
extern const char *const np_system_slices[NP_SYSTEM_SLICES];

#endif
