/* SPDX-License-Identifier: MIT */
#ifndef NP_AGENT_NOW_H
#define NP_AGENT_NOW_H

#include "agent/action.h"
#include "modules/gdrdrv.h"
#include "modules/use.h"

/* How the things that some actions are about stand at this moment: what an undo has to be
 * planned with. */
struct np_now {
	struct np_netdevs netdevs;
	struct np_routes routes;
	struct np_target_file *files;
	size_t n_files;
	struct np_kmod_use *kmods;
	size_t n_kmods;
	struct np_gdrdrv gdrdrv;
};

/* Looks at everything that @actions name; changes nothing. @out is replaced. Returns 0 or a
 * negative errno with message. */
int np_now_observe(const struct np_actions *actions, struct np_now *out,
		   struct np_err *err) np_must_check;
/* A netdev may have been given another name since: the actions of this boot get the one that it
 * has now, by its ifindex. One that is not there any more keeps its old name. Returns 0 or a
 * negative errno with message. */
int np_now_follow_names(struct np_actions *actions, struct np_err *err) np_must_check;

void np_now_done(struct np_now *now);
#define np_auto_now np_auto(np_now_done)

/* NULL where it was not looked at, or (netdevs) is not there. */
const struct np_target_file *np_now_file(const struct np_now *now, const char *path);
const struct np_kmod_use *np_now_kmod(const struct np_now *now, const char *name);
const struct np_netdev_addr *np_now_addr(const struct np_now *now, const char *ifname,
					 const struct np_inet *inet);

/* Does it stand as it did before the action, or as it does after it? Pure. */
bool np_now_is_before(const struct np_now *now, const struct np_action *a);
bool np_now_is_after(const struct np_now *now, const struct np_action *a);

#endif
