/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "agent/consumer_look.h"

int np_consumer_unit(const char *unit, struct np_consumer *out, struct np_err *err)
{
	(void)unit;
	(void)out;
	return np_err_set(err, -ENOENT, "show.no_unit", "no");
}
int np_consumer_process(pid_t pid, struct np_consumer *out, struct np_err *err)
{
	(void)pid;
	(void)out;
	return np_err_set(err, -ENOENT, "show.no_process", "no");
}
