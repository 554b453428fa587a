/* SPDX-License-Identifier: MIT */
#include "agent/execute.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/child.h"
#include "base/log.h"
#include "modules/gdrdrv.h"
#include "modules/load.h"
#include "modules/use.h"

#define MODULE_TIMEOUT_MS 30000

int np_action_file(const struct np_action *a, struct np_target_file *f)
{
	int r = a->user ? np_target_file_init_home(f, a->user, a->uid, a->gid, a->home,
						   strrchr(a->path, '/') + 1) :
			  np_target_file_init_etc(f, a->path);

	return r < 0 ? -ENOMEM : 0;
}

static void take_original(struct np_action *a)
{
	struct np_target_file f;

	if (np_action_file(a, &f) < 0)
		return;
	f.want_meta = true;
	np_target_file_read(&f);
	if (a->had_old && f.status == NP_TARGET_PRESENT) {
		a->attr = f.attr;
		np_file_meta_done(&a->old_meta);
		a->old_meta = f.meta;
		memset(&f.meta, 0, sizeof(f.meta));
	}
	if (a->has_new && !a->made_dir)
		a->made_dir = np_target_file_missing_dir(&f);
	np_target_file_done(&f);
}

void np_take_originals(struct np_actions *actions, size_t from)
{
	for (size_t i = from; i < actions->n; i++)
		if (actions->v[i].kind == NP_ACTION_FILE)
			take_original(&actions->v[i]);
}

static int run_file(const struct np_action *a, struct np_err *err)
{
	const char *data = a->new_content.data ? a->new_content.data : "";
	struct np_target_file f = { 0 };
	int r = np_action_file(a, &f);

	if (r < 0)
		return np_err_nomem(err);
	f.give_meta = a->new_meta.known ? &a->new_meta : NULL;
	f.drop_dir = a->drop_dir;
	r = np_target_file_write(&f, a->has_new ? data : NULL, a->new_content.len,
				 a->had_old || a->attr.mode ? &a->attr : NULL, err);
	np_target_file_done(&f);
	return r;
}

static int interrupted(struct np_err *err)
{
	np_err_set(err, -EINTR, "internal.interrupted", "interrupted by a signal");
	np_err_hint(err, "run it again; what was done has been undone");
	return -EINTR;
}

static int run_mode(struct np_netlink *nl, const struct np_action *a, struct np_err *err)
{
	int r = np_netdev_set_mode(a->ifname, (enum np_ipoib_mode)a->to_value, err);

	if (r == 0 && a->restore_mtu)
		r = np_netdev_set_mtu(nl, a->ifindex, a->ifname, a->restore_mtu, err);
	return r;
}

/* The message has the kernel's own line already. */
static int run_module(const struct np_action *a, struct np_err *err)
{
	np_auto_kmod_load_result struct np_kmod_load_result result = { 0 };
	struct np_kmod_use use;
	const struct np_kmod_load_spec spec = { .name = a->module,
						.options = a->options[0] ? a->options : NULL,
						.timeout_ms = MODULE_TIMEOUT_MS,
						.ignore_blacklist = a->ignore_blacklist };

	if (a->to_value)
		return np_kmod_load(&spec, &result, err);
	/* once more, at the last moment */
	np_kmod_use_observe(a->module, &use);
	if (use.state != NP_KMOD_ABSENT && np_kmod_kept(&use))
		return np_err_set(err, -EBUSY, "module.unload", "module %s stays: %s", a->module,
				  np_kmod_kept(&use));
	return np_kmod_unload(a->module, err);
}

static int run_node(const struct np_action *a, struct np_err *err)
{
	if (!a->has_new)
		return np_gdrdrv_remove_node((int)a->to_value, err);
	return np_gdrdrv_make_node((int)a->to_value, &a->new_attr, NULL, err);
}

static int run_action(struct np_netlink *nl, const struct np_action *a, struct np_err *err)
{
	switch (a->kind) {
	case NP_ACTION_MODE:
		return run_mode(nl, a, err);
	case NP_ACTION_MTU:
		return np_netdev_set_mtu(nl, a->ifindex, a->ifname, a->to_value, err);
	case NP_ACTION_LINK:
		return np_netdev_set_up(nl, a->ifindex, a->ifname, a->to_value != 0, err);
	case NP_ACTION_ADDR_ADD:
		return np_addr_add(nl, a->ifindex, a->ifname, &a->addr, err);
	case NP_ACTION_ADDR_DEL:
		return np_addr_del(nl, a->ifindex, a->ifname, &a->addr, err);
	case NP_ACTION_MODULE:
		return run_module(a, err);
	case NP_ACTION_GDRDRV_NODE:
		return run_node(a, err);
	case NP_ACTION_FILE:
		return run_file(a, err);
	}
	return np_err_set(err, -EINVAL, "internal.action", "unknown action");
}

/* A file that may not be touched, anything in a home, a module that does not load, its
 * node: a matter for the judgement, and no reason to take the rest back. */
static bool is_tolerated(const struct np_action *a, const struct np_err *err)
{
	if (a->kind == NP_ACTION_MODULE || a->kind == NP_ACTION_GDRDRV_NODE)
		return true;
	return a->kind == NP_ACTION_FILE && (a->user || np_streq(err->code, "file.refused"));
}

int np_execute(struct np_netlink *nl, struct np_actions *actions, size_t from, struct np_err *err)
{
	for (size_t i = from; i < actions->n; i++)
		actions->v[i].status = NP_STATUS_NOT_RUN;
	for (size_t i = from; i < actions->n; i++) {
		struct np_action *a = &actions->v[i];
		int r;

		if (np_interrupted())
			return interrupted(err);
		r = run_action(nl, a, err);
		if (r == 0) {
			a->status = NP_STATUS_DONE;
			np_debug("%s %s: done", np_action_id(a), np_action_target(a));
			continue;
		}
		a->status = NP_STATUS_FAILED;
		if (err && is_tolerated(a, err)) {
			free(a->failure);
			a->failure = strdup(err->message);
			np_strcpy(a->failure_code, sizeof(a->failure_code), err->code);
			np_strcpy(a->failure_hint, sizeof(a->failure_hint), err->hint);
			np_err_clear(err);
			continue;
		}
		np_err_context(err, "%s %s", np_action_id(a), np_action_target(a));
		if (err && !err->hint[0])
			np_err_hint(
				err,
				"put that right and run it again; what was done has been undone");
		return r;
	}
	return 0;
}

/* Is the file still as this run left it? What somebody wrote since is theirs. */
static bool is_untouched_since(const struct np_action *a)
{
	struct np_target_file f = { 0 };
	bool same;

	if (np_action_file(a, &f) < 0)
		return false;
	np_target_file_read(&f);
	same = a->has_new ?
		       f.status == NP_TARGET_PRESENT && np_buf_equal(&f.content, &a->new_content) :
		       f.status == NP_TARGET_ABSENT;
	np_target_file_done(&f);
	return same;
}

size_t np_rollback(struct np_netlink *nl, struct np_actions *actions, struct np_err *err)
{
	size_t lost = 0;

	np_err_clear(err);
	for (size_t i = actions->n; i-- > 0;) {
		struct np_action *a = &actions->v[i], undo = { 0 };
		struct np_err why = { 0 };
		int r;

		/* a module stays loaded: taking it away could take a stack down */
		if (a->status != NP_STATUS_DONE || (a->kind == NP_ACTION_MODULE && a->to_value))
			continue;
		if (a->kind == NP_ACTION_FILE && !is_untouched_since(a))
			r = np_err_set(&why, -ESTALE, "file.write",
				       "it was changed by somebody else since, and is left so");
		else
			r = np_action_invert(a, &undo);
		if (r == 0)
			r = run_action(nl, &undo, &why);
		np_action_done(&undo);
		/* the netdev went, and with it what was set on it */
		if (r == -ENODEV && a->kind != NP_ACTION_FILE)
			r = 0;
		if (r == 0) {
			a->status = NP_STATUS_UNDONE;
			continue;
		}
		np_error("cannot undo %s %s: %s", np_action_id(a), np_action_target(a),
			 why.message);
		if (lost++ == 0 && err)
			*err = why;
	}
	return lost;
}
