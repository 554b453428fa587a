/* SPDX-License-Identifier: MIT */
#include "selftest/threads.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct job {
	np_part *part;
	void *arg;
	size_t number;
	pthread_t thread;
	bool apart; /* in a thread of its own */
	int ret;
	struct np_err err;
};

static void *work(void *arg)
{
	struct job *job = arg;

	job->ret = job->part(job->arg, job->number, &job->err);
	return NULL;
}

int np_threads_each(size_t n, np_part *part, void *arg, struct np_err *err)
{
	_cleanup_free_ struct job *jobs = calloc(n, sizeof(*jobs));
	const struct job *failed = NULL;

	if (n > 0 && !jobs)
		return np_err_nomem(err);
	for (size_t i = 0; i < n; i++) {
		jobs[i] = (struct job){ .part = part, .arg = arg, .number = i };
		jobs[i].apart = i > 0 && pthread_create(&jobs[i].thread, NULL, work, &jobs[i]) == 0;
	}
	for (size_t i = 0; i < n; i++)
		if (!jobs[i].apart)
			work(&jobs[i]);
	for (size_t i = 0; i < n; i++) {
		if (jobs[i].apart)
			pthread_join(jobs[i].thread, NULL);
		if (jobs[i].ret < 0 && !failed)
			failed = &jobs[i];
	}
	if (!failed)
		return 0;
	*err = failed->err;
	return failed->ret;
}
